"""What status, pages and show print about a crawl."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rove.errors import UsageError
from rove.frontier.runs import Vitals
from rove.inspect.lookup import domain_given, settling_request, site_named, url_given
from rove.inspect.request_rows import page_json, page_line
from rove.inspect.status import Status, as_json, as_lines, read_status
from rove.model.counts import Counts
from rove.model.languages import Language
from rove.model.ledger import Location, RequestKind, RequestRow, Settlement
from rove.model.request_counts import request_counts
from rove.model.urls import NotAccepted, UrlState
from tests.contract.harness import first_urls, page_row, visited
from tests.unit.crawl.scripted import World, crawl_url, new_url
from tests.urls import FORM

COUNTS = Counts(
    urls={state: 10 * state.value + 1 for state in UrlState},
    domains={"idle": 1, "waiting": 2, "ready": 3, "leased": 4, "excluded": 5},
    pages=11,
    bytes=5_000_000,
    request_counts=request_counts(
        {
            "requests.page": 1000,
            "requests.robots": 234,
            "errors.page.status-404": 2,
            "errors.page.dns": 4,
            "errors.robots.dns": 3,
            "without_content.robots.no-robots-txt": 30,
            "without_content.page.other-type": 5,
        }
    ),
    not_accepted={"too-deep": 3, "excluded": 4000},
    blocked={"robots.txt": 20, "noindex": 1},
)
STATUS = Status(running=True, since=1_700_000_000.0, elapsed=3700.1234, rate=1.239, counts=COUNTS)
EMPTY = Counts(
    urls=dict.fromkeys(UrlState, 0),
    domains=dict.fromkeys(("idle", "waiting", "ready", "leased", "excluded"), 0),
    pages=0,
    bytes=0,
    request_counts=request_counts({}),
)
NOTHING = Status(running=False, since=None, elapsed=0.0, rate=0.0, counts=EMPTY)


def test_the_status_object_has_what_programs_rely_on() -> None:
    record = as_json(STATUS)
    assert record["urls"] == {"pending": 1, "done": 11, "blocked": 21, "failed": 31, "redirected": 41, "read": 51}
    assert record["domains"] == {"idle": 1, "waiting": 2, "ready": 3, "leased": 4, "excluded": 5}
    assert (record["pages"], record["bytes"], record["elapsed_s"]) == (11, 5_000_000, 3700.123)
    assert set(record) == {
        *("urls", "domains", "pages", "bytes", "elapsed_s"),
        *("running", "paused", "pauses", "since", "pages_per_s", "requests", "not_accepted", "errors"),
        *("leases", "leases_without_request", "blocked", "marks", "copies", "evicted", "retries"),
        *("in_flight", "in_flight_at_most", "in_flight_held_by", "limited_by"),
        *("requests_by_kind", "errors_by_kind", "without_content_by_kind"),
    }
    assert record["running"] is True and record["pages_per_s"] == 1.24
    assert record["not_accepted"] == {"too-deep": 3, "excluded": 4000}
    assert record["requests"] == 1234 and record["errors"] == {"status-404": 2, "dns": 7}
    assert record["requests_by_kind"] == {"page": 1000, "robots": 234, "sitemap": 0}
    assert record["errors_by_kind"] == {"page": {"status-404": 2, "dns": 4}, "robots": {"dns": 3}, "sitemap": {}}
    assert record["without_content_by_kind"] == {
        "page": {"other-type": 5},
        "robots": {"no-robots-txt": 30},
        "sitemap": {},
    }
    assert record["blocked"] == {"robots.txt": 20, "noindex": 1}


@pytest.mark.parametrize("status", [STATUS, NOTHING])
def test_the_status_object_is_json(status: Status) -> None:
    text = msgspec.json.encode(as_json(status))
    assert msgspec.json.decode(text) == as_json(status)


def test_copies_are_counted() -> None:
    copies = replace(STATUS, counts=replace(COUNTS, copies=1_200))
    assert as_json(copies)["copies"] == 1_200
    assert "(1.2/s), 1,200 of them copies of stored texts, 4.8 MiB" in as_lines(copies)[1]
    assert "stored before" not in as_lines(STATUS)[1]


def test_the_status_for_people() -> None:
    text = "\n".join(as_lines(STATUS))
    assert text.startswith("running, started ")
    for part in (
        "crawled for 1 h 01 min",
        "11 (1.2/s), 4.8 MiB received in 1,234 requests",
        "1 pending, 11 done, 21 blocked, 31 failed, 41 redirected, 51 read",
        "1 idle, 2 waiting, 3 ready, 4 leased, 5 excluded",
        "excluded 4,000, too-deep 3",
        "page       1,000 requests, 6 failed, 5 of a type that is not read\n           errors: dns 4, status-404 2\n",
        "robots.txt 234 requests, 3 failed, 30 found no robots.txt\n           errors: dns 3\n",
    ):
        assert part in text


def test_the_status_of_a_crawl_that_was_never_started() -> None:
    lines = as_lines(NOTHING)
    assert lines[0] == "not running, never started, crawled for 0.0 s"
    assert len(lines) == 4, "nothing to say of errors and what was not taken"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


async def test_the_status_of_a_crawl(world: World) -> None:
    await world.open("http://a.test/", "http://a.test/2", "http://b.test/", "http://c.test/")
    a, b = await world.frontier.claim(2)
    await world.frontier.count({f"not_accepted.{NotAccepted.TOO_DEEP}": 2})
    where = Location(file="x", offset=0, length=1)
    rows = [
        page_row(a, "http://a.test/", status=200, size=100).replace(text=where),
        page_row(b, "http://b.test/", status=404, size=0, error="status-404"),
    ]
    world.advance(50)
    await world.frontier.settle(
        [visited(a, UrlState.DONE, requests=rows[:1]), visited(b, UrlState.FAILED, requests=rows[1:])]
    )
    await world.frontier.claim(1)
    status = await read_status(world.harness.reader(), world.harness.catalog(), in_use=False)
    record = as_json(status)
    expected = {"pending": 2, "done": 1, "blocked": 0, "failed": 1, "redirected": 0, "read": 0}
    assert record["urls"] == expected
    assert (record["pages"], record["bytes"], record["requests"]) == (1, 100, 2)
    assert record["elapsed_s"] == 50.0
    assert record["pages_per_s"] == pytest.approx(1 / 50)
    assert record["not_accepted"] == {"too-deep": 2}
    assert record["errors"] == {"status-404": 1}
    assert status.since == pytest.approx(time.time(), abs=60)
    assert sum(record["domains"].values()) == 3


async def test_the_elapsed_time_is_that_of_all_runs(world: World) -> None:
    for seconds in (30, 40):
        await world.open(f"http://h{seconds}.test/")
        lease = (await world.claim()).lease
        world.advance(seconds)
        await world.frontier.settle([visited(lease, UrlState.DONE)])
        world.advance(1000)
    assert (await read_status(world.harness.reader(), world.harness.catalog(), in_use=False)).elapsed == 70.0


async def test_while_it_runs_the_rate_is_that_of_the_processes_that_are_alive(world: World) -> None:
    await world.open("http://a.test/")
    await world.frontier.note_alive(Vitals(pages=9, pages_per_second=99.0, in_flight=5, at_once=99, held_by="memory"))
    world.advance(60)
    for rate in (1.5, 2.25):
        await world.open()
        vitals = Vitals(pages=1, pages_per_second=rate, in_flight=700, at_once=800, held_by="cpu")
        await world.frontier.note_alive(vitals)
    status = await read_status(world.harness.reader(), world.harness.catalog(), in_use=True)
    assert status.rate == pytest.approx(3.75)
    assert "in flight  1,400 fetches, at most 1,600: limited by the CPU" in as_lines(status)
    record = as_json(status)
    assert (record["in_flight"], record["in_flight_at_most"]) == (1_400, 1_600)
    assert record["in_flight_held_by"] == {"cpu": 2}
    assert record["limited_by"] == {
        "factor": "politeness",
        "why": "1 domain, ready. More domains would help, more machines would not",
        "domains_served": None,
    }
    assert f"limited by politeness: {record['limited_by']['why']}" in as_lines(status)
    stopped = await read_status(world.harness.reader(), world.harness.catalog(), in_use=False)
    assert not any(line.startswith(("in flight", "limited by")) for line in as_lines(stopped))
    assert as_json(stopped)["limited_by"] is None


async def test_a_crawl_without_requests_has_no_rate(world: World) -> None:
    await world.open("http://a.test/")
    for in_use in (False, True):
        assert (await read_status(world.harness.reader(), world.harness.catalog(), in_use=in_use)).rate == 0.0


ROW = RequestRow(
    visit=7,
    seq=1,
    domain=1,
    kind=RequestKind.PAGE,
    url="http://a.test/",
    fingerprint=2,
    started=1_700_000_000.5,
    began=5_000_500,
    ended=5_001_750,
    status=200,
    media_type="text/html",
    size=12_345,
    content_hash=-1,
    title="A title",
    text=Location(file="x.warc.gz", offset=5, length=6),
    languages=(Language("deu", 92), Language("eng", 5)),
    simhash=-16,
    usage=("search=y", "train-ai=n"),
    usage_from=("content-usage",),
)
REDIRECT = ROW.replace(
    status=301,
    target="/y",
    title="",
    languages=(),
    simhash=None,
    usage=(),
    usage_from=(),
    text=None,
    content_hash=None,
    size=0,
)
FAILURE = REDIRECT.replace(status=0, target="", error="timeout-connect", media_type="")


def test_a_page_as_an_object() -> None:
    assert page_json(ROW) == {
        "url": "http://a.test/",
        "fetched": "2023-11-14T22:13:20.500Z",
        "seconds": 1.25,
        "status": 200,
        "error": None,
        "type": "text/html",
        "bytes": 12_345,
        "truncated": False,
        "redirect_to": None,
        "title": "A title",
        "content_hash": "ffffffffffffffff",
        "visit": 7,
        "fate": "settled",
        "marks": [],
        "language": "deu",
        "language_score": 0.92,
        "simhash": "fffffffffffffff0",
        "usage": "search=y train-ai=n",
        "usage_from": ["content-usage"],
        "languages": [{"code": "deu", "share": 0.92}, {"code": "eng", "share": 0.05}],
        "text_record": {"file": "x.warc.gz", "offset": 5, "length": 6},
        "revisit_record": None,
        "raw_record": None,
    }


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (REDIRECT, {"status": 301, "redirect_to": "/y", "error": None, "content_hash": None}),
        (REDIRECT, {"language": None, "language_score": None, "languages": [], "usage": None, "usage_from": []}),
        (FAILURE, {"status": 0, "error": "timeout-connect", "type": None, "title": None, "text_record": None}),
        (ROW.replace(is_copy=True), {"text_record": None, "revisit_record": page_json(ROW)["text_record"]}),
        (ROW.replace(marks=("tls-old",), settlement=Settlement.LATE), {"marks": ["tls-old"], "fate": "late"}),
        (ROW.replace(content_hash=1), {"content_hash": "0000000000000001"}),
        (ROW.replace(raw=ROW.text), {"raw_record": {"file": "x.warc.gz", "offset": 5, "length": 6}}),
    ],
)
def test_other_requests_as_objects(row: RequestRow, expected: dict[str, Any]) -> None:
    record = page_json(row)
    assert {key: record[key] for key in expected} == expected
    assert list(record) == list(page_json(ROW)), "every page has all keys, in the same order"
    assert msgspec.json.decode(msgspec.json.encode(record)) == record


@pytest.mark.parametrize(
    ("row", "ending"),
    [
        (ROW, " 200     12,345  http://a.test/  A title"),
        (REDIRECT, " 301          0  http://a.test/  -> /y"),
        (FAILURE, "timeout-connect          0  http://a.test/  timeout-connect"),
        (ROW.replace(title=""), "http://a.test/"),
    ],
)
def test_a_page_on_one_line(row: RequestRow, ending: str) -> None:
    line = page_line(row)
    assert line.endswith(ending)
    assert line.startswith("2023-11-14 22:13:20Z  ")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.test", "a.test"),
        ("www.a.test", "a.test"),
        ("https://www.a.test/x", "a.test"),
        ("www.example.co.uk", "example.co.uk"),
        ("münchen.test", "xn--mnchen-3ya.test"),
    ],
)
def test_a_domain_that_a_person_names(name: str, expected: str) -> None:
    site = site_named(domain_given(name), FORM)
    assert (site.name, site.id) == (expected, FORM.domain_id(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a.test", "http://a.test/"),
        ("a.test", "https://a.test/"),
        ("a.test/x", "https://a.test/x"),
        ("HTTP://A.test/#x", "http://a.test/"),
        ("http://intranet/", "http://intranet/"),
    ],
)
def test_a_url_that_a_person_names(text: str, expected: str) -> None:
    assert url_given(text, FORM.in_full) == crawl_url(expected)


@pytest.mark.parametrize("text", ["", "nothing", "two words", "ftp://a.test/", "http://"])
def test_an_invalid_url_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a URL"):
        url_given(text, FORM.in_full)


def test_an_invalid_domain_is_an_error() -> None:
    with pytest.raises(UsageError, match="'two words' is not a domain"):
        domain_given("two words")


def test_an_argument_that_is_not_utf_8_is_an_error() -> None:
    with pytest.raises(UsageError, match="is not a URL"):
        url_given("http://a.test/\udcff", FORM)


async def test_the_request_that_settled_a_url(world: World) -> None:
    await world.open("http://a.test/", *(new_url(f"http://a.test/{x}", 1) for x in ("blocked", "robots.txt")))
    lease = (await world.claim()).lease
    lease = lease.replace(urls=await first_urls(world.frontier, lease, 3))
    rows = [
        page_row(lease, "http://a.test/robots.txt", 0).replace(kind=RequestKind.ROBOTS),
        page_row(lease, "http://a.test/", 1, status=503),
        page_row(lease, "http://a.test/", 2, status=200),
    ]
    await world.frontier.settle([visited(lease, UrlState.DONE, UrlState.BLOCKED, UrlState.BLOCKED, requests=rows)])
    reader = world.harness.reader()

    async def settled_by(text: str) -> RequestRow | None:
        url = crawl_url(text)
        record = await reader.url(url.domain, url.fingerprint)
        assert record is not None
        return await settling_request(reader, record)

    assert await settled_by("http://a.test/robots.txt") is None, "it was not requested as a page"
    row = await settled_by("http://a.test/")
    assert row is not None and (row.seq, row.status) == (2, 200)
    assert await settled_by("http://a.test/blocked") is None


async def test_a_url_that_is_pending_was_settled_by_nothing(world: World) -> None:
    await world.open("http://a.test/")
    reader = world.harness.reader()
    url = crawl_url("http://a.test/")
    record = await reader.url(url.domain, url.fingerprint)
    assert record is not None and record.visit is None
    assert await settling_request(reader, record) is None
