"""Takes a stopped crawl from SQLite to PostgreSQL.

The tables are copied in slices, in the order of their keys; each slice and the bookmark that says how far the move has
come are one transaction, so that it can be killed at any moment and goes on where it was. The settings come last, with
the mark that the move is finished: until then nobody finds a crawl there.

Times are moments, not durations: each is carried over from one clock to the other, so that a delay ends when it would
have ended, however long the move takes.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from rove.errors import FrontierError, UsageError
from rove.frontier.clock import CrawlClock
from rove.frontier.contract import Node
from rove.frontier.dsn import redacted
from rove.frontier.postgres.database import CONNECT_SECONDS, PostgresDatabase
from rove.frontier.postgres.errors import DRIVER_ERRORS
from rove.frontier.postgres.session import Session
from rove.frontier.priority import RETRIED
from rove.frontier.rows.requests import REQUEST_COLUMNS
from rove.frontier.sanitize import UNSTORABLE
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.urls import UrlState

SLICE = 20_000
ORIGINS_PER_SLICE = 500
"""A robots.txt may be long."""
SAY_SECONDS = 2.0
SEQUENCES = {"visits": "visit_number", "adds": "add_number"}
"""The counters of SQLite that are sequences in PostgreSQL."""

Key = list[int | str]
"""Where a slice ends; a text is in hexadecimal, as it is in the file: it may hold what PostgreSQL cannot."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a move has brought over."""

    rows: Mapping[str, int]
    """By table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """One table: where each column of PostgreSQL comes from."""

    name: str
    key: tuple[str, ...]
    has_text_key: bool = False
    """The last column of the key is a text."""
    columns: Mapping[str, str]
    flags: tuple[str, ...] = ()
    """Columns that are truth values."""
    where: str = "true"
    sums: Mapping[str, str] | None = None
    """What is compared at the end besides the number of rows."""
    title: str = ""
    """What people call its rows."""
    total: tuple[str, ...] = ()
    """The counters that add up to its rows."""

    @property
    def slice(self) -> int:
        """How many rows are taken at a time."""
        holds_texts = self.name in ("origin", "robots_text")
        return min(SLICE, ORIGINS_PER_SLICE) if holds_texts else SLICE

    @property
    def target(self) -> list[str]:
        """The columns in PostgreSQL, in the order of a record."""
        return [*self.columns, *self.flags]

    def query(self, *, is_first: bool) -> str:
        """A slice in SQLite: the key of each row, then the columns."""
        last = self.key[-1]
        keys = [*self.key[:-1], f"hex({last})" if self.has_text_key else last]
        bounds = [f":key{i}" for i in range(len(self.key))]
        if self.has_text_key:
            bounds[-1] = f"CAST({bounds[-1]} AS TEXT)"
        after = "" if is_first else f"AND ({', '.join(self.key)}) > ({', '.join(bounds)})"
        return (
            f"SELECT {', '.join([*keys, *self.columns.values(), *self.flags])} FROM {self.name} "
            f"WHERE {self.where} {after} ORDER BY {', '.join(self.key)} LIMIT :limit"
        )

    @property
    def count_query(self) -> str:
        """The number of rows and the sums; in both databases."""
        sums = [f"coalesce(sum({sum}), 0)" for sum in (self.sums or {}).values()]
        return f"SELECT {', '.join(['count(*)', *sums])} FROM {self.name} WHERE {self.where}"


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_CHANGED = frozenset({"truncated", "is_copy", "began", "ended"})
"""Columns of a request that are not the same on both sides."""

_ALL_TABLES = (
    _Table(
        name="domain",
        key=("id",),
        columns={
            **_same("id", "name", "crawl_delay", "pending", "token", "owner", "unsettled"),
            **_same("pages", "pages_epoch", "backoff", "failures", "repeats"),
            "ready_at": "ready_at + :shift",
            "not_before": "not_before + :shift",
        },
        flags=("failing", "capped", "excluded"),
        sums={"pending": "pending"},
        title="domains",
        total=("domains.total",),
    ),
    _Table(
        name="url",
        key=("domain", "fingerprint"),
        columns={
            **_same("domain", "fingerprint", "visit", "priority", "depth", "hops", "attempts"),
            **_same("state", "url", "reason", "sitemap_of"),
            "position": f"position + CASE WHEN priority >= {RETRIED} THEN :shift ELSE 0 END",
        },
        flags=("assume_https",),
        sums={
            state.name.lower(): f"CASE WHEN state = {state.value} THEN 1 ELSE 0 END"
            for state in UrlState
        },
        title="urls",
        total=tuple(f"urls.{state.name.lower()}" for state in UrlState),
    ),
    _Table(
        name="origin",
        key=("domain", "origin"),
        has_text_key=True,
        columns={
            **_same("domain", "origin", "status", "body", "crawl_delay", "failures"),
            **_same("source", "etag", "last_modified"),
            "expires_at": "expires_at + :shift",
            "fetched_at": "fetched_at + :shift",
        },
        title="robots.txt records",
    ),
    _Table(
        name="request",
        key=("visit", "seq"),
        columns={
            **_same(*(name for name in REQUEST_COLUMNS if name not in _CHANGED)),
            "machine": ":machine",
            "began": "began + :shift",
            "ended": "ended + :shift",
        },
        flags=("truncated", "is_copy"),
        title="requests",
        total=("requests",),
    ),
    _Table(
        name="content",
        key=("hash",),
        columns={
            **_same("hash", "checked", "domain", "visit", "file", "offset", "length"),
            "machine": ":machine",
        },
        title="texts",
    ),
    _Table(
        name="robots_text",
        key=("hash",),
        columns=_same("hash", "body"),
        title="copies of robots.txt",
    ),
    _Table(
        name="exclusion",
        key=("id",),
        columns={
            **_same("id", "pattern", "wall", "who", "reason", "lifted_wall", "lifted_by"),
            "at": "CASE WHEN at = 0 THEN 0 ELSE at + :shift END",
            "lifted_at": "lifted_at + :shift",
        },
        title="exclusions",
    ),
    _Table(
        name="seed_source",
        key=("id",),
        columns={
            **_same("id", "path", "name", "offset", "lines", "good", "bad"),
            "machine": ":machine",
        },
        flags=("finished",),
        title="seed files",
    ),
    _Table(
        name="run",
        key=("id",),
        columns={**_same("id", "wall"), "started": "started + :shift"},
        title="runs",
    ),
    _Table(
        name="process",
        key=("id",),
        columns={
            **_same("id", "run", "pid", "pages", "pages_per_s", "in_flight"),
            "machine": ":machine",
            "started": "started + :shift",
            "seen": "seen + :shift",
        },
        flags=("has_left",),
        title="processes",
    ),
    _Table(
        name="counter",
        key=("name",),
        has_text_key=True,
        columns={**_same("name", "value"), "slot": "0"},
        where="name NOT IN ('visits', 'adds')",
        title="counters",
    ),
)
_TABLES = {table.name: table for table in _ALL_TABLES}
_FOLLOWING = dict(zip(_TABLES, [*list(_TABLES)[1:], ""], strict=True))

_HOLDS_ROWS = " OR ".join(f"EXISTS (SELECT FROM {name})" for name in _TABLES)
_ADOPT = (
    "UPDATE machine SET key = $2, host = $3, path = $4 WHERE id = $1 "
    "AND NOT EXISTS (SELECT FROM machine AS other WHERE other.key = $2 AND other.id <> $1)"
)
_STATE = (
    "SELECT value FROM meta WHERE key = 'settings'",
    "SELECT name, value FROM counter ORDER BY name",
    "SELECT count(*), count(lifted_at) FROM exclusion",
    "SELECT * FROM seed_source ORDER BY id",
    "SELECT count(*) FROM run",
    "SELECT max(id), max(seen) FROM process",
)
"""What is other after a crawl has gone on, all of it small."""


class _Bookmark(msgspec.Struct, frozen=True, kw_only=True):
    """How far a move has come, as the target keeps it."""

    id: str
    """Which SQLite file it is from."""
    state: str
    """What that was like."""
    machine: int
    """The row of its data directory."""
    table: str
    """The table under way, '' when all are there."""
    after: Key | None = None
    """The last row of it that is there."""
    rows: dict[str, int]
    finished: bool = False

    @property
    def text(self) -> str:
        return _encode(self).decode()


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some rows of a table, as PostgreSQL is to have them."""

    records: list[tuple[Any, ...]]
    last: Key | None
    is_end: bool


class _Source:
    """The SQLite file, read in the thread of its database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = SqliteDatabase(path)
        self._connection: sqlite3.Connection | None = None
        self.id = ""
        self.settings = ""
        self.counters: dict[str, int] = {}
        self.state = ""

    async def open(self) -> None:
        """Open it and give it a name that stays."""
        if not self._path.exists():
            raise UsageError(f"{self._path.parent} holds no crawl that could be moved")
        await self._database.open(create=True)
        await self._database.run(self._open)

    async def close(self) -> None:
        if self._connection is not None:
            await self._database.run(self._connection.close)
        await self._database.close()

    async def read(self, table: _Table, after: Key | None, values: Mapping[str, int]) -> _Slice:
        """The rows behind a key, as many as a slice has."""
        return await self._database.run(lambda: self._read(table, after, values))

    async def count(self, table: _Table) -> list[int]:
        """The number of rows and the sums of a table."""
        rows = await self._database.run(lambda: self._rows(table.count_query))
        return list(rows[0])

    def _open(self) -> None:
        self._connection = sqlite3.connect(self._path, check_same_thread=False)
        self._connection.text_factory = _text
        self._connection.execute("PRAGMA query_only = ON")
        settings = self._rows("SELECT value FROM meta WHERE key = 'settings'")
        if not settings:
            raise UsageError(f"{self._path.parent} holds no crawl that could be moved")
        self.settings = settings[0][0]
        self.counters = dict(self._rows("SELECT name, value FROM counter"))
        state = [self._rows(query) for query in _STATE]
        self.state = hashlib.blake2b(_encode(state), digest_size=16).hexdigest()
        self.clock: CrawlClock = self._database.clock()
        known = self._database.get_meta("move_id")
        self.id = known or secrets.token_hex(16)
        if known is None:
            with self._database.transaction():
                self._database.execute("set_meta", key="move_id", value=self.id)

    def _read(self, table: _Table, after: Key | None, values: Mapping[str, int]) -> _Slice:
        parameters: dict[str, Any] = {**values, "limit": table.slice}
        for number, part in enumerate(after or []):
            parameters[f"key{number}"] = bytes.fromhex(part) if isinstance(part, str) else part
        rows = self._rows(table.query(is_first=after is None), parameters)
        start = len(table.key)
        flags = start + len(table.columns)
        return _Slice(
            records=[(*row[start:flags], *map(bool, row[flags:])) for row in rows],
            last=list(rows[-1][:start]) if rows else after,
            is_end=len(rows) < table.slice,
        )

    def _rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        assert self._connection is not None, "the source is not open"
        return self._connection.execute(query, parameters or {}).fetchall()


class _Move:
    """One start of a move."""

    def __init__(
        self, source: _Source, database: PostgresDatabase, machine: Node, say: Callable[[str], None]
    ) -> None:
        self._source = source
        self._database = database
        self._machine = machine
        self._say = say
        self._place = f"the crawl {database.schema!r} at {redacted(database.url)}"
        self._next_word = time.monotonic() + SAY_SECONDS
        self._values: dict[str, int] = {}

    async def run(self) -> Moved:
        """Do what is left to do."""
        self._bookmark = await self._database.transaction("begin to move", self._begin)
        if not self._bookmark.finished:
            self._values = {"shift": await self._shift(), "machine": self._bookmark.machine}
            while self._bookmark.table:
                await self._copy(_TABLES[self._bookmark.table])
            await self._finish()
        return Moved(rows=self._bookmark.rows)

    # The beginning

    async def _begin(self, session: Session) -> _Bookmark:
        """The bookmark to go on from, once it is certain that nothing else is there."""
        await session.connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"rove {self._database.schema}"
        )
        found = _decoded(await session.value("get_meta", key="move"))
        has_settings = await session.value("get_meta", key="settings") is not None
        if found is None or found.id != self._source.id:
            await self._refuse_what_is_there(session, found, has_settings)
            return await self._start(session)
        if found.finished and found.state != self._source.state:
            raise UsageError(
                f"{self._place} is an earlier copy of this crawl, which has gone on here since; "
                "choose another --crawl-name"
            )
        if has_settings and not found.finished:
            raise UsageError(f"{self._place} was begun before this crawl had been moved there")
        if found.state != self._source.state:
            self._say("the crawl has gone on since its move was interrupted; all of it is moved")
            await session.connection.execute(f"TRUNCATE {', '.join(_TABLES)}")
            return await self._start(session)
        await self._adopt(session, found)
        return found

    async def _refuse_what_is_there(
        self, session: Session, found: _Bookmark | None, has_settings: bool
    ) -> None:
        if found is not None and not found.finished:
            raise UsageError(
                f"{self._place} is an unfinished move of another crawl; choose another --crawl-name"
            )
        if has_settings or await session.connection.fetchval(f"SELECT {_HOLDS_ROWS}"):
            raise UsageError(
                f"{self._place} is there already; choose another --crawl-name for this one"
            )

    async def _start(self, session: Session) -> _Bookmark:
        machine = self._machine
        bookmark = _Bookmark(
            id=self._source.id,
            state=self._source.state,
            machine=await session.value(
                "this_machine", key=machine.key, host=machine.host, path=machine.path
            ),
            table=next(iter(_TABLES)),
            rows={},
        )
        await session.fetch("set_meta", key="move", value=bookmark.text)
        return bookmark

    async def _adopt(self, session: Session, found: _Bookmark) -> None:
        """The data directory may have been given another name since: what was moved is still its own."""
        machine = self._machine
        if not found.finished:
            await session.connection.execute(
                "DELETE FROM machine WHERE key = $1 AND id <> $2", machine.key, found.machine
            )
        await session.connection.execute(
            _ADOPT, found.machine, machine.key, machine.host, machine.path
        )

    async def _shift(self) -> int:
        """What the clock there is ahead of the one here, in milliseconds; rather too much than too little."""

        async def work(session: Session) -> int:
            here = self._source.clock()
            there = await session.connection.fetchval("SELECT clock_ms()")
            return int(there) - here + 1  # both are rounded down

        return await self._database.run("compare the clocks", work)

    # The rows

    async def _copy(self, table: _Table) -> None:
        """Bring over what is left of a table; the next slice is read while one is written."""
        ahead = self._read(table, self._bookmark.after)
        try:
            is_end = False
            while not is_end:
                part = await ahead
                is_end = part.is_end
                if not is_end:
                    ahead = self._read(table, part.last)
                await self._write(table, part)
                self._tell(table)
        finally:
            ahead.cancel()

    def _read(self, table: _Table, after: Key | None) -> asyncio.Task[_Slice]:
        return asyncio.create_task(self._source.read(table, after, self._values))

    async def _write(self, table: _Table, part: _Slice) -> None:
        rows = self._bookmark.rows
        following = msgspec.structs.replace(
            self._bookmark,
            table=_FOLLOWING[table.name] if part.is_end else table.name,
            after=None if part.is_end else part.last,
            rows={**rows, table.name: rows.get(table.name, 0) + len(part.records)},
        )

        async def work(session: Session) -> None:
            if await self._turn(session, following) and part.records:
                await _copy_records(session, table, part.records)

        await self._database.transaction(f"move rows of {table.name}", work)
        self._bookmark = following

    async def _turn(self, session: Session, following: _Bookmark) -> bool:
        """Move the bookmark on; False: an attempt whose answer was lost has done this already."""
        done = await session.connection.execute(
            "UPDATE meta SET value = $2 WHERE key = 'move' AND value = $1",
            self._bookmark.text,
            following.text,
        )
        if done == "UPDATE 1":
            return True
        if await session.value("get_meta", key="move") == following.text:
            return False
        raise FrontierError(f"somebody else is moving a crawl to {self._place}; it is left to them")

    def _tell(self, table: _Table) -> None:
        now = time.monotonic()
        if now < self._next_word:
            return
        self._next_word = now + SAY_SECONDS
        done = self._bookmark.rows[table.name]
        total = sum(self._source.counters.get(name, 0) for name in table.total)
        of = f" of {total:,}" if table.total else ""
        self._say(f"{table.title}: {done:,}{of}")

    # The end

    async def _finish(self) -> None:
        """Compare, and only then let it be a crawl."""
        self._say("comparing what is here with what is there")
        rows = await self._compare()
        following = msgspec.structs.replace(self._bookmark, rows=rows, finished=True)

        async def work(session: Session) -> None:
            if await self._turn(session, following):
                await session.fetch("set_meta", key="settings", value=self._source.settings)
                await session.fetch("revise")

        await self._database.transaction("finish the move", work)
        self._bookmark = following

    async def _compare(self) -> dict[str, int]:
        """The number of rows of each table, the same on both sides."""
        connection = None
        try:
            # A connection of its own: it may scan whole tables, and take its time.
            connection = await asyncpg.connect(
                self._database.url,
                timeout=CONNECT_SECONDS,
                server_settings={
                    "application_name": "rove",
                    "search_path": f'"{self._database.schema}"',
                },
            )
            rows, differences = {}, []
            for table in _ALL_TABLES:
                here = await self._source.count(table)
                there = [int(value) for value in await connection.fetchrow(table.count_query)]
                rows[table.name] = here[0]
                differences += _differences(table, here, there)
            if differences:
                raise FrontierError(
                    f"{self._place} is not the same as the crawl here, which stays as it is "
                    f"({'; '.join(differences)}); drop that schema and move again"
                )
            await self._advance_numbers(connection)
            await connection.execute(f"ANALYZE {', '.join(_TABLES)}")
            return rows
        except DRIVER_ERRORS as error:
            raise FrontierError(
                f"the database at {redacted(self._database.url)} failed: {error}; "
                "the same command goes on where it was"
            ) from error
        finally:
            if connection is not None:
                connection.terminate()

    async def _advance_numbers(self, connection: Any) -> None:
        """Numbers given from now on lie beyond those that were given here."""
        for counter, sequence in SEQUENCES.items():
            if self._source.counters.get(counter):
                last = self._source.counters[counter]
                await connection.execute(f"SELECT setval('{sequence}', $1)", last)
        for name in ("run", "process", "seed_source", "exclusion"):
            await connection.execute(
                f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}"
            )


async def move(
    source: Path, url: str, schema: str, machine: Node, *, say: Callable[[str], None]
) -> Moved:
    """Bring the crawl in a SQLite file, to which nobody writes, into a schema; go on where an earlier start ended.

    A move that is finished is left as it is. `machine` is the data directory of the file.
    """
    crawl = _Source(source)
    database = PostgresDatabase(url, schema, connections=1)
    database.on_news = say
    try:
        await crawl.open()
        await database.open(create=True)
        return await _Move(crawl, database, machine, say).run()
    finally:
        await database.close()
        await crawl.close()


async def is_moving(database: PostgresDatabase) -> bool:
    """Whether a move into this schema has begun and not come to its end."""
    kept = await database.run(
        "see whether it is being moved", lambda session: session.value("get_meta", key="move")
    )
    found = _decoded(kept)
    return found is not None and not found.finished


def _decoded(kept: str | None) -> _Bookmark | None:
    return None if kept is None else msgspec.json.decode(kept, type=_Bookmark)


async def _copy_records(session: Session, table: _Table, records: list[tuple[Any, ...]]) -> None:
    try:
        await session.connection.copy_records_to_table(
            table.name, records=records, columns=table.target
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise FrontierError(f"a row of {table.name} does not fit PostgreSQL: {error}") from error


def _differences(table: _Table, here: list[int], there: list[int]) -> list[str]:
    titles = [table.title, *(f"{table.title} {name}" for name in table.sums or {})]
    compared = zip(titles, here, there, strict=True)
    return [f"{title}: {a:,} here, {b:,} there" for title, a, b in compared if a != b]


def _text(data: bytes) -> str:
    """A text of SQLite without what PostgreSQL cannot store: NUL, halves of surrogate pairs, what is no text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        try:
            text = data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace").replace("\0", "\ufffd")
        return text.translate(UNSTORABLE)
    return text.replace("\0", "\ufffd") if "\0" in text else text
