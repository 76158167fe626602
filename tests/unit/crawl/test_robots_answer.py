"""What each kind of answer to /robots.txt means for its origin."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import formatdate
from typing import cast

import pytest
from msgspec import structs

from rove.crawl.requests import Requester
from rove.crawl.robots_answer import ROBOTS_LEAST_VALID_SECONDS, origin_record, valid_for
from rove.crawl.robots_check import request_robots
from rove.model.outcomes import FailureKind, Fetched, Outcome, Refused
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.constants import MAX_ROBOTS_HOPS, ROBOTS_VALID_SECONDS
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.retry import hold_for
from rove.policy.robots_lines import MAX_ROBOTS_BYTES
from rove.urls.canonical import CrawlUrl
from tests.unit.crawl.scripted import crawl_url, failed, redirect, refused, response, robots, wrong_type
from tests.urls import FORM

PAGE = crawl_url("https://www.a.test:8443/some/page?q")
ROBOTS = "https://www.a.test:8443/robots.txt"
NONE, RULES, UNREACHABLE = RobotsStatus.NONE, RobotsStatus.RULES, RobotsStatus.UNREACHABLE
HOUR, DAY = 3_600.0, 86_400.0
NOW = 1_800_000_000.0
Headers = Sequence[tuple[str, str]]


class Script:
    """A requester that gives one answer after the other, and remembers the requests."""

    def __init__(self, *answers: Outcome) -> None:
        self._left = list(answers)
        self.requested: list[str] = []
        self.headers: list[list[tuple[str, str]]] = []

    async def robots(self, url: CrawlUrl, headers: Headers) -> Outcome:
        self.requested.append(url.text)
        self.headers.append(list(headers))
        return self._left.pop(0)


async def fetch(script: Script, previous: OriginRecord | None, *, delay: float = 70.0) -> OriginRecord:
    """Fetch the robots.txt of PAGE from the script; return the new record."""
    gate = Gate(Exclusions(["x.test"]))
    answer = await request_robots(PAGE, previous, cast(Requester, script), gate, FORM)
    return origin_record(PAGE, answer, previous, delay)


async def fetch_after(*answers: Outcome, failures: int = 0, delay: float = 70.0) -> tuple[OriginRecord, list[str]]:
    """Fetch with these answers, after a number of failures; return the new record and the URLs requested."""
    script = Script(*answers)
    previous = OriginRecord(
        domain=PAGE.domain,
        origin=PAGE.origin,
        status=RobotsStatus.UNREACHABLE if failures else RobotsStatus.RULES,
        crawl_delay=12.0,
        failures=failures,
        valid_for=0.0,
    )
    return await fetch(script, previous, delay=delay), script.requested


def sent(text: str, *headers: tuple[str, str]) -> Fetched:
    """Return a robots.txt with these headers."""
    return structs.replace(robots(text), response=response(200, *headers))


def refusal(status: int, *headers: tuple[str, str]) -> Refused:
    """Return an answer with an error status and these headers."""
    return Refused(response=response(status, *headers))


KNOWN = OriginRecord(
    domain=PAGE.domain,
    origin=PAGE.origin,
    status=RULES,
    body=b"User-agent: *\nDisallow: /x\nCrawl-delay: 90\n",
    crawl_delay=90.0,
    valid_for=-5.0,
    age=90_000.0,
    source=ROBOTS,
    etag='W/"abc"',
    last_modified="Wed, 21 Oct 2015 07:28:00 GMT",
)
CONDITIONS = [("If-None-Match", 'W/"abc"'), ("If-Modified-Since", "Wed, 21 Oct 2015 07:28:00 GMT")]


async def test_an_excluded_host_gets_no_request() -> None:
    record, requested = await fetch_after(redirect("http://x.test/robots.txt"))
    assert requested == [ROBOTS]
    assert record.status is UNREACHABLE


async def test_a_crawl_delay_stays_in_force_while_the_server_fails() -> None:
    record, _ = await fetch_after(refused(503))
    assert record.crawl_delay == 12.0
    record, _ = await fetch_after(refused(404))
    assert record.crawl_delay == 0.0


async def test_rules_are_kept_for_a_day() -> None:
    record, requested = await fetch_after(robots("User-agent: *\nDisallow: /x\nCrawl-delay: 90\n"))
    assert requested == [ROBOTS]
    assert (record.domain, record.origin) == (PAGE.domain, PAGE.origin)
    assert record.status is RULES
    assert record.body == b"User-agent: *\nDisallow: /x\nCrawl-delay: 90\n"
    assert record.crawl_delay == 90.0
    assert record.valid_for == ROBOTS_VALID_SECONDS == 86_400.0
    assert record.failures == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User-agent: *\nCrawl-delay: 0.5", 0.5),
        ("User-agent: *\nCrawl-delay: 1000000000", 864_000.0),
        ("User-agent: *\nCrawl-delay: -5", 0.0),
        ("User-agent: *\nCrawl-delay: soon", 0.0),
        ("User-agent: *\nDisallow:", 0.0),
        ("User-agent: other\nCrawl-delay: 99", 0.0),
        ("User-agent: rove\nCrawl-delay: 5\n\nUser-agent: *\nCrawl-delay: 99", 5.0),
        ("", 0.0),
    ],
)
async def test_the_crawl_delay_is_bounded(text: str, expected: float) -> None:
    record, _ = await fetch_after(robots(text))
    assert record.crawl_delay == expected


async def test_no_more_than_the_cap_is_kept() -> None:
    record, _ = await fetch_after(robots("#" * (MAX_ROBOTS_BYTES + 1000)))
    assert len(record.body) == MAX_ROBOTS_BYTES


@pytest.mark.parametrize("status", [204, 300, 400, 401, 403, 404, 408, 410, 418, 451, 499])
async def test_a_4xx_means_no_rules(status: int) -> None:
    record, _ = await fetch_after(refused(status), failures=2)
    assert record.status is NONE
    assert record.failures == 0, "an answer ends the failures in a row"
    assert record.valid_for == ROBOTS_VALID_SECONDS


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("failures", [0, 1, 2, 9])
async def test_a_5xx_means_do_not_fetch_for_longer_and_longer(status: int, failures: int) -> None:
    record, _ = await fetch_after(refused(status), failures=failures)
    assert record.status is UNREACHABLE
    assert record.failures == failures + 1
    assert record.valid_for == hold_for(failures + 1, 70.0) > 0


@pytest.mark.parametrize("kind", list(FailureKind))
async def test_no_answer_means_do_not_fetch(kind: FailureKind) -> None:
    record, _ = await fetch_after(failed(kind), failures=1, delay=10.0)
    assert record.status is UNREACHABLE
    assert (record.failures, record.valid_for) == (2, hold_for(2, 10.0))


async def test_a_wrong_type_means_no_rules() -> None:
    record, _ = await fetch_after(wrong_type())
    assert record.status is NONE


@pytest.mark.parametrize("hops", range(1, MAX_ROBOTS_HOPS + 1))
async def test_up_to_five_redirects_are_followed(hops: int) -> None:
    chain = [redirect(f"https://h{i}.a.test/r") for i in range(hops)]
    record, requested = await fetch_after(*chain, robots("User-agent: *\nDisallow: /"))
    assert requested == [ROBOTS, *(f"https://h{i}.a.test/r" for i in range(hops))]
    assert record.status is RULES
    assert record.origin == PAGE.origin, "the rules apply to the origin of the page"
    assert record.domain == PAGE.domain


async def test_the_sixth_redirect_means_no_rules() -> None:
    record, requested = await fetch_after(*(redirect(f"/robots.txt?{i}") for i in range(7)))
    assert len(requested) == 1 + MAX_ROBOTS_HOPS == 6
    assert record.status is NONE


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/other.txt", "https://www.a.test:8443/other.txt"),
        ("other.txt", "https://www.a.test:8443/other.txt"),
        ("//b.a.test/robots.txt", "https://b.a.test/robots.txt"),
        ("http://b.a.test/robots.txt#x", "http://b.a.test/robots.txt"),
    ],
)
async def test_redirects_may_be_relative(location: str, expected: str) -> None:
    _, requested = await fetch_after(redirect(location), refused(404))
    assert requested == [ROBOTS, expected]


async def test_each_redirect_is_relative_to_the_one_before() -> None:
    _, requested = await fetch_after(redirect("https://b.a.test/dir/r"), redirect("s"), refused(404))
    assert requested == [ROBOTS, "https://b.a.test/dir/r", "https://b.a.test/dir/s"]


@pytest.mark.parametrize("location", ["ftp://a.test/robots.txt", "http://", "/" + "x" * 3000])
async def test_a_redirect_to_an_invalid_url_means_no_rules(location: str) -> None:
    record, requested = await fetch_after(redirect(location))
    assert record.status is NONE
    assert requested == [ROBOTS]


@pytest.mark.parametrize(
    ("last", "status"), [(refused(404), NONE), (refused(500), UNREACHABLE), (failed(), UNREACHABLE)]
)
async def test_the_end_of_the_chain_counts(last: Outcome, status: RobotsStatus) -> None:
    record, _ = await fetch_after(redirect("/a"), redirect("/b"), last)
    assert record.status is status


# The record of an answer.


async def test_the_source_of_the_body_is_recorded() -> None:
    script = Script(redirect("https://b.a.test/r"), sent("", ("ETag", ' "v1" '), ("Last-Modified", "x")))
    record = await fetch(script, None)
    assert (record.source, record.etag, record.last_modified) == ("https://b.a.test/r", '"v1"', "x")
    assert script.headers == [[], []], "there was no copy before"


@pytest.mark.parametrize("answer", [refused(404), refused(503), failed(), wrong_type()])
async def test_without_a_body_there_is_no_source(answer: Outcome) -> None:
    record = await fetch(Script(answer), None)
    assert (record.source, record.etag, record.last_modified) == ("", "", "")
    assert (record.body, record.crawl_delay) == (b"", 0.0)


@pytest.mark.parametrize(
    ("value", "is_recorded"),
    [
        ('"a"', True),
        ("x" * 1000, True),
        ("x" * 1001, False),
        ('"\x01"', False),
        ('"a\nb"', False),
        ('"é"', False),
        ("\x7f", False),
        ("", False),
    ],
)
async def test_only_validators_that_can_be_sent_back_are_recorded(value: str, is_recorded: bool) -> None:
    record = await fetch(Script(sent("", ("etag", value), ("last-modified", value))), None)
    assert (record.etag, record.last_modified) == ((value, value) if is_recorded else ("", ""))


# Conditional requests.


async def test_an_expired_copy_leads_to_a_conditional_request() -> None:
    script = Script(refused(304))
    record = await fetch(script, KNOWN)
    assert script.headers == [CONDITIONS]
    assert record == KNOWN.replace(valid_for=DAY, age=0.0)


async def test_a_304_may_set_the_validity() -> None:
    record = await fetch(Script(refusal(304, ("Cache-Control", "max-age=7200"))), KNOWN)
    assert record.valid_for == 7200.0


@pytest.mark.parametrize(
    ("etag", "last_modified", "conditions"),
    [('"e"', "", [("If-None-Match", '"e"')]), ("", "d", [("If-Modified-Since", "d")]), ("", "", [])],
)
async def test_only_known_validators_are_sent(etag: str, last_modified: str, conditions: list[tuple[str, str]]) -> None:
    script = Script(refused(404))
    await fetch(script, KNOWN.replace(etag=etag, last_modified=last_modified))
    assert script.headers == [conditions]


async def test_a_changed_copy_replaces_the_old_one() -> None:
    record = await fetch(Script(sent("User-agent: *\nDisallow: /y", ("ETag", '"new"'))), KNOWN)
    assert record.body == b"User-agent: *\nDisallow: /y"
    assert (record.etag, record.last_modified, record.crawl_delay) == ('"new"', "", 0.0)


async def test_only_the_source_of_the_copy_gets_a_conditional_request() -> None:
    known = KNOWN.replace(source="https://b.a.test/r")
    script = Script(redirect("https://b.a.test/r"), refused(304))
    assert await fetch(script, known) == known.replace(valid_for=DAY, age=0.0, hops=1)
    assert script.headers == [[], CONDITIONS]
    script = Script(redirect("https://c.a.test/r"), robots(""))
    assert (await fetch(script, known)).source == "https://c.a.test/r"
    assert script.headers == [[], []]
    script = Script(redirect("https://c.a.test/r"), robots(""))
    await fetch(script, KNOWN)
    assert script.headers == [CONDITIONS, []]


@pytest.mark.parametrize(
    "previous",
    [
        None,
        KNOWN.replace(etag="", last_modified=""),
        KNOWN.replace(source="https://b.test/robots.txt"),
        KNOWN.replace(source=""),
    ],
)
async def test_an_unrequested_304_is_a_failure(previous: OriginRecord | None) -> None:
    script = Script(refused(304))
    record = await fetch(script, previous)
    assert script.headers == [[]]
    assert (record.status, record.failures) == (UNREACHABLE, 1)
    assert record.valid_for == hold_for(1, 70.0)


async def test_a_304_from_another_url_than_the_source_is_a_failure() -> None:
    script = Script(redirect("https://c.a.test/r"), refused(304))
    record = await fetch(script, KNOWN)
    assert record.status is UNREACHABLE


@pytest.mark.parametrize("trouble", [refused(503), refused(429), failed(FailureKind.RESET)])
async def test_a_copy_stays_in_force_while_the_server_fails(trouble: Outcome) -> None:
    record = await fetch(Script(trouble), KNOWN)
    assert record == KNOWN.replace(status=UNREACHABLE, failures=1, valid_for=hold_for(1, 70.0), age=0.0)
    script = Script(refused(304))
    renewed = await fetch(script, record)
    assert script.headers == [CONDITIONS]
    assert renewed == KNOWN.replace(valid_for=DAY, age=0.0), "the record is the same as before the failure"


async def test_a_robots_txt_that_is_gone_is_forgotten() -> None:
    record = await fetch(Script(refused(410)), KNOWN.replace(failures=3))
    assert record == OriginRecord(domain=PAGE.domain, origin=PAGE.origin, status=NONE, valid_for=DAY)


# Retry-After.


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("7200", 7200.0),
        ("1", 0.0),
        ("999999999", DAY),
        ("soon", 0.0),
        ("-1", 0.0),
        ("", 0.0),
        (formatdate(NOW + 5000, usegmt=True), 5000.0),
        (formatdate(NOW - 5000, usegmt=True), 0.0),
        (formatdate(NOW + 5e6, usegmt=True), DAY),
    ],
)
async def test_retry_after_is_obeyed(status: int, value: str, least: float) -> None:
    headers = [("Retry-After", value), ("Date", formatdate(NOW, usegmt=True))]
    record = await fetch(Script(refusal(status, *headers)), None)
    assert record.status is UNREACHABLE
    assert record.valid_for == max(least, hold_for(1, 70.0))


async def test_the_longer_pause_counts() -> None:
    record, _ = await fetch_after(refusal(503, ("Retry-After", "200")), failures=3)
    assert record.valid_for == hold_for(4, 70.0) > 200
    record, _ = await fetch_after(refusal(503, ("Retry-After", "86400")), failures=30)
    assert record.valid_for == DAY


@pytest.mark.parametrize("status", [500, 502, 304])
async def test_retry_after_of_other_statuses_is_ignored(status: int) -> None:
    record = await fetch(Script(refusal(status, ("Retry-After", "9999"))), None)
    assert record.valid_for == hold_for(1, 70.0)


# How long an answer is valid.

LATER = formatdate(NOW + 9000, usegmt=True)
SOON = formatdate(NOW + 60, usegmt=True)
DATE = ("Date", formatdate(NOW, usegmt=True))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], DAY),
        ([("Cache-Control", "max-age=7200")], 7200.0),
        ([("Cache-Control", "a," * 2_000 + "max-age=7200")], DAY),
        ([("cache-control", "Public, MAX-AGE=7200, immutable")], 7200.0),
        ([("Cache-Control", "public"), ("Cache-Control", "max-age=7200")], 7200.0),
        ([("Cache-Control", 'max-age="7200"')], 7200.0),
        ([("Cache-Control", "max-age=7200, max-age=9000")], 7200.0),
        ([("Cache-Control", "max-age=60")], HOUR),
        ([("Cache-Control", "max-age=0")], HOUR),
        ([("Cache-Control", "max-age=31536000")], DAY),
        ([("Cache-Control", "s-maxage=7200")], DAY),
        ([("Cache-Control", "max-age=9000"), ("Age", "1000")], 8000.0),
        ([("Cache-Control", "max-age=9000"), ("Age", "8000")], HOUR),
        ([("Cache-Control", "max-age=9000"), ("Age", "10000")], HOUR),
        ([("Cache-Control", "max-age=9000"), ("Age", "old")], 9000.0),
        ([("Cache-Control", "max-age=9000"), ("Age", "-5")], 9000.0),
        ([("Age", "80000")], DAY),
        ([("Cache-Control", "no-cache")], HOUR),
        ([("Cache-Control", "no-store")], HOUR),
        ([("Cache-Control", "private, no-cache, max-age=9000")], HOUR),
        ([("Cache-Control", 'no-cache="Set-Cookie, X", max-age=9000')], 9000.0),
        ([("Cache-Control", "no-cached")], DAY),
        ([("Cache-Control", "max-age=soon")], DAY),
        ([("Cache-Control", "max-age=-1")], DAY),
        ([("Cache-Control", "max-age")], DAY),
        ([("Cache-Control", "max-age=")], DAY),
        ([("Cache-Control", "max-age=1.5")], DAY),
        ([("Cache-Control", "max-age=" + "9" * 40)], DAY),
        ([("Cache-Control", ",;=\"',")], DAY),
        ([("Cache-Control", "")], DAY),
        ([("Expires", LATER), DATE], 9000.0),
        ([("Expires", LATER)], 9000.0),
        ([("Expires", LATER), ("Date", "nonsense")], 9000.0),
        ([("Expires", LATER), DATE, ("Age", "1000")], 8000.0),
        ([("Expires", SOON), DATE], HOUR),
        ([("Expires", formatdate(NOW - 1e6, usegmt=True)), DATE], HOUR),
        ([("Expires", formatdate(NOW + 1e7, usegmt=True)), DATE], DAY),
        ([("Expires", "0")], HOUR),
        ([("Expires", "-1")], HOUR),
        ([("Expires", "nonsense")], DAY),
        ([("Expires", LATER), DATE, ("Cache-Control", "max-age=5000")], 5000.0),
        ([("Expires", SOON), DATE, ("Cache-Control", "public")], HOUR),
    ],
)
async def test_a_copy_is_valid_for_as_long_as_its_server_says(headers: list[tuple[str, str]], seconds: float) -> None:
    assert ROBOTS_LEAST_VALID_SECONDS == HOUR
    assert valid_for(response(200, *headers), NOW) == seconds
    if not any(value == LATER for _, value in headers) or DATE in headers:
        for answer in (sent("", *headers), refusal(404, *headers)):
            assert (await fetch(Script(answer), None)).valid_for == seconds
