import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.harness import Harness, PostgresHarness, SqliteHarness
from tests.contract.moved_crawl import Target


@pytest.fixture(params=["sqlite", "postgres"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    if request.param == "sqlite":
        return SqliteHarness(tmp_path)
    found: Harness = request.getfixturevalue("postgres")
    return found


@pytest.fixture(scope="session")
def kept_postgres(postgres_url: str) -> PostgresHarness:
    """A schema that is emptied between tests."""
    harness = PostgresHarness(postgres_url, "contract")
    asyncio.run(harness.drop())
    return harness


@pytest.fixture
def postgres(kept_postgres: PostgresHarness) -> PostgresHarness:
    """The frontier on PostgreSQL, empty."""
    asyncio.run(kept_postgres.empty())
    return PostgresHarness(kept_postgres.url, kept_postgres.schema)


@pytest.fixture
def target(postgres_url: str) -> Iterator[Target]:
    """A schema to move a crawl to, dropped after the test."""
    target = Target(postgres_url)
    yield target
    asyncio.run(target.drop())
