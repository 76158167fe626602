"""A schema on PostgreSQL is created, updated to a made-up next version, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from rove.errors import FrontierError, UsageError
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.schema import Schema
from tests.contract.harness import PostgresHarness, raw

FIRST = Schema.of("postgres").migrations
NEWEST = FIRST[-1][0]
NEXT = Schema([*FIRST, (NEWEST + 1, "ALTER TABLE meta ADD COLUMN note text DEFAULT 'x'")])


@pytest.fixture
def harness(postgres_url: str) -> Iterator[PostgresHarness]:
    harness = PostgresHarness(postgres_url, "schema_tests")
    asyncio.run(harness.drop())
    yield harness
    asyncio.run(harness.drop())


async def opened(
    harness: PostgresHarness, migrations: Schema | None = None, *, create: bool = True
) -> PostgresDatabase:
    database = PostgresDatabase(harness.url, harness.schema, migrations=migrations)
    await database.open(create=create)
    return database


async def refusal(harness: PostgresHarness, migrations: Schema | None = None) -> str:
    """Return the sentence with which a schema is refused."""
    with pytest.raises(UsageError) as caught:
        await opened(harness, migrations, create=False)
    assert "the schema 'schema_tests' of postgresql://" in str(caught.value)
    return str(caught.value)


async def test_the_next_version_updates_a_schema(harness: PostgresHarness) -> None:
    assert "there is no crawl" in await refusal(harness)
    database = await opened(harness)
    await raw(database, "INSERT INTO meta VALUES ('key', 'value')")
    await database.close()
    assert "resume the crawl once" in await refusal(harness, NEXT)
    for _ in range(2):
        database = await opened(harness, NEXT)
        rows = await raw(database, "SELECT value, note FROM meta WHERE key = 'key'")
        assert [tuple(row) for row in rows] == [("value", "x")]
        numbers = await raw(database, "SELECT number FROM migration ORDER BY number")
        assert [row[0] for row in numbers] == [number for number, _ in NEXT.migrations]
        await database.close()
    assert "newer rove" in await refusal(harness)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE migration SET fingerprint = 'other'",
        "ALTER TABLE migration DROP COLUMN fingerprint",
        "ALTER TABLE migration DROP COLUMN fingerprint; INSERT INTO migration VALUES (3)",
    ],
)
async def test_the_schema_of_a_development_version_is_refused(harness: PostgresHarness, change: str) -> None:
    database = await opened(harness)
    for statement in change.split("; "):
        await raw(database, statement)
    await database.close()
    sentence = await refusal(harness)
    assert "development version" in sentence and "start a new crawl somewhere else" in sentence


async def test_a_failed_migration_leaves_the_schema_as_it_was(harness: PostgresHarness) -> None:
    await (await opened(harness)).close()
    bad = Schema([*FIRST, (NEWEST + 1, "CREATE TABLE new (a integer); CREATE TABLE url (a text)")])
    with pytest.raises((UsageError, FrontierError), match="already exists"):
        await opened(harness, bad)
    database = await opened(harness)
    assert (await raw(database, "SELECT to_regclass('new')"))[0][0] is None
    await database.close()
