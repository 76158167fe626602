"""Reading a crawl while it runs: by time, and what is new since a moment ago."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rove.frontier.reader import VISIT_SECONDS, CrawlReader
from rove.inspect.follow import Follower
from rove.model.ledger import RequestKind, RequestRow
from rove.model.urls import UrlState
from tests.contract.harness import DELAY, Harness, SqliteHarness, page_row, url, visited

HOUR = 3600.0
DONE = UrlState.DONE


async def times(rows: AsyncIterator[RequestRow]) -> list[float]:
    return [row.started / HOUR async for row in rows]


async def crawl_for_hours(harness: Harness, hours: int) -> None:
    """Visit two domains once an hour each, a.test on the hour and b.test half an hour later."""
    frontier = await harness.open()
    for name in "ab":
        await frontier.add([url(f"http://{name}.test/{i}") for i in range(hours)])
    for hour in range(hours):
        for late in (0.0, 0.5):
            (lease,) = await frontier.claim(1)
            row = page_row(lease, lease.urls[0].url).replace(started=(hour + late) * HOUR)
            await frontier.settle([visited(lease, DONE, requests=[row])])
            harness.advance(0.5 * DELAY)


async def test_pages_between_two_times(harness: Harness) -> None:
    harness.slice = 3
    await crawl_for_hours(harness, 8)
    reader = harness.reader()
    every = [half / 2 for half in reversed(range(16))]
    assert await times(reader.pages()) == every
    for since, until in [(2.0, 4.0), (-math.inf, 3.0), (5.0, math.inf), (0.1, 0.2), (7.5, 9.0), (9.0, 10.0)]:
        expected = [time for time in every if since <= time < until]
        assert await times(reader.pages(since=since * HOUR, until=until * HOUR)) == expected
        of_a = [time for time in expected if time == int(time)]
        domain = url("http://a.test/").domain
        assert await times(reader.pages(domain=domain, since=since * HOUR, until=until * HOUR)) == of_a


async def test_a_time_is_found_without_reading_what_is_newer_or_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = SqliteHarness(tmp_path)
    harness.slice = 2
    await crawl_for_hours(harness, 40)
    reader = harness.reader()
    assert isinstance(reader, CrawlReader)
    tables = reader._tables
    request, read = tables.request, 0

    async def counted(row: object) -> RequestRow:
        nonlocal read
        read += 1
        return await request(row)

    monkeypatch.setattr(tables, "request", counted)
    assert await times(reader.pages(since=20 * HOUR, until=21 * HOUR)) == [20.5, 20.0]
    assert read < 20, "of 80 requests"


async def test_a_visit_that_made_its_request_late_is_found(harness: Harness) -> None:
    """Visits are numbered when they begin. The request of one may follow those of many later ones."""
    frontier = await harness.open()
    await frontier.add([url(f"http://{name}.test/") for name in "abc"])
    leases = sorted(await frontier.claim(3), key=lambda lease: lease.token)
    delays = (VISIT_SECONDS - 1, 0.0, VISIT_SECONDS - 2)
    for lease, late in zip(leases, delays, strict=True):
        row = page_row(lease, lease.urls[0].url).replace(started=HOUR + late)
        await frontier.settle([visited(lease, DONE, requests=[row])])
    found = [row.started - HOUR async for row in harness.reader().pages(since=HOUR + 10)]
    assert found == [delays[2], delays[0]]
    found = [row.started - HOUR async for row in harness.reader().pages(until=HOUR + 10)]
    assert found == [0.0]


async def test_visits_after_another(harness: Harness) -> None:
    harness.slice = 2
    await crawl_for_hours(harness, 3)
    reader = harness.reader()
    visits = [row.visit async for row in reader.visits_after(0)]
    assert visits == sorted(visits) and len(visits) == 6
    assert [row.visit async for row in reader.visits_after(visits[2])] == visits[3:]
    domain = url("http://b.test/").domain
    assert await times(reader.visits_after(visits[1], domain=domain)) == [1.5, 2.5]
    assert [row async for row in reader.visits_after(visits[-1])] == []


async def test_the_oldest_lease(harness: Harness) -> None:
    frontier = await harness.open()
    reader = harness.reader()
    assert await reader.oldest_lease() is None
    await frontier.add([url(f"http://{name}.test/") for name in "ab"])
    first, second = sorted(await frontier.claim(2), key=lambda lease: lease.token)
    assert await reader.oldest_lease() == first.token
    await frontier.settle([visited(first, DONE, requests=[])])
    assert await reader.oldest_lease() == second.token
    await frontier.settle([visited(second, DONE, requests=[])])
    assert await reader.oldest_lease() is None


async def test_the_depths_of_urls(harness: Harness) -> None:
    frontier = await harness.open()
    known = [url("http://a.test/"), url("http://a.test/1", 1), url("http://b.test/2", 2)]
    await frontier.add(known)
    keys = [(each.domain, each.fingerprint) for each in known]
    reader = harness.reader()
    assert await reader.depths([*keys, (5, 5)]) == dict(zip(keys, (0, 1, 2), strict=True))
    assert await reader.depths([]) == {}


async def test_the_domains_that_are_known(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/"), url("http://b.test/")])
    ids = [url(f"http://{name}.test/").domain for name in "abc"]
    reader = harness.reader()
    assert await reader.known_domains(ids) == set(ids[:2])
    assert await reader.known_domains([]) == set()


async def test_following_finds_every_page_once_whatever_the_order(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://{name}.test/") for name in "abcd"])
    leases = sorted(await frontier.claim(4), key=lambda lease: lease.token)
    reader = harness.reader()

    async def settle(number: int) -> str:
        lease = leases[number]
        page = lease.urls[0].url
        rows = [page_row(lease, page).replace(kind=RequestKind.ROBOTS), page_row(lease, page, 1)]
        await frontier.settle([visited(lease, DONE, requests=rows)])
        return page

    await settle(1)
    follower = Follower(reader)
    of_one = Follower(reader, domain=leases[3].domain)
    await follower.begin()
    await of_one.begin()
    assert await follower.new_pages() == []
    third, first = await settle(2), await settle(0)
    assert {row.url for row in await follower.new_pages()} == {third, first}, "the first began before the second ended"
    assert await follower.new_pages() == []
    last = await settle(3)
    assert [row.url for row in await follower.new_pages()] == [last]
    assert [row.url for row in await of_one.new_pages()] == [last]
    assert await follower.new_pages() == await of_one.new_pages() == []


async def test_all_urls_are_read_by_their_domains(harness: Harness) -> None:
    harness.slice = 2
    frontier = await harness.open()
    texts = [f"http://{name}.test/{number}" for name in "abc" for number in range(3)]
    await frontier.add([url(text) for text in texts])
    found = [known async for urls in harness.reader().urls() for known in urls]
    assert sorted(known.url for known in found) == sorted(texts)
    assert [known.key for known in found] == sorted(known.key for known in found)
    first = found[0].domain
    assert [known async for urls in harness.reader().urls(after=first) for known in urls] == found[3:]
