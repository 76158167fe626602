"""The meter of a process: what visits bring is counted under the names of the table of figures."""

from __future__ import annotations

import pytest

from rove.crawl.meter import Meter
from rove.model.figures import figure_of
from rove.model.ledger import DelaySource, Location, RequestKind, RequestRow
from rove.model.samples import Distribution
from rove.model.urls import UrlState
from rove.model.visits import Lease, Settled, VisitResult

LEASE = Lease(domain=1, name="a.test", token=5, crawl_delay=0.0, urls=())


class Times:
    """Clocks that the test moves."""

    def __init__(self) -> None:
        self.now, self.cpu, self.wall = 50.0, 3.0, 1_700_000_000.0

    def meter(self) -> Meter:
        return Meter(
            "2", delay=70.0, clock=lambda: self.now, cpu_seconds=lambda: self.cpu, wall_clock=lambda: self.wall
        )


@pytest.fixture
def times() -> Times:
    return Times()


def request(kind: RequestKind = RequestKind.PAGE, **fields: object) -> RequestRow:
    values = {"visit": 5, "seq": 0, "domain": 1, "kind": kind, "url": "http://a.test/", "fingerprint": 2}
    return RequestRow(**values, started=0.0, began=0, ended=0, **fields)  # type: ignore[arg-type]


def visit(*requests: RequestRow, settled: tuple[Settled, ...] = ()) -> VisitResult:
    return VisitResult(lease=LEASE, requested=bool(requests), since_finish=0.0, requests=requests, settled=settled)


def test_visits_are_counted_by_what_they_brought(times: Times) -> None:
    meter = times.meter()
    where = Location(file="a.warc.gz", offset=0, length=700)
    page = request(size=2_000, content_hash=7, text=where, raw=where, marks=("text-cut",))
    copy = request(size=100, content_hash=7, text=where, is_copy=True)
    robots = request(RequestKind.ROBOTS, size=50)
    missing = request(error="status-404")
    blocked = visit(settled=(Settled(fingerprint=2, state=UrlState.BLOCKED, reason="excluded"),))
    meter.note_settled([visit(robots, page), visit(copy), visit(missing), blocked], lost=1)
    sample = meter.take({}, {})
    assert sample.figures == {
        "cpu.2": 0.0,
        "visits": 3,
        "leases.requested": 3,
        "leases.without_request": 1,
        "no_request.blocked": 1,
        "leases_lost": 1,
        "rests.delay": 3,
        "requests.page": 3,
        "requests.robots": 1,
        "errors.page.status-404": 1,
        "bytes.received": 2_150,
        "bytes.stored": 2_100,
        "bytes.stored.text": 1_400,
        "bytes.stored.raw": 700,
        "pages.stored": 1,
        "pages.copy": 1,
        "marks.text-cut": 1,
    }
    assert (sample.histograms["rest"].count, sample.histograms["rest"].mean) == (3, 70.0)
    sizes = sample.histograms["page_size"]
    assert (sizes.count, sizes.longest, sizes.first) == (2, 2_000.0, 64.0)


def test_domains_that_rest_longer_are_counted_until_they_have_rested(times: Times) -> None:
    meter = times.meter()
    slow = visit(request()).replace(pause=80.0, pause_from=DelaySource.SLOW)
    asked = visit(request()).replace(lease=LEASE.replace(crawl_delay=200.0))
    meter.note_settled([slow, asked, visit(request())], lost=0)
    figures = meter.take({}, {}).figures
    assert (figures["rests.slow"], figures["rests.crawl-delay"], figures["rests.delay"]) == (1, 1, 1)
    assert (figures["slowed.slow"], figures["slowed.crawl-delay"], figures.get("slowed.delay")) == (1, 1, None)
    times.now += 100.0
    figures = meter.take({}, {}).figures
    assert (figures.get("slowed.slow"), figures["slowed.crawl-delay"]) == (None, 1)


def test_links_that_are_neither_new_nor_refused_were_known(times: Times) -> None:
    meter = times.meter()
    meter.note_links(found=10, new=4, not_taken={"trap": 1, "budget": 2}, evicted=3)
    meter.note_links(found=0, new=1, not_taken={}, evicted=0)
    figures = meter.take({}, {}).figures
    assert {name: number for name, number in figures.items() if "cpu" not in name} == {
        "links.found": 10,
        "links.new": 5,
        "links.known": 3,
        "links.evicted": 3,
        "not_taken.trap": 1,
        "not_taken.budget": 2,
    }


def test_a_sample_is_of_the_time_since_the_last_one(times: Times) -> None:
    meter = times.meter()
    meter.counts["claims"] += 2
    meter.histogram("claim").add(0.25)
    meter.note_margin(0.5)
    meter.note_margin(0.125)
    times.now, times.cpu, times.wall = 52.5, 4.5, 1_700_000_002.5
    query = Distribution(count=1, total=0.5, longest=0.5, buckets={13: 1})
    first = meter.take({"in_flight": 7, "rss.2": 100}, {"lease": query})
    assert (first.node, first.ended, first.seconds) == ("", 1_700_000_002_500, 2.5)
    assert first.figures == {"claims": 2, "cpu.2": 1.5, "margin.smallest": 0.125, "in_flight": 7, "rss.2": 100}
    assert first.histograms.keys() == {"claim", "query.lease"}
    times.now = 54.5
    second = meter.take({}, {})
    assert (second.seconds, second.figures, second.histograms) == (2.0, {"cpu.2": 0.0}, {})


def test_every_name_is_in_the_table(times: Times) -> None:
    meter = times.meter()
    meter.note_settled([visit(request(error="dns")), visit()], lost=0)
    meter.note_links(found=1, new=0, not_taken={"port": 1}, evicted=0)
    meter.note_margin(1.0)
    sample = meter.take({}, {"claim": Distribution()})
    for name in sample.figures:
        assert not figure_of(name).is_histogram
    for name in sample.histograms:
        assert figure_of(name).is_histogram
