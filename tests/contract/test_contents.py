"""The contract of texts that are stored once, for every frontier."""

from __future__ import annotations

import asyncio

from rove.frontier.contract import Frontier
from rove.frontier.postgres.reader import PostgresTables
from rove.frontier.reader import CrawlReader
from rove.frontier.records import MovedContent
from rove.model.ledger import Content, Location
from rove.model.urls import UrlState
from rove.model.visits import Lease, VisitResult
from tests.contract.harness import NODE, Harness, PostgresHarness, page_row, url, visited

DONE = UrlState.DONE
HASH = -(1 << 62)


def place(offset: int, file: str = "a.warc.gz") -> Location:
    return Location(file=file, offset=offset, length=100)


async def leases(frontier: Frontier, *names: str) -> list[Lease]:
    await frontier.add([url(f"http://{name}.test/{i}") for name in names for i in range(5)])
    by_name = {lease.name: lease for lease in await frontier.claim(100)}
    return [by_name[f"{name}.test"] for name in names]


def content(lease: Lease, offset: int = 1, hash: int = HASH, sha1_64: int = -7) -> Content:
    return Content(
        hash=hash,
        sha1_64=sha1_64,
        domain=lease.domain,
        visit=lease.token,
        where=place(offset),
        url=lease.urls[0].url,
        fetched_at=1.0,
    )


def stored(lease: Lease, *contents: Content, is_copy: bool = False, offset: int = 1) -> VisitResult:
    """Return a visit with one page that has the text."""
    hash = contents[0].hash if contents else HASH
    row = page_row(lease, lease.urls[0].url, text=place(offset), content_hash=hash, is_copy=is_copy)
    return visited(lease, DONE, requests=[row]).replace(contents=contents)


async def test_a_text_is_known_once_its_visit_is_settled(harness: Harness) -> None:
    frontier = await harness.open()
    (lease,) = await leases(frontier, "a")
    assert await frontier.known_contents([HASH]) == {}
    assert await frontier.known_contents([]) == {}
    await frontier.settle([stored(lease, content(lease))])
    expected = {HASH: content(lease)}
    assert await frontier.known_contents([HASH, 5]) == expected
    reader = harness.reader()
    contents = await reader.contents([HASH, 5])
    assert {hash: text.replace(node="") for hash, text in contents.items()} == expected
    assert await reader.contents([]) == {}


async def test_the_first_visit_to_store_a_text_wins(harness: Harness) -> None:
    frontier = await harness.open()
    a, b = await leases(frontier, "a", "b")
    await frontier.settle([stored(a, content(a))])
    await frontier.settle([stored(b, content(b, 2))])
    assert await frontier.known_contents([HASH]) == {HASH: content(a)}


async def test_of_a_batch_each_text_goes_in_once(harness: Harness) -> None:
    frontier = await harness.open()
    a, b, c = await leases(frontier, "a", "b", "c")
    other = content(c, 9, hash=5)
    batch = [stored(a, content(a)), stored(b, content(a), is_copy=True), stored(c, other)]
    await frontier.settle(batch)
    assert await frontier.known_contents([HASH, 5]) == {HASH: content(a), 5: other}
    await frontier.settle(batch)
    assert (await frontier.counts()).copies == 1


async def test_a_visit_that_came_too_late_tells_nothing(harness: Harness) -> None:
    """A copy in a visit that is settled makes the text known."""
    frontier = await harness.open()
    a, b = await leases(frontier, "a", "b")
    late = a.replace(token=a.token + 1_000)
    await frontier.settle([stored(late, content(late))])
    assert await frontier.known_contents([HASH]) == {}
    other = content(late)
    await frontier.settle([stored(b, other, is_copy=True)])
    assert await frontier.known_contents([HASH]) == {HASH: other}
    counts = await frontier.counts()
    assert (counts.pages, counts.copies) == (1, 1)


async def test_a_late_copy_is_none(harness: Harness) -> None:
    frontier = await harness.open()
    a, b = await leases(frontier, "a", "b")
    await frontier.settle([stored(a, content(a))])
    await frontier.settle([stored(b.replace(token=b.token + 1_000), is_copy=True)])
    assert [row async for row in harness.reader().copies(HASH)] == []
    assert (await frontier.counts()).copies == 0


async def test_the_pages_that_have_it_are_found_in_slices(harness: Harness) -> None:
    harness.slice = 2
    frontier = await harness.open()
    first, *others = await leases(frontier, *"abcdef")
    await frontier.settle([stored(first, content(first))])
    await frontier.settle([stored(lease, is_copy=True, offset=7) for lease in others])
    rows = [row async for row in harness.reader().copies(HASH)]
    assert [row.visit for row in rows] == sorted(lease.token for lease in others)
    assert all(row.is_copy and row.text == place(7) for row in rows)
    assert [row async for row in harness.reader().copies(5)] == []
    assert await harness.reader().copy_counts([HASH, 5]) == {HASH: 5, 5: 0}
    assert await harness.reader().copy_counts([]) == {}


async def test_a_copy_whose_record_was_purged_is_no_longer_a_copy(harness: Harness) -> None:
    frontier = await harness.open()
    a, b = await leases(frontier, "a", "b")
    await frontier.settle([stored(a, content(a)), stored(b, is_copy=True)])
    (row,) = [row async for row in harness.reader().copies(HASH)]
    backend = await harness.backend()
    await backend.relocate_pages([row.replace(text=place(3))])
    (moved,) = [row async for row in harness.reader().copies(HASH)]
    assert moved == row.replace(text=place(3))
    await backend.relocate_pages([row.replace(text=None)])
    assert [row async for row in harness.reader().copies(HASH)] == []


async def test_a_text_that_was_moved_is_found_there(harness: Harness) -> None:
    frontier = await harness.open()
    a, b = await leases(frontier, "a", "b")
    other = content(a, 9, hash=5)
    await frontier.settle([stored(a, content(a), other), stored(b, is_copy=True)])
    backend = await harness.backend()
    await backend.relocate_contents([])
    moved = MovedContent(hash=HASH, old=place(1), new=place(50, "b.warc.gz"))
    astray = MovedContent(hash=5, old=place(8), new=place(51, "b.warc.gz"))
    for _ in range(2):
        await backend.relocate_contents([moved, astray])
        known = await frontier.known_contents([HASH])
        assert known == {HASH: content(a).replace(where=moved.new)}
    to_b = MovedContent(hash=HASH, old=moved.new, new=place(2), heir=(b.domain, b.token))
    await backend.relocate_contents([to_b])
    assert await frontier.known_contents([HASH]) == {HASH: content(b, 2)}


async def test_a_text_is_forgotten_where_it_was(harness: Harness) -> None:
    frontier = await harness.open()
    (a,) = await leases(frontier, "a")
    await frontier.settle([stored(a, content(a))])
    backend = await harness.backend()
    await backend.forget_contents([])
    await backend.forget_contents([(HASH, place(2)), (HASH, place(1, "b.warc.gz")), (5, place(1))])
    assert await frontier.known_contents([HASH]) == {HASH: content(a)}
    await backend.forget_contents([(HASH, place(1))])
    assert await frontier.known_contents([HASH]) == {}


async def test_two_processes_store_the_same_texts_at_the_same_time(harness: Harness) -> None:
    """In any order, the two never deadlock."""
    one, other = await harness.open(), await harness.open()
    a, b = await leases(one, "a", "b")
    hashes = range(200)
    of_a = [content(a, hash=hash) for hash in hashes]
    of_b = [content(b, hash=hash) for hash in reversed(hashes)]
    row = [page_row(b, b.urls[0].url, hash, content_hash=hash) for hash in hashes]
    rows = [page_row(a, a.urls[0].url, hash, content_hash=hash) for hash in hashes]
    await asyncio.gather(
        one.settle([visited(a, DONE, requests=rows).replace(contents=of_a)]),
        other.settle([visited(b, DONE, requests=row).replace(contents=of_b)]),
    )
    known = await one.known_contents(hashes)
    assert len(known) == 200 and {text.domain for text in known.values()} <= {a.domain, b.domain}


async def test_a_text_on_another_machine_says_where_it_is(postgres: PostgresHarness) -> None:
    frontier = await postgres.open()
    (a,) = await leases(frontier, "a")
    await frontier.settle([stored(a, content(a))])
    for key, node in ((NODE.key, ""), ("other", "h:/p")):
        reader = CrawlReader(PostgresTables(postgres.database, key))
        contents = await reader.contents([HASH])
        assert contents == {HASH: content(a).replace(node=node)}
    await postgres.close()
