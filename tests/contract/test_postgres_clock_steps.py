"""A step of the server's clock during a crawl shortens no delay and does not stall the crawl."""

from __future__ import annotations

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.runs import Vitals
from rove.model.urls import UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from tests.contract.harness import BUDGET, DELAY, PostgresHarness, url, visited

DONE = UrlState.DONE
HOUR = 3600.0
SLACK = 0.2
"""Seconds that a clock may be off without counting as a step, plus the margin of a claim."""
STEPS = pytest.mark.parametrize("step", [HOUR, -HOUR])


class Crawl:
    """Two processes of one crawl on a server whose clock the test can set."""

    def __init__(self, harness: PostgresHarness) -> None:
        self.harness = harness
        self.frontiers: list[Frontier] = []

    async def start(self) -> None:
        """Start both processes and add nine URLs of one domain."""
        for _ in range(2):
            await self.join()
        await self.frontiers[0].add([url(f"http://a.test/{i}") for i in range(9)])

    async def close(self) -> None:
        await self.harness.close()

    async def join(self) -> Frontier:
        """Start one more process."""
        frontier = await self.harness.open()
        if not self.frontiers:
            await self.harness.rows("CREATE TABLE IF NOT EXISTS test_step (ahead bigint)")
            await self.harness.rows(
                "CREATE OR REPLACE FUNCTION server_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
                "$$ SELECT now + coalesce((SELECT sum(ahead) FROM test_step), 0)::bigint "
                "FROM test_clock $$"
            )
        self.frontiers.append(frontier)
        return frontier

    async def set_clock(self, seconds: float) -> None:
        """Set the server's clock forward or back."""
        await self.harness.rows("INSERT INTO test_step VALUES ($1)", round(seconds * 1000))

    async def look(self, *numbers: int) -> None:
        """Let these processes, or all, send a heartbeat and check the clock."""
        for number in numbers or range(len(self.frontiers)):
            await self.frontiers[number].note_alive(Vitals())

    async def claims(self) -> list[str]:
        """Return what all processes can claim now."""
        leases = [lease for frontier in self.frontiers for lease in await frontier.claim(9)]
        return [lease.name for lease in leases]

    async def is_due_after(self, seconds: float, slack: float = SLACK) -> None:
        """Check that the only domain is due for all processes after `seconds` and not before."""
        self.harness.advance(seconds - slack)
        assert await self.claims() == []
        self.harness.advance(2 * slack)
        assert await self.claims() == ["a.test"]


@pytest.fixture
def crawl(postgres: PostgresHarness) -> Crawl:
    return Crawl(postgres)


async def visit(frontier: Frontier) -> None:
    (lease,) = await frontier.claim(1)
    assert await frontier.settle([visited(lease, DONE)]) == 1


@STEPS
@pytest.mark.parametrize("lookers", [[], [0], [1], [0, 1]])
async def test_a_step_does_not_change_a_delay(crawl: Crawl, step: float, lookers: list[int]) -> None:
    """Any process may look first. A step back that no process has noticed only makes the delay longer."""
    await crawl.start()
    await visit(crawl.frontiers[0])
    crawl.harness.advance(10)
    await crawl.set_clock(step)
    assert await crawl.claims() == []
    crawl.harness.advance(DELAY - 12)
    assert await crawl.claims() == []
    if lookers:
        await crawl.look(*lookers)
        await crawl.is_due_after(2)
    elif step > 0:
        await crawl.is_due_after(2)
    else:
        crawl.harness.advance(2)
        assert await crawl.claims() == []
        await crawl.look(1)
        assert await crawl.claims() == ["a.test"]


@STEPS
@pytest.mark.parametrize("after", [1.0, BUDGET, BUDGET + DELAY - 1])
async def test_a_lease_is_not_given_twice(crawl: Crawl, step: float, after: float) -> None:
    await crawl.start()
    (lease,) = await crawl.frontiers[0].claim(1)
    crawl.harness.advance(after)
    await crawl.set_clock(step)
    assert await crawl.claims() == []
    await crawl.look(0)
    assert await crawl.claims() == []
    await crawl.look()
    await crawl.is_due_after(BUDGET + DELAY - after)
    assert await crawl.frontiers[0].settle([visited(lease, DONE)]) == 0


@STEPS
async def test_a_visit_settled_before_the_step_was_seen_costs_its_delay(crawl: Crawl, step: float) -> None:
    await crawl.start()
    (lease,) = await crawl.frontiers[0].claim(1)
    await crawl.set_clock(step)
    crawl.harness.advance(1)
    assert await crawl.frontiers[0].settle([visited(lease, DONE)]) == 1
    crawl.harness.advance(1)
    await crawl.look()
    late = max(0.0, step)  # A known limit: a visit that is settled then waits as long as the step was.
    crawl.harness.advance(DELAY - 1 - SLACK)
    assert await crawl.claims() == []
    crawl.harness.advance(late + 2 * SLACK)
    assert await crawl.claims() == ["a.test"]


@STEPS
async def test_a_lease_given_before_the_step_was_seen_lasts_as_long_as_any(crawl: Crawl, step: float) -> None:
    await crawl.start()
    crawl.harness.advance(2 * HOUR)
    await crawl.look()
    await crawl.set_clock(step)
    (lease,) = await crawl.frontiers[0].claim(1)
    assert lease.claimed_ms == pytest.approx(crawl.harness.now(), abs=SLACK * 1000)
    crawl.harness.advance(1)
    await crawl.look()
    crawl.harness.advance(BUDGET + DELAY - 1 - SLACK)
    assert await crawl.claims() == []
    crawl.harness.advance(max(0.0, step) + 2 * SLACK)
    assert await crawl.claims() == ["a.test"]


@STEPS
async def test_leases_cut_before_the_step_was_seen_keep_the_delay(crawl: Crawl, step: float) -> None:
    await crawl.start()
    await crawl.frontiers[0].claim(1)
    await crawl.set_clock(step)
    crawl.harness.advance(1)
    assert await crawl.frontiers[1].recover([crawl.frontiers[0].process]) == 1
    crawl.harness.advance(1)
    await crawl.look()
    crawl.harness.advance(DELAY - 1 - SLACK)
    assert await crawl.claims() == []


@STEPS
async def test_a_domain_met_before_the_step_was_seen_is_due_as_any(crawl: Crawl, step: float) -> None:
    await crawl.start()
    await visit(crawl.frontiers[0])
    await crawl.set_clock(step)
    await crawl.frontiers[0].add([url("http://b.test/")])
    await crawl.look()
    crawl.harness.advance(max(0.0, step))
    assert "b.test" in await crawl.claims()


@STEPS
async def test_the_longer_delay_of_a_robots_txt_holds(crawl: Crawl, step: float) -> None:
    await crawl.start()
    (lease,) = await crawl.frontiers[0].claim(1)
    await crawl.set_clock(step)
    record = OriginRecord(
        domain=lease.domain,
        origin="http://a.test",
        status=RobotsStatus.RULES,
        crawl_delay=2 * DELAY,
        valid_for=86_400.0,
    )
    await crawl.frontiers[0].put_origins([record])
    await crawl.look()
    await crawl.is_due_after(BUDGET + 2 * DELAY)


@STEPS
@pytest.mark.parametrize("is_amended", [True, False])
async def test_a_process_that_joins_after_a_step_claims_nothing_early(
    crawl: Crawl, step: float, is_amended: bool
) -> None:
    """After the correction. Between step and correction, a new process takes the clock as it finds it."""
    await crawl.start()
    await visit(crawl.frontiers[0])
    crawl.harness.advance(10)
    await crawl.set_clock(step)
    if is_amended:
        await crawl.look(1)
    await crawl.join()
    await crawl.look(0)
    assert await crawl.claims() == []
    await crawl.is_due_after(DELAY - 10)
    await crawl.look()


async def test_a_process_that_joined_before_a_step_back_was_corrected_writes_corrected_times(crawl: Crawl) -> None:
    await crawl.start()
    crawl.harness.advance(2 * HOUR)
    await crawl.look()
    await crawl.set_clock(-HOUR)
    newcomer = await crawl.join()
    await crawl.look(0)
    (lease,) = await newcomer.claim(1)
    assert await crawl.claims() == []
    assert await newcomer.settle([visited(lease, DONE)]) == 1
    await crawl.look()
    await crawl.is_due_after(DELAY)


async def test_between_a_step_and_its_correction_a_new_process_trusts_the_clock(crawl: Crawl) -> None:
    """A known limit: nothing tells the step from time that has passed. Other processes look every two seconds."""
    await crawl.start()
    await visit(crawl.frontiers[0])
    await crawl.set_clock(HOUR)
    newcomer = await crawl.join()
    assert [lease.name for lease in await newcomer.claim(1)] == ["a.test"]


async def test_clocks_that_are_set_again_and_again(crawl: Crawl) -> None:
    await crawl.start()
    for step in (HOUR, -2 * HOUR, 5.0, -5.0, 20 * HOUR, 0.3):
        await visit(crawl.frontiers[0])
        await crawl.set_clock(step)
        crawl.harness.advance(2)
        await crawl.look()
        crawl.harness.advance(DELAY - 2 - SLACK)
        assert await crawl.claims() == []
        crawl.harness.advance(2 * SLACK)
    assert await crawl.claims() == ["a.test"]


@STEPS
async def test_the_rest_of_the_crawl_goes_on_with_the_amended_clock(crawl: Crawl, step: float) -> None:
    await crawl.start()
    reader = crawl.harness.reader()
    await visit(crawl.frontiers[0])
    record = await reader.domain(url("http://a.test/").domain)
    assert record is not None
    before = record.free_in
    await crawl.set_clock(step)
    await crawl.look()
    crawl.harness.advance(1)
    record = await reader.domain(url("http://a.test/").domain)
    assert record is not None
    assert record.free_in == pytest.approx(before - 1, abs=SLACK)
    assert await crawl.frontiers[1].next_due() == pytest.approx(DELAY - 1, abs=SLACK)
    await crawl.look()
    assert all(p.silent_for <= SLACK for p in await reader.participants())
