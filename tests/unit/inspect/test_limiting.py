"""What limits a crawl, as far as its database tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rove.config import Limits, Settings
from rove.frontier.runs import Vitals
from rove.frontier.seed_source import SeedSource
from rove.inspect.limiting import what_limits
from rove.inspect.pauses import Scope
from rove.inspect.seed_loading import seeds_loading
from rove.model.instructions import Instruction
from rove.model.samples import Distribution, Sample
from rove.model.urls import UrlState
from rove.model.visits import Lease
from rove.policy.limiting import Factor, Limiting
from tests.contract.harness import DELAY, page_row, visited
from tests.unit.crawl.scripted import World

NOW = 1_800_000_000.0
PAUSED = {Scope.HERE: Instruction(who="ann@host", at=0.0)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


async def judged(world: World, *, elapsed: float = 1.0, **vitals: Any) -> Limiting:
    """Report a heartbeat and say what limits the crawl."""
    if vitals:
        await world.frontier.note_alive(Vitals(**vitals))
    reader, catalog = world.harness.reader(), world.harness.catalog()
    return await what_limits(
        reader,
        catalog,
        counts=await reader.counts(),
        alive=await reader.participants(),
        elapsed=elapsed,
        pauses=PAUSED if vitals.get("is_paused") else {},
        now=NOW,
    )


async def settle_all(world: World, leases: list[Lease], state: UrlState, *, error: str = "") -> None:
    visits = [visited(lease, state, requests=[page_row(lease, lease.urls[0].url, error=error)]) for lease in leases]
    await world.frontier.settle(visits)


async def test_a_crawl_from_its_first_second_to_its_last(world: World) -> None:
    await world.open(*(f"http://h{number}.test/" for number in range(20)))
    assert (await judged(world)).sentence == "nothing: the crawl begins; 20 domains are ready"
    busy: dict[str, Any] = {"in_flight": 1, "at_once": 1, "held_by": "concurrency"}
    leases = await world.frontier.claim(1)
    slow = await judged(world, **busy)
    assert slow.sentence == (
        "concurrency: 19 domains are ready, 1 fetch in flight of at most 1. A higher --concurrency would help"
    )
    leases += await world.frontier.claim(19)
    await settle_all(world, leases, UrlState.FAILED, error="status-404")
    assert (await judged(world, **busy | {"in_flight": 0})).sentence == (
        "nothing: nothing is left to fetch. More seeds would help"
    )


async def test_domains_that_wait(world: World) -> None:
    await world.open("http://a.test/", "http://a.test/2", "http://b.test/", "http://b.test/2")
    await settle_all(world, await world.frontier.claim(2), UrlState.DONE)
    world.advance(DELAY / 2)
    found = await judged(world, at_once=500, held_by="demand")
    assert found.why.startswith(f"2 domains, all waiting; the next is due in {DELAY / 2:.0f} s")
    paused = await judged(world, at_once=500, is_paused=True)
    assert paused.why.startswith("by ann@host. Continue")


async def test_sites_that_fail(world: World) -> None:
    await world.open("http://a.test/", "http://a.test/2", "http://b.test/", "http://b.test/2")
    await settle_all(world, await world.frontier.claim(2), UrlState.FAILED, error="dns")
    found = await judged(world, at_once=500, held_by="demand")
    assert found.why.startswith("2 of 2 requests failed (dns 2); the next visit is due in ")


async def test_the_limits_of_the_crawl(world: World) -> None:
    await world.open("http://a.test/")
    settings = Settings(email="me@crawler.test", limits=Limits(max_duration=60.0))
    await world.harness.catalog().save(settings.to_json(), None)
    assert (await judged(world, elapsed=59.0)).factor is not Factor.LIMIT
    assert (await judged(world, elapsed=60.0)).why == "--max-duration is reached"


def sample_at(seconds: float, figures: dict[str, float], **histograms: Distribution) -> Sample:
    return Sample(
        node="",
        ended=round(1000 * (NOW + seconds)),
        seconds=10.0,
        figures={"processes": 1, "cpu.1": 0.5, "visits": 100, "requests.page": 100, **figures},
        histograms={name.replace("_", ".", 1): times for name, times in histograms.items()},
    )


async def test_samples_tell_what_was_short_in_the_last_minute(world: World) -> None:
    await world.open(*(f"http://h{number}.test/" for number in range(20)))
    busy: dict[str, Any] = {"in_flight": 20, "at_once": 500, "held_by": "demand"}
    assert (await judged(world, **busy)).factor is Factor.UNKNOWN
    slow = Distribution(count=10, total=9.0, longest=2.0, buckets={15: 10})
    await world.frontier.add_samples([sample_at(-90, {"errors.page.dns": 100}), sample_at(-55, {"unsettled": 90})])
    assert (await judged(world, **busy)).factor is Factor.UNKNOWN
    await world.frontier.add_samples([sample_at(-45, {}, query_commit=slow)])
    found = await judged(world, **busy)
    assert found.why.startswith("its statements take 45 % of the time; commit alone takes 45 %; 20 domains are ready")
    await world.frontier.add_samples([sample_at(-35, {"errors.page.dns": 300, "requests.page": 300})])
    assert (await judged(world, **busy)).why.startswith("300 of 500 requests failed (dns 300)")
    await world.frontier.add_samples([sample_at(-5, {"paused.disk": 0.8, "paused.memory": 0.2})])
    assert (await judged(world, **busy)).factor is Factor.DISK


def test_seeds_that_are_being_loaded() -> None:
    done = SeedSource(id=1, path="a", name="a", good=5, finished=True)
    half = SeedSource(id=2, path="b", name="b", good=700)
    gone = SeedSource(id=3, path="c", name="c", good=9, is_abandoned=True)
    assert seeds_loading([]) is None
    assert seeds_loading([done, gone]) is None
    assert seeds_loading([done, half]) == 705
