"""Opens connections to PostgreSQL with the settings of rove. If the URL names several hosts, it finds the primary."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from rove.errors import StaleDatabase
from rove.frontier.postgres.era_guard import EraGuard, read_server
from rove.frontier.postgres.errors import DRIVER_ERRORS
from rove.frontier.postgres.session import Session
from rove.frontier.query_times import Timings
from rove.resources import activity

CONNECT_SECONDS = 10.0
SECONDS_PER_HOST = 2.0
"""Timeout where the URL names several hosts: one that is silent must not keep rove from the others."""
LONGEST_NAME = 63
"""Bytes of a name that a server keeps."""
SESSION_SETTINGS = {
    "application_name": "rove",
    "jit": "off",
    # Every statement of ours is served by an index. The planner cannot know that from statistics, which a table that
    # has just been filled does not have. So each statement gets one generic plan, without scans and hashes of tables.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # A client that hangs in a transaction must not keep its locks.
    "idle_in_transaction_session_timeout": "60s",
}


class Connector:
    """Opens the connections of one process to one crawl."""

    def __init__(self, url: str, schema: str, timings: Timings, guard: EraGuard | None, *, node: str = "") -> None:
        """`guard` looks at every connection to a database that holds the crawl. `node` names this data directory."""
        self._hosts = hosts_of(url)
        name = application_name(activity.current(), node)
        self._settings = {**SESSION_SETTINGS, "application_name": name, "search_path": f'"{schema}"'}
        self._timings = timings
        self._guard = guard
        self._schema = schema
        self._current: str | None = None
        """The URL of the host that was used last, if there are several."""
        self._is_made = False
        """The crawl's tables exist."""

    @property
    def has_several_hosts(self) -> bool:
        """Whether the URL names more than one host."""
        return len(self._hosts) > 1

    async def connect(self, *_: Any, **options: Any) -> Any:
        """Connect to the server that can be used. Takes the options of asyncpg.connect."""
        seconds = options.pop("timeout", CONNECT_SECONDS)
        if not self.has_several_hosts:
            return await self._checked(await self._connected(self._hosts[0], timeout=seconds, **options))
        options["timeout"] = min(seconds, SECONDS_PER_HOST)
        if self._current is not None:
            with suppress(*DRIVER_ERRORS, StaleDatabase):
                return await self._checked(await self._connected(self._current, **options))
            # If it comes back, another host may have been promoted before.
            self._current = None
        self._current, connection = await self._latest(options)
        return await self._checked(connection)

    async def _latest(self, options: Mapping[str, Any]) -> tuple[str, Any]:
        """Ask all hosts at once; return the one with the highest timeline, and a connection to it.

        A former primary that came back has a lower timeline than the standby that was promoted.
        """
        connections: dict[str, Any] = {}
        timelines: dict[str, int] = {}

        async def ask(url: str) -> None:
            connections[url] = await self._connected(url, **options)
            timelines[url] = await self._timeline(connections[url])

        try:
            outcomes = await asyncio.gather(*map(ask, self._hosts), return_exceptions=True)
            if not timelines:
                raise next(outcome for outcome in outcomes if outcome is not None)
            # Of several with the same timeline, the first one in the URL.
            url = max((url for url in self._hosts if url in timelines), key=timelines.__getitem__)
            return url, connections.pop(url)
        finally:
            for unused in connections.values():
                unused.terminate()

    async def _timeline(self, connection: Any) -> int:
        """Return the timeline of a primary; 0 if it is unknown or not needed."""
        session = Session(connection, self._timings)
        if self._guard is None or await session.value("is_standby"):
            return 0
        return (await read_server(session)).timeline

    async def _connected(self, url: str, **options: Any) -> Any:
        connection = await asyncpg.connect(url, server_settings=self._settings, **options)
        try:
            await Session(connection, self._timings).fetch("raise_durability")
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _checked(self, connection: Any) -> Any:
        """Return a connection to a server that may be used; raise an error if it may not."""
        session = Session(connection, self._timings)
        try:
            if self._guard is not None and await self._has_eras(session):
                await self._guard.check(session)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _has_eras(self, session: Session) -> bool:
        self._is_made = self._is_made or await session.value("has_table", schema=self._schema, name="era")
        return self._is_made


def application_name(doing: str, node: str) -> str:
    """Return the name of a connection in pg_stat_activity: what its process does, and for which data directory.

    >>> application_name("crawl, process 2", "crawler-1:/srv/rove-data"), application_name("", "")
    ('rove: crawl, process 2, crawler-1:/srv/rove-data', 'rove')
    """
    what = ", ".join(filter(None, (doing, node)))
    return f"rove: {what}".encode("ascii", "replace").decode()[:LONGEST_NAME] if what else "rove"


def hosts_of(url: str) -> list[str]:
    """Return one URL for each host of a URL.

    >>> hosts_of("postgresql://u@a:1,b/db?target_session_attrs=read-write")
    ['postgresql://u@a:1/db?target_session_attrs=read-write', 'postgresql://u@b/db?target_session_attrs=read-write']
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    user, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [url]
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]
