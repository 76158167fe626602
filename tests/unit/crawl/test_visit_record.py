"""The notes of a visit, and what the frontier is told of them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec import structs

from rove.crawl.visit_record import VisitRecord
from rove.model.ledger import (
    Content,
    DelaySource,
    Location,
    RequestKind,
    Settlement,
)
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
)
from rove.model.urls import UrlState
from rove.model.visits import (
    Lease,
    OriginRecord,
    Pace,
    RobotsStatus,
    Settled,
)
from rove.policy.pacing import REPEATS_MEMORY
from rove.store.contract import Page, Stored
from rove.urls.fingerprint import fingerprint_bytes
from tests.unit.crawl.scripted import crawl_url, page, redirect, refused, wrong_type

DELAY = 70.0
URL = crawl_url("http://a.test/x")
LEASE = Lease(domain=URL.domain, name="a.test", token=77, crawl_delay=0.0, urls=())


@pytest.fixture
def journal() -> VisitRecord:
    return VisitRecord(LEASE)


def note(
    journal: VisitRecord, outcome: Outcome, *, started: float = 10.0, now: float = 12.5
) -> None:
    row = journal.begin_request(URL, RequestKind.PAGE, now=started)
    journal.end_request(row, outcome, now=now)


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
        (
            wrong_type("Image/PNG; x=y"),
            {"status": 200, "error": "wrong-type", "media_type": "image/png"},
        ),
        (
            Failed(kind=FailureKind.RESET, detail="x", status=200),
            {"status": 200, "error": "reset"},
        ),
        (Failed(kind=FailureKind.DNS, detail="x"), {"status": 0, "error": "dns", "media_type": ""}),
    ],
)
def test_each_outcome_leaves_a_row(
    journal: VisitRecord, outcome: Outcome, expected: dict[str, Any]
) -> None:
    note(journal, outcome)
    (row,) = journal.requests
    assert {name: getattr(row, name) for name in expected} == expected
    assert (row.visit, row.seq, row.kind) == (77, 0, RequestKind.PAGE)
    assert (row.url, row.fingerprint, row.domain) == (URL.text, URL.fingerprint, URL.domain)
    assert row.text is row.raw is row.content_hash is None


def test_rows_carry_wall_clock_times(journal: VisitRecord) -> None:
    before = time.time()
    note(journal, page(), started=10.0, now=12.5)
    (row,) = journal.requests
    assert before <= row.started <= time.time()
    assert row.finished - row.started == pytest.approx(2.5)


def test_requests_are_numbered_in_order(journal: VisitRecord) -> None:
    for _ in range(3):
        note(journal, refused(404))
    assert [row.seq for row in journal.requests] == [0, 1, 2]


def test_a_journal_without_requests_asked_nothing(journal: VisitRecord) -> None:
    result = journal.result(50.0, DELAY)
    assert not journal.asked and not result.asked
    assert result.since_finish == 0.0
    assert (result.settled, result.deferred, result.requests) == ((), (), ())


def test_the_time_since_the_finish_counts_from_the_last_request(journal: VisitRecord) -> None:
    note(journal, page(), started=10.0, now=12.0)
    note(journal, page(), started=12.0, now=15.0)
    assert journal.result(20.0, DELAY).since_finish == pytest.approx(5.0)
    assert journal.result(20.0, DELAY).asked


def test_what_is_settled_and_put_off_is_told(journal: VisitRecord) -> None:
    journal.settle(1, UrlState.BLOCKED, "robots.txt")
    journal.settle(2, UrlState.FAILED)
    journal.settle(2, UrlState.DONE)
    journal.defer(3, 140.0, attempts=1, failing=False)
    journal.not_accepted["too-deep"] += 2
    result = journal.result(0.0, DELAY)
    assert list(result.settled) == [
        Settled(fingerprint=1, state=UrlState.BLOCKED, reason="robots.txt"),
        Settled(fingerprint=2, state=UrlState.DONE),
    ]
    (deferred,) = result.deferred
    assert (deferred.fingerprint, deferred.seconds, deferred.attempts) == (3, 140.0, 1)
    assert result.not_accepted == {"too-deep": 2}


def test_pages_get_their_places_in_the_order_they_were_noted(journal: VisitRecord) -> None:
    note(journal, refused(404))
    note(journal, page())
    kept = Page(url=URL.text, fetched_at=1.0, text=b"text", source=None)
    journal.note_page(kept, title="A title", content_hash=-5)
    note(journal, refused(404))
    where = Location(file="x.warc.gz", offset=1, length=2)
    journal.note_stored([Stored(text=where, raw=None)])
    assert [row.text for row in journal.requests] == [None, where, None]
    assert (journal.requests[1].title, journal.requests[1].content_hash) == ("A title", -5)
    assert journal.pages == [kept]


def test_a_text_that_was_stored_before_is_noted(journal: VisitRecord) -> None:
    where = Location(file="x.warc.gz", offset=1, length=2)
    text = Content(hash=-5, checked=6, domain=1, visit=2, where=where, url=URL.text, fetched_at=1.0)
    for _ in range(2):
        note(journal, page())
        kept = Page(url=URL.text, fetched_at=1.0, text=b"", source=None, content_hash=-5)
        journal.note_page(kept, title="", content_hash=-5)
    journal.note_stored([Stored(text=where, raw=None), Stored(text=where, raw=None, is_copy=True)])
    journal.note_text(is_repeat=False, content=text)
    journal.note_text(is_repeat=True, content=None)
    assert [row.is_copy for row in journal.requests] == [False, True]
    result = journal.result(20.0, DELAY)
    assert result.contents == (text,)
    assert result.pace.repeats == pytest.approx(1 / REPEATS_MEMORY)
    assert journal.asked_only(20.0, DELAY).contents == ()


@pytest.mark.parametrize("places", [0, 2])
def test_a_page_without_a_place_is_a_mistake(journal: VisitRecord, places: int) -> None:
    note(journal, page())
    journal.note_page(
        Page(url=URL.text, fetched_at=1.0, text=b"", source=None), title="", content_hash=0
    )
    with pytest.raises(ValueError, match="zip"):
        journal.note_stored([Stored(text=None, raw=None)] * places)


def test_a_visit_that_could_not_be_written_down_still_says_that_it_asked(
    journal: VisitRecord,
) -> None:
    note(journal, page(), now=12.0)
    journal.settle(URL.fingerprint, UrlState.DONE)
    journal.defer(5, 1.0, attempts=1, failing=False)
    journal.not_accepted["too-deep"] += 2
    result = journal.asked_only(20.0, DELAY)
    assert result.lease is LEASE
    assert result.asked and result.since_finish == pytest.approx(8.0)
    assert (result.settled, result.deferred, result.not_accepted) == ((), (), {})
    assert list(result.requests) == [journal.requests[0].replace(fate=Settlement.LOST)]
    assert not VisitRecord(LEASE).asked_only(20.0, DELAY).asked


AHEAD = LEASE.replace(clock_offset=1000.25, pace=Pace(backoff=500.0, failures=4))


def test_a_request_is_timed_by_the_crawls_clock() -> None:
    journal = VisitRecord(AHEAD)
    row = journal.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert (row.began, row.ended) == (1_010_250, 1_010_250)
    ended = journal.end_request(row, page(), now=12.5)
    assert (ended.began, ended.ended) == (1_010_250, 1_012_750)
    assert journal.requests == [ended]


def test_until_it_has_ended_a_request_counts_as_lost(journal: VisitRecord) -> None:
    row = journal.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert (row.error, row.fate) == (Settlement.LOST, Settlement.SETTLED)
    assert not journal.asked and journal.requests == []
    assert journal.end_request(row, page(), now=11.0).error == ""
    assert journal.asked


def test_the_host_that_is_being_asked_is_known(journal: VisitRecord) -> None:
    assert journal.host == ""
    row = journal.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert journal.host == "a.test"
    journal.end_request(row, refused(404), now=11.0)
    assert journal.host == ""


def test_a_request_to_another_domain_names_it(journal: VisitRecord) -> None:
    other = crawl_url("http://www.b.test/robots.txt")
    row = journal.begin_request(other, RequestKind.ROBOTS, now=1.0)
    assert (row.domain, row.other_domain) == (URL.domain, other.domain)
    row = journal.begin_request(crawl_url("http://www.a.test/"), RequestKind.ROBOTS, now=1.0)
    assert (row.domain, row.other_domain) == (URL.domain, None)


def test_a_clock_that_goes_back_makes_no_request_end_before_it_began(journal: VisitRecord) -> None:
    row = journal.begin_request(URL, RequestKind.PAGE, now=10.0)
    assert journal.end_request(row, page(), now=9.0).ended == row.began


@pytest.mark.parametrize(
    ("outcome", "pace", "pause", "source"),
    [
        (refused(503), Pace(backoff=1000.0), 1000.0, DelaySource.BACKOFF),
        (page(), Pace(backoff=250.0), 250.0, DelaySource.BACKOFF),
        (
            Failed(kind=FailureKind.DNS, detail="x"),
            Pace(backoff=500.0, failures=5),
            16 * DELAY,
            DelaySource.FAILURES,
        ),
    ],
)
def test_the_result_says_how_the_domain_is_to_be_treated(
    outcome: Outcome, pace: Pace, pause: float, source: DelaySource
) -> None:
    journal = VisitRecord(AHEAD)
    note(journal, outcome)
    for result in (journal.result(20.0, DELAY), journal.asked_only(20.0, DELAY)):
        assert (result.pace, result.pause, result.pause_from) == (pace, pause, source)


def test_a_visit_that_asked_nothing_leaves_the_pace_as_it_was() -> None:
    assert VisitRecord(AHEAD).result(20.0, DELAY).pace == AHEAD.pace


def test_the_crawl_delay_is_the_delay_that_counts_where_it_is_longer() -> None:
    journal = VisitRecord(LEASE.replace(crawl_delay=300.0))
    note(journal, refused(429))
    assert journal.result(20.0, DELAY).pause == 600.0


def test_a_robots_txt_is_kept_for_as_long_as_it_is_valid(journal: VisitRecord) -> None:
    record = OriginRecord(
        domain=URL.domain,
        origin=URL.origin,
        status=RobotsStatus.RULES,
        body=b"User-agent: *",
        valid_for=100.0,
    )
    note(journal, page(), now=12.0)
    journal.note_copy(record)
    journal.note_origin(record)
    (kept,) = journal.origins(now=42.0)
    assert kept == record.replace(valid_for=70.0)
    assert journal.requests[-1].content_hash == fingerprint_bytes(record.body)


@pytest.mark.parametrize("status", [RobotsStatus.NONE, RobotsStatus.UNREACHABLE])
def test_where_there_are_no_rules_no_copy_is_named(
    journal: VisitRecord, status: RobotsStatus
) -> None:
    note(journal, refused(404))
    journal.note_copy(
        OriginRecord(
            domain=URL.domain, origin=URL.origin, status=status, body=b"old", valid_for=1.0
        )
    )
    assert journal.requests[-1].content_hash is None
