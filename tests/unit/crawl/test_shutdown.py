"""The end of a crawl: the first failure is raised, and the others are not printed to the terminal."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast

import pytest

from rove.crawl.shutdown import Shutdown, raise_failure
from rove.errors import DiskFull
from rove.frontier.contract import Frontier


async def fail(text: str) -> None:
    raise DiskFull(text)


async def test_of_several_failures_one_is_raised_and_none_is_printed() -> None:
    printed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
    tasks = [asyncio.create_task(fail("first")), asyncio.create_task(fail("second"))]
    await Shutdown(cast(Frontier, None)).wait(tasks)
    await asyncio.wait(tasks)
    with pytest.raises(DiskFull, match="first"):
        raise_failure(tasks)
    tasks.clear()
    gc.collect()
    await asyncio.sleep(0)
    assert not printed
