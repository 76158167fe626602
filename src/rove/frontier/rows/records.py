"""The rows that the inspecting commands and the catalog read. Their columns are in the order of the records' fields."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

from rove.errors import FrontierError
from rove.frontier.records import DomainRecord, Exclusion, FailingDomain, UrlRecord
from rove.frontier.retries import KnownUrl, Retry
from rove.frontier.rows.visits import pace_from
from rove.frontier.runs import Participant
from rove.frontier.sanitize import storable
from rove.frontier.seed_source import SeedSource
from rove.model.instructions import Instruction, InstructionKind, Instructions, instruction_text, parse_instruction
from rove.model.urls import UrlState
from rove.policy.retry_filter import RetryFilter
from rove.urls.keyed_hash import SECRET_BYTES

T = TypeVar("T", Exclusion, KnownUrl, Participant, SeedSource, UrlRecord)
_SECRET = re.compile(rf"[0-9a-f]{{{2 * SECRET_BYTES}}}")
_PROGRESS = ("id", "offset", "lines", "good", "bad", "unseen", "retried", "refused", "finished")


def url_record(row: Iterable[Any]) -> UrlRecord:
    """Build a URL from a row of url_record."""
    return _record(UrlRecord, row, state=UrlState, is_seed=bool)


def domain_record(row: Sequence[Any]) -> DomainRecord:
    """Build a domain from a row of domain_record."""
    id, name, ready_in, free_in, crawl_delay, backoff, failures, repeats, answered, pending, *flags = row
    is_leased, is_excluded, is_capped, has_urls = map(bool, flags)
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
        has_urls=has_urls,
    )


def failing_domain(row: Sequence[Any]) -> FailingDomain:
    """Build a failing domain from a row of failing_domains."""
    name, pending, ready_in, error = row
    return FailingDomain(name=name, pending=pending, ready_in=ready_in / 1000, error=error or "")


def participant(node: str, is_here: bool, row: Iterable[Any]) -> Participant:
    """Build a process from a row of participants, without the columns of its node."""
    return _record(Participant, (node, is_here, *row), has_left=bool, is_paused=bool)


def new_secret() -> str:
    """Return the value of the meta row of a new crawl's secret."""
    return secrets.token_hex(SECRET_BYTES)


def secret_from(text: str | None, location: str) -> bytes:
    """Return the secret in its meta row; FrontierError if there is none, or if it is damaged."""
    secret = bytes.fromhex(text) if text is not None and _SECRET.fullmatch(text) else None
    if secret is None:
        raise FrontierError(
            f"{location} has lost the secret that its URLs are numbered with; restore the database from a backup"
        )
    return secret


def instructions(meta: Mapping[str, str | None]) -> Instructions:
    """Build the instructions from the values of their meta rows, which are empty when they were withdrawn."""
    return Instructions(**{key: parse_instruction(text) for key, text in meta.items() if text})


def instruction_meta(kind: InstructionKind, instruction: Instruction | None) -> dict[str, str]:
    """Return the parameters of set_meta."""
    return {"key": kind, "value": "" if instruction is None else instruction_text(instruction)}


def exclusion(row: Iterable[Any]) -> Exclusion:
    """Build an exclusion from a row of exclusion_history."""
    return _record(Exclusion, row, lifted_wall=lambda wall: wall or 0.0, lifted_by=lambda who: who or "")


def seed_source(row: Iterable[Any]) -> SeedSource:
    """Build a seed file from a row of seed_sources; SQLite has no columns for the last two fields."""
    return _record(SeedSource, row, finished=bool)


def seed_progress(source: SeedSource) -> dict[str, Any]:
    """Return the parameters of update_seed_source."""
    return {name: getattr(source, name) for name in _PROGRESS}


def known_url(row: Iterable[Any]) -> KnownUrl:
    """Build a URL from a row with the columns of the fragment known_url."""
    return _record(KnownUrl, row, state=UrlState, assume_https=bool, is_waiting=bool)


def retry_record(row: Sequence[Any]) -> Retry:
    """Build a retry from a row of retries."""
    id, at, ended, wall, who, urls, delay, error, status, domain, domain_name, only_seeds, source = row
    return Retry(
        id=id,
        at=at,
        ended=ended,
        wall=wall,
        who=who,
        urls=urls,
        delay=delay / 1000,
        filter=RetryFilter(
            error=error,
            status=status,
            domain=domain,
            domain_name=domain_name,
            only_seeds=bool(only_seeds),
            source=source,
        ),
    )


def retry_values(filter: RetryFilter, *, who: str, delay: float) -> dict[str, Any]:
    """Return the parameters of begin_retry, without the times."""
    return {**asdict(filter), "source": storable(filter.source), "who": who, "delay": round(delay * 1000)}


def _record(kind: type[T], row: Iterable[Any], **convert: Callable[[Any], Any]) -> T:
    values = dict(zip((field.name for field in fields(kind)), row, strict=False))
    return kind(**values | {name: converted(values[name]) for name, converted in convert.items()})
