"""Domains that were never leased get a head start, and no domain starves."""

from __future__ import annotations

from rove.frontier.contract import Frontier
from rove.frontier.postgres.claim_floor import SLACK_MS
from rove.model.urls import UrlState
from tests.contract.harness import DELAY, Harness, PostgresHarness, url, visited

MANY = 1_000
BATCH = 50


async def visit_all(frontier: Frontier, number: int) -> None:
    """Lease and settle this many domains."""
    while number:
        leases = await frontier.claim(number)
        await frontier.settle([visited(lease, UrlState.DONE) for lease in leases])
        number -= len(leases)


async def test_fresh_domains_and_overdue_ones_share_the_claims(harness: Harness) -> None:
    frontier = await harness.open()
    old = [url(f"http://old{i}.test/{page}") for i in range(MANY) for page in range(2)]
    await frontier.add(old)
    await visit_all(frontier, MANY)
    harness.advance(10 * DELAY)
    await frontier.add([url(f"http://new{i}.test/") for i in range(MANY)])
    claimed: list[str] = []
    for _ in range(MANY // BATCH):
        leases = await frontier.claim(BATCH)
        assert len(leases) == BATCH
        claimed += [lease.name[:3] for lease in leases]
    assert min(claimed.count("old"), claimed.count("new")) >= 0.4 * MANY
    for _ in range(MANY // BATCH):
        claimed += [lease.name[:3] for lease in await frontier.claim(BATCH)]
    assert claimed.count("old") == claimed.count("new") == MANY


async def test_a_turn_is_filled_up_with_other_due_domains(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://old{i}.test/{page}") for i in range(6) for page in range(2)])
    await visit_all(frontier, 6)
    harness.advance(DELAY)
    for name in ("new0", "new1"):
        harness.advance(1)
        await frontier.add([url(f"http://{name}.test/")])
    names = [[lease.name for lease in await frontier.claim(3)] for _ in range(2)]
    fresh = next(claimed for claimed in names if "new0.test" in claimed)
    assert fresh[:2] == ["new0.test", "new1.test"], "the oldest of them first"
    assert [len(claimed) for claimed in names] == [3, 3]
    assert len({name for claimed in names for name in claimed}) == 6
    assert len(await frontier.claim(10)) == 2


async def test_each_kind_of_turn_has_a_lower_bound_of_its_own(postgres: PostgresHarness) -> None:
    """Fresh domains are due later than others, so their bound must not apply to the rest."""
    opened = await postgres.open()
    await opened.add([url(f"http://old{i}.test/{page}") for i in range(4) for page in range(2)])
    await visit_all(opened, 4)
    postgres.advance(DELAY)
    due = postgres.now()
    postgres.advance(100)
    await opened.add([url(f"http://new{i}.test/") for i in range(4)])
    names = {lease.name[:3] for _ in range(2) for lease in await opened.claim(2)}
    assert names == {"old", "new"}
    claiming = opened.claiming  # type: ignore[attr-defined]
    assert claiming.floor.value == due - SLACK_MS
    assert claiming.fresh_floor.value == postgres.now() - SLACK_MS


async def test_a_fresh_domain_is_leased_no_earlier_than_it_is_due(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.exclude({url("http://a.test/").domain: "a.test"})
    await frontier.add([url("http://a.test/")])
    for _ in range(4):
        assert await frontier.claim(5) == []
