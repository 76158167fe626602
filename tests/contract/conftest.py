import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.harness import Harness, SqliteHarness


@pytest.fixture(params=["sqlite"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    made = SqliteHarness(tmp_path)
    yield made
    asyncio.run(made.close())
