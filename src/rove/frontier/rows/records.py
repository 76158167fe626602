"""The rows that the inspecting commands and the catalog read. Their columns are in the order of the records' fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from rove.frontier.contract import DomainRecord, Exclusion, FailingDomain, SeedSource, UrlRecord
from rove.frontier.rows.visits import pace_from
from rove.frontier.runs import Participant
from rove.model.urls import UrlState

T = TypeVar("T", Exclusion, Participant, SeedSource, UrlRecord)


def url_record(row: Iterable[Any]) -> UrlRecord:
    """Build a URL from a row of url_record."""
    return _record(UrlRecord, row, state=UrlState)


def domain_record(row: Sequence[Any]) -> DomainRecord:
    """Build a domain from a row of domain_record."""
    id, name, ready_in, free_in, crawl_delay, backoff, failures, repeats, answered, pending, *flags = row
    is_leased, is_excluded, is_capped = map(bool, flags)
    return DomainRecord(
        id=id,
        name=name,
        ready_in=None if ready_in is None else ready_in / 1000,
        free_in=free_in / 1000,
        crawl_delay=crawl_delay / 1000,
        pace=pace_from(backoff, failures, repeats, answered),
        pending=pending,
        is_leased=is_leased,
        is_excluded=is_excluded,
        is_capped=is_capped,
    )


def failing_domain(row: Sequence[Any]) -> FailingDomain:
    """Build a failing domain from a row of failing_domains."""
    name, pending, ready_in, error = row
    return FailingDomain(name=name, pending=pending, ready_in=ready_in / 1000, error=error or "")


def participant(node: str, is_here: bool, row: Iterable[Any]) -> Participant:
    """Build a process from a row of participants, without the columns of its node."""
    return _record(Participant, (node, is_here, *row), has_left=bool)


def exclusion(row: Iterable[Any]) -> Exclusion:
    """Build an exclusion from a row of exclusion_history."""
    return _record(Exclusion, row, lifted_wall=lambda wall: wall or 0.0, lifted_by=lambda who: who or "")


def seed_source(row: Iterable[Any]) -> SeedSource:
    """Build a seed file from a row of seed_sources; SQLite has no columns for the last two fields."""
    return _record(SeedSource, row, finished=bool)


def seed_progress(source: SeedSource) -> dict[str, Any]:
    """Return the parameters of update_seed_source."""
    return {name: getattr(source, name) for name in ("id", "offset", "lines", "good", "bad", "finished")}


def _record(kind: type[T], row: Iterable[Any], **convert: Callable[[Any], Any]) -> T:
    values = dict(zip((field.name for field in fields(kind)), row, strict=False))
    return kind(**values | {name: converted(values[name]) for name, converted in convert.items()})
