"""Leases of all processes together never exceed the pages that are left until the page limit."""

from __future__ import annotations

import asyncio

from rove.frontier.contract import Frontier
from rove.model.urls import UrlState
from tests.contract.harness import BUDGET, DELAY, Harness, page_row, url, visited

DONE, FAILED = UrlState.DONE, UrlState.FAILED


async def fill(frontier: Frontier, domains: int = 20) -> None:
    await frontier.add([url(f"http://d{number}.test/{page}") for number in range(domains) for page in range(2)])


async def test_a_lease_counts_as_a_page(harness: Harness) -> None:
    frontier = await harness.open(page_limit=5)
    await fill(frontier)
    leases = await frontier.claim(3)
    assert (len(leases), len(await frontier.claim(10))) == (3, 2)
    assert await frontier.claim(10) == []
    rows = [page_row(lease, lease.urls[0].url) for lease in leases]
    await frontier.settle([visited(leases[0], DONE, requests=rows[:1]), visited(leases[1], FAILED)])
    assert len(await frontier.claim(10)) == 1, "a lease without a page makes room for another one"
    await frontier.settle([visited(leases[2], DONE, requests=rows[2:])])
    assert await frontier.claim(10) == []
    assert await frontier.pages() == 2


async def test_the_limit_counts_all_pages_of_the_crawl(harness: Harness) -> None:
    frontier = await harness.open()
    await fill(frontier)
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE, requests=[page_row(lease, lease.urls[0].url)])])
    assert await (await harness.open(page_limit=1)).claim(10) == []
    assert len(await (await harness.open(page_limit=4)).claim(10)) == 3


async def test_processes_share_the_limit(harness: Harness) -> None:
    frontiers = [await harness.open(page_limit=9) for _ in range(4)]
    await fill(frontiers[0], 40)
    claims = await asyncio.gather(*(frontier.claim(5) for frontier in frontiers for _ in range(3)))
    assert sum(map(len, claims)) == 9
    names = [lease.name for leases in claims for lease in leases]
    assert len(set(names)) == 9


async def test_a_lease_that_has_expired_brings_no_page(harness: Harness) -> None:
    frontier = await harness.open(page_limit=2)
    await fill(frontier)
    assert len(await frontier.claim(2)) == 2
    assert await frontier.claim(1) == []
    harness.advance(BUDGET + DELAY + 1)
    assert len(await frontier.claim(5)) == 2


async def test_domains_that_were_left_for_the_limit_are_found_again(harness: Harness) -> None:
    """A claim that the limit made shorter must not move past domains that are due."""
    frontier = await harness.open(page_limit=2)
    await fill(frontier, 6)
    seen = []
    for _ in range(6):
        leases = await frontier.claim(10)
        seen += [lease.name for lease in leases]
        await frontier.settle([visited(lease, FAILED, FAILED) for lease in leases])
        harness.advance(5)
    assert len(seen) == len(set(seen)) == 6
