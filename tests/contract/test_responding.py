"""Claims of domains that responded to their last visit, visits that are postponed, and groups of addresses."""

from __future__ import annotations

import pytest

from rove.frontier.address_groups import MAX_ADDRESSES
from rove.frontier.contract import Frontier
from rove.frontier.postgres.claim_floor import SLACK_MS
from rove.model.reasons import NoRequestReason
from rove.model.urls import NotAccepted, UrlState
from rove.model.visits import Pace
from tests.contract.harness import DELAY, Harness, PostgresHarness, url, visited

RESPONDS = Pace(answered=True)
DONE = UrlState.DONE


async def visit_each(frontier: Frontier, paces: dict[str, Pace]) -> None:
    """Visit each domain once, with this result; a page is left."""
    await frontier.add([url(f"http://{name}/{page}") for name in paces for page in range(2)])
    leases = await frontier.claim(len(paces))
    await frontier.settle([visited(lease, DONE, pace=paces[lease.name]) for lease in leases])


async def test_only_domains_that_responded_are_claimed(harness: Harness) -> None:
    frontier = await harness.open()
    paces = {"a.test": RESPONDS, "b.test": Pace(failures=1), "c.test": Pace(answered=True, failures=1)}
    await visit_each(frontier, {**paces, "d.test": RESPONDS})
    await frontier.add([url("http://new.test/")])
    assert await frontier.claim_responding(9) == [], "their delay has not passed"
    harness.advance(DELAY)
    assert len(await frontier.claim_responding(1)) == 1
    (lease,) = await frontier.claim_responding(9)
    assert lease.name in ("a.test", "d.test") and lease.urls and lease.pace == RESPONDS
    assert await frontier.claim_responding(9) == [], "both are leased"
    assert await frontier.claim_responding(0) == []
    names = {lease.name for _ in range(2) for lease in await frontier.claim(9)}
    assert names == {"b.test", "c.test", "new.test"}, "the others are still there"


async def test_domains_that_respond_and_are_due_soon_are_counted(harness: Harness) -> None:
    frontier = await harness.open()
    await visit_each(frontier, {"a.test": RESPONDS, "b.test": RESPONDS, "c.test": Pace(failures=1)})
    await frontier.add([url("http://new.test/")])
    assert await frontier.responding_due(within=DELAY - 1, limit=9) == 0
    assert await frontier.responding_due(within=DELAY + 1, limit=9) == 2
    assert await frontier.responding_due(within=DELAY + 1, limit=1) == 1
    harness.advance(2 * DELAY)
    await frontier.claim_responding(1)
    assert await frontier.responding_due(within=20, limit=9) == 1, "a leased one needs no slot"


async def test_the_longest_overdue_come_first(harness: Harness) -> None:
    frontier = await harness.open()
    for name in ("c.test", "a.test", "b.test"):
        await visit_each(frontier, {name: RESPONDS})
        harness.advance(1)
    harness.advance(DELAY)
    assert [lease.name for lease in await frontier.claim_responding(2)] == ["c.test", "a.test"]


async def test_the_page_limit_holds_for_them_too(harness: Harness) -> None:
    frontier = await harness.open(page_limit=3)
    await visit_each(frontier, {"a.test": RESPONDS, "b.test": RESPONDS})
    harness.advance(DELAY)
    assert len(await frontier.claim_responding(9)) == 1
    assert await frontier.claim_responding(9) == []


async def test_their_claims_have_a_lower_bound_of_their_own(postgres: PostgresHarness) -> None:
    frontier = await postgres.open()
    await visit_each(frontier, {"a.test": RESPONDS, "b.test": RESPONDS})
    postgres.advance(DELAY)
    due = postgres.now()
    postgres.advance(100)
    await frontier.claim_responding(1)
    claiming = frontier.claiming  # type: ignore[attr-defined]
    assert claiming.responding_floor.value == due - SLACK_MS
    assert claiming.floor.value != claiming.responding_floor.value
    assert len(await frontier.claim_responding(1)) == 1, "the other one is not overlooked"


async def test_a_postponed_visit_costs_nothing_but_time(harness: Harness) -> None:
    """The domain comes back with the same URLs, and neither an attempt nor a failure is counted."""
    frontier = await harness.open()
    await frontier.add([url("http://a.test/0"), url("http://a.test/1")])
    (lease,) = await frontier.claim(1)
    postponed = visited(lease, requested=False, pause=30.0)
    assert postponed.no_request_reason is NoRequestReason.NO_ROOM
    assert await frontier.settle([postponed]) == 1
    assert await frontier.settle([postponed]) == 0
    assert await frontier.next_due() == pytest.approx(30.0)
    await frontier.add([url("http://a.test/2")])
    assert await frontier.next_due() == pytest.approx(30.0), "a new URL does not bring it back earlier"
    harness.advance(29.9)
    assert await frontier.claim(1) == []
    harness.advance(0.1)
    (again,) = await frontier.claim(1)
    assert [pending.url for pending in again.urls] == [pending.url for pending in lease.urls]
    assert all(pending.attempts == 0 for pending in again.urls)
    assert again.pace == lease.pace
    counts = await frontier.counts()
    assert (counts.leases, counts.without_request) == (1, {"no-room": 1})
    assert counts.request_counts.total == 0


@pytest.mark.parametrize(
    ("inside", "outside"),
    [("[2001:db8:0:1::{:x}]", "[2001:db8:0:2::{:x}]"), ("192.0.2.{}", "192.0.3.{}")],
    ids=["a /64", "a /24"],
)
async def test_a_network_brings_a_limited_number_of_addresses(harness: Harness, inside: str, outside: str) -> None:
    frontier = await harness.open()
    links = [url(f"http://{inside.format(number)}/", depth=1) for number in range(1, 101)]
    added = await frontier.add(links[:30])
    assert len(added.made) == 30 and not added.refused
    added = await frontier.add(links)
    assert len(added.made) == added.unseen == MAX_ADDRESSES - 30
    assert added.refused == {(link.domain, link.fingerprint) for link in links[MAX_ADDRESSES:]}
    assert (await frontier.add(links)).unseen == 0
    assert (await frontier.counts()).not_accepted == {NotAccepted.ADDRESS_GROUP: 2 * (100 - MAX_ADDRESSES)}
    known = url(f"http://{inside.format(1)}/more", depth=1)
    assert (await frontier.add([known])).unseen == 1, "an address that is known may have more pages"
    seed = url(f"http://{inside.format(99)}/", depth=0)
    assert (await frontier.add([seed], as_seeds=True)).unseen == 1, "a person may name any address"
    others = [url(f"http://{outside.format(number)}/", depth=1) for number in range(1, 51)]
    assert (await frontier.add(others)).unseen == 50, "another network has a limit of its own"
    assert (await frontier.add([url(f"http://name{number}.test/", depth=1) for number in range(200)])).unseen == 200


async def test_domains_that_are_new_are_named(harness: Harness) -> None:
    frontier = await harness.open()
    first = url("http://a.test/")
    assert (await frontier.add([first])).made == {first.domain}
    second = url("http://b.test/", depth=1)
    added = await frontier.add([url("http://a.test/1", depth=1), second])
    assert added.made == {second.domain}
    refused = await frontier.add([url("http://c.test/", depth=1)], refuse_new_domains=NotAccepted.NEW_DOMAINS)
    assert (refused.made, refused.unseen) == (frozenset(), 0)
    assert (await frontier.counts()).not_accepted == {NotAccepted.NEW_DOMAINS: 1}
