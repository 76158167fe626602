"""A database that lacks the last visits: a restored backup, or a copied file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.datadir import DataDir
from rove.frontier.backends import backend_for
from rove.frontier.eras import JUMP
from rove.frontier.records import Policy
from rove.frontier.runs import Vitals
from rove.model.urls import UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from tests.contract.harness import BUDGET, DELAY, Harness, PostgresHarness, url, visited

POLICY = Policy(delay=0.0, budget=60.0)
ALIVE = Vitals(pages=0, pages_per_second=0.0, in_flight=0, is_paused=False, is_leaving=True)
SLOW_DELAY = 200.0
SLACK = 0.06
"""A process on PostgreSQL does not know the server's time exactly."""


async def test_every_domain_rests_when_the_directory_knows_later_visits(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2"), url("http://slow.test/")])
    leases = {lease.name: lease for lease in await frontier.claim(10)}
    slow = OriginRecord(
        domain=leases["slow.test"].domain,
        origin="http://slow.test",
        status=RobotsStatus.RULES,
        body=b"",
        crawl_delay=SLOW_DELAY,
        valid_for=1e6,
    )
    await frontier.put_origins([slow])
    await frontier.settle([visited(lease) for lease in leases.values()])
    last = max(lease.token for lease in leases.values())
    assert harness.era_file.known.visits == last
    harness.advance(10 * SLOW_DELAY)

    # The directory was given more visits than this database knows of.
    harness.era_file.note_visits(last + 50)
    older = await harness.open()
    assert await older.claim(10) == []
    assert await older.next_due() == pytest.approx(BUDGET + DELAY, abs=SLACK)
    assert "every domain rests" in older.troubles()["rest"]
    harness.advance(BUDGET + DELAY - SLACK)
    assert await older.claim(10) == []
    harness.advance(SLACK)
    (lease,) = await older.claim(10)
    assert lease.name == "a.test" and lease.token > last + JUMP
    assert older.troubles()["rest"] == ""
    assert await older.next_due() == SLOW_DELAY - DELAY
    harness.advance(SLOW_DELAY - DELAY)
    (lease,) = await older.claim(10)
    assert lease.name == "slow.test" and [u.url for u in lease.urls] == ["http://slow.test/"]
    assert await older.settle([visited(lease)]) == 1


async def test_a_directory_that_knows_no_more_changes_nothing(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    (lease,) = await frontier.claim(10)
    again = await harness.open()
    await again.add([url("http://b.test/")])
    (other,) = await again.claim(10)
    assert other.token == lease.token + 1 and not any(again.troubles().values())


async def test_an_older_file_is_noticed_at_the_start(tmp_path: Path) -> None:
    """The file is copied before a visit and put back after it. The data directory remembers the visit."""
    data = DataDir(tmp_path)
    news: list[str] = []

    async def run(*, visits: int) -> list[str]:
        backend = backend_for(data, None, on_news=news.append)
        await backend.open(create=True)
        frontier = await backend.begin(POLICY, await backend.begin_run())
        await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
        leases = [lease for _ in range(visits) for lease in await frontier.claim(1)]
        await frontier.settle([visited(lease) for lease in leases])
        await frontier.note_alive(ALIVE)
        troubles = frontier.troubles()["rest"]
        await backend.close()
        return [lease.name for lease in leases] + [troubles]

    assert await run(visits=1) == ["a.test", ""]
    older = data.frontier.read_bytes()
    assert await run(visits=1) == ["a.test", ""]
    assert not news
    data.frontier.write_bytes(older)
    (resting,) = await run(visits=1)
    assert resting.startswith("every domain rests")
    assert len(news) == 1 and str(tmp_path) in news[0] and "is older than its data directory" in news[0]
    (resting,) = await run(visits=1)
    assert resting and len(news) == 1, "it is said once, and the rest goes on after a restart"


@pytest.mark.system
async def test_the_pause_after_a_forgotten_visit_is_respected(postgres: PostgresHarness) -> None:
    """The claim is lost, and the process that holds the lease ends the visit in the next era."""
    frontier = await postgres.open(delay=0.0)
    await frontier.add([url("http://a.test/")])
    (lease,) = await frontier.claim(1)
    await postgres.rows("UPDATE domain SET token = 0, owner = NULL, ready_at = $1, not_before = 0", postgres.now())
    assert await frontier.settle([visited(lease, UrlState.DONE, pause=500.0)]) == 0
    assert await frontier.claim(1) == []
    postgres.advance(500.0)
    (again,) = await frontier.claim(1)
    assert again.token > lease.token
