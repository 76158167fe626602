"""PostgreSQL goes away and comes back, refuses logins, or is slow."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rove.errors import FrontierError, UsageError
from rove.frontier.era_file import EraFile
from rove.frontier.postgres.database import FIRST_PAUSE, PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.session import Session
from rove.frontier.records import Policy
from rove.model.samples import Sample
from rove.model.urls import UrlState
from rove.observe.machine import Machine
from rove.observe.sampler import Sampler
from tests.contract.harness import PENDING, raw, url, visited
from tests.postgres import NoServer, PostgresServer, own_server, with_database

pytestmark = pytest.mark.system

SCHEMA = "outage"
PASSWORD = "s3cret-w0rd"
START_SECONDS = 30.0
PATIENCE = 15.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Start a server that these tests may stop."""
    with own_server() as server:
        asyncio.run(_make_roles(server))
        yield server


async def _make_roles(server: PostgresServer) -> None:
    """Make a role with a password, and one without rights."""
    rules = Path(server._data) / "pg_hba.conf"
    locked = "host all locked 127.0.0.1/32 scram-sha-256\n"
    rules.write_text(locked + rules.read_text())
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'")
    await connection.execute("CREATE ROLE guest LOGIN")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


class Crawl:
    """A process that adds, claims and settles until it is told to stop."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        self.news: list[str] = []
        database.on_news = self.news.append
        self.frontier = PostgresFrontier(database, Policy(delay=0.0, budget=1.0), machine=1)
        self.is_over = False
        self.tasks: list[asyncio.Task[None]] = []
        self.added = 0
        self.settled = 0

    async def add(self) -> None:
        while not self.is_over:
            numbers = range(self.added, self.added + 5)
            await self.frontier.add([url(f"http://h{i % 20}.test/{i}") for i in numbers])
            self.added += 5
            await asyncio.sleep(0.01)

    async def visit(self) -> None:
        while not self.is_over:
            leases = await self.frontier.claim(3)
            visits = [visited(lease, *[UrlState.DONE] * len(lease.urls)) for lease in leases]
            self.settled += await self.frontier.settle(visits)
            await asyncio.sleep(0.01)

    async def goes_on(self) -> None:
        """Wait until more URLs are added and settled."""
        added, settled = self.added + 50, self.settled + 20
        await until(lambda: self._has_ended() or (self.added >= added and self.settled >= settled))
        if self._has_ended():
            await asyncio.gather(*self.tasks)

    def _has_ended(self) -> bool:
        return any(task.done() for task in self.tasks)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition, with a timeout."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def crawling(server: PostgresServer) -> AsyncIterator[Crawl]:
    """Run a crawl in a schema of its own, and check its counters at the end."""
    database = PostgresDatabase(server.url, SCHEMA)
    await _drop(server)
    await database.open(create=True)
    crawl = Crawl(database)
    await crawl.frontier.begin(run=1)
    works = (crawl.add, crawl.visit, crawl.visit)
    tasks = crawl.tasks = [asyncio.create_task(work()) for work in works]
    try:
        await crawl.goes_on()
        yield crawl
        crawl.is_over = True
        await asyncio.gather(*tasks)
        await _check(crawl)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await database.close()


async def _check(crawl: Crawl) -> None:
    """Check that no URL is lost and that the counters agree with the rows."""
    ((added,),) = await raw(crawl.database, "SELECT count(*) FROM url")
    pending = await raw(crawl.database, PENDING)
    assert added == crawl.added
    assert all(counter == counted for _, counter, counted in pending)
    counts = await crawl.frontier.counts()
    assert sum(counts.urls.values()) == added
    assert counts.urls_pending == sum(counted for _, _, counted in pending)


async def _drop(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    await connection.close()


def start(server: PostgresServer) -> None:
    """Start the server. After a crash, processes of the old one may linger for a moment."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            server.start()
            return
        except NoServer:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_a_crawl_waits_for_its_server_and_goes_on(server: PostgresServer, number: signal.Signals) -> None:
    async with crawling(server) as crawl:
        await asyncio.to_thread(server.stop, number)
        try:
            await asyncio.sleep(1.0)
            while_away = crawl.added, crawl.settled
            await asyncio.sleep(0.5)
            assert (crawl.added, crawl.settled) == while_away
        finally:
            await asyncio.to_thread(start, server)
        await crawl.goes_on()
        assert [text.split("(")[0].split(" after")[0] for text in crawl.news] == [
            "the database is away ",
            "the database is back",
        ]
        assert crawl.frontier.outages >= 1


async def test_no_sample_is_lost_while_the_server_is_away(server: PostgresServer, tmp_path: Path) -> None:
    seen: list[Sample] = []
    async with crawling(server) as crawl:
        machine = Machine(tmp_path)
        sampler = Sampler(
            crawl.frontier,
            machine,
            take=list,
            is_loading=lambda: False,
            on_sample=seen.append,
            interval=0.1,
        )
        async with sampler.running():
            await until(lambda: len(seen) >= 2)
            await asyncio.to_thread(server.stop)
            try:
                have = len(seen)
                await until(lambda: len(seen) >= have + 5)
            finally:
                await asyncio.to_thread(start, server)
            have = len(seen)
            await crawl.goes_on()
            await until(lambda: len(seen) >= have + 2)
        stored = await raw(crawl.database, "SELECT ended FROM sample ORDER BY ended")
    assert [row[0] for row in stored] == [sample.ended for sample in seen]


async def test_it_is_lost_and_found_more_than_once(server: PostgresServer) -> None:
    """Each outage is reported."""
    async with crawling(server) as crawl:
        for times in (1, 2):
            await asyncio.to_thread(server.stop)
            try:
                await until(lambda: len(crawl.news) % 2 == 1)
            finally:
                await asyncio.to_thread(start, server)
            await crawl.goes_on()
            assert len(crawl.news) == 2 * times


async def test_an_outage_counts_once(server: PostgresServer) -> None:
    """However many connections were lost."""
    async with crawling(server) as crawl:
        await asyncio.to_thread(server.stop)
        try:
            await asyncio.sleep(0.5)
        finally:
            await asyncio.to_thread(start, server)
        await crawl.goes_on()
        assert crawl.frontier.outages == 1


async def test_lost_connections_are_made_anew_without_news(server: PostgresServer) -> None:
    async with crawling(server) as crawl:
        for _ in range(5):
            connection = await asyncpg.connect(server.url)
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rove%'"
            )
            await connection.close()
            await crawl.goes_on()
        assert crawl.news == []


async def test_a_crawl_that_is_to_stop_does_not_wait(server: PostgresServer) -> None:
    await _stop_while_away(server)


async def test_nor_when_it_has_been_waiting_for_long(server: PostgresServer) -> None:
    """The pauses are long by then, and the crawl must not sleep to the end of one."""
    await _stop_while_away(server, first_pause=15.0)


async def _stop_while_away(server: PostgresServer, *, first_pause: float = FIRST_PAUSE) -> None:
    await _drop(server)
    news: list[str] = []
    database = PostgresDatabase(server.url, SCHEMA, on_news=news.append, first_pause=first_pause)
    await database.open(create=True)
    frontier = PostgresFrontier(database, Policy(delay=0.0, budget=1.0), machine=1)
    await asyncio.to_thread(server.stop)
    try:
        waiting = [asyncio.create_task(frontier.add([url("http://a.test/")])), asyncio.create_task(frontier.claim(1))]
        await asyncio.sleep(1.0)
        assert len(news) == 1 and not any(task.done() for task in waiting)
        frontier.stop_waiting(0.5)
        began = time.monotonic()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert time.monotonic() - began < 5.0
        assert [type(end) for end in ends] == [FrontierError] * 2
        assert "is away" in str(ends[0])
        with pytest.raises(FrontierError):
            await frontier.claim(1)
    finally:
        await database.close()
        await asyncio.to_thread(start, server)


@asynccontextmanager
async def watchful(url_of_server: str) -> AsyncIterator[tuple[PostgresFrontier, list[str]]]:
    """Open a frontier that notices a silence at once, and collect its news."""
    news: list[str] = []
    database = PostgresDatabase(url_of_server, SCHEMA, on_news=news.append, silent_seconds=0.2, probe_seconds=1.0)
    await database.open(create=True)
    try:
        yield PostgresFrontier(database, Policy(delay=0.0, budget=1.0), machine=1), news
    finally:
        await database.close()


async def test_a_server_that_falls_silent_is_reported(server: PostgresServer) -> None:
    """Its machine is frozen: connections stay open, and nothing answers."""
    await _drop(server)
    async with watchful(server.url) as (frontier, news):
        await frontier.add([url("http://a.test/1")])
        with server.frozen():
            adding = asyncio.create_task(frontier.add([url("http://a.test/2")]))
            await until(lambda: bool(news))
            assert "the database is away (it does not answer)" in news[0]
            assert frontier.troubles()["database"] == news[0] and not adding.done()
        assert (await adding).unseen <= 1
        await until(lambda: len(news) == 2)
        assert "is back" in news[1] and not frontier.troubles()["database"]
        assert (await frontier.counts()).urls_pending == 2


async def test_commits_that_wait_for_a_dead_standby_are_reported(server: PostgresServer) -> None:
    await _drop(server)
    async with watchful(server.url) as (frontier, news):
        await frontier.add([url("http://a.test/1")])
        await _set(server, "synchronous_standby_names", "gone")
        try:
            adding = asyncio.create_task(frontier.add([url("http://a.test/2")]))
            await until(lambda: bool(news))
            assert "commits wait for a synchronous standby" in news[0]
            assert "synchronous standby" in frontier.troubles()["database"] and not adding.done()
        finally:
            await _set(server, "synchronous_standby_names", "")
        assert (await adding).unseen == 1
        await until(lambda: len(news) == 2)
        assert news[1] == "commits no longer wait" and not frontier.troubles()["database"]


async def _set(server: PostgresServer, name: str, value: str) -> None:
    connection = await asyncpg.connect(server.url, server_settings={"synchronous_commit": "local"})
    await connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


@pytest.mark.parametrize(
    ("given", "used"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
async def test_commits_are_durable_whatever_the_role_says(server: PostgresServer, given: str, used: str) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"ALTER ROLE rove SET synchronous_commit = {given}")
    try:
        async with watchful(server.url) as (frontier, _):
            ((setting,),) = await raw(frontier._database, "SHOW synchronous_commit")
            assert setting == used
    finally:
        await connection.execute("ALTER ROLE rove RESET synchronous_commit")
        await connection.close()


async def test_a_server_that_does_not_show_its_timeline_can_be_used(server: PostgresServer) -> None:
    """As on some managed services."""
    hidden = ("pg_control_system()", "pg_walfile_name(pg_lsn)")
    connection = await asyncpg.connect(server.url)
    await connection.execute("CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE postgres TO tenant")
    for shows in (True, False):
        if not shows:
            await connection.execute(f"REVOKE EXECUTE ON FUNCTION {', '.join(hidden)} FROM PUBLIC")
        database = PostgresDatabase(as_user(server, "tenant"), f"tenant_{shows}".lower(), era_file=EraFile())
        await database.open(create=True)
        assert await database.value("visits_given") == 0
        assert database.guard is not None and database.guard.era is not None
        system, timeline = database.guard.era.server
        assert (bool(system), timeline) == ((True, 1) if shows else (False, 0))
        await database.close()
    await connection.execute(f"GRANT EXECUTE ON FUNCTION {', '.join(hidden)} TO PUBLIC")
    await connection.close()


async def test_the_next_host_is_used_if_one_is_down(server: PostgresServer) -> None:
    with_dead_host = server.url.replace("@", "@127.0.0.1:1,") + "?target_session_attrs=read-write"
    async with watchful(with_dead_host) as (frontier, news):
        await frontier.add([url("http://a.test/1")])
        assert news == []
    assert "no PostgreSQL can be reached" in await refusal(server.url.partition("@")[0] + "@127.0.0.1:1,127.0.0.1:2/x")


async def refusal(database_url: str, *, schema: str = SCHEMA) -> str:
    """Return the sentence with which a database is refused, by open() and by holds_schema()."""
    said = []
    for opening in (_open, _look):
        with pytest.raises(UsageError) as caught:
            await opening(PostgresDatabase(database_url, schema))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert said[0] and "\n" not in said[0]
    return said[0]


async def _open(database: PostgresDatabase) -> None:
    try:
        await database.open(create=True)
    finally:
        await database.close()


async def _look(database: PostgresDatabase) -> None:
    await database.holds_schema()


def as_user(server: PostgresServer, user: str) -> str:
    return server.url.replace("rove@", f"{user}@")


async def test_a_wrong_password(server: PostgresServer) -> None:
    said = await refusal(as_user(server, "locked:wr0ng-w0rd"))
    assert "refused the login" in said and "password" in said
    assert "wr0ng-w0rd" not in said and "locked:***@" in said


async def test_a_missing_password(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert "password" in await refusal(as_user(server, "locked"))


async def test_an_unknown_user(server: PostgresServer) -> None:
    assert "refused the login" in await refusal(as_user(server, "nobody_here"))


async def test_an_unknown_host(server: PostgresServer) -> None:
    said = await refusal(f"postgresql://rove:{PASSWORD}@no-such-host.invalid/postgres")
    assert "is unknown" in said and PASSWORD not in said


async def test_a_port_without_a_server(server: PostgresServer) -> None:
    said = await refusal(f"postgresql://rove:{PASSWORD}@127.0.0.1:1/postgres")
    assert "no PostgreSQL can be reached" in said and PASSWORD not in said


async def test_a_missing_database(server: PostgresServer) -> None:
    said = await refusal(with_database(as_user(server, f"rove:{PASSWORD}"), "nothing"))
    assert "there is no database 'nothing'" in said and "createdb" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        f"mysql://rove:{PASSWORD}@127.0.0.1/postgres",
        f"postgresql://rove:{PASSWORD}@127.0.0.1:port/postgres",
        f"postgresql://rove:{PASSWORD}@[::1/postgres",
        f"host=127.0.0.1 user=rove password={PASSWORD}",
        f"postgresql://rove:a/{PASSWORD}@127.0.0.1/postgres",
    ],
)
async def test_text_that_is_no_url(text: str) -> None:
    said = await refusal(text)
    assert "is not the URL of a PostgreSQL" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://rove@127.0.0.1:1/postgres?password={PASSWORD}",
        f"postgresql://127.0.0.1:1/postgres?user=rove&password={PASSWORD}&sslmode=disable",
        f"postgresql://rove:a#{PASSWORD}@127.0.0.1:1/postgres",
        f"postgresql://rove:a?{PASSWORD}@127.0.0.1:1/postgres",
        f"postgresql://rove:a@{PASSWORD}@127.0.0.1:1/postgres",
    ],
)
async def test_a_password_is_never_shown(text: str) -> None:
    """Wherever it stands in the URL, and even if its characters are not escaped properly."""
    assert PASSWORD not in await refusal(text)


async def test_a_user_who_may_not_create_a_schema(server: PostgresServer) -> None:
    with pytest.raises(UsageError) as caught:
        await _open(PostgresDatabase(as_user(server, "guest"), "nobodys"))
    assert "may not create or use the schema 'nobodys'" in str(caught.value)
    assert 'GRANT CREATE ON DATABASE "postgres"' in str(caught.value)


async def test_a_user_who_may_not_use_the_schema(server: PostgresServer) -> None:
    await _drop(server)
    owner = PostgresDatabase(server.url, SCHEMA)
    await owner.open(create=True)
    await owner.close()
    for create in (False, True):
        guest = PostgresDatabase(as_user(server, "guest"), SCHEMA)
        with pytest.raises(UsageError) as caught:
            await guest.open(create=create)
        assert f"may not create or use the schema {SCHEMA!r}" in str(caught.value)


async def test_a_crawl_that_is_not_there(server: PostgresServer) -> None:
    database = PostgresDatabase(server.url, "absent")
    with pytest.raises(UsageError, match="there is no crawl in the schema 'absent'"):
        await database.open()
    assert not await database.holds_schema()


async def test_a_crawl_of_a_newer_version(server: PostgresServer) -> None:
    await _drop(server)
    database = PostgresDatabase(server.url, SCHEMA)
    await database.open(create=True)
    await raw(database, "INSERT INTO migration VALUES (1000, 'other')")
    await database.close()
    with pytest.raises(UsageError, match="newer rove"):
        await PostgresDatabase(server.url, SCHEMA).open(create=True)


async def test_a_connection_that_is_held_for_long_is_logged_once(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    await _drop(server)
    database = PostgresDatabase(server.url, SCHEMA, held_seconds=0.1)
    await database.open(create=True)
    try:
        with caplog.at_level(logging.WARNING):
            await database.run("be quick", _ask)
            for _ in range(2):
                await database.transaction("dawdle", _hold_on)
    finally:
        await database.close()
    (record,) = [r for r in caplog.records if "has been held" in r.getMessage()]
    said = record.getMessage()
    assert "to dawdle, in query pages" in said
    assert "_hold_on" in said and "await _sleep_in()" in said, "it says where"


async def _ask(session: Session) -> Any:
    return await session.value("pages")


async def _hold_on(session: Session) -> None:
    await session.value("pages")
    await _sleep_in()


async def _sleep_in() -> None:
    await asyncio.sleep(0.25)


async def test_an_error_of_our_own_is_not_waited_out(server: PostgresServer) -> None:
    await _drop(server)
    database = PostgresDatabase(server.url, SCHEMA)
    await database.open(create=True)
    news: list[str] = []
    database.on_news = news.append

    async def wrong(session: Session) -> None:
        await session.connection.execute("SELECT 1 / 0")

    try:
        with pytest.raises(FrontierError, match="division by zero"):
            async with asyncio.timeout(5):
                await database.run("divide", wrong)
    finally:
        await database.close()
    assert news == [] and database.outages == 0
