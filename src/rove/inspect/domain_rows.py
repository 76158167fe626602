"""Rows of the list of domains, as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rove.frontier.domain_list import DomainState, ListedDomain
from rove.inspect.delays import delays_of
from rove.inspect.request_rows import DELAY_REASONS
from rove.inspect.table import table_lines
from rove.model.ledger import DelaySource
from rove.notation.humanize import precise, seconds_text

_TITLES = ("domain", "state", "pages", "pending", "next visit", "failures", "last error", "delay")


def domain_delays(domain: ListedDomain, delay: float) -> Mapping[DelaySource, float]:
    """Return why a domain is left alone, in seconds; the first reason is in force. `delay` is the operator's."""
    last = (domain.last_delay_from, domain.last_delay) if domain.free_in > 0 and domain.last_delay else None
    return delays_of(delay, domain.crawl_delay, domain.pace, last)


def domain_json(domain: ListedDomain, delay: float) -> dict[str, Any]:
    """Return the object that `domains --json` prints for a domain: the same keys for every one."""
    source, seconds = next(iter(domain_delays(domain, delay).items()))
    return {
        "domain": domain.name,
        "state": domain.state.value,
        "pages": domain.pages,
        "pending": domain.pending,
        "next_visit_in_s": domain.ready_in,
        "failures": domain.pace.failures,
        "last_error": domain.error or None,
        "delay_s": seconds,
        "delay_from": source.value,
        "failing": domain.is_failing,
        "capped": domain.is_capped,
    }


def domain_lines(domains: Sequence[ListedDomain], delay: float) -> Iterator[str]:
    """Yield what `domains` prints: a line of titles, then one line for each domain."""
    rows = [
        (
            domain.name,
            domain.state.value,
            f"{domain.pages:,}",
            f"{domain.pending:,}",
            next_visit_text(domain),
            f"{domain.pace.failures:,}",
            domain.error,
            _delay_text(domain, delay),
        )
        for domain in domains
    ]
    return table_lines(_TITLES, rows, right=("pages", "pending", "failures"))


def next_visit_text(domain: ListedDomain) -> str:
    """Return when a domain is visited next, or why it is not."""
    if domain.state is DomainState.LEASED:
        return "in progress"
    if domain.ready_in is not None:
        if domain.ready_in > 0:
            return f"in {seconds_text(domain.ready_in, whole=True)}"
        return f"due for {seconds_text(-domain.ready_in, whole=True)}"
    if domain.is_capped:
        return "none: it has its pages"
    if domain.state is DomainState.WAITING:
        return "tries a suspect"
    return "none"


def _delay_text(domain: ListedDomain, delay: float) -> str:
    source, seconds = next(iter(domain_delays(domain, delay).items()))
    reason = "" if source is DelaySource.DELAY else f": {DELAY_REASONS[source]}"
    return f"{precise(seconds)}{reason}"
