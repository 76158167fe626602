"""Asking for a robots.txt: what each kind of answer means for its origin (RFC 9309, sections 2.3.1 and 2.4).

A copy is kept for a day, or for as long as its server said (RFC 9111), though not under an hour: asking again costs
the server more than a rule that is an hour old. When it has run out, the URL that gave it is asked whether it has
changed, with the ETag and date that came with it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from rove.model.outcomes import (
    Failed,
    Fetched,
    Outcome,
    Redirected,
    Refused,
    Response,
    WrongType,
)
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.constants import DAY, MAX_ROBOTS_HOPS, OVERLOADED, ROBOTS_VALID_SECONDS
from rove.policy.pacing import http_date, retry_after
from rove.policy.retry import hold_for
from rove.policy.robots import LONG_ROBOTS, MAX_ROBOTS_BYTES, rules_of
from rove.urls.canonical import CrawlUrl, canonical, parse_base

ROBOTS_LEAST_VALID_SECONDS = 3_600.0
MAX_VALIDATOR = 1_000
"""Characters of an ETag or a date that is sent back."""

Ask = Callable[[CrawlUrl, Sequence[tuple[str, str]]], Awaitable[Outcome]]
"""Makes a request, with these headers besides the usual ones."""

_NOT_MODIFIED = 304
_VALIDATOR = re.compile(rf"[\x20-\x7e]{{1,{MAX_VALIDATOR}}}")
_DIRECTIVE = re.compile(
    r'([\w-]++)(?:\s*+=\s*+(?:"([^"]*+)"|([^\s,"]*+)))?+[^,]*+(?:,|\Z)', re.ASCII
)
_SECONDS = re.compile(r"[0-9]{1,12}")
_LONG_GONE = frozenset({"0", "-1"})
"""What servers write for a date that has passed."""


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What asking came to."""

    record: OriginRecord
    failure: Failed | None
    """Why there was no answer at all, if so."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """The answer at the end of the redirects."""

    url: CrawlUrl
    outcome: Outcome
    known: OriginRecord | None
    """The copy that it was asked about: whether that has changed."""


async def fetch_robots(
    page: CrawlUrl,
    *,
    ask: Ask,
    may_ask: Callable[[CrawlUrl], bool],
    previous: OriginRecord | None,
    delay: float,
) -> RobotsAnswer:
    """Ask for the robots.txt of a page's origin, of which `previous` was known."""
    reply = await _ask_through_redirects(page, ask, may_ask, previous)
    if reply is None:
        return RobotsAnswer(_unreachable(page, previous, delay), None)
    outcome = reply.outcome
    match outcome:
        case Fetched(response=response, body=body):
            return RobotsAnswer(_rules(page, reply.url, response, body[:MAX_ROBOTS_BYTES]), None)
        case Failed():
            return RobotsAnswer(_unreachable(page, previous, delay), outcome)
        case Refused(response=response) if response.status == _NOT_MODIFIED and reply.known:
            return RobotsAnswer(_unchanged(reply.known, response), None)
        case Refused(response=response) if _means_trouble(response.status):
            return RobotsAnswer(_unreachable(page, previous, delay, response), None)
        case Refused(response=response) | Redirected(response=response):
            return RobotsAnswer(_none(page, response), None)
        case WrongType(response=response):
            return RobotsAnswer(_none(page, response), None)
        case _:
            assert_never(outcome)


async def _ask_through_redirects(
    page: CrawlUrl,
    ask: Ask,
    may_ask: Callable[[CrawlUrl], bool],
    previous: OriginRecord | None,
) -> _Reply | None:
    """The answer after at most five hops, over hosts too; None where one leads to a host never to be touched."""
    url = canonical(f"{page.origin}/robots.txt")
    assert url is not None, "an origin with a path is a URL"
    hops = 0
    while True:
        conditions = _conditions(url, previous)
        outcome = await ask(url, conditions)
        reply = _Reply(url, outcome, previous if conditions else None)
        if not isinstance(outcome, Redirected):
            return reply
        target = canonical(outcome.location, parse_base(url.text))
        if target is None or hops == MAX_ROBOTS_HOPS:
            return reply
        if not may_ask(target):
            return None
        url = target
        hops += 1


async def read_rules(body: bytes) -> None:
    """Have a long text that was kept read beside the event loop, so that asking it takes no time."""
    if len(body) > LONG_ROBOTS:
        await asyncio.to_thread(rules_of, body)


def _means_trouble(status: int) -> bool:
    """Whether a status says that there may be rules which cannot be had now; 304 does where nobody asked for it."""
    return status in (_NOT_MODIFIED, 429) or status >= 500


def _conditions(url: CrawlUrl, previous: OriginRecord | None) -> list[tuple[str, str]]:
    """The headers that ask whether the known copy has changed, where this URL gave it."""
    if previous is None or previous.source != url.text:
        return []
    conditions = [
        ("If-None-Match", previous.etag),
        ("If-Modified-Since", previous.last_modified),
    ]
    return [(name, value) for name, value in conditions if value]


def _rules(page: CrawlUrl, source: CrawlUrl, response: Response, body: bytes) -> OriginRecord:
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=RobotsStatus.RULES,
        body=body,
        crawl_delay=rules_of(body).crawl_delay,
        valid_for=valid_for(response),
        source=source.text,
        etag=_validator(response, "etag"),
        last_modified=_validator(response, "last-modified"),
    )


def _none(page: CrawlUrl, response: Response) -> OriginRecord:
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=RobotsStatus.NONE,
        valid_for=valid_for(response),
    )


def _unchanged(known: OriginRecord, response: Response) -> OriginRecord:
    has_rules = known.status is not RobotsStatus.NONE
    return known.replace(
        status=RobotsStatus.RULES if has_rules else RobotsStatus.NONE,
        failures=0,
        age=0.0,
        valid_for=valid_for(response),
    )


def _unreachable(
    page: CrawlUrl,
    previous: OriginRecord | None,
    delay: float,
    response: Response | None = None,
) -> OriginRecord:
    """What the origin asked for earlier still holds: its server is in trouble, it has not changed its mind."""
    failures = 1 + (previous.failures if previous else 0)
    wait = hold_for(failures, delay)
    if response is not None and response.status in OVERLOADED:
        wait = min(DAY, max(wait, retry_after(response) or 0.0))
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=RobotsStatus.UNREACHABLE,
        body=previous.body if previous else b"",
        crawl_delay=previous.crawl_delay if previous else 0.0,
        failures=failures,
        valid_for=wait,
        source=previous.source if previous else "",
        etag=previous.etag if previous else "",
        last_modified=previous.last_modified if previous else "",
    )


def _validator(response: Response, name: str) -> str:
    """A header that may be sent back as it is; '' where it may not."""
    value = (response.header(name) or "").strip()
    return value if _VALIDATOR.fullmatch(value) else ""


def valid_for(response: Response, now: float | None = None) -> float:
    """Seconds for which an answer holds: as its server said within an hour and a day, else a day."""
    lifetime = _lifetime(response, time.time() if now is None else now)
    if lifetime is None:
        return ROBOTS_VALID_SECONDS
    fresh = lifetime - (_whole_seconds(response.header("age")) or 0.0)
    return min(ROBOTS_VALID_SECONDS, max(ROBOTS_LEAST_VALID_SECONDS, fresh))


def _lifetime(response: Response, now: float) -> float | None:
    """Seconds for which an answer was fresh when it was made; None if nothing that can be understood is said."""
    said: dict[str, str | None] = {}
    for name, quoted, plain in _DIRECTIVE.findall(",".join(response.all_headers("cache-control"))):
        said.setdefault(name.lower(), quoted or plain)
    # With a value, no-cache is about the headers that it names.
    if "no-store" in said or said.get("no-cache") == "":
        return 0.0
    if "max-age" in said:
        return _whole_seconds(said["max-age"])
    expires = (response.header("expires") or "").strip()
    if expires in _LONG_GONE:
        return 0.0
    until = http_date(expires)
    made = http_date(response.header("date") or "")
    return None if until is None else until - (now if made is None else made)


def _whole_seconds(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text) if _SECONDS.fullmatch(text) else None
