"""What a frontier tells about domains that respond and domains that keep failing, for every frontier."""

from __future__ import annotations

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.records import FailingDomain, Reach
from rove.model.urls import UrlState
from rove.model.visits import Pace
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from tests.contract.harness import DELAY, Harness, page_row, url, visited

DONE = UrlState.DONE
RESPONDS = Pace(answered=True)
FAILED_ONCE = Pace(answered=True, failures=1)
KEEPS_FAILING = Pace(failures=FAILURES_BEFORE_LEAVING)


async def visit_each(frontier: Frontier, paces: dict[str, Pace], pause: float = 0.0) -> None:
    """Give each of these domains two URLs and a visit that leaves it with this pace."""
    await frontier.add([url(f"http://{name}/{page}") for name in paces for page in "12"])
    leases = await frontier.claim(len(paces))
    assert {lease.name for lease in leases} == set(paces)
    await frontier.settle([visited(lease, pace=paces[lease.name], pause=pause) for lease in leases])


async def ids(frontier: Frontier) -> dict[str, int]:
    return {name: id for id, name in await frontier.domain_names(-(1 << 63), 100)}


async def test_a_domain_that_has_answered_stays_so(harness: Harness) -> None:
    frontier = await harness.open()
    await visit_each(frontier, {"a.test": RESPONDS, "b.test": Pace()})
    harness.advance(DELAY)
    paces = {lease.name: lease.pace for lease in await frontier.claim(5)}
    assert paces == {"a.test": RESPONDS, "b.test": Pace()}
    record = await harness.reader().domain((await ids(frontier))["a.test"])
    assert record is not None and record.pace.answered


async def test_domains_that_answered_are_counted_once(harness: Harness) -> None:
    frontier = await harness.open()
    assert await frontier.reach() == Reach(domains=0, answered=0, responding=[])
    await visit_each(frontier, {"a.test": RESPONDS, "b.test": RESPONDS, "c.test": Pace()})
    known = await ids(frontier)
    reach = await frontier.reach()
    assert (reach.domains, reach.answered) == (3, 2)
    assert set(reach.responding) == {known["a.test"], known["b.test"]}
    harness.advance(DELAY)
    for lease in await frontier.claim(5):
        pace = Pace(answered=lease.name != "c.test", failures=1)
        await frontier.settle([visited(lease, pace=pace)])
    assert await frontier.reach() == Reach(domains=3, answered=2, responding=[])
    assert (await frontier.counts()).domains_answered == 2


async def test_idle_and_failing_domains_are_not_responding(harness: Harness) -> None:
    frontier = await harness.open()
    await visit_each(frontier, {"a.test": RESPONDS, "b.test": RESPONDS, "c.test": RESPONDS, "d.test": FAILED_ONCE})
    harness.advance(DELAY)
    leases = {lease.name: lease for lease in await frontier.claim(5)}
    assert len((await frontier.reach()).responding) == 3, "leased ones count"
    idle = visited(leases["b.test"], DONE, DONE, pace=RESPONDS)
    failed, responded = visited(leases["c.test"], pace=FAILED_ONCE), visited(leases["d.test"], pace=RESPONDS)
    await frontier.settle([idle, failed, responded])
    assert len((await frontier.reach()).responding) == 2


async def test_a_claim_among_domains_leases_those_of_them_that_are_due(harness: Harness) -> None:
    frontier = await harness.open()
    await visit_each(frontier, dict.fromkeys(["a.test", "b.test", "c.test"], RESPONDS))
    await frontier.add([url("http://d.test/")])
    known = await ids(frontier)
    wanted = [known[name] for name in ("a.test", "b.test", "c.test")]
    assert await frontier.claim_among(wanted, 3) == [], "their delay has not passed"
    harness.advance(DELAY)
    first = await frontier.claim_among(wanted, 2)
    assert len(first) == 2 and all(lease.urls for lease in first)
    second = await frontier.claim_among(wanted, 2)
    assert {lease.name for lease in [*first, *second]} == {"a.test", "b.test", "c.test"}
    assert await frontier.claim_among([*wanted, 12345], 2) == [], "all are leased"
    assert await frontier.claim_among([], 2) == []
    assert await frontier.settle([visited(lease, DONE, pace=RESPONDS) for lease in [*first, *second]]) == 3
    assert [lease.name for lease in await frontier.claim(5)] == ["d.test"]


async def test_failing_domains_are_waited_for_on_demand(harness: Harness) -> None:
    frontier = await harness.open()
    await visit_each(frontier, {"a.test": KEEPS_FAILING}, pause=600.0)
    await visit_each(frontier, {"b.test": KEEPS_FAILING}, pause=3_000.0)
    await visit_each(frontier, {"c.test": KEEPS_FAILING}, pause=9_000.0)
    assert await frontier.next_due() is None
    assert await frontier.next_due(failing_within=599.0) is None
    assert await frontier.next_due(failing_within=600.0) == pytest.approx(600.0)
    assert await frontier.last_backoff(within=599.0) is None
    assert await frontier.last_backoff(within=3_600.0) == pytest.approx(3_000.0)
    assert await frontier.last_backoff(within=86_400.0) == pytest.approx(9_000.0)
    harness.advance(600.0)
    assert await frontier.next_due() == 0, "it is due and a claim takes it"
    (lease,) = await frontier.claim(5)
    assert lease.name == "a.test"


async def test_failing_domains_are_named_in_the_order_of_their_next_try(harness: Harness) -> None:
    frontier = await harness.open()
    await visit_each(frontier, {"late.test": KEEPS_FAILING}, pause=9_000.0)
    await frontier.add([url("http://soon.test/1")])
    (lease,) = await frontier.claim(1)
    rows = [page_row(lease, "http://soon.test/1", seq, error=error) for seq, error in enumerate(["dns", "connect"])]
    await frontier.settle([visited(lease, pace=KEEPS_FAILING, pause=600.0, requests=rows)])
    await visit_each(frontier, {"fine.test": RESPONDS})
    soon = FailingDomain(name="soon.test", pending=1, ready_in=600.0, error="connect")
    late = FailingDomain(name="late.test", pending=2, ready_in=9_000.0, error="")
    assert await harness.reader().failing_domains(5) == [soon, late]
    assert await harness.reader().failing_domains(1) == [soon]
