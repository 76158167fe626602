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


async def fetch_robots(
    page: CrawlUrl,
    *,
    ask: Ask,
    may_ask: Callable[[CrawlUrl], bool],
    previous: OriginRecord | None,
    delay: float,
) -> RobotsAnswer:
    """Ask for the robots.txt of a page's origin, of which `previous` was known."""
    outcome = await _ask_through_redirects(page, ask, may_ask)
    match outcome:
        case None:
            return RobotsAnswer(_unreachable(page, previous, delay), None)
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
            return RobotsAnswer(_unreachable(page, previous, delay), None)
        case Failed():
            return RobotsAnswer(_unreachable(page, previous, delay), outcome)


async def _ask_through_redirects(
    page: CrawlUrl, ask: Ask, may_ask: Callable[[CrawlUrl], bool]
) -> Outcome | None:
    """The answer after at most five hops, over hosts too; None where one leads to a host never to be touched."""
    url = canonical(f"{page.origin}/robots.txt")
    assert url is not None, "an origin with a path is a URL"
    outcome = await ask(url)
    for _ in range(MAX_ROBOTS_HOPS):
        if not isinstance(outcome, Redirected):
            return outcome
        target = canonical(outcome.location, parse_base(url.text))
        if target is None:
            return outcome
        if not may_ask(target):
            return None
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


def _unreachable(page: CrawlUrl, previous: OriginRecord | None, delay: float) -> OriginRecord:
    """What the origin asked for earlier still holds: its server is in trouble, it has not changed its mind."""
    failures = 1 + (previous.failures if previous else 0)
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=RobotsStatus.UNREACHABLE,
        crawl_delay=previous.crawl_delay if previous else 0.0,
        failures=failures,
        valid_for=hold_for(failures, delay),
    )
