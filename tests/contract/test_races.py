"""Races on PostgreSQL between several processes, each with connections of its own, in real time.

Each test runs with a few seeds, and with a hundred in the long run. A seed decides the batches and the short pauses
between them; the server decides the order.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from rove.frontier import capacity as full
from rove.frontier.postgres.claim_floor import LOWEST
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.session import QUERIES
from rove.frontier.records import Policy
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Lease, OriginRecord, RobotsStatus
from rove.policy import budget
from tests.contract.harness import BUDGET, DELAY, PENDING, PostgresHarness, connected, raw, url, visited

DONE = UrlState.DONE
SCHEMA = "races"
FEW = 2
MANY = 100
PATIENCE = 60.0
"""A test that makes no progress for this many seconds has lost something."""
STATES = "SELECT state, count(*) FROM url GROUP BY state"
DOMAINS = (
    "SELECT count(*), count(*) FILTER (WHERE excluded),"
    " count(*) FILTER (WHERE pending > 0 AND NOT excluded) FROM domain"
)
ASLEEP = (
    "SELECT name FROM domain WHERE pending > 0 AND owner IS NULL AND ready_at IS NULL AND NOT capped AND NOT excluded"
)


def rounds(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run a test with a few seeds, and with many more in the long run."""
    marks = [pytest.mark.long, pytest.mark.timeout(300)]
    many = [pytest.param(seed, marks=marks) for seed in range(FEW, MANY)]
    marked: Callable[..., Awaitable[None]] = pytest.mark.parametrize("seed", [*range(FEW), *many])(test)
    return marked


class Crawl:
    """Processes of one crawl that use the database's real clock."""

    def __init__(self, harness: PostgresHarness) -> None:
        self.harness = harness
        self.databases: list[PostgresDatabase] = []
        self.frontiers: list[PostgresFrontier] = []

    async def start(self, processes: int, **policy: Any) -> None:
        """Start more processes."""
        settings = {"delay": 0.0, "budget": 600.0, **policy}
        for _ in range(processes):
            database = PostgresDatabase(self.harness.url, self.harness.schema)
            self.databases.append(database)
            await database.open(create=True)
            frontier = PostgresFrontier(database, Policy(**settings), machine=1)
            await frontier.begin(run=1)
            self.frontiers.append(frontier)

    async def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """Return the rows of a statement of the test's own."""
        return await raw(self.databases[0], sql, *parameters)

    async def close(self) -> None:
        """End all processes."""
        for database in self.databases:
            await database.close()

    async def check(self, seed: int) -> None:
        """Check that the counters agree with the rows, and that no domain with pending URLs sleeps."""
        assert self.deadlocks() == 0, f"seed {seed}: locks were taken in a circle"
        for domain, counter, counted in await self.rows(PENDING):
            assert counter == counted, f"seed {seed}: domain {domain}"
        asleep = [row[0] for row in await self.rows(ASLEEP)]
        assert asleep == [], f"seed {seed}: they have work and nothing will wake them"
        counts = await self.frontiers[0].counts()
        states = {UrlState(state): number for state, number in await self.rows(STATES)}
        kept_states = {state: number for state, number in counts.urls.items() if number}
        assert kept_states == states, f"seed {seed}"
        ((total, excluded, active),) = await self.rows(DOMAINS)
        assert sum(counts.domains.values()) == total, f"seed {seed}: {counts.domains}"
        assert counts.domains["excluded"] == excluded, f"seed {seed}"
        assert counts.domains["idle"] == total - active - excluded, f"seed {seed}"

    def deadlocks(self) -> int:
        """Return the number of deadlocks that the server had to break."""
        histograms = [database.timings.by_name.get("deadlock") for database in self.databases]
        return sum(histogram.count for histogram in histograms if histogram is not None)


@pytest.fixture(scope="module")
def kept_races(postgres_url: str) -> Iterator[PostgresHarness]:
    """Make a schema with the real clock."""
    harness = PostgresHarness(postgres_url, SCHEMA)
    asyncio.run(harness.drop())
    yield harness
    asyncio.run(harness.drop())


@pytest.fixture
def crawl(kept_races: PostgresHarness) -> Crawl:
    """Return a crawl without processes, in an empty schema."""
    asyncio.run(kept_races.empty())
    return Crawl(kept_races)


class Claimers:
    """Tasks that claim and settle until every URL is done, and check each other."""

    def __init__(self, crawl: Crawl, seed: int, expected: int) -> None:
        self.crawl = crawl
        self.seed = seed
        self.chance = random.Random(seed)
        self.expected = expected
        self.held: set[int] = set()
        self.done: Counter[int] = Counter()
        self.deadline = time.monotonic() + PATIENCE

    async def run(self, claimers: int) -> None:
        """Run this many claimers."""
        frontiers = self.crawl.frontiers
        tasks = [self._claimer(frontiers[i % len(frontiers)]) for i in range(claimers)]
        await asyncio.gather(*tasks)

    async def _claimer(self, frontier: PostgresFrontier) -> None:
        while len(self.done) < self.expected:
            assert time.monotonic() < self.deadline, (
                f"seed {self.seed}: {self.expected - len(self.done)} were not served"
            )
            leases = await frontier.claim(self.chance.randint(1, 4))
            self._hold(leases)
            await asyncio.sleep(self.chance.random() * 0.002)
            for lease in leases:
                await self._visit(frontier, lease)
            if not leases:
                await asyncio.sleep(0.01)

    def _hold(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            assert lease.domain not in self.held, f"seed {self.seed}: leased twice at once"
            self.held.add(lease.domain)

    async def _visit(self, frontier: PostgresFrontier, lease: Lease) -> None:
        number = self.chance.randint(1, len(lease.urls))
        self.done.update(pending.fingerprint for pending in lease.urls[:number])
        self.held.discard(lease.domain)
        settled = await frontier.settle([visited(lease, *[DONE] * number)])
        assert settled == 1, f"seed {self.seed}: a lease was lost"

    def check(self, urls: Sequence[NewUrl]) -> None:
        """Check that every URL was served exactly once."""
        assert set(self.done) == {u.fingerprint for u in urls}, f"seed {self.seed}"
        twice = [fingerprint for fingerprint, times in self.done.items() if times > 1]
        assert twice == [], f"seed {self.seed}: served more than once"


async def add_all(frontier: PostgresFrontier, urls: Sequence[NewUrl], size: int) -> int:
    """Add in batches; return how many were new."""
    batches = [urls[start : start + size] for start in range(0, len(urls), size)]
    return sum([(await frontier.add(batch)).unseen for batch in batches])


@rounds
async def test_fifty_claimers_share_a_hundred_domains(crawl: Crawl, seed: int) -> None:
    urls = [url(f"http://h{i % 100}.test/{i}") for i in range(1000)]
    await _claim_everything(crawl, seed, urls)


@rounds
async def test_fifty_claimers_share_domains_of_which_few_have_most(crawl: Crawl, seed: int) -> None:
    """Return URLs of which 80 % are on 10 % of the domains."""
    urls = [url(f"http://h{i % 10 if i % 10 < 8 else 10 + i // 10 % 90}.test/{i}") for i in range(1000)]
    await _claim_everything(crawl, seed, urls)


async def _claim_everything(crawl: Crawl, seed: int, urls: Sequence[NewUrl]) -> None:
    await crawl.start(8)
    assert (await crawl.frontiers[0].add(urls)).unseen == len(urls)
    claimers = Claimers(crawl, seed, len(urls))
    await claimers.run(50)
    claimers.check(urls)
    await crawl.check(seed)
    assert (await crawl.frontiers[0].counts()).urls == {
        state: len(urls) if state is DONE else 0 for state in UrlState
    }, f"seed {seed}"


@rounds
async def test_domains_that_come_up_while_others_are_claimed(crawl: Crawl, seed: int) -> None:
    """While some claim, others add new domains. No URL is lost, and none is served twice."""
    await crawl.start(6)
    urls = [url(f"http://n{i % 150}.test/{i}") for i in range(600)]
    claimers = Claimers(crawl, seed, len(urls))
    claimers.chance.shuffle(urls)

    async def adder(number: int) -> int:
        added = 0
        for start in range(number * 20, len(urls), 100):
            batch = urls[start : start + 20]
            added += (await crawl.frontiers[number].add(batch)).unseen
            await asyncio.sleep(claimers.chance.random() * 0.01)
        return added

    added, *_ = await asyncio.gather(asyncio.gather(*(adder(number) for number in range(5))), claimers.run(20))
    assert sum(added) == len(urls), f"seed {seed}"
    claimers.check(urls)
    await crawl.check(seed)


@rounds
async def test_the_last_url_is_settled_while_another_comes(crawl: Crawl, seed: int) -> None:
    """No wake-up is lost, and the counter of pending URLs agrees with the rows at the end."""
    await crawl.start(3)
    settling, adding, claiming = crawl.frontiers
    chance = random.Random(seed)
    names = [f"l{i}.test" for i in range(8)]
    await adding.add([url(f"http://{name}/0") for name in names])

    async def settle(lease: Lease) -> int:
        await asyncio.sleep(chance.random() * 0.004)
        return await settling.settle([visited(lease, DONE)])

    async def add(name: str, number: int) -> int:
        await asyncio.sleep(chance.random() * 0.004)
        return (await adding.add([url(f"http://{name}/{number}")])).unseen

    for number in range(1, 31):
        leases = await _claim_all(claiming, len(names), seed)
        ends = await asyncio.gather(
            *(settle(lease) for lease in leases), *(add(lease.name, number) for lease in leases)
        )
        assert set(ends) == {1}, f"seed {seed}, round {number}"
        await crawl.check(seed)


async def _claim_all(frontier: PostgresFrontier, expected: int, seed: int) -> list[Lease]:
    """Claim until this many domains are leased."""
    leases: list[Lease] = []
    deadline = time.monotonic() + PATIENCE
    while len(leases) < expected:
        assert time.monotonic() < deadline, f"seed {seed}: only {len(leases)} came up"
        leases += await frontier.claim(expected)
    return leases


@rounds
async def test_a_late_settle_against_the_next_claim(postgres: PostgresHarness, seed: int) -> None:
    """The token decides: either the old lease is settled or the new one is valid, never both."""
    chance = random.Random(seed)
    late, other = await postgres.open(), await postgres.open()
    for number in range(25):
        first, second = (url(f"http://e{seed}x{number}.test/{i}") for i in range(2))
        await late.add([first, second])
        (old,) = await late.claim(1)
        postgres.advance(BUDGET + DELAY)
        await late.counts()  # opening sets the clock
        pauses = chance.random() * 0.004, chance.random() * 0.004

        async def settle(lease: Lease = old, pause: float = pauses[0]) -> int:
            await asyncio.sleep(pause)
            return await late.settle([visited(lease, DONE, DONE)])

        async def claim(pause: float = pauses[1]) -> list[Lease]:
            await asyncio.sleep(pause)
            return await other.claim(1)

        settled, leases = await asyncio.gather(settle(), claim())
        where = f"seed {seed}, round {number}"
        assert (settled, len(leases)) in ((1, 0), (0, 1)), where
        keys = [(u.domain, u.fingerprint) for u in (first, second)]
        if leases:
            assert set((await late.states(keys)).values()) == {UrlState.PENDING}, where
            assert leases[0].token > old.token, where
            assert await late.settle([visited(old, UrlState.FAILED)]) == 0, where
            assert await other.settle([visited(leases[0], DONE, DONE)]) == 1, where
        assert set((await late.states(keys)).values()) == {DONE}, where
        assert await late.settle([visited(old, UrlState.FAILED)]) == 0, where
    assert (await late.counts()).urls[DONE] == 50, f"seed {seed}"
    pending = await postgres.counted_pending()
    assert set(pending.values()) == {(0, 0)}, f"seed {seed}"


@rounds
async def test_adders_of_the_same_in_every_order(crawl: Crawl, seed: int) -> None:
    """Twenty adders add the same URLs in different orders and batches. Each URL is inserted once."""
    await crawl.start(6)
    urls = [url(f"http://s{i % 40}.test/{i}", depth=i % 3) for i in range(400)]

    async def adder(number: int) -> int:
        chance = random.Random(f"{seed} {number}")
        shuffled = [*urls, *chance.sample(urls, 50)]
        chance.shuffle(shuffled)
        frontier = crawl.frontiers[number % len(crawl.frontiers)]
        return await add_all(frontier, shuffled, chance.randint(20, 120))

    async with asyncio.timeout(PATIENCE):
        added = await asyncio.gather(*(adder(number) for number in range(20)))
    assert sum(added) == len(urls), f"seed {seed}"
    rows = await crawl.rows("SELECT domain, fingerprint FROM url")
    assert {tuple(row) for row in rows} == {(u.domain, u.fingerprint) for u in urls}
    await crawl.check(seed)


@rounds
@pytest.mark.parametrize("processes", [2, 10])
async def test_processes_that_start_on_nothing(postgres_url: str, processes: int, seed: int) -> None:
    """All of them succeed, and the schema has each migration once."""
    harness = PostgresHarness(postgres_url, f"starts_{seed}")
    await harness.drop()
    chance = random.Random(seed)
    databases = [PostgresDatabase(postgres_url, harness.schema) for _ in range(processes)]

    async def start(database: PostgresDatabase) -> None:
        await asyncio.sleep(chance.random() * 0.02)
        await database.open(create=True)

    try:
        ends = await asyncio.gather(*map(start, databases), return_exceptions=True)
        assert ends == [None] * processes, f"seed {seed}"
        rows = await raw(databases[0], "SELECT number FROM migration ORDER BY 1")
        numbers = [row[0] for row in rows]
        assert numbers == sorted(set(numbers)) and numbers, f"seed {seed}"
    finally:
        for database in databases:
            await database.close()
        await harness.drop()


@rounds
async def test_everything_at_once(crawl: Crawl, seed: int) -> None:
    """Claims, settles, adds, robots.txt records and exclusions hit shared and new domains."""
    await crawl.start(6)
    chance = random.Random(seed)
    names = [f"x{i}.test" for i in range(40)]
    domains = {name: url(f"http://{name}/").domain for name in names}
    await crawl.frontiers[0].add([url(f"http://{name}/{i}") for name in names[:30] for i in range(6)])
    ends = time.monotonic() + 1.2

    async def claim(frontier: PostgresFrontier) -> None:
        leases = await frontier.claim(chance.randint(1, 6))
        await asyncio.sleep(chance.random() * 0.005)
        await frontier.settle([visited(lease, DONE) for lease in chance.sample(leases, len(leases))])

    async def add(frontier: PostgresFrontier) -> None:
        links = [f"http://{name}/{chance.randrange(300)}" for name in chance.choices(names, k=30)]
        await frontier.add([url(text) for text in links])

    async def put_origins(frontier: PostgresFrontier) -> None:
        records = [_record(domains[name], name, chance) for name in chance.sample(names, 8)]
        await frontier.put_origins(records)

    async def exclude(frontier: PostgresFrontier) -> None:
        excluded = chance.sample([*names[20:], f"y{chance.randrange(1000)}.test"], 2)
        await frontier.exclude({url(f"http://{name}/").domain: name for name in excluded})
        await asyncio.sleep(0.1)

    async def repeat(work: Callable[[PostgresFrontier], Awaitable[None]], number: int) -> None:
        while time.monotonic() < ends:
            await work(crawl.frontiers[number % len(crawl.frontiers)])

    works = [claim] * 8 + [add] * 8 + [put_origins] * 4 + [exclude] * 3
    await asyncio.gather(*(repeat(work, number) for number, work in enumerate(works)))
    await crawl.check(seed)


def _record(domain: int, name: str, chance: random.Random) -> OriginRecord:
    return OriginRecord(
        domain=domain,
        origin=f"{chance.choice(['http', 'https'])}://{name}",
        status=RobotsStatus.RULES,
        crawl_delay=chance.choice([0.0, 0.0, 0.05]),
        valid_for=100.0,
    )


@rounds
async def test_adds_to_domains_without_room(crawl: Crawl, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Claims, settles and adds hit domains that are always full, with better and worse URLs."""
    monkeypatch.setattr(budget, "FEWEST_VISITS", 1)
    monkeypatch.setattr(full, "MEMORY_SECONDS", 0.05)
    await crawl.start(6, delay=0.01, horizon=0.25)
    room = 4 * 2
    chance = random.Random(seed)
    names = [f"f{i}.test" for i in range(6)]
    ends = time.monotonic() + 1.2

    async def claim(frontier: PostgresFrontier) -> None:
        leases = await frontier.claim(chance.randint(1, 4))
        await asyncio.sleep(chance.random() * 0.005)
        await frontier.settle([visited(lease, DONE) for lease in leases])

    async def add(frontier: PostgresFrontier) -> None:
        links = [
            url(f"http://{name}/{chance.randrange(2_000)}", depth=chance.randint(1, 5))
            for name in chance.choices(names, k=30)
        ]
        exempt = {(new.domain, new.fingerprint) for new in links[:2]}
        await frontier.add(links, exempt=exempt)

    async def exclude(frontier: PostgresFrontier) -> None:
        domain = url(f"http://{names[0]}/").domain
        await frontier.exclude({domain: names[0]})
        await frontier.include([domain])
        await asyncio.sleep(0.05)

    async def repeat(work: Callable[[PostgresFrontier], Awaitable[None]], number: int) -> None:
        while time.monotonic() < ends:
            await work(crawl.frontiers[number % len(crawl.frontiers)])

    works = [claim] * 6 + [add] * 10 + [exclude]
    await asyncio.gather(*(repeat(work, number) for number, work in enumerate(works)))
    await crawl.check(seed)
    assert (await crawl.frontiers[0].counts()).not_accepted["budget"] > 0
    for frontier in crawl.frontiers:
        await frontier.add([url(f"http://{name}/last", depth=1) for name in names])
    await crawl.check(seed)
    assert max(rows for _, _, rows in await crawl.rows(PENDING)) <= room, f"seed {seed}"


@rounds
async def test_exclusions_against_adds_of_known_and_new_domains(crawl: Crawl, seed: int) -> None:
    """Some of the domains exist, and others are created by the first process that needs them."""
    await crawl.start(4)
    chance = random.Random(seed)
    for number in range(20):
        names = [f"c{number}x{i}.test" for i in range(12)]
        await crawl.frontiers[0].add([url(f"http://{name}/0") for name in names[::2]])
        ids = {url(f"http://{name}/").domain: name for name in names}

        async def add(frontier: PostgresFrontier, names: list[str] = names) -> None:
            await asyncio.sleep(chance.random() * 0.003)
            await frontier.add([url(f"http://{name}/1") for name in names])

        async def exclude(frontier: PostgresFrontier, ids: dict[int, str] = ids) -> None:
            await asyncio.sleep(chance.random() * 0.003)
            await frontier.exclude(ids)

        await asyncio.gather(add(crawl.frontiers[0]), exclude(crawl.frontiers[1]), exclude(crawl.frontiers[2]))
    await crawl.check(seed)


@rounds
async def test_two_origins_of_a_domain_learned_at_once(crawl: Crawl, seed: int) -> None:
    """The longer delay counts, whichever was saved last."""
    await crawl.start(2)
    chance = random.Random(seed)
    for number in range(40):
        name = f"o{number}.test"
        page = url(f"http://{name}/")
        await crawl.frontiers[0].add([page])

        async def learn(place: int, crawl_delay: float, domain: int = page.domain, name: str = name) -> None:
            await asyncio.sleep(chance.random() * 0.001)
            record = OriginRecord(
                domain=domain,
                origin=f"http://{place}.{name}",
                status=RobotsStatus.RULES,
                crawl_delay=crawl_delay,
                valid_for=100.0,
            )
            await crawl.frontiers[place].put_origins([record])

        await asyncio.gather(learn(0, 30.0), learn(1, 20.0))
        rows = await crawl.rows("SELECT crawl_delay FROM domain WHERE id = $1", page.domain)
        assert rows[0][0] == 30_000, f"seed {seed}, round {number}"


async def test_an_add_while_a_cap_is_lifted(crawl: Crawl) -> None:
    """The process that lifts the cap waited for the add, and sees the new URLs."""
    await crawl.start(1, max_pages_per_domain=1, limits_epoch=1)
    (frontier,) = crawl.frontiers
    await frontier.add([url("http://a.test/0")])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE)])
    async with _held_up(crawl) as let_go:
        adding = asyncio.create_task(frontier.add([url("http://a.test/1")]))
        await _until_waiting(crawl, 1)
        lifting = asyncio.create_task(crawl.start(1, max_pages_per_domain=1, limits_epoch=2))
        await _until_waiting(crawl, 2)
        await let_go()
        await asyncio.gather(adding, lifting)
    await crawl.check(0)
    assert len(await crawl.frontiers[-1].claim(1)) == 1


@asynccontextmanager
async def _held_up(crawl: Crawl) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Hold up all transactions that change counters."""
    connection = await asyncpg.connect(crawl.harness.url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(f'LOCK TABLE "{crawl.harness.schema}".counter IN SHARE MODE')
        yield transaction.rollback
    finally:
        await connection.close()


async def _until_waiting(crawl: Crawl, number: int) -> None:
    """Wait until this many of the crawl's connections wait for a lock."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'rove%'"
    deadline = time.monotonic() + PATIENCE
    while (await crawl.rows(sql))[0][0] < number:
        assert time.monotonic() < deadline, f"there are no {number} that wait"
        await asyncio.sleep(0.01)


async def test_claims_under_an_old_snapshot_skip_old_row_versions(postgres: PostgresHarness) -> None:
    """Vacuum can remove nothing, and a claim still reads about as much as at the start.

    Between the bound and the due domains there are two seconds' worth of old versions. Older ones are skipped.
    """
    frontier = await postgres.open(delay=0.0, budget=60.0)
    claiming = frontier.claiming  # type: ignore[attr-defined]
    await frontier.add([url(f"http://v{i}.test/") for i in range(200)])
    snapshot = await asyncpg.connect(postgres.url)
    try:
        async with snapshot.transaction(isolation="repeatable_read"):
            await snapshot.fetch(f'SELECT count(*) FROM "{postgres.schema}".domain')
            await _claim_and_settle(postgres, frontier, 60)
            at_first = await _buffers_of_a_claim(postgres, claiming.floor.value)
            await _claim_and_settle(postgres, frontier, 500)
            bounded = await _buffers_of_a_claim(postgres, claiming.floor.value)
            unbounded = await _buffers_of_a_claim(postgres, LOWEST)
    finally:
        await snapshot.close()
    assert bounded <= 3 * at_first, f"{bounded} buffers after {at_first} at the start"
    assert unbounded > 5 * bounded, f"{unbounded} without a bound: the test shows nothing"


async def _claim_and_settle(postgres: PostgresHarness, frontier: Any, claims: int) -> None:
    """Claim and settle ten domains at a time, which leaves twenty old versions behind each time."""
    for _ in range(claims):
        leases = await frontier.claim(10)
        assert len(leases) == 10
        postgres.advance(0.1)
        await frontier.settle([visited(lease) for lease in leases])


async def _buffers_of_a_claim(postgres: PostgresHarness, bound: int) -> int:
    """Return the number of blocks that a claim reads to find due domains; the claim is rolled back."""
    query = QUERIES["lease"]
    values = {"bound": bound, "limit": 10, "budget": 60_000, "delay": 0, "process": 1}
    values |= {"earliest": 0, "latest": 1 << 62, "ceiling": 1 << 62}
    call = ", ".join(str(values[name]) for name in query.parameters)
    async with connected(postgres) as connection:
        await connection.execute(f"PREPARE measured AS {query.text}")
        transaction = connection.transaction()
        await transaction.start()
        try:
            sql = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE measured({call})"
            plan = json.loads(await connection.fetchval(sql))[0]["Plan"]
        finally:
            await transaction.rollback()
            await connection.execute("DEALLOCATE measured")
    (scan,) = [node for node in _nodes(plan) if node.get("Index Name") == "domain_due"]
    assert plan["Actual Rows"] == scan["Actual Rows"] == 10
    return int(scan["Shared Hit Blocks"] + scan["Shared Read Blocks"])


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Iterate over a plan's nodes, from the top."""
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
