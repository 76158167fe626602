"""What a crawl on PostgreSQL remembers of itself."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from rove.frontier.contract import Exclusion, SeedSource
from rove.frontier.postgres.database import Database, Session
from rove.frontier.rows import exclusion

GONE_SECONDS = 60
"""A machine that has been silent for so long does not load its seeds any more."""


class PostgresCatalog:
    """Settings and seed files, as one machine sees them."""

    def __init__(self, database: Database, machine: Callable[[], int]) -> None:
        """`machine` is known once the database is open."""
        self._database = database
        self._machine = machine

    async def settings(self) -> str | None:
        return await self._meta("settings")

    async def identity(self) -> str:
        return await self._meta("identity") or ""

    async def revision(self) -> int:
        return int(await self._meta("revision") or 0)

    async def save(self, settings: str, seeds: SeedSource | None) -> None:
        async def work(session: Session) -> None:
            await session.fetch("identify", identity=secrets.token_hex(8))
            if await session.value("get_meta", key="settings") != settings:
                await session.fetch("set_meta", key="settings", value=settings)
                await session.fetch("revise")
            if seeds is not None:
                await session.fetch(
                    "add_seed_source", machine=self._machine(), path=seeds.path, name=seeds.name
                )

        await self._database.transaction("save settings", work)

    async def exclusions(self) -> list[str]:
        rows = await self._database.run(
            "read exclusions", lambda session: session.fetch("exclusions")
        )
        return [row[0] for row in rows]

    async def exclusions_revision(self) -> int:
        return int(await self._meta("exclusions") or 0)

    async def exclusion_history(self) -> list[Exclusion]:
        rows = await self._database.run(
            "read exclusions", lambda session: session.fetch("exclusion_history")
        )
        return [exclusion(row) for row in rows]

    async def add_exclusions(self, patterns: Sequence[str], *, who: str, reason: str) -> list[str]:
        return await self._change_exclusions("add_exclusions", patterns, who=who, reason=reason)

    async def lift_exclusions(self, patterns: Sequence[str], *, who: str) -> list[str]:
        return await self._change_exclusions("lift_exclusions", patterns, who=who)

    async def _change_exclusions(
        self, query: str, patterns: Sequence[str], **values: str
    ) -> list[str]:
        async def work(session: Session) -> list[str]:
            rows = await session.fetch(query, patterns=list(patterns), wall=time.time(), **values)
            if rows:
                await session.fetch("revise_exclusions")
            return [row[0] for row in rows]

        return await self._database.transaction("change exclusions", work)

    async def seed_sources(self) -> list[SeedSource]:
        rows = await self._database.run(
            "read seed files",
            lambda session: session.fetch(
                "seed_sources", machine=self._machine(), alive_ms=GONE_SECONDS * 1000
            ),
        )
        return [
            SeedSource(
                id=id,
                path=path,
                name=name,
                offset=offset,
                lines=lines,
                good=good,
                bad=bad,
                finished=finished,
                is_here=is_here,
                is_abandoned=is_abandoned,
            )
            for id, path, name, offset, lines, good, bad, finished, is_here, is_abandoned in rows
        ]

    async def save_progress(self, source: SeedSource) -> None:
        await self._database.run(
            "save how far seeds are loaded",
            lambda session: session.fetch(
                "update_seed_source",
                id=source.id,
                offset=source.offset,
                lines=source.lines,
                good=source.good,
                bad=source.bad,
                finished=source.finished,
            ),
        )

    async def _meta(self, key: str) -> str | None:
        found: str | None = await self._database.run(
            "read settings", lambda session: session.value("get_meta", key=key)
        )
        return found
