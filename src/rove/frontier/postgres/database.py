"""The frontier's PostgreSQL: a handful of connections, named queries, and what happens when the server goes away.

Work is given as a coroutine that gets a session. When the server is lost, restarts or refuses, the work waits with
growing pauses and is then done again from its beginning: everything that a frontier does may be repeated. Only when a
crawl is to stop (`stop_waiting`) is a lost server an error.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from rove.errors import FrontierError, UsageError
from rove.frontier.dsn import redacted
from rove.frontier.postgres.arrays import array_text, with_arrays_as_text
from rove.frontier.postgres.errors import DRIVER_ERRORS, is_lost, open_error
from rove.frontier.postgres.held_connections import HeldWatch
from rove.frontier.queries import load_migrations, load_numbered_queries
from rove.frontier.timing import Timings

CONNECTIONS = 4
"""Of one process, whatever its concurrency: one claims, one writes, two serve the visits."""
CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 60.0
"""After so long without an answer the server is taken to be lost."""
TIMINGS_SECONDS = 600.0
"""How often it goes into the log how long queries take, and connections are held."""
MOMENT = 0.1
"""Before work that failed is done again, where the server is there: it may fail again."""
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
OLDEST_SERVER = 14
SESSION_SETTINGS = {
    "application_name": "rove",
    "jit": "off",
    # Every statement of ours is served by an index. The planner may not find that out by statistics, which a table
    # that has just been filled does not have: one plan a statement, no scan and no hash of a table.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # A client that hangs in a transaction must not keep its locks.
    "idle_in_transaction_session_timeout": "60s",
}
QUERIES = {
    name: with_arrays_as_text(query) for name, query in load_numbered_queries("postgres").items()
}

log = logging.getLogger(__name__)

T = TypeVar("T")


class WasLost(Exception):
    """The server was away and is back; whether the work was done nobody knows."""


class Session:
    """A connection that work holds for a while."""

    def __init__(self, connection: Any, timings: Timings) -> None:
        self.connection = connection
        self._timings = timings
        self.query = ""
        """What is under way, or was last."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Run a named query to its end."""
        self.query = query
        known = QUERIES[query]
        given = [
            array_text(parameters[name]) if name in known.as_text else parameters[name]
            for name in known.parameters
        ]
        started = time.perf_counter()
        try:
            rows: list[Any] = await self.connection.fetch(known.text, *given)
        finally:
            self._timings.add(f"query {query}", time.perf_counter() - started)
        return rows

    async def value(self, query: str, /, **parameters: Any) -> Any:
        """The first column of the first row, None where there is none."""
        rows = await self.fetch(query, **parameters)
        return rows[0][0] if rows else None


class Database:
    """The connections of one process to one crawl."""

    def __init__(self, url: str, schema: str, *, connections: int = CONNECTIONS) -> None:
        self.url = url
        self.schema = schema
        self.timings = Timings()
        self._logged_at = time.monotonic()
        self._connections = connections
        self._pool: asyncpg.Pool | None = None
        self._watch = HeldWatch()
        self._patience: float | None = None
        self._hurry = asyncio.Event()
        self._outage: asyncio.Task[None] | None = None
        self.outages = 0
        """How often the server was lost."""
        self.on_news: Callable[[str], None] = log.warning
        """Told, once each, when the server is lost and when it is back."""

    async def open(self, *, create: bool = False) -> None:
        """Connect, and bring the schema up to date if asked to; UsageError with the reason if that cannot be."""
        if self._pool is not None:
            return
        pool = None
        try:
            pool = await asyncpg.create_pool(
                self.url,
                min_size=0,
                max_size=self._connections,
                timeout=CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                reset=_nothing_to_reset,
                server_settings={**SESSION_SETTINGS, "search_path": f'"{self.schema}"'},
            )
            async with pool.acquire() as connection:
                _check_version(connection)
                await self._migrate(connection, create=create)
        except BaseException as error:
            if pool is not None:
                pool.terminate()
            if isinstance(error, (*DRIVER_ERRORS, ValueError)):
                raise open_error(error, self.url, self.schema) from error
            raise
        self._pool = pool

    async def holds_schema(self) -> bool:
        """Whether there is anything of this crawl in the database."""
        try:
            connection = await asyncpg.connect(self.url, timeout=CONNECT_SECONDS)
        except (*DRIVER_ERRORS, ValueError) as error:
            raise open_error(error, self.url, self.schema) from error
        try:
            _check_version(connection)
            sql = "SELECT to_regclass(format('%I.meta', $1::text)) IS NOT NULL"
            return bool(await connection.fetchval(sql, self.schema))
        finally:
            await connection.close(timeout=CONNECT_SECONDS)

    async def close(self) -> None:
        """Close all connections."""
        if self._outage is not None:
            self._outage.cancel()
        if self._pool is None:
            return
        self._log_timings()
        pool, self._pool = self._pool, None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await pool.close()
        except DRIVER_ERRORS:
            pool.terminate()

    def stop_waiting(self, seconds: float) -> None:
        """From now on a lost server is waited for no longer than this."""
        self._patience = time.monotonic() + seconds
        self._hurry.set()

    async def run(
        self, what: str, work: Callable[[Session], Awaitable[T]], *, again: bool = True
    ) -> T:
        """Do work, in a connection of its own, until it is done; or not `again`: WasLost once the server is back."""
        if time.monotonic() - self._logged_at > TIMINGS_SECONDS:
            self._log_timings()
        while True:
            try:
                async with self._held(what) as session:
                    return await work(session)
            except asyncpg.DeadlockDetectedError:
                log.warning("deadlock in %s: done again", what)
                self.timings.add("deadlock", 0.0)
            except asyncpg.LockNotAvailableError:
                self.timings.add(f"gave way to {what}", 0.0)
            except DRIVER_ERRORS as error:
                if not is_lost(error):
                    place = redacted(self.url)
                    raise FrontierError(f"the frontier at {place} failed: {error}") from error
                await self._wait_until_back(error)
                if not again:
                    raise WasLost from error

    async def transaction(
        self, what: str, work: Callable[[Session], Awaitable[T]], *, again: bool = True
    ) -> T:
        """Do work, all or nothing."""

        async def whole(session: Session) -> T:
            async with session.connection.transaction():
                return await work(session)

        return await self.run(what, whole, again=again)

    def _log_timings(self) -> None:
        self._logged_at = time.monotonic()
        for line in self.timings.lines():
            log.info("%s", line)

    @asynccontextmanager
    async def _held(self, what: str) -> AsyncIterator[Session]:
        assert self._pool is not None, "the database is not open"
        with self.timings.measured(f"wait for a connection to {what}"):
            connection = await self._pool.acquire(timeout=COMMAND_SECONDS)
        session = Session(connection, self.timings)
        try:
            with (
                self.timings.measured(f"connection held to {what}"),
                self._watch.over(what, session),
            ):
                yield session
        except BaseException as error:
            if is_lost(error):
                with suppress(asyncpg.InterfaceError):  # the pool may have noticed
                    connection.terminate()
            raise
        finally:
            await self._pool.release(connection, timeout=CONNECT_SECONDS)

    # Outages

    async def _wait_until_back(self, error: BaseException) -> None:
        """All work that the server failed waits here for one task that tries to reach it."""
        if self._outage is None or self._outage.done():
            log.debug("lost the database", exc_info=error)
            self._outage = asyncio.create_task(self._reach())
        await asyncio.shield(self._outage)

    async def _reach(self) -> None:
        assert self._pool is not None, "the database is open"
        started, pause, has_said = time.monotonic(), FIRST_PAUSE, False
        self.outages += 1
        await self._pool.expire_connections()
        while (trouble := await self._trouble()) is not None:
            if not has_said:
                has_said = True
                self.on_news(f"the database is away ({trouble}); waiting for it")
            if self._patience is not None and time.monotonic() > self._patience:
                raise FrontierError(
                    f"the database at {redacted(self.url)} is away ({trouble}); what was fetched and could "
                    "not be written will be fetched again"
                )
            await self._rest(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if not has_said:
            await asyncio.sleep(MOMENT)
        else:
            self.on_news(f"the database is back after {time.monotonic() - started:.1f} s")

    async def _rest(self, seconds: float) -> None:
        """Pause; whoever is told meanwhile to stop waiting tries once more a second."""
        if self._hurry.is_set():
            await asyncio.sleep(min(seconds, 1.0))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _trouble(self) -> str | None:
        """Why the server cannot be used, None if it can; by a new connection, as those of the pool may be dead."""
        sql = "SELECT current_setting('transaction_read_only')"
        try:
            connection = await asyncpg.connect(self.url, timeout=CONNECT_SECONDS)
            try:
                is_read_only = await connection.fetchval(sql, timeout=CONNECT_SECONDS) == "on"
            finally:
                connection.terminate()
            if is_read_only:
                return "it is read-only"
        except DRIVER_ERRORS as error:
            if not is_lost(error):
                raise FrontierError(
                    f"the frontier at {redacted(self.url)} failed: {error}"
                ) from error
            return str(error).splitlines()[0] if str(error) else type(error).__name__
        return None

    # Migrations

    async def _migrate(self, connection: Any, *, create: bool) -> None:
        """Bring the schema up to date; any number of processes may try at once."""
        migrations = load_migrations("postgres")
        newest = migrations[-1][0]
        version = await self._version(connection)
        if version < newest and create:
            async with connection.transaction():
                await connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"rove {self.schema}"
                )
                await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"')
                version = await self._version(connection)
                if version == 0:
                    await connection.execute("CREATE TABLE migration (number integer PRIMARY KEY)")
                for number, script in migrations:
                    if number > version:
                        await connection.execute(script)
                        await connection.execute("INSERT INTO migration VALUES ($1)", number)
                version = max(version, newest)
        if version > newest:
            raise UsageError(
                f"the crawl {self.schema!r} at {redacted(self.url)} was written by a newer rove (schema {version}, "
                f"this one knows {newest}); use that version or newer"
            )
        if version == 0:
            raise UsageError(f"there is no crawl {self.schema!r} at {redacted(self.url)}")
        if version < newest:
            raise UsageError(
                f"the crawl {self.schema!r} at {redacted(self.url)} is from an older rove; resume it once to update it"
            )

    async def _version(self, connection: Any) -> int:
        has_table = "SELECT to_regclass(format('%I.migration', $1::text)) IS NOT NULL"
        if not await connection.fetchval(has_table, self.schema):
            return 0
        return int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM migration"))


async def _nothing_to_reset(connection: Any) -> None:
    """Sessions leave nothing behind: no settings, no cursors, no locks beyond their transaction."""


def _check_version(connection: Any) -> None:
    version = connection.get_server_version()
    if version.major < OLDEST_SERVER:
        raise UsageError(
            f"the server is PostgreSQL {version.major}.{version.minor}; rove needs {OLDEST_SERVER} or newer"
        )
