import asyncio
from pathlib import Path

import pytest

from tests.contract.harness import Harness, PostgresHarness, SqliteHarness


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """An empty frontier, on each backend in turn."""
    if request.param == "sqlite":
        return SqliteHarness(tmp_path)
    postgres: Harness = request.getfixturevalue("postgres")
    return postgres


@pytest.fixture(scope="session")
def postgres_schema(postgres_url: str) -> PostgresHarness:
    """A schema that all contract tests of this process share."""
    harness = PostgresHarness(postgres_url, "contract")
    asyncio.run(harness.drop())
    return harness


@pytest.fixture
def postgres(postgres_schema: PostgresHarness) -> PostgresHarness:
    """An empty frontier on PostgreSQL."""
    asyncio.run(postgres_schema.empty())
    return PostgresHarness(postgres_schema.url, postgres_schema.schema)
