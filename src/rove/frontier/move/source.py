"""Reads the SQLite file that a move copies from."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rove.errors import UsageError
from rove.frontier.clock import CrawlClock
from rove.frontier.move.tables import Key, Table
from rove.frontier.priority import RETRIED
from rove.frontier.queries import load_queries
from rove.frontier.rows.records import secret_from
from rove.frontier.sanitize import storable
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.eras import read_eras

QUERIES = load_queries("move")
_STATE = ("settings", "counters", "exclusion_state", "seed_source_state", "retry_state", "run_state", "process_state")


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of a table."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    last: Key | None
    """The key of its last row."""
    is_end: bool


class Source:
    """A stopped crawl in a SQLite file."""

    id: str
    """A name for the file, which is stored in it."""
    settings: str
    secret: str
    """The meta row of the secret that the ids are keyed with."""
    era: str | None
    """What tells this crawl from others; None if it was never opened."""
    rests: list[int]
    """When its domains began to rest, because the file had lost its last transactions."""
    counters: dict[str, int]
    state: str
    """A hash that changes when the crawl goes on."""
    clock: CrawlClock

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = SqliteDatabase(path)
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the file; UsageError if it holds no crawl."""
        if not self._path.exists():
            raise self._no_crawl()
        await self._database.open(create=True)
        await self._database.run(self._open)

    async def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            await self._database.run(self._connection.close)
        await self._database.close()

    async def read(self, table: Table, after: Key | None, size: int, *, shift: int, machine: int) -> Slice:
        """Return the next `size` rows after a key, with times moved by `shift` milliseconds."""
        key = table.start if after is None else after
        parameters: dict[str, Any] = {
            f"key{number}": bytes.fromhex(part) if isinstance(part, str) else part for number, part in enumerate(key)
        }
        parameters |= {"limit": size, "shift": shift, "machine": machine, "retried": RETRIED}
        names, rows = await self._database.run(lambda: self._fetch(f"slice_{table.name}", parameters))
        width = len(key)
        return Slice(
            columns=names[width:],
            rows=[row[width:] for row in rows],
            last=list(rows[-1][:width]) if rows else after,
            is_end=len(rows) < size,
        )

    async def count(self, table: Table) -> dict[str, int]:
        """Return the number of rows and the other numbers that must be the same after the move."""
        names, rows = await self._database.run(lambda: self._fetch(f"count_{table.name}"))
        return dict(zip(names, rows[0], strict=True))

    def _open(self) -> None:
        self._connection = sqlite3.connect(self._path, check_same_thread=False)
        self._connection.text_factory = storable_text
        self._connection.execute("PRAGMA query_only = ON")
        state = {name: self._fetch(name)[1] for name in _STATE}
        if not state["settings"]:
            raise self._no_crawl()
        self.settings = state["settings"][0][0]
        self.secret = secret_from(self._database.get_meta("secret"), str(self._path.parent)).hex()
        self.era, self.rests = read_eras(self._database)
        self.counters = dict(state["counters"])
        encoded = msgspec.json.encode(list(state.values()))
        self.state = hashlib.blake2b(encoded, digest_size=16).hexdigest()
        self.clock = self._database.clock()
        self.id = self._database.get_meta("move_id") or self._named()

    def _named(self) -> str:
        name = secrets.token_hex(16)
        with self._database.transaction():
            self._database.execute("set_meta", key="move_id", value=name)
        return name

    def _fetch(self, query: str, parameters: Mapping[str, Any] | None = None) -> tuple[list[str], list[Any]]:
        """Return the names of the columns and the rows. Only in the database's thread."""
        assert self._connection is not None, "the source is not open"
        cursor = self._connection.execute(QUERIES[query], parameters or {})
        return [column[0] for column in cursor.description], cursor.fetchall()

    def _no_crawl(self) -> UsageError:
        return UsageError(f"{self._path.parent} holds no crawl to move")


def storable_text(data: bytes) -> str:
    """Decode a text of SQLite. U+FFFD replaces NULs, lone surrogates and invalid UTF-8, which PostgreSQL refuses."""
    try:
        return storable(data.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return storable(data.decode("utf-8", "replace"))
