"""The delay after a visit and the pace of a domain, for every frontier."""

from __future__ import annotations

import pytest

from rove.frontier.contract import Frontier
from rove.model.urls import UrlState
from rove.model.visits import Deferred, Lease, OriginRecord, Pace, RobotsStatus
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from tests.contract.harness import BUDGET, DELAY, TICK, Harness, url, visited

DONE = UrlState.DONE
LEAVING = Pace(failures=FAILURES_BEFORE_LEAVING)
STAYING = Pace(failures=FAILURES_BEFORE_LEAVING - 1)


async def leased(harness: Harness, frontier: Frontier, urls: int = 5) -> Lease:
    """Return the lease of a domain with some URLs."""
    await frontier.add([url(f"http://a.test/{i}") for i in range(urls)])
    (lease,) = await frontier.claim(1)
    return lease


def robots(lease: Lease, crawl_delay: float) -> OriginRecord:
    return OriginRecord(
        domain=lease.domain,
        origin="http://a.test",
        status=RobotsStatus.RULES,
        crawl_delay=crawl_delay,
        valid_for=1000.0,
    )


async def is_due_after(harness: Harness, frontier: Frontier, seconds: float) -> Lease:
    """Return the lease of the only domain, and check that it is due after `seconds` and not before."""
    assert await frontier.next_due() == pytest.approx(seconds)
    harness.advance(seconds - 0.01)
    assert await frontier.claim(1) == []
    harness.advance(0.01)
    (lease,) = await frontier.claim(1)
    return lease


@pytest.mark.parametrize(
    ("crawl_delay", "pause", "expected"),
    [
        (0.0, 0.0, DELAY),
        (0.0, DELAY - 1, DELAY),
        (0.0, 500.0, 500.0),
        (200.0, 0.0, 200.0),
        (200.0, 500.0, 500.0),
        (600.0, 500.0, 600.0),
        (0.0, 86_400.0, 86_400.0),
    ],
)
async def test_the_longest_of_delay_crawl_delay_and_pause_counts_from_the_finish(
    harness: Harness, crawl_delay: float, pause: float, expected: float
) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    await frontier.put_origins([robots(lease, crawl_delay)])
    harness.advance(20)
    await frontier.settle([visited(lease, DONE, since_finish=7.0, pause=pause)])
    await is_due_after(harness, frontier, expected - 7.0)


async def test_a_pause_holds_once(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    await frontier.settle([visited(lease, DONE, pause=900.0)])
    lease = await is_due_after(harness, frontier, 900.0)
    await frontier.settle([visited(lease, DONE)])
    await is_due_after(harness, frontier, DELAY)


async def test_a_pause_outlives_idleness(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier, urls=1)
    await frontier.settle([visited(lease, DONE, pause=900.0)])
    assert await frontier.next_due() is None
    harness.advance(300)
    await frontier.add([url("http://a.test/new")])
    await is_due_after(harness, frontier, 600.0)


async def test_a_visit_that_asked_nothing_pauses_only_if_it_was_postponed(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    pace = Pace(backoff=400.0, failures=1)
    await frontier.settle([visited(lease, UrlState.BLOCKED, requested=False, pause=0.0, pace=pace)])
    (again,) = await frontier.claim(1)
    assert again.pace == pace
    await frontier.settle([visited(again, UrlState.BLOCKED, requested=False, pause=3.0, pace=pace)])
    assert await frontier.claim(1) == []
    harness.advance(3.0)
    (later,) = await frontier.claim(1)
    assert later.pace == pace, "neither the delay nor the back-off applies"


async def test_the_pace_of_a_domain_comes_with_its_next_lease(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    assert lease.pace == Pace()
    assert lease.claimed_ms == harness.now()
    for pace in (Pace(backoff=140.0, failures=1), Pace(backoff=0.25, failures=7), Pace()):
        await frontier.settle([visited(lease, DONE, pace=pace)])
        harness.advance(10 * DELAY)
        (lease,) = await frontier.claim(1)
        assert lease.pace == pace
        assert lease.claimed_ms == harness.now()


async def test_a_lost_lease_does_not_change_the_pace(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    pace = Pace(backoff=400.0, failures=1)
    await frontier.settle([visited(lease, DONE, pace=pace, pause=400.0)])
    await is_due_after(harness, frontier, 400.0)
    lease = await is_due_after(harness, frontier, BUDGET + 400.0)
    assert lease.pace == pace


async def test_a_backoff_holds_after_a_crash(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    await frontier.settle([visited(lease, DONE, pace=Pace(backoff=400.0), pause=400.0)])
    await is_due_after(harness, frontier, 400.0)
    harness.advance(1)
    resumed = await harness.open()
    assert await resumed.recover() == 1
    lease = await is_due_after(harness, resumed, 400.0 + TICK)
    assert lease.pace == Pace(backoff=400.0)


@pytest.mark.parametrize(("crawl_delay", "expected"), [(0.0, DELAY), (300.0, 300.0)])
async def test_a_backoff_below_the_delay_changes_nothing_after_a_crash(
    harness: Harness, crawl_delay: float, expected: float
) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    await frontier.put_origins([robots(lease, crawl_delay)])
    await frontier.settle([visited(lease, DONE, pace=Pace(backoff=DELAY / 2))])
    await is_due_after(harness, frontier, expected)
    resumed = await harness.open()
    await resumed.recover()
    await is_due_after(harness, resumed, expected + TICK)


async def test_a_domain_that_does_not_answer_is_not_waited_for(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    await frontier.settle([visited(lease, pace=STAYING, pause=140.0)])
    assert await frontier.next_due() == pytest.approx(140.0)
    lease = await is_due_after(harness, frontier, 140.0)
    await frontier.settle([visited(lease, pace=LEAVING, pause=280.0)])
    assert await frontier.next_due() is None
    await frontier.add([url("http://b.test/1")])
    assert await frontier.next_due() == 0, "others are due"
    (other,) = await frontier.claim(5)
    assert other.name == "b.test"
    await frontier.settle([visited(other, DONE)])
    assert await frontier.next_due() is None
    harness.advance(280.0)
    (lease,) = await frontier.claim(5)
    assert lease.pace == LEAVING, "while the crawl goes on, it is tried again"
    await frontier.settle([visited(lease, DONE)])
    assert await frontier.next_due() == pytest.approx(DELAY), "it answered"


async def test_new_urls_do_not_make_a_domain_answer(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    await frontier.settle([visited(lease, pace=LEAVING, pause=280.0)])
    await frontier.add([url("http://a.test/new")])
    assert await frontier.next_due() is None
    harness.advance(280.0)
    assert len(await frontier.claim(1)) == 1


async def test_nor_do_they_where_it_had_nothing_left(harness: Harness) -> None:
    frontier = await harness.open()
    lease = await leased(harness, frontier, urls=1)
    await frontier.settle([visited(lease, UrlState.FAILED, pace=LEAVING, pause=280.0)])
    await frontier.add([url("http://a.test/new")])
    assert await frontier.next_due() is None
    harness.advance(280.0)
    assert len(await frontier.claim(1)) == 1


async def test_new_urls_wake_a_domain_that_failed_less_often(harness: Harness) -> None:
    """Its head URL waits for a failing origin."""
    frontier = await harness.open()
    lease = await leased(harness, frontier, urls=1)
    held = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=900.0, attempts=1, failing=True)
    await frontier.settle([visited(lease, deferred=[held], pace=STAYING)])
    assert await frontier.next_due() is None
    await frontier.add([url("http://www.a.test/new")])
    assert await frontier.next_due() == pytest.approx(DELAY)


async def test_a_failing_domain_is_not_waited_for_when_its_cap_is_lifted(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=1, limits_epoch=1)
    lease = await leased(harness, frontier)
    await frontier.settle([visited(lease, DONE, pace=LEAVING)])
    frontier = await harness.open(max_pages_per_domain=1, limits_epoch=2)
    assert await frontier.next_due() is None
    harness.advance(DELAY)
    assert len(await frontier.claim(1)) == 1


@pytest.mark.parametrize("requested", [True, False])
async def test_a_given_back_lease_leaves_the_failures_as_they_are(harness: Harness, requested: bool) -> None:
    """A lease that expires is no response of the domain."""
    frontier = await harness.open()
    lease = await leased(harness, frontier)
    pace = Pace(backoff=100.0, failures=2)
    await frontier.settle([visited(lease, DONE, pace=pace, requested=requested)])
    for _ in range(4):
        harness.advance(BUDGET + 10 * DELAY)
        (lease,) = await frontier.claim(1)
        assert lease.pace == pace
