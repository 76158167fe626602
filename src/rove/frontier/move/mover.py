"""Runs a move: start or resume, copy the tables, compare, finish."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rove.errors import FrontierError
from rove.frontier.dsn import redacted
from rove.frontier.move.bookmark import Bookmark, read_bookmark
from rove.frontier.move.compare import complete
from rove.frontier.move.source import Slice, Source
from rove.frontier.move.start import start_or_resume
from rove.frontier.move.tables import TABLES, Key, Table, table_after
from rove.frontier.move.target import copy_rows, fetch, read_columns
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.era_guard import read_server
from rove.frontier.postgres.session import Session
from rove.frontier.records import Node

SLICE_ROWS = 20_000
PROGRESS_SECONDS = 2.0


async def move(
    path: Path,
    url: str,
    schema: str,
    node: Node,
    *,
    say: Callable[[str], None],
    slice_rows: int = SLICE_ROWS,
    progress_seconds: float = PROGRESS_SECONDS,
) -> dict[str, int]:
    """Copy the crawl in a SQLite file, which no process may be using, into a schema of PostgreSQL.

    Resumes a move that was interrupted, and leaves a finished one as it is. `node` is the data directory of the file.
    Returns the number of rows by what people call them: domains, URLs …
    """
    source = Source(path)
    database = PostgresDatabase(url, schema, connections=1, on_news=say, node=node.name)
    try:
        await source.open()
        await database.open(create=True)
        mover = Mover(source, database, node, say, slice_rows=slice_rows, progress_seconds=progress_seconds)
        return await mover.run()
    finally:
        await database.close()
        await source.close()


class Mover:
    """One start of a move, between two open databases."""

    _bookmark: Bookmark
    _shift: int
    _columns: dict[str, dict[str, bool]]

    def __init__(
        self,
        source: Source,
        database: PostgresDatabase,
        node: Node,
        say: Callable[[str], None],
        *,
        slice_rows: int = SLICE_ROWS,
        progress_seconds: float = PROGRESS_SECONDS,
    ) -> None:
        self._source = source
        self._database = database
        self._node = node
        self._say = say
        self._slice_rows = slice_rows
        self._progress_seconds = progress_seconds
        self._next_progress = time.monotonic() + progress_seconds
        self._target = f"the crawl {database.schema!r} at {redacted(database.url)}"

    async def run(self) -> dict[str, int]:
        """Copy everything that is not copied yet; return the number of rows by title."""
        self._bookmark = await self._database.transaction("begin to move", self._begin)
        if not self._bookmark.finished:
            await self._database.run("compare the clocks", self._prepare)
            tables = {table.name: table for table in TABLES}
            while self._bookmark.table:
                await self._copy(tables[self._bookmark.table])
            await self._finish()
        return {table.title: self._bookmark.rows[table.name] for table in TABLES}

    async def _begin(self, session: Session) -> Bookmark:
        await fetch(session.connection, "lock_schema", name=f"rove {self._database.schema}")
        return await start_or_resume(session, self._source, self._node, self._target, self._say)

    async def _prepare(self, session: Session) -> None:
        self._columns = await read_columns(session.connection)
        here = self._source.clock()
        there = (await fetch(session.connection, "clock"))[0][0]
        # One more, because both clocks are truncated and a delay must not end early.
        self._shift = there - here + 1

    async def _copy(self, table: Table) -> None:
        """Copy the rest of a table; the next slice is read while one is written."""
        next_part = self._read(table, self._bookmark.after)
        try:
            is_end = False
            while not is_end:
                part = await next_part
                is_end = part.is_end
                if not is_end:
                    next_part = self._read(table, part.last)
                await self._write(table, part)
                self._report(table)
        finally:
            next_part.cancel()

    def _read(self, table: Table, after: Key | None) -> asyncio.Task[Slice]:
        size = table.slice_size(self._slice_rows)
        machine = self._bookmark.machine
        return asyncio.create_task(self._source.read(table, after, size, shift=self._shift, machine=machine))

    async def _write(self, table: Table, part: Slice) -> None:
        rows = self._bookmark.rows
        following = msgspec.structs.replace(
            self._bookmark,
            table=table_after(table) if part.is_end else table.name,
            after=None if part.is_end else part.last,
            rows={**rows, table.name: rows.get(table.name, 0) + len(part.rows)},
        )

        async def work(session: Session) -> None:
            if await self._advance(session, following) and part.rows:
                await copy_rows(session.connection, table.name, self._columns[table.name], part)

        await self._database.transaction(f"move rows of {table.name}", work)
        self._bookmark = following

    async def _advance(self, session: Session, following: Bookmark) -> bool:
        """Advance the bookmark; False if an attempt that lost its connection has already done so."""
        old, new = self._bookmark.text, following.text
        if await fetch(session.connection, "advance_bookmark", old=old, new=new):
            return True
        if await read_bookmark(session) == following:
            return False
        raise FrontierError(f"another process is moving a crawl to {self._target}; let it finish, then run this again")

    def _report(self, table: Table) -> None:
        now = time.monotonic()
        if now < self._next_progress:
            return
        self._next_progress = now + self._progress_seconds
        done = self._bookmark.rows[table.name]
        total = sum(self._source.counters.get(name, 0) for name in table.counters)
        of = f" of {total:,}" if table.counters else ""
        self._say(f"{table.title}: {done:,}{of}")

    async def _finish(self) -> None:
        """Compare both sides, then write the settings, which make the copy a crawl."""
        self._say("comparing the copy with the crawl")
        rows = await complete(self._source, self._database)
        following = msgspec.structs.replace(self._bookmark, rows=rows, finished=True)

        async def work(session: Session) -> None:
            if await self._advance(session, following):
                await session.fetch("set_meta", key="secret", value=self._source.secret)
                await session.fetch("set_meta", key="settings", value=self._source.settings)
                await self._continue_eras(session)
                await session.fetch("revise")

        await self._database.transaction("finish the move", work)
        self._bookmark = following

    async def _continue_eras(self, session: Session) -> None:
        """Let the data directory recognise its crawl in the new database, and let domains that rest go on resting."""
        if self._source.era is None:
            return
        system, timeline = await read_server(session)
        ids = [self._source.era] + [secrets.token_hex(8) for _ in self._source.rests]
        rests = [None] + [time + self._shift for time in self._source.rests]
        for id, rest_from in zip(ids, rests, strict=True):
            await fetch(
                session.connection, "continue_era", id=id, system=system, timeline=timeline, rest_from=rest_from
            )
