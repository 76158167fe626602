"""What a crawl on the embedded frontier remembers of itself."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.contract import SeedSource
from rove.frontier.sqlite_database import Database


class SqliteCatalog:
    """Settings and seed files."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def settings(self) -> str | None:
        return await self._database.run(lambda: self._database.get_meta("settings"))

    async def identity(self) -> str:
        """The crawl is in the data directory itself."""
        return ""

    async def revision(self) -> int:
        """Nobody else can change a crawl whose data directory is held."""
        return 0

    async def save(self, settings: str, seeds: SeedSource | None) -> None:
        def work() -> None:
            with self._database.transaction():
                self._database.execute("set_meta", key="settings", value=settings)
                if seeds is not None:
                    self._database.execute("add_seed_source", path=seeds.path, name=seeds.name)

        await self._database.run(work)

    async def exclusions(self) -> list[str]:
        rows = await self._database.run(lambda: self._database.execute("exclusions"))
        return [row[0] for row in rows]

    async def add_exclusions(self, patterns: Sequence[str]) -> None:
        def work() -> None:
            with self._database.transaction():
                self._database.batch("add_exclusions", list(patterns))

        await self._database.run(work)

    async def seed_sources(self) -> list[SeedSource]:
        rows = await self._database.run(lambda: self._database.execute("seed_sources"))
        return [
            SeedSource(
                id=id,
                path=path,
                name=name,
                offset=offset,
                lines=lines,
                good=good,
                bad=bad,
                finished=bool(finished),
            )
            for id, path, name, offset, lines, good, bad, finished in rows
        ]

    async def save_progress(self, source: SeedSource) -> None:
        def work() -> None:
            with self._database.transaction():
                self._database.execute(
                    "update_seed_source",
                    id=source.id,
                    offset=source.offset,
                    lines=source.lines,
                    good=source.good,
                    bad=source.bad,
                    finished=int(source.finished),
                )

        await self._database.run(work)
