"""The record of a visit, and the result that it gives to the frontier."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec import structs

from rove.crawl.skip_sample import SkipSample
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.model.ledger import Content, DelaySource, Location, RequestKind, Settlement
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome
from rove.model.text_hash import robots_name
from rove.model.urls import NotAccepted, UrlState
from rove.model.visits import Lease, OriginRecord, Pace, RobotsStatus, Settled
from rove.parse.html import Document
from rove.policy.pacing import REPEATS_MEMORY
from rove.store.contract import Page, Stored
from tests.unit.crawl.scripted import crawl_url, page, redirect, refused, wrong_type

DELAY = 70.0
URL = crawl_url("http://a.test/x")
LEASE = Lease(domain=URL.domain, name="a.test", token=77, crawl_delay=0.0, urls=())
PACE = Pace(backoff=500.0, failures=4)


def held(clock_offset: float = 0.0, **changes: Any) -> HeldLease:
    """Return the lease as a process holds it."""
    lease = LEASE.replace(**changes)
    return HeldLease(lease=lease, deadline=100.0, clock_offset=clock_offset, origins={})


def document(title: str = "") -> Document:
    return Document(title=title, utf8=b"text", links=(), noindex=False, nofollow=False)


@pytest.fixture
def record() -> VisitRecord:
    return VisitRecord(held())


def note(record: VisitRecord, outcome: Outcome, *, started: float = 10.0, now: float = 12.5) -> None:
    row = record.begin_request(URL, RequestKind.PAGE, now=started)
    record.end_request(row, outcome, now=now)


def gzipped() -> Fetched:
    return structs.replace(page("x" * 1000), wire_body=b"short", truncated=True)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (page("four"), {"status": 200, "media_type": "text/html", "size": 4, "error": ""}),
        (gzipped(), {"status": 200, "size": 5, "truncated": True}),
        (redirect("/y", 302), {"status": 302, "target": "/y", "error": "", "size": 0}),
        (refused(404), {"status": 404, "error": "status-404"}),
        (refused(503), {"status": 503, "error": "status-503"}),
        (wrong_type("Image/PNG; x=y"), {"status": 200, "error": "wrong-type", "media_type": "image/png"}),
        (Failed(kind=FailureKind.RESET, detail="x", status=200), {"status": 200, "error": "reset"}),
        (Failed(kind=FailureKind.DNS, detail="x"), {"status": 0, "error": "dns", "media_type": ""}),
    ],
)
def test_each_outcome_leaves_a_row(record: VisitRecord, outcome: Outcome, expected: dict[str, Any]) -> None:
    note(record, outcome)
    (row,) = record.requests
    assert {name: getattr(row, name) for name in expected} == expected
    assert (row.visit, row.seq, row.kind) == (77, 0, RequestKind.PAGE)
    assert (row.url, row.fingerprint, row.domain) == (URL.text, URL.fingerprint, URL.domain)
    assert (row.text, row.raw, row.content_hash) == (None, None, None)


def test_rows_carry_wall_clock_times(record: VisitRecord) -> None:
    before = time.time()
    note(record, page(), started=10.0, now=12.5)
    (row,) = record.requests
    assert before <= row.started <= time.time()
    assert row.finished - row.started == pytest.approx(2.5)


def test_requests_are_numbered_in_order(record: VisitRecord) -> None:
    for _ in range(3):
        note(record, refused(404))
    assert [row.seq for row in record.requests] == [0, 1, 2]


def test_a_visit_without_requests_has_made_none(record: VisitRecord) -> None:
    result = record.result(50.0, DELAY)
    assert not record.requested and not result.requested
    assert result.since_finish == 0.0
    assert (result.settled, result.deferred, result.requests) == ((), (), ())


def test_the_time_since_the_finish_counts_from_the_last_request(record: VisitRecord) -> None:
    note(record, page(), started=10.0, now=12.0)
    note(record, page(), started=12.0, now=15.0)
    assert record.result(20.0, DELAY).since_finish == pytest.approx(5.0)
    assert record.result(20.0, DELAY).requested


def test_settled_and_deferred_urls_are_in_the_result(record: VisitRecord) -> None:
    record.settle(1, UrlState.BLOCKED, "robots.txt")
    record.settle(2, UrlState.FAILED)
    record.settle(2, UrlState.DONE)
    record.defer(3, 140.0, attempts=1, failing=False)
    record.refuse([(NotAccepted.TOO_DEEP, URL)] * 2, URL, SkipSample())
    result = record.result(0.0, DELAY)
    assert list(result.settled) == [
        Settled(fingerprint=1, state=UrlState.BLOCKED, reason="robots.txt"),
        Settled(fingerprint=2, state=UrlState.DONE),
    ]
    (deferred,) = result.deferred
    assert (deferred.fingerprint, deferred.seconds, deferred.attempts) == (3, 140.0, 1)
    assert result.not_accepted == {"too-deep": 2}
    (example,) = result.skipped
    assert (example.reason, example.url, example.page) == ("too-deep", URL.text, URL.text)


def test_pages_get_their_locations_in_order(record: VisitRecord) -> None:
    note(record, refused(404))
    note(record, page())
    saved = Page(url=URL.text, fetched_at=1.0, text=b"text", source=None, content_hash=-5)
    record.note_page(saved, document(title="A title"), None)
    note(record, refused(404))
    where = Location(file="x.warc.gz", offset=1, length=2)
    record.note_stored([Stored(text=where, raw=None)])
    assert [row.text for row in record.requests] == [None, where, None]
    assert (record.requests[1].title, record.requests[1].content_hash) == ("A title", -5)
    assert record.pages == [saved]


def test_copies_and_repeated_texts_are_recorded(record: VisitRecord) -> None:
    where = Location(file="x.warc.gz", offset=1, length=2)
    text = Content(hash=-5, sha1_64=6, domain=1, visit=2, where=where, url=URL.text, fetched_at=1.0)
    for _ in range(2):
        note(record, page())
        saved = Page(url=URL.text, fetched_at=1.0, text=b"", source=None, content_hash=-5)
        record.note_page(saved, document(), None)
    record.note_stored([Stored(text=where, raw=None), Stored(text=where, raw=None, is_copy=True)])
    record.note_text(is_repeat=False, content=text)
    record.note_text(is_repeat=True, content=None)
    assert [row.is_copy for row in record.requests] == [False, True]
    result = record.result(20.0, DELAY)
    assert result.contents == (text,)
    assert result.pace.repeats == pytest.approx(1 / REPEATS_MEMORY)
    assert record.requests_only(20.0, DELAY).contents == ()


@pytest.mark.parametrize("locations", [0, 2])
def test_every_page_needs_exactly_one_location(record: VisitRecord, locations: int) -> None:
    note(record, page())
    record.note_page(Page(url=URL.text, fetched_at=1.0, text=b"", source=None), document(), None)
    with pytest.raises(ValueError, match="zip"):
        record.note_stored([Stored(text=None, raw=None)] * locations)


def test_a_visit_that_could_not_be_written_still_reports_its_requests(record: VisitRecord) -> None:
    note(record, page(), now=12.0)
    record.settle(URL.fingerprint, UrlState.DONE)
    record.defer(5, 1.0, attempts=1, failing=False)
    record.refuse([(NotAccepted.TOO_DEEP, URL)], URL, SkipSample())
    result = record.requests_only(20.0, DELAY)
    assert result.lease == LEASE
    assert result.requested and result.since_finish == pytest.approx(8.0)
    assert (result.settled, result.deferred, result.not_accepted, result.skipped) == ((), (), {}, ())
    assert list(result.requests) == [record.requests[0].replace(settlement=Settlement.LOST)]
    assert not VisitRecord(held()).requests_only(20.0, DELAY).requested


def test_a_request_is_timed_by_the_crawls_clock() -> None:
    record = VisitRecord(held(clock_offset=1000.25))
    row = record.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert (row.began, row.ended) == (1_010_250, 1_010_250)
    ended = record.end_request(row, page(), now=12.5)
    assert (ended.began, ended.ended) == (1_010_250, 1_012_750)
    assert record.requests == [ended]


def test_a_request_counts_as_lost_until_it_has_ended(record: VisitRecord) -> None:
    row = record.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert (row.error, row.settlement) == (Settlement.LOST, Settlement.SETTLED)
    assert not record.requested and record.requests == []
    assert record.end_request(row, page(), now=11.0).error == ""
    assert record.requested


def test_the_host_of_the_request_in_flight_is_known(record: VisitRecord) -> None:
    assert record.requesting_host == ""
    row = record.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert record.requesting_host == "a.test"
    record.end_request(row, refused(404), now=11.0)
    assert record.requesting_host == ""


def test_no_request_ends_before_it_began_even_if_the_clock_goes_back(record: VisitRecord) -> None:
    row = record.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert record.end_request(row, page(), now=9.0).ended == row.began


@pytest.mark.parametrize(
    ("outcome", "pace", "pause", "source"),
    [
        (refused(503), Pace(backoff=1000.0, answered=True), 1000.0, DelaySource.BACKOFF),
        (page(), Pace(backoff=250.0, answered=True), 250.0, DelaySource.BACKOFF),
        (Failed(kind=FailureKind.DNS, detail="x"), Pace(backoff=500.0, failures=5), 16 * DELAY, DelaySource.FAILURES),
    ],
)
def test_the_result_contains_the_pacing(outcome: Outcome, pace: Pace, pause: float, source: DelaySource) -> None:
    record = VisitRecord(held(pace=PACE))
    note(record, outcome)
    for result in (record.result(20.0, DELAY), record.requests_only(20.0, DELAY)):
        assert (result.pace, result.pause, result.pause_from) == (pace, pause, source)


def test_a_visit_without_requests_does_not_change_the_pace() -> None:
    assert VisitRecord(held(pace=PACE)).result(20.0, DELAY).pace == PACE


def test_pacing_uses_the_crawl_delay_if_it_is_longer() -> None:
    record = VisitRecord(held(crawl_delay=300.0))
    note(record, refused(429))
    assert record.result(20.0, DELAY).pause == 600.0


def test_the_validity_of_a_robots_txt_shrinks_until_it_is_saved(record: VisitRecord) -> None:
    origin = OriginRecord(
        domain=URL.domain, origin=URL.origin, status=RobotsStatus.RULES, body=b"User-agent: *", valid_for=100.0
    )
    note(record, page(), now=12.0)
    record.note_robots(origin)
    record.note_origin(origin)
    assert record.origins(now=42.0) == [origin.replace(valid_for=70.0)]
    assert record.requests[-1].robots == robots_name(origin.body)


@pytest.mark.parametrize("status", [RobotsStatus.NONE, RobotsStatus.UNREACHABLE])
def test_without_rules_no_robots_txt_is_named(record: VisitRecord, status: RobotsStatus) -> None:
    note(record, refused(404))
    record.note_robots(OriginRecord(domain=URL.domain, origin=URL.origin, status=status, body=b"old", valid_for=1.0))
    assert record.requests[-1].robots == ""
