"""Turns the response to a robots.txt request into the record of its origin (RFC 9309, sections 2.3.1 and 2.4).

A copy is valid for a day, or for as long as its server says (RFC 9111), but never for less than an hour: fetching it
again costs the server more than a rule that is an hour old. An expired copy is revalidated with its ETag and date at
the URL that it came from.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import assert_never

from rove.model.outcomes import Failed, Fetched, Outcome, Redirected, Refused, Response, WrongType
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.constants import DAY, OVERLOADED, ROBOTS_VALID_SECONDS
from rove.policy.http_date import parse_http_date
from rove.policy.pacing import retry_after
from rove.policy.retry import hold_for
from rove.policy.robots import rules_of
from rove.policy.robots_lines import MAX_ROBOTS_BYTES
from rove.policy.robots_redirect import RobotsRedirect
from rove.urls.canonical import CrawlUrl

ROBOTS_LEAST_VALID_SECONDS = 3_600.0
MAX_VALIDATOR = 1_000
"""Longest ETag or date, in characters, that is sent back."""

MAX_CACHE_CONTROL = 4_000
"""Characters of Cache-Control that are read."""

_NOT_MODIFIED = 304
_VALIDATOR = re.compile(rf"[\x20-\x7e]{{1,{MAX_VALIDATOR}}}")
_DIRECTIVE = re.compile(r'([\w-]++)(?:\s*+=\s*+(?:"([^"]*+)"|([^\s,"]*+)))?+[^,]*+(?:,|\Z)', re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,12}")
_EXPIRED = frozenset({"0", "-1"})
"""Values of Expires that servers send for a date in the past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsAnswer:
    """The outcome of the last request of a visit for a robots.txt, after the redirects inside the domain."""

    url: CrawlUrl
    outcome: Outcome
    is_conditional: bool = False
    """Whether the request revalidated the known copy."""
    hops: int = 0
    """Redirects so far, including the one that the outcome may be."""
    redirect: RobotsRedirect | None = None
    """What the outcome means if it is a redirect."""
    target: CrawlUrl | None = None
    """The robots.txt of another domain that decides."""
    shared: OriginRecord | None = None
    """The record that decides: of that robots.txt, or of the one that it redirects to. None if there is none yet."""


def conditions_for(url: CrawlUrl, previous: OriginRecord | None) -> list[tuple[str, str]]:
    """Return the headers that revalidate the known copy; none if it came from another URL."""
    if previous is None or previous.source != url.text:
        return []
    conditions = [("If-None-Match", previous.etag), ("If-Modified-Since", previous.last_modified)]
    return [(name, value) for name, value in conditions if value]


def origin_record(page: CrawlUrl, answer: RobotsAnswer, previous: OriginRecord | None, delay: float) -> OriginRecord:
    """Return the new robots.txt record of a page's origin; `previous` is the record so far."""
    outcome = answer.outcome
    match outcome:
        case Fetched(response=response, body=body):
            return _rules(page, answer, response, body[:MAX_ROBOTS_BYTES])
        case Failed():
            return _unreachable(page, previous, delay)
        case Redirected() if answer.redirect is RobotsRedirect.UNREACHABLE:
            return _unreachable(page, previous, delay)
        case Redirected(response=response) if answer.redirect is RobotsRedirect.SHARE:
            return _shared(page, answer, response, previous, delay)
        case Refused(response=response) if (
            response.status == _NOT_MODIFIED and answer.is_conditional and previous is not None
        ):
            return _unchanged(previous, response, answer.hops)
        case Refused(response=response) if _is_unavailable(response.status):
            return _unreachable(page, previous, delay, response)
        case Refused(response=response) | Redirected(response=response) | WrongType(response=response):
            return _none(page, response)
        case _:
            assert_never(outcome)


def _is_unavailable(status: int) -> bool:
    """Whether there may be rules that cannot be read now. An unrequested 304 is such a case."""
    return status in (_NOT_MODIFIED, 429) or status >= 500


def _shared(
    page: CrawlUrl, answer: RobotsAnswer, response: Response, previous: OriginRecord | None, delay: float
) -> OriginRecord:
    """Return a record that takes over what is known of the robots.txt of another domain."""
    target, shared = answer.target, answer.shared
    assert target is not None, "only another robots.txt can be shared"
    if shared is None or shared.valid_for <= 0:
        return _unreachable(page, previous, delay).replace(hops=answer.hops, waits_for=target.text)
    if shared.status is RobotsStatus.UNREACHABLE:
        record = _unreachable(page, previous, delay)
        wait = max(record.valid_for, shared.valid_for)
        return record.replace(valid_for=wait, hops=answer.hops, waits_for=target.text)
    return shared.replace(
        domain=page.domain,
        origin=page.origin,
        valid_for=min(shared.valid_for, valid_for(response)),
        age=0.0,
        hops=answer.hops + shared.hops,
    )


def _rules(page: CrawlUrl, answer: RobotsAnswer, response: Response, body: bytes) -> OriginRecord:
    return OriginRecord(
        domain=page.domain,
        origin=page.origin,
        status=RobotsStatus.RULES,
        body=body,
        crawl_delay=rules_of(body).crawl_delay,
        valid_for=valid_for(response),
        source=answer.url.text,
        etag=_validator(response, "etag"),
        last_modified=_validator(response, "last-modified"),
        hops=answer.hops,
    )


def _none(page: CrawlUrl, response: Response) -> OriginRecord:
    return OriginRecord(domain=page.domain, origin=page.origin, status=RobotsStatus.NONE, valid_for=valid_for(response))


def _unchanged(previous: OriginRecord, response: Response, hops: int) -> OriginRecord:
    has_rules = previous.status is not RobotsStatus.NONE
    return previous.replace(
        status=RobotsStatus.RULES if has_rules else RobotsStatus.NONE,
        failures=0,
        age=0.0,
        valid_for=valid_for(response),
        hops=hops,
        waits_for="",
    )


def _unreachable(
    page: CrawlUrl, previous: OriginRecord | None, delay: float, response: Response | None = None
) -> OriginRecord:
    """Return a record that keeps the earlier rules and Crawl-delay, because the site has not withdrawn them."""
    failures = 1 + (previous.failures if previous else 0)
    wait = hold_for(failures, delay)
    if response is not None and response.status in OVERLOADED:
        wait = min(DAY, max(wait, retry_after(response) or 0.0))
    if previous is None:
        previous = OriginRecord(domain=page.domain, origin=page.origin, status=RobotsStatus.UNREACHABLE, valid_for=wait)
    return previous.replace(status=RobotsStatus.UNREACHABLE, failures=failures, valid_for=wait, age=0.0, waits_for="")


def _validator(response: Response, name: str) -> str:
    """Return a header that can be sent back as it is, '' if it cannot."""
    value = (response.header(name) or "").strip()
    return value if _VALIDATOR.fullmatch(value) else ""


def valid_for(response: Response, now: float | None = None) -> float:
    """Return for how many seconds a response is valid: as its server says, from an hour to a day; by default a day."""
    lifetime = _lifetime(response, time.time() if now is None else now)
    if lifetime is None:
        return ROBOTS_VALID_SECONDS
    fresh = lifetime - (_whole_seconds(response.header("age")) or 0.0)
    return min(ROBOTS_VALID_SECONDS, max(ROBOTS_LEAST_VALID_SECONDS, fresh))


def _lifetime(response: Response, now: float) -> float | None:
    """Return the freshness lifetime of a response in seconds, None if its headers do not give one."""
    directives: dict[str, str | None] = {}
    for name, quoted, plain in _DIRECTIVE.findall(",".join(response.all_headers("cache-control"))[:MAX_CACHE_CONTROL]):
        directives.setdefault(name.lower(), quoted or plain)
    # With a value, no-cache applies only to the headers that it names.
    if "no-store" in directives or directives.get("no-cache") == "":
        return 0.0
    if "max-age" in directives:
        return _whole_seconds(directives["max-age"])
    expires = (response.header("expires") or "").strip()
    if expires in _EXPIRED:
        return 0.0
    until = parse_http_date(expires)
    generated = parse_http_date(response.header("date") or "")
    return None if until is None else until - (now if generated is None else generated)


def _whole_seconds(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text) if _SECONDS.fullmatch(text) else None
