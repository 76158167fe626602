"""Creates the schema of a crawl on PostgreSQL and updates it."""

from __future__ import annotations

from typing import Any

from rove.frontier.postgres.session import Session
from rove.frontier.schema import Schema


async def migrate(session: Session, name: str, where: str, schema: Schema, *, create: bool) -> None:
    """Update the schema `name`; any number of processes may try at once. Refuse one that this rove cannot use."""
    if not await _missing(session, name, where, schema, create=create):
        return
    connection = session.connection
    async with connection.transaction():
        await session.fetch("advisory_lock", name=f"rove {name}")
        # An identifier cannot be a parameter; checked_name allows no quote in it.
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"')
        await session.fetch("create_migration_table")
        for number, script in await _missing(session, name, where, schema, create=create):
            await connection.execute(script)
            fingerprint = schema.fingerprint(number)
            await session.fetch("note_migration", number=number, fingerprint=fingerprint)


async def _missing(session: Session, name: str, where: str, schema: Schema, *, create: bool) -> list[tuple[int, str]]:
    version, fingerprint = 0, None
    if await session.value("has_table", schema=name, name="migration"):
        rows: list[Any] = await session.fetch("schema_version")
        version, fingerprint = rows[0] if rows else (0, None)
    return schema.missing(where, version, fingerprint, migrate=create)
