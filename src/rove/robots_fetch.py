"""Asking for a robots.txt: what each kind of answer means for the origin (RFC 9309, section 2.3.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rove.model import (
    Failed,
    Fetched,
    OriginRecord,
    Outcome,
    Redirected,
    Refused,
    RobotsStatus,
    WrongType,
)
from rove.politeness import MAX_ROBOTS_HOPS, ROBOTS_VALID_SECONDS
from rove.retry import hold_for
from rove.robots import MAX_ROBOTS_BYTES, Rules
from rove.url import CrawlUrl, canonical, parse_base

Ask = Callable[[CrawlUrl], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What asking came to."""

    record: OriginRecord
    failure: Failed | None
    """Why there was no answer at all, if so."""


async def fetch_robots(page: CrawlUrl, ask: Ask, *, failures: int, delay: float) -> RobotsAnswer:
    """Ask for the robots.txt of a page's origin, after so many failures in a row."""
    outcome = await _ask_through_redirects(page, ask)
    match outcome:
        case Fetched(body=body):
            kept = body[:MAX_ROBOTS_BYTES]
            crawl_delay = Rules(kept).crawl_delay
            record = _record(page, RobotsStatus.RULES, body=kept, crawl_delay=crawl_delay)
            return RobotsAnswer(record, None)
        case Redirected() | WrongType():
            return RobotsAnswer(_record(page, RobotsStatus.NONE), None)
        case Refused(response=response) if response.status != 429 and response.status < 500:
            return RobotsAnswer(_record(page, RobotsStatus.NONE), None)
        case Refused():
            return RobotsAnswer(_unreachable(page, failures + 1, delay), None)
        case Failed():
            return RobotsAnswer(_unreachable(page, failures + 1, delay), outcome)


async def _ask_through_redirects(page: CrawlUrl, ask: Ask) -> Outcome:
    """The answer after at most five hops, over hosts too; a chain that is longer or broken counts as none."""
    url = canonical(f"{page.origin}/robots.txt")
    assert url is not None, "an origin with a path is a URL"
    outcome = await ask(url)
    for _ in range(MAX_ROBOTS_HOPS):
        if not isinstance(outcome, Redirected):
            return outcome
        target = canonical(outcome.location, parse_base(url.text))
        if target is None:
            return outcome
        url = target
        outcome = await ask(url)
    return outcome


def _record(
    page: CrawlUrl, status: RobotsStatus, *, body: bytes = b"", crawl_delay: float = 0.0
) -> OriginRecord:
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=status,
        body=body,
        crawl_delay=crawl_delay,
        valid_for=ROBOTS_VALID_SECONDS,
    )


def _unreachable(page: CrawlUrl, failures: int, delay: float) -> OriginRecord:
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=RobotsStatus.UNREACHABLE,
        failures=failures,
        valid_for=hold_for(failures, delay),
    )
