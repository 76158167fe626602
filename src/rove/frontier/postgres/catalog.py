"""The settings, exclusions and seed files of a crawl on PostgreSQL."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session
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
from rove.model.instructions import Instruction, InstructionKind, Instructions
from rove.policy.retry_filter import RetryFilter

GONE_AFTER_SECONDS = 60
"""A node that has been silent for this long no longer loads its seeds."""


class PostgresCatalog:
    """The catalog of a crawl, as one node sees it."""

    def __init__(self, database: PostgresDatabase, machine: Callable[[], int]) -> None:
        """`machine` returns the number of this node, which is known once the database is open."""
        self._database = database
        self._machine = machine

    async def settings(self) -> str | None:
        return await self._meta("settings")

    async def secret(self) -> bytes:
        return secret_from(await self._meta("secret"), self._database.location)

    async def identity(self) -> str:
        return await self._meta("identity") or ""

    async def revision(self) -> int:
        return int(await self._meta("revision") or 0)

    async def save(self, settings: str, seeds: SeedSource | None) -> None:
        async def work(session: Session) -> None:
            await session.fetch("identify", identity=secrets.token_hex(8))
            await session.fetch("keep_secret", secret=new_secret())
            if await session.value("get_meta", key="settings") != settings:
                await session.fetch("set_meta", key="settings", value=settings)
                await session.fetch("revise")
            if seeds is not None:
                await session.fetch(
                    "add_seed_source", machine=self._machine(), path=seeds.path, name=storable(seeds.name)
                )

        await self._database.transaction("save settings", work)

    async def rules_applied(self) -> str:
        return await self._meta("rules") or ""

    async def save_rules_applied(self, progress: str) -> None:
        async def work(session: Session) -> None:
            await session.fetch("set_meta", key="rules", value=progress)

        await self._database.transaction("save rules", work)

    async def instructions(self) -> Instructions:
        return instructions({kind: await self._meta(kind) for kind in InstructionKind})

    async def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        await self._database.fetch("set_meta", **instruction_meta(kind, instruction))

    async def exclusions(self) -> list[str]:
        return [row[0] for row in await self._database.fetch("exclusions")]

    async def exclusions_revision(self) -> int:
        return int(await self._meta("exclusions") or 0)

    async def exclusion_history(self) -> list[Exclusion]:
        return [exclusion(row) for row in await self._database.fetch("exclusion_history")]

    async def add_exclusions(self, patterns: Sequence[str], *, who: str, reason: str) -> list[str]:
        return await self._change_exclusions("add_exclusions", patterns, who=who, reason=reason)

    async def lift_exclusions(self, patterns: Sequence[str], *, who: str) -> list[str]:
        return await self._change_exclusions("lift_exclusions", patterns, who=who)

    async def _change_exclusions(self, query: str, patterns: Sequence[str], **texts: str) -> list[str]:
        values = {name: storable(text) for name, text in texts.items()}

        async def work(session: Session) -> list[str]:
            rows = await session.fetch(query, patterns=list(patterns), wall=time.time(), **values)
            if rows:
                await session.fetch("revise_exclusions")
            return [row[0] for row in rows]

        return await self._database.transaction("change exclusions", work)

    async def begin_retry(self, filter: RetryFilter, *, who: str, delay: float) -> int:
        values = retry_values(filter, who=who, delay=delay)
        id: int = await self._database.value("begin_retry", wall=time.time(), **values)
        return id

    async def retries(self) -> list[Retry]:
        return [retry_record(row) for row in await self._database.fetch("retries")]

    async def add_seed_source(self, source: SeedSource) -> SeedSource:
        id: int = await self._database.value(
            "add_seed_source", machine=self._machine(), path=source.path, name=storable(source.name)
        )
        return replace(source, id=id)

    async def seed_sources(self) -> list[SeedSource]:
        rows = await self._database.fetch(
            "seed_sources", machine=self._machine(), gone_after_ms=GONE_AFTER_SECONDS * 1000
        )
        return [seed_source(row) for row in rows]

    async def save_progress(self, source: SeedSource) -> None:
        await self._database.fetch("update_seed_source", **seed_progress(source))

    async def _meta(self, key: str) -> str | None:
        value: str | None = await self._database.value("get_meta", key=key)
        return value
