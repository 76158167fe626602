import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.harness import Harness, PostgresHarness, SqliteHarness
from tests.contract.moved_crawl import Target


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """An empty frontier, on each backend in turn."""
    if request.param == "sqlite":
        return SqliteHarness(tmp_path)
    harness: Harness = request.getfixturevalue("postgres")
    return harness


@pytest.fixture(scope="session")
def schema_of_contract_tests(postgres_url: str) -> PostgresHarness:
    """Make a schema that is emptied between tests."""
    harness = PostgresHarness(postgres_url, "contract")
    asyncio.run(harness.drop())
    return harness


@pytest.fixture
def postgres(schema_of_contract_tests: PostgresHarness) -> PostgresHarness:
    """Return an empty frontier on PostgreSQL."""
    asyncio.run(schema_of_contract_tests.empty())
    return PostgresHarness(schema_of_contract_tests.url, schema_of_contract_tests.schema)


@pytest.fixture
def target(postgres_url: str) -> Iterator[Target]:
    """A schema to move a crawl to, dropped after the test."""
    target = Target(postgres_url)
    yield target
    asyncio.run(target.drop())
