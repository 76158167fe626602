"""A crawl in one SQLite file of its data directory."""

from __future__ import annotations

from pathlib import Path

from rove.frontier.contract import Policy
from rove.frontier.sqlite import SqliteFrontier
from rove.frontier.sqlite_catalog import SqliteCatalog
from rove.frontier.sqlite_database import Database
from rove.frontier.sqlite_reader import SqliteReader


class SqliteBackend:
    """The embedded default."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._database = Database(path, read_only=read_only)
        self.catalog = SqliteCatalog(self._database)
        self.reader = SqliteReader(self._database)

    def exists(self) -> bool:
        return self._path.exists()

    async def open(self, *, create: bool = False) -> None:
        await self._database.open(create=create)

    async def begin(self, policy: Policy) -> SqliteFrontier:
        frontier = SqliteFrontier(self._database, policy)
        await frontier.begin()
        return frontier

    async def close(self) -> None:
        await self._database.close()
