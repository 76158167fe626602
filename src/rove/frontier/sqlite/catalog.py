"""The settings, exclusions and seed files of a crawl on the embedded frontier."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rove.frontier.records import Exclusion
from rove.frontier.retries import Retry
from rove.frontier.rows.records import (
    exclusion,
    instruction_meta,
    instructions,
    new_secret,
    retry_record,
    retry_values,
    secret_from,
    seed_progress,
    seed_source,
)
from rove.frontier.sanitize import storable
from rove.frontier.seed_source import SeedSource
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.instructions import Instruction, InstructionKind, Instructions
from rove.policy.retry_filter import RetryFilter


class SqliteCatalog:
    """The catalog of the crawl in a file."""

    def __init__(self, database: SqliteDatabase, clock: Callable[[], int] | None = None) -> None:
        """`clock` replaces the crawl's clock."""
        self._database = database
        self._clock = clock

    async def settings(self) -> str | None:
        return await self._database.run(lambda: self._database.get_meta("settings"))

    async def secret(self) -> bytes:
        text = await self._database.run(lambda: self._database.get_meta("secret"))
        return secret_from(text, str(self._database.path.parent))

    async def identity(self) -> str:
        """Return '': a data directory holds only one crawl."""
        return ""

    async def revision(self) -> int:
        """Return 0: no other process can change a crawl whose data directory is locked."""
        return 0

    async def save(self, settings: str, seeds: SeedSource | None) -> None:
        def work() -> None:
            self._database.execute("keep_secret", secret=new_secret())
            self._database.execute("set_meta", key="settings", value=settings)
            if seeds is not None:
                self._database.execute("add_seed_source", path=seeds.path, name=storable(seeds.name))

        await self._database.write(work)

    async def rules_applied(self) -> str:
        return await self._database.run(lambda: self._database.get_meta("rules")) or ""

    async def save_rules_applied(self, progress: str) -> None:
        await self._database.write(lambda: self._database.execute("set_meta", key="rules", value=progress))

    async def instructions(self) -> Instructions:
        def work() -> Instructions:
            return instructions({kind: self._database.get_meta(kind) for kind in InstructionKind})

        return await self._database.run(work)

    async def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        row = instruction_meta(kind, instruction)
        await self._database.write(lambda: self._database.execute("set_meta", **row))

    async def exclusions(self) -> list[str]:
        return [row[0] for row in await self._database.fetch("exclusions")]

    async def exclusions_revision(self) -> int:
        revision = await self._database.run(lambda: self._database.get_meta("exclusions"))
        return int(revision or 0)

    async def exclusion_history(self) -> list[Exclusion]:
        return [exclusion(row) for row in await self._database.fetch("exclusion_history")]

    async def add_exclusions(self, patterns: Sequence[str], *, who: str, reason: str) -> list[str]:
        return await self._change_exclusions("add_exclusions", patterns, who=who, reason=reason)

    async def lift_exclusions(self, patterns: Sequence[str], *, who: str) -> list[str]:
        return await self._change_exclusions("lift_exclusions", patterns, who=who)

    async def _change_exclusions(self, query: str, patterns: Sequence[str], **texts: str) -> list[str]:
        values = {name: storable(text) for name, text in texts.items()}

        def work() -> list[str]:
            now = (self._clock or self._database.clock())()
            with self._database.transaction():
                rows = self._database.batch(query, list(patterns), now=now, wall=time.time(), **values)
                if rows:
                    self._database.execute("revise_exclusions")
            return [row[0] for row in rows]

        return await self._database.run(work)

    async def begin_retry(self, filter: RetryFilter, *, who: str, delay: float) -> int:
        def work() -> int:
            now = (self._clock or self._database.clock())()
            values = retry_values(filter, who=who, delay=delay)
            with self._database.transaction():
                id: int = self._database.execute("begin_retry", now=now, wall=time.time(), **values)[0][0]
            return id

        return await self._database.run(work)

    async def retries(self) -> list[Retry]:
        return [retry_record(row) for row in await self._database.fetch("retries")]

    async def add_seed_source(self, source: SeedSource) -> SeedSource:
        rows = await self._database.write(
            lambda: self._database.execute("add_seed_source", path=source.path, name=storable(source.name))
        )
        return replace(source, id=rows[0][0])

    async def seed_sources(self) -> list[SeedSource]:
        return [seed_source(row) for row in await self._database.fetch("seed_sources")]

    async def save_progress(self, source: SeedSource) -> None:
        await self._database.write(lambda: self._database.execute("update_seed_source", **seed_progress(source)))
