"""The list of domains: sorted, searched and paged, in slices."""

from __future__ import annotations

from typing import Any

import pytest

from rove.frontier.contract import FrontierReader
from rove.frontier.domain_list import (
    DomainCursor,
    DomainOrder,
    DomainPage,
    DomainQuery,
    DomainState,
    DomainTrait,
    ListedDomain,
)
from rove.model.ledger import DelaySource
from rove.model.urls import UrlState
from rove.model.visits import Pace
from rove.policy.pacing import pause_after, pause_for_repeats
from tests.contract.harness import BUDGET, DELAY, Harness, page_row, url, visited

DONE = UrlState.DONE


def query(by: DomainOrder = DomainOrder.PENDING, **more: Any) -> DomainQuery:
    return DomainQuery(by=by, delay=DELAY, **more)


async def names(reader: FrontierReader, asked: DomainQuery, *, limit: int = 100) -> list[str]:
    """Return the names on all pages, each of which says what the others say."""
    after: DomainCursor | None = None
    pages: list[DomainPage] = []
    while not pages or after is not None:
        pages.append(await reader.domains(asked, limit=limit, after=after))
        after = pages[-1].next
    found = [domain.name.removesuffix(".test") for page in pages for domain in page.domains]
    assert all(len(page.domains) == limit for page in pages[:-1]) and len(pages[-1].domains) <= limit
    assert {page.matching for page in pages} in ({len(found)}, {None})
    return found


async def listed(harness: Harness, name: str) -> ListedDomain:
    (domain,) = (await harness.reader().domains(query(search=name), limit=10)).domains
    return domain


async def crawled(harness: Harness) -> None:
    """Crawl four domains: a has most URLs, b was visited, c does not answer, d is excluded."""
    harness.slice = 2
    frontier = await harness.open()
    counts = {"a": 5, "b": 4, "c": 2, "d": 1}
    for name, count in counts.items():
        await frontier.add([url(f"http://{name}.test/{number}") for number in range(count)])
    ids = {name: url(f"http://{name}.test/").domain for name in counts}
    leases = {lease.name.removesuffix(".test"): lease for lease in await frontier.claim_among([ids["b"], ids["c"]], 2)}
    answer = page_row(leases["b"], "http://b.test/0").replace(delay=90.0, delay_from=DelaySource.SLOW)
    silence = page_row(leases["c"], "http://c.test/0").replace(error="connect", delay=140.0)
    await frontier.settle(
        [
            visited(
                leases["b"], DONE, requests=[answer], pause=90.0, pause_from=DelaySource.SLOW, pace=Pace(answered=True)
            ),
            visited(leases["c"], requests=[silence], pause=140.0, pace=Pace(failures=4)),
        ]
    )
    await frontier.exclude({ids["d"]: "d.test"})
    harness.advance(10)


async def test_every_order(harness: Harness) -> None:
    await crawled(harness)
    reader = harness.reader()
    for limit in (1, 2, 100):
        assert await names(reader, query(), limit=limit) == ["a", "b", "c", "d"]
        assert (await names(reader, query(DomainOrder.PAGES), limit=limit))[0] == "b"
        assert (await names(reader, query(DomainOrder.FAILURES), limit=limit))[0] == "c"
        assert (await names(reader, query(DomainOrder.DELAY), limit=limit))[0] == "c"
        assert await names(reader, query(DomainOrder.NEXT), limit=limit) == ["a", "b", "c"]
        assert await names(reader, query(DomainOrder.OVERDUE), limit=limit) == ["a"]
        assert await names(reader, query(reverse=True), limit=limit) == ["d", "c", "b", "a"]
        assert await names(reader, query(DomainOrder.NEXT, reverse=True), limit=limit) == ["c", "b", "a"]


async def test_an_order_with_an_index_is_the_same_without_it(harness: Harness) -> None:
    await crawled(harness)
    reader = harness.reader()
    for by in (DomainOrder.NEXT, DomainOrder.OVERDUE):
        assert await names(reader, query(by)) == await names(reader, query(by, search="test"))


async def test_choosing_by_state_trait_and_name(harness: Harness) -> None:
    await crawled(harness)
    reader = harness.reader()
    frontier = await harness.open()
    expected: dict[DomainState | DomainTrait, list[str]] = {
        DomainState.READY: ["a"],
        DomainState.WAITING: ["b", "c"],
        DomainState.EXCLUDED: ["d"],
        DomainState.LEASED: [],
        DomainState.IDLE: [],
        DomainTrait.FAILING: ["c"],
        DomainTrait.CAPPED: [],
    }
    for only, chosen in expected.items():
        assert sorted(await names(reader, query(only=only), limit=1)) == chosen
    counts = (await reader.counts()).domains
    assert {str(state): len(expected[state]) for state in DomainState} == counts
    (lease,) = await frontier.claim(1)
    assert await names(reader, query(only=DomainState.LEASED)) == ["a"]
    harness.advance(BUDGET + DELAY + 1)
    assert await names(reader, query(only=DomainState.LEASED)) == []
    assert await names(reader, query(search="B.T")) == ["b"]
    assert await names(reader, query(search="%")) == await names(reader, query(search="_")) == []
    assert lease.name == "a.test"


async def test_what_is_listed_of_a_domain(harness: Harness) -> None:
    await crawled(harness)
    domain = await listed(harness, "b.test")
    assert (domain.pending, domain.pages, domain.state) == (3, 1, DomainState.WAITING)
    assert domain.ready_in == pytest.approx(80, abs=0.1) and domain.free_in == domain.ready_in
    assert (domain.last_delay, domain.last_delay_from, domain.error) == (90.0, DelaySource.SLOW, "")
    silent = await listed(harness, "c.test")
    assert (silent.error, silent.pace.failures, silent.is_failing, silent.pages) == ("connect", 4, True, 0)
    fresh = await listed(harness, "a.test")
    assert fresh.ready_in == pytest.approx(-10) and fresh.last_delay == 0.0
    excluded = await listed(harness, "d.test")
    assert excluded.ready_in is None and excluded.state is DomainState.EXCLUDED


async def test_a_crawl_without_domains_has_an_empty_list(harness: Harness) -> None:
    await harness.open()
    for by in DomainOrder:
        assert await names(harness.reader(), query(by)) == []


async def test_many_domains_that_are_due_at_the_same_time(harness: Harness) -> None:
    frontier = await harness.open()
    expected = sorted(f"n{number}" for number in range(23))
    await frontier.add([url(f"http://{name}.test/") for name in expected])
    reader = harness.reader()
    for by in (DomainOrder.NEXT, DomainOrder.OVERDUE, DomainOrder.PENDING):
        assert sorted(await names(reader, query(by), limit=5)) == expected


@pytest.mark.parametrize("delay", [0.0, 0.05, 1.0, 70.0, 90_000.0])
async def test_the_delay_that_sorts_is_the_one_of_the_policy(harness: Harness, delay: float) -> None:
    """The SQL of `lasting_delay` repeats policy/pacing.py, because a million domains cannot pass through Python."""
    paces = [
        *[(failures, 0, crawl_delay, 0) for failures in range(1, 30) for crawl_delay in (0, 50, 5_000)],
        *[(0, repeats, 0, 0) for repeats in (1, 500, 501, 600, 750, 900, 950, 999, 1_000)],
        *[(0, 800, 90_000, backoff) for backoff in (0, 1_000, 3_600_000)],
    ]
    frontier = await harness.open()
    await frontier.add([url(f"http://p{number}.test/") for number in range(len(paces))])
    expected = {}
    for number, (failures, repeats, crawl_delay, backoff) in enumerate(paces):
        await harness.statement(
            f"UPDATE domain SET failures = {failures}, repeats = {repeats}, crawl_delay = {crawl_delay}, "
            f"backoff = {backoff} WHERE name = 'p{number}.test'"
        )
        longer = max(delay, crawl_delay / 1000)
        pauses = [longer, backoff / 1000, pause_for_repeats(repeats / 1000, longer)]
        expected[f"p{number}"] = max([*pauses, *([pause_after(failures, longer)] if failures else [])])
    found = await names(harness.reader(), DomainQuery(by=DomainOrder.DELAY, delay=delay))
    sorted_by = [expected[name] for name in found]
    assert sorted_by == pytest.approx(sorted(sorted_by, reverse=True), abs=0.002) and len(found) == len(paces)
