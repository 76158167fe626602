"""The frontier's connections to PostgreSQL, and how work survives an outage of the server.

Work is a coroutine function that takes a session. If the server is lost, restarts or refuses, the work waits with
growing pauses and is then repeated from its beginning, because everything that a frontier does may be repeated. A lost
server is an error only while a crawl shuts down (`stop_waiting`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from rove.errors import FrontierError, RoveError, StaleDatabase, UsageError
from rove.frontier.dsn import redacted
from rove.frontier.era_file import EraFile
from rove.frontier.postgres.connector import CONNECT_SECONDS, Connector
from rove.frontier.postgres.era_guard import EraGuard
from rove.frontier.postgres.errors import DRIVER_ERRORS, is_lost, open_error
from rove.frontier.postgres.held_connections import HELD_SECONDS, HeldWatch
from rove.frontier.postgres.migrate import migrate
from rove.frontier.postgres.session import Session
from rove.frontier.postgres.silence import PROBE_SECONDS, SILENT_SECONDS, STANDBY_AWAY, SilenceWatch
from rove.frontier.query_times import Timings, timing_lines
from rove.frontier.schema import Schema

CONNECTIONS = 4
"""Connections of one process, whatever its concurrency: one claims, one writes, two serve the visits."""
POOL_CONNECT_SECONDS = 5.0
"""Timeout of a connection while the crawl runs: short, because an outage is to be reported within 10 s."""
COMMAND_SECONDS = 60.0
"""Timeout of a query. After it the server counts as lost."""
RETRY_PAUSE = 0.1
"""Pause before work is repeated although the server is reachable, because it may fail again."""
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
LONGEST_PAUSE_OF_SEVERAL = 2.0
"""Where the URL names several hosts, another one takes over within seconds."""
OLDEST_SERVER = 14

log = logging.getLogger(__name__)

T = TypeVar("T")


class WasLost(Exception):
    """The server was lost and is back; whether the work was done is unknown."""


class PostgresDatabase:
    """The connections of one process to one crawl."""

    def __init__(
        self,
        url: str,
        schema: str,
        *,
        connections: int = CONNECTIONS,
        on_news: Callable[[str], None] | None = None,
        migrations: Schema | None = None,
        first_pause: float = FIRST_PAUSE,
        held_seconds: float = HELD_SECONDS,
        silent_seconds: float = SILENT_SECONDS,
        probe_seconds: float = PROBE_SECONDS,
        era_file: EraFile | None = None,
        only_reads: bool = False,
        node: str = "",
    ) -> None:
        """`on_news` is called once when the server is lost and once when it is back.

        With `era_file`, every new connection is checked: does the server have the past that the file remembers? With
        `only_reads`, nothing is written about that. `node` names this data directory to the server.
        """
        self.url = url
        self.schema = schema
        self.location = f"the schema {schema!r} of {redacted(url)}"
        self.timings = Timings()
        self._connections = connections
        self._migrations = migrations or Schema.of("postgres")
        self._pool: asyncpg.Pool | None = None
        self._watch = HeldWatch(held_seconds)
        self._first_pause = first_pause
        self._give_up_at: float | None = None
        self._hurry = asyncio.Event()
        self._outage: asyncio.Task[None] | None = None
        self.outages = 0
        """How often the server was lost."""
        self.trouble = ""
        """Why the server is away, as a sentence; '' if it is not."""
        self.waiting = ""
        """What commits wait for, if they hang."""
        self.on_news: Callable[[str], None] = on_news or log.warning
        self.guard = (
            None
            if era_file is None
            else EraGuard(schema, self.location, era_file, lambda text: self.on_news(text), only_refuses=only_reads)
        )
        self._connector = Connector(url, schema, self.timings, self.guard, node=node)
        self._probe_seconds = probe_seconds
        self._longest_pause = LONGEST_PAUSE_OF_SEVERAL if self._connector.has_several_hosts else LONGEST_PAUSE
        self._silence = SilenceWatch(self._probe, self._note_waiting, silent_seconds=silent_seconds)

    async def open(self, *, create: bool = False) -> None:
        """Connect; with `create`, create or update the schema. Raise an error that says why if that is impossible."""
        if self._pool is not None:
            return
        try:
            connection = await self._connector.connect(command_timeout=COMMAND_SECONDS)
            try:
                _check_version(connection)
                session = Session(connection, self.timings)
                await migrate(session, self.schema, self.location, self._migrations, create=create)
                if self.guard is not None and self.guard.era is None:
                    await self.guard.check(session)  # the tables were made just now
            finally:
                connection.terminate()
            self._pool = await asyncpg.create_pool(
                connect=self._connector.connect,
                min_size=0,
                max_size=self._connections,
                timeout=POOL_CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                reset=_nothing_to_reset,
            )
        except (*DRIVER_ERRORS, ValueError) as error:
            raise open_error(error, self.url, self.schema) from error

    async def holds_schema(self) -> bool:
        """Return whether the database has tables of this crawl."""
        try:
            connection = await self._connector.connect()
        except (*DRIVER_ERRORS, ValueError) as error:
            raise open_error(error, self.url, self.schema) from error
        try:
            _check_version(connection)
            session = Session(connection, self.timings)
            return bool(await session.value("has_table", schema=self.schema, name="meta"))
        finally:
            await connection.close(timeout=CONNECT_SECONDS)

    async def close(self) -> None:
        """Close all connections."""
        self._silence.close()
        if self._outage is not None:
            self._outage.cancel()
        if self._pool is None:
            return
        for line in timing_lines("query-total", self.timings.by_name):
            log.info("%s", line)
        pool, self._pool = self._pool, None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await pool.close()
        except DRIVER_ERRORS:
            pool.terminate()

    def connections(self) -> dict[str, int]:
        """Return the number of open connections by state."""
        if self._pool is None:
            return {}
        idle = self._pool.get_idle_size()
        return {"busy": self._pool.get_size() - idle, "idle": idle}

    def stop_waiting(self, seconds: float) -> None:
        """From now on, wait at most this long for a lost server."""
        self._give_up_at = time.monotonic() + seconds
        self._hurry.set()

    async def run(self, what: str, work: Callable[[Session], Awaitable[T]], *, again: bool = True) -> T:
        """Run work on a connection until it succeeds. Without `again`, raise WasLost once a lost server is back."""
        while True:
            try:
                async with self._held(what) as session:
                    return await work(session)
            except asyncpg.DeadlockDetectedError:
                log.warning("deadlock in %s; retrying", what)
                self.timings.add("deadlock", 0.0)
            except asyncpg.LockNotAvailableError:
                self.timings.add(f"gave way: {what}", 0.0)
            except (*DRIVER_ERRORS, StaleDatabase) as error:
                if not is_lost(error):
                    raise self._failure(error) from error
                await self._wait_until_back(error)
                if not again:
                    raise WasLost from error

    async def transaction(self, what: str, work: Callable[[Session], Awaitable[T]], *, again: bool = True) -> T:
        """Run work in one transaction."""

        async def whole(session: Session) -> T:
            async with session.connection.transaction():
                return await work(session)

        return await self.run(what, whole, again=again)

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of a named query."""
        return await self.run(query, lambda session: session.fetch(query, **parameters))

    async def batch(
        self, query: str, columns: Sequence[str], rows: Collection[Sequence[Any]], /, **parameters: Any
    ) -> list[Any]:
        """Run a named query over rows, one array per column."""
        return await self.run(query, lambda session: session.batch(query, columns, rows, **parameters))

    async def value(self, query: str, /, **parameters: Any) -> Any:
        """Return the first column of the first row of a named query."""
        return await self.run(query, lambda session: session.value(query, **parameters))

    def _failure(self, error: BaseException) -> RoveError:
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            return UsageError(
                f"the user of {redacted(self.url)} may not do this: {error}; use the user who owns the crawl"
            )
        return FrontierError(f"the frontier at {redacted(self.url)} failed: {error}")

    @asynccontextmanager
    async def _held(self, what: str) -> AsyncIterator[Session]:
        assert self._pool is not None, "the database is not open"
        with self.timings.measured(f"connection wait: {what}"):
            connection = await self._pool.acquire(timeout=COMMAND_SECONDS)
        session = Session(connection, self.timings)
        try:
            with (
                self.timings.measured(f"connection held: {what}"),
                self._watch.over(what, session),
                self._silence.over(session),
            ):
                yield session
        except BaseException as error:
            if is_lost(error):
                with suppress(asyncpg.InterfaceError):  # the pool may have noticed already
                    connection.terminate()
            raise
        finally:
            await self._pool.release(connection, timeout=CONNECT_SECONDS)

    # Outages

    async def _wait_until_back(self, error: BaseException) -> None:
        """Wait for the one task that tries to reach the server for all interrupted work."""
        await asyncio.shield(self._begun_outage(error, None))

    def _begun_outage(self, error: BaseException, trouble: str | None) -> asyncio.Task[None]:
        """Return the task that waits for the server. `trouble` says why the server cannot be used, if that is known."""
        if self._outage is None or self._outage.done():
            log.debug("lost the database", exc_info=error)
            self._outage = asyncio.create_task(self._reconnect(trouble))
        return self._outage

    async def _reconnect(self, trouble: str | None) -> None:
        assert self._pool is not None, "the database is open"
        started, pause = time.monotonic(), self._first_pause
        self.outages += 1
        await self._pool.expire_connections()
        trouble = trouble or await self._trouble()
        try:
            while trouble is not None:
                if not self.trouble:
                    self.trouble = f"the database is away ({trouble}); waiting for it"
                    self.on_news(self.trouble)
                if self._give_up_at is not None and time.monotonic() > self._give_up_at:
                    raise FrontierError(
                        f"the database at {redacted(self.url)} is away ({trouble}); pages that could not be "
                        "written will be fetched again"
                    )
                await self._pause(pause)
                pause = min(2 * pause, self._longest_pause)
                trouble = await self._trouble()
            if self.trouble:
                self.on_news(f"the database is back after {time.monotonic() - started:.1f} s")
            else:
                await asyncio.sleep(RETRY_PAUSE)
        finally:
            self.trouble = ""

    async def _pause(self, seconds: float) -> None:
        """Pause until stop_waiting is called; after that, pause at most a second."""
        if self._hurry.is_set():
            await asyncio.sleep(min(seconds, 1.0))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _trouble(self) -> str | None:
        """Return why the server cannot be used, None if it can.

        Uses a new connection, because those of the pool may be dead.
        """
        try:
            seconds = self._probe_seconds
            connection = await self._connector.connect(timeout=seconds, command_timeout=seconds)
            try:
                is_read_only = await Session(connection, self.timings).value("is_read_only")
            finally:
                connection.terminate()
        except (*DRIVER_ERRORS, StaleDatabase) as error:
            if not is_lost(error):
                raise self._failure(error) from error
            return _text(error)
        return "it is read-only" if is_read_only else None

    async def _probe(self, pids: list[int]) -> bool:
        """Find out why sessions get no answer: begin an outage, or return whether they wait for a standby."""
        try:
            async with asyncio.timeout(self._probe_seconds):
                connection = await self._connector.connect(timeout=self._probe_seconds)
                try:
                    waiting = await Session(connection, self.timings).fetch("waiting_commits", pids=pids)
                finally:
                    connection.terminate()
        except (*DRIVER_ERRORS, StaleDatabase) as error:
            if is_lost(error):
                # The task that fails is not awaited here, but by the work that waits for the server.
                self._begun_outage(error, _text(error)).add_done_callback(
                    lambda task: task.cancelled() or task.exception()
                )
                self._silence.disconnect()
            return False
        return bool(waiting)

    def _note_waiting(self, is_waiting: bool) -> None:
        self.waiting = STANDBY_AWAY if is_waiting else ""
        self.on_news(f"{STANDBY_AWAY}; the crawl pauses until it does" if is_waiting else "commits no longer wait")


def _text(error: BaseException) -> str:
    """Say in a few words why the server cannot be used."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


async def _nothing_to_reset(connection: Any) -> None:
    """Leave a connection as it is: work leaves no settings, cursors or locks behind."""


def _check_version(connection: Any) -> None:
    version = connection.get_server_version()
    if version.major < OLDEST_SERVER:
        raise UsageError(
            f"the server is PostgreSQL {version.major}.{version.minor}; rove needs {OLDEST_SERVER} or newer"
        )
