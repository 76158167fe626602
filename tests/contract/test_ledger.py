"""The ledger of requests and its readers, for every frontier."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.records import LostVisit
from rove.model.ledger import DelaySource, Location, RequestKind, RequestRow, Settlement
from rove.model.text_hash import robots_name
from rove.model.urls import UrlState
from rove.model.visits import Lease, OriginRecord, Pace, RobotsStatus
from tests.contract.harness import BUDGET, DELAY, START, TICK, Harness, page_row, url, visited

DONE = UrlState.DONE
RULES = b"User-agent: *\nDisallow: /private\n\xff\x00"


@pytest.fixture
def small_slices(harness: Harness) -> None:
    harness.slice = 3


async def collected(rows: AsyncIterator[RequestRow]) -> list[RequestRow]:
    return [row async for row in rows]


def places(rows: list[RequestRow]) -> list[tuple[int, int]]:
    return [(row.visit, row.seq) for row in rows]


def origin(lease: Lease, body: bytes = RULES, **more: object) -> OriginRecord:
    values = {"status": RobotsStatus.RULES, "valid_for": 1000.0, **more}
    return OriginRecord(domain=lease.domain, origin="http://a.test", body=body, **values)  # type: ignore[arg-type]


async def one_lease(frontier: Frontier, urls: int = 3) -> Lease:
    await frontier.add([url(f"http://a.test/{i}") for i in range(urls)])
    (lease,) = await frontier.claim(1)
    return lease


@pytest.mark.parametrize(
    ("crawl_delay", "pause", "pause_from", "expected"),
    [
        (0.0, 0.0, DelaySource.DELAY, (DELAY, DelaySource.DELAY)),
        (DELAY, 10.0, DelaySource.SLOW, (DELAY, DelaySource.DELAY)),
        (200.0, 100.0, DelaySource.SLOW, (200.0, DelaySource.CRAWL_DELAY)),
        (200.0, 300.5, DelaySource.SLOW, (300.5, DelaySource.SLOW)),
        (0.0, 3600.0, DelaySource.BACKOFF, (3600.0, DelaySource.BACKOFF)),
        (0.0, 86_400.0, DelaySource.RETRY_AFTER, (86_400.0, DelaySource.RETRY_AFTER)),
        (0.0, 280.0, DelaySource.FAILURES, (280.0, DelaySource.FAILURES)),
    ],
)
async def test_a_row_says_how_long_its_domain_is_left_alone_and_why(
    harness: Harness, crawl_delay: float, pause: float, pause_from: DelaySource, expected: tuple[float, DelaySource]
) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    await frontier.put_origins([origin(lease, crawl_delay=crawl_delay)])
    rows = [page_row(lease, f"http://a.test/{i}", seq=i) for i in range(2)]
    visit = visited(lease, DONE, requests=rows, pause=pause, pause_from=pause_from)
    assert await frontier.settle([visit]) == 1
    entries = await harness.reader().requests(lease.token)
    assert [(row.delay, row.delay_from) for row in entries] == [expected, expected]
    record = await harness.reader().domain(lease.domain)
    assert record is not None and record.free_in == pytest.approx(expected[0])


async def test_all_of_a_row_comes_back(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    row = page_row(
        lease,
        "http://a.test/0",
        seq=4,
        address="2001:db8::1",
        status=301,
        error="status-301",
        media_type="text/html",
        size=12,
        truncated=True,
        content_hash=-(1 << 63),
        target="/there",
        title="Straße",
        text=Location(file="t.warc.gz", offset=1, length=2),
        raw=Location(file="r.warc.gz", offset=3, length=1 << 40),
    )
    row = row.replace(kind=RequestKind.SITEMAP)
    await frontier.settle([visited(lease, DONE, requests=[row])])
    (entry,) = await harness.reader().requests(lease.token)
    expected = row.replace(delay=DELAY, process=frontier.process, settlement=Settlement.SETTLED)
    assert entry.replace(node="") == expected
    assert entry.finished == row.started + 1.0


async def test_a_visit_that_came_too_late_is_in_the_ledger_as_such(harness: Harness) -> None:
    frontier = await harness.open()
    late = await one_lease(frontier)
    await frontier.put_origins([origin(late, crawl_delay=100.0)])
    harness.advance(BUDGET + 100.0)
    (current,) = await frontier.claim(1)
    where = Location(file="a.warc.gz", offset=1, length=2)
    row = page_row(late, "http://a.test/0", text=where, raw=where)
    assert await frontier.settle([visited(late, DONE, requests=[row])]) == 0
    assert await frontier.settle([visited(current, requests=[page_row(current, row.url)])]) == 1
    stale, fresh = await collected(harness.reader().visits(late.domain))
    assert (stale.settlement, stale.process) == (Settlement.LATE, frontier.process)
    assert stale.text is None and stale.raw is None, "its pages are not indexed"
    assert (fresh.settlement, fresh.delay_from) == (Settlement.SETTLED, DelaySource.CRAWL_DELAY)


async def test_a_late_visit_in_one_batch_with_the_one_that_counts(harness: Harness) -> None:
    frontier = await harness.open()
    late = await one_lease(frontier)
    harness.advance(BUDGET + DELAY)
    (current,) = await frontier.claim(1)
    visits = [
        visited(late, DONE, requests=[page_row(late, "http://a.test/0")]),
        visited(current, UrlState.FAILED, requests=[page_row(current, "http://a.test/0")]),
    ]
    assert await frontier.settle(visits) == 1
    rows = await collected(harness.reader().visits(late.domain))
    assert [row.settlement for row in rows] == [Settlement.LATE, Settlement.SETTLED]
    counts = await frontier.counts()
    assert (counts.urls[DONE], counts.urls[UrlState.FAILED]) == (0, 1)
    assert await harness.counted_pending() == {late.domain: (2, 2)}


async def test_a_visit_to_a_domain_that_is_excluded_during_it_is_late(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    await frontier.exclude({lease.domain: lease.name})
    row = page_row(lease, "http://a.test/0")
    assert await frontier.settle([visited(lease, DONE, requests=[row])]) == 0
    (entry,) = await harness.reader().requests(lease.token)
    assert entry.settlement is Settlement.LATE


async def test_a_repeated_settle_leaves_its_rows_as_they_are(harness: Harness) -> None:
    """The second settle finds its token spent, and the rows of the first one stay."""
    frontier = await harness.open()
    lease = await one_lease(frontier)
    visit = visited(lease, DONE, requests=[page_row(lease, "http://a.test/0")])
    await frontier.settle([visit])
    before = await harness.reader().requests(lease.token)
    await frontier.settle([visit])
    assert await harness.reader().requests(lease.token) == before
    assert before[0].settlement is Settlement.SETTLED


async def test_the_ledger_is_read_whole_and_in_order(harness: Harness, small_slices: None) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://{name}.test/{i}") for name in "abc" for i in range(9)])
    for _ in range(5):
        for lease in await frontier.claim(5):
            rows = [page_row(lease, lease.urls[0].url, seq) for seq in range(1 + lease.token % 3)]
            rows[0] = rows[0].replace(kind=RequestKind.ROBOTS)
            await frontier.settle([visited(lease, DONE, requests=rows)])
        harness.advance(DELAY)
    reader = harness.reader()
    everything = await collected(reader.ledger())
    assert len(everything) == (await frontier.counts()).requests > 3 * 5
    keys = [(row.domain, row.visit, row.seq) for row in everything]
    assert keys == sorted(set(keys))
    for name in "abc":
        domain = url(f"http://{name}.test/").domain
        visits = await collected(reader.visits(domain))
        assert visits == [row for row in everything if row.domain == domain]
        pages = await collected(reader.pages(domain=domain))
        assert pages == [row for row in reversed(visits) if row.kind is RequestKind.PAGE]
    newest = await collected(reader.pages())
    assert places(newest) == sorted(places(newest), reverse=True)
    assert await collected(reader.visits(8)) == []


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 6, 8])
async def test_slices_that_just_fit(harness: Harness, small_slices: None, rows: int) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    requests = [page_row(lease, "http://a.test/0", seq) for seq in range(rows)]
    await frontier.settle([visited(lease, DONE, requests=requests)])
    reader = harness.reader()
    for entries in (reader.ledger(), reader.visits(lease.domain)):
        assert [row.seq async for row in entries] == list(range(rows))
    assert [row.seq async for row in reader.pages()] == list(reversed(range(rows)))


async def test_the_first_and_the_last_domain_are_in_the_ledger(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    ends = [-(1 << 63), (1 << 63) - 1]
    rows = [page_row(lease, "http://a.test/0", i).replace(domain=d) for i, d in enumerate(ends)]
    await frontier.settle([visited(lease, DONE, requests=rows)])
    assert [row.domain async for row in harness.reader().ledger()] == ends
    for domain in ends:
        assert len(await collected(harness.reader().visits(domain))) == 1


async def test_copies_of_robots_txt_are_never_deleted(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    bodies = [RULES, b"", b"User-agent: *\nDisallow: /\n" * 5000]
    for body in bodies:
        await frontier.put_origins([origin(lease, body)])
    await frontier.put_origins([origin(lease, b"", status=RobotsStatus.NONE)])
    await frontier.put_origins([origin(lease, RULES, status=RobotsStatus.UNREACHABLE)])
    await frontier.put_origins([origin(lease, RULES), origin(lease).replace(origin="http://b")])
    reader = harness.reader()
    for body in bodies:
        assert await reader.robots_text(robots_name(body)) == body
    assert await reader.robots_text(robots_name(b"never read")) is None


async def test_the_record_of_a_domain(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=1)
    lease = await one_lease(frontier)
    reader = harness.reader()
    assert await reader.domain(lease.domain + 1) is None
    record = await reader.domain(lease.domain)
    assert record is not None
    assert (record.id, record.name, record.pending) == (lease.domain, "a.test", 3)
    assert record.is_leased and not record.is_excluded and not record.is_capped
    assert record.free_in == record.ready_in == pytest.approx(BUDGET + DELAY)
    await frontier.put_origins([origin(lease, crawl_delay=90.0)])
    pace = Pace(backoff=100.0, failures=2)
    await frontier.settle([visited(lease, UrlState.FAILED, pace=pace, pause=150.0)])
    harness.advance(160.0)
    record = await reader.domain(lease.domain)
    assert record is not None
    assert (record.pending, record.crawl_delay, record.pace) == (2, 90.0, pace)
    assert record.ready_in == record.free_in == pytest.approx(-10.0)
    assert not record.is_leased
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE)])
    record = await reader.domain(lease.domain)
    assert record is not None and record.is_capped and record.ready_in is None
    await frontier.exclude({lease.domain: lease.name})
    record = await reader.domain(lease.domain)
    assert record is not None
    assert (record.is_excluded, record.ready_in, record.pending) == (True, None, 0)
    assert record.free_in == pytest.approx(90.0)


# Visits that were lost with their process


def lost(lease: Lease, *rows: RequestRow, earliest: int = 0, robots: list[bytes] | None = None) -> LostVisit:
    entries = [row.replace(settlement=Settlement.LOST, process=1, delay=DELAY) for row in rows]
    return LostVisit(domain=lease.domain, visit=lease.token, rows=entries, earliest=earliest, robots=robots or [])


async def test_requests_of_a_lost_visit_are_entered_once(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    resumed = await harness.open()
    await resumed.recover()
    where = Location(file="a.warc.gz", offset=1, length=2)
    rows = [page_row(lease, f"http://a.test/{i}", i, size=10, text=where) for i in range(2)]
    rows[1] = rows[1].replace(error="timeout-total")
    visit = lost(lease, *rows, robots=[RULES, RULES, b"other"])
    for _ in range(3):
        await resumed.record_lost([visit])
    entries = await harness.reader().requests(lease.token)
    assert [(row.seq, row.settlement, row.process, row.delay) for row in entries] == [
        (0, Settlement.LOST, 1, DELAY),
        (1, Settlement.LOST, 1, DELAY),
    ]
    assert entries[0].text is None
    counts = await resumed.counts()
    assert (counts.requests, counts.bytes, counts.failures) == (2, 20, {"timeout-total": 1})
    assert counts.urls_pending == 3
    for body in (RULES, b"other"):
        assert await harness.reader().robots_text(robots_name(body)) == body


async def test_nothing_of_a_settled_visit_is_lost(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    row = page_row(lease, "http://a.test/0", size=10)
    await frontier.settle([visited(lease, DONE, requests=[row])])
    before = await harness.reader().requests(lease.token), await frontier.counts()
    due = await frontier.next_due()
    visit = lost(lease, row, earliest=harness.now() + round(DELAY * 1000))
    assert await frontier.recover([frontier.process], [visit]) == 0
    await frontier.record_lost([visit])
    assert (await harness.reader().requests(lease.token), await frontier.counts()) == before
    assert await frontier.next_due() == due


async def test_the_responses_of_a_lost_visit_postpone_its_domain(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    resumed = await harness.open()

    def after(seconds: float) -> list[LostVisit]:
        return [lost(lease, earliest=harness.now() + round(seconds * 1000))]

    assert await resumed.recover(lost=after(1.0)) == 1
    assert await resumed.next_due() == pytest.approx(DELAY + TICK)
    for seconds, expected in ((900.0, 900.0), (300.0, 900.0)):
        assert await resumed.recover(lost=after(seconds)) == 0
        assert await resumed.next_due() == pytest.approx(expected)
    harness.advance(900.0)
    (again,) = await resumed.claim(1)
    await resumed.settle([visited(again, DONE)])
    await resumed.recover(lost=after(5000.0))
    assert await resumed.next_due() == pytest.approx(DELAY), "another visit came since"


async def test_a_cut_lease_waits_at_once_for_what_its_lost_visit_had_learnt(harness: Harness) -> None:
    """Another process may claim the domain right after the leases are cut and the plain delay is over."""
    frontier = await harness.open()
    lease = await one_lease(frontier)
    resumed = await harness.open()
    assert await resumed.recover(lost=[lost(lease, earliest=harness.now() + 900_000)]) == 1
    harness.advance(DELAY + 1)
    assert await resumed.claim(1) == []
    harness.advance(900.0 - DELAY - 1)
    assert [again.name for again in await resumed.claim(1)] == [lease.name]


async def test_a_lost_visit_postpones_an_idle_domain_too(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier, urls=1)
    await frontier.withdraw(lease.domain, UrlState.FAILED, "gone", lambda _: True)
    await frontier.recover([frontier.process], [lost(lease, earliest=harness.now() + 900_000)])
    assert await frontier.next_due() is None
    await frontier.add([url("http://a.test/new")])
    assert await frontier.next_due() == pytest.approx(900.0)


async def test_lost_visits_to_unknown_domains(harness: Harness) -> None:
    frontier = await harness.open()
    lease = (await one_lease(frontier)).replace(domain=5, token=99)
    await frontier.record_lost([])
    await frontier.record_lost([lost(lease, page_row(lease, "http://a.test/0"), earliest=START)])
    assert len(await harness.reader().requests(99)) == 1
    assert await harness.reader().domain(5) is None


# Purges


async def test_a_page_placed_again_changes_in_nothing_else(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    old, new = (Location(file=f"{name}.warc.gz", offset=7, length=8) for name in ("old", "new"))
    rows = [page_row(lease, f"http://a.test/{i}", i, title=f"t{i}", size=i, text=old, raw=old) for i in range(3)]
    await frontier.settle([visited(lease, DONE, requests=rows)])
    before = await harness.reader().requests(lease.token)
    counts = await frontier.counts()
    changed = [before[0].replace(text=new, raw=None), before[2].replace(text=None, raw=new)]
    disguised = [row.replace(title="x", status=9, settlement=Settlement.LATE, delay=1.0) for row in changed]
    unknown = before[0].replace(visit=lease.token + 1)
    backend = await harness.backend()
    await backend.relocate_pages([*disguised, unknown])
    assert await harness.reader().requests(lease.token) == [changed[0], before[1], changed[1]]
    assert await harness.reader().requests(lease.token + 1) == []
    await backend.relocate_pages([])
    assert await frontier.counts() == counts


async def test_a_title_is_forgotten_and_nothing_else(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    rows = [page_row(lease, f"http://a.test/{i}", i, title=f"t{i}", size=i) for i in range(3)]
    await frontier.settle([visited(lease, DONE, requests=rows)])
    before = await harness.reader().requests(lease.token)
    backend = await harness.backend()
    await backend.forget_titles([])
    await backend.forget_titles([(lease.token, 0), (lease.token, 2), (lease.token + 1, 1)])
    assert await harness.reader().requests(lease.token) == [
        before[0].replace(title=""),
        before[1],
        before[2].replace(title=""),
    ]


# Records of robots.txt


async def test_where_a_robots_txt_came_from_comes_back(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    record = origin(
        lease,
        source="https://www.a.test/robots.txt",
        etag='W/"5\u00e9"',
        last_modified="Mon, 16 Nov 2026 04:00:00 GMT",
        failures=2,
        crawl_delay=1.5,
    )
    await frontier.put_origins([record])
    harness.advance(40.0)
    key = (lease.domain, "http://a.test")
    expected = [record.replace(valid_for=960.0, age=40.0)]
    assert await frontier.origins([key]) == expected
    assert await harness.reader().origins([key]) == expected
    fresh = origin(lease, b"", status=RobotsStatus.NONE)
    await frontier.put_origins([fresh])
    assert await frontier.origins([key]) == [fresh]


async def test_unstorable_characters_in_validators_are_replaced(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    await frontier.put_origins([origin(lease, etag="a\0b", last_modified="\ud800")])
    (saved,) = await frontier.origins([(lease.domain, "http://a.test")])
    assert (saved.etag, saved.last_modified) == ("a\ufffdb", "\ufffd")


async def test_requests_and_errors_are_counted_apart_by_kind(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await one_lease(frontier)
    robots, page = RequestKind.ROBOTS, RequestKind.PAGE
    cases = [
        (robots, 404, "status-404"),
        (robots, 503, "status-503"),
        (robots, 0, "connect"),
        (page, 200, ""),
        (page, 200, "wrong-type"),
        (page, 404, "status-404"),
        (RequestKind.SITEMAP, 404, "status-404"),
    ]
    requests = [
        page_row(lease, f"http://a.test/{seq}", seq).replace(kind=kind, status=status, error=error)
        for seq, (kind, status, error) in enumerate(cases)
    ]
    await frontier.settle([visited(lease, DONE, requests=requests)])
    counts = await frontier.counts()
    assert counts.requests == 7
    assert counts.failures == {"status-503": 1, "connect": 1, "status-404": 2}
    assert counts.request_counts.by_kind == {page: 3, robots: 3, RequestKind.SITEMAP: 1}
    assert counts.request_counts.errors_by_kind[robots] == {"status-503": 1, "connect": 1}
    assert counts.request_counts.without_content_by_kind[robots] == {"no-robots-txt": 1}
    assert counts.request_counts.without_content_by_kind[page] == {"other-type": 1}
    shown = await collected(harness.reader().pages(domain=lease.domain))
    assert [row.seq for row in shown] == [5, 4, 3, 2, 1], "a robots.txt that failed is listed with the pages"
