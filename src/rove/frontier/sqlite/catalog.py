"""What a crawl on the embedded frontier remembers of itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rove.frontier.contract import Exclusion, SeedSource
from rove.frontier.rows import exclusion
from rove.frontier.sqlite.database import Database


class SqliteCatalog:
    """Settings and seed files."""

    def __init__(self, database: Database, clock: Callable[[], int] | None = None) -> None:
        self._database = database
        self._given_clock = clock

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

    async def exclusions_revision(self) -> int:
        kept = await self._database.run(lambda: self._database.get_meta("exclusions"))
        return int(kept or 0)

    async def exclusion_history(self) -> list[Exclusion]:
        rows = await self._database.run(lambda: self._database.execute("exclusion_history"))
        return [exclusion(row) for row in rows]

    async def add_exclusions(self, patterns: Sequence[str], *, who: str, reason: str) -> list[str]:
        return await self._change_exclusions("add_exclusions", patterns, who=who, reason=reason)

    async def lift_exclusions(self, patterns: Sequence[str], *, who: str) -> list[str]:
        return await self._change_exclusions("lift_exclusions", patterns, who=who)

    async def _change_exclusions(
        self, query: str, patterns: Sequence[str], **values: str
    ) -> list[str]:
        def work() -> list[str]:
            now = (self._given_clock or self._database.clock())()
            with self._database.transaction():
                rows = self._database.batch(
                    query, list(patterns), now=now, wall=time.time(), **values
                )
                if rows:
                    self._database.execute("revise_exclusions")
            return [row[0] for row in rows]

        return await self._database.run(work)

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
