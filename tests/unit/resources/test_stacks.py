"""Where threads and coroutines are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from rove.resources.stacks import MAX_DEPTH, tasks_by_wait, thread_stacks


async def waits_in(lock: asyncio.Lock) -> None:
    async with lock:
        pass


async def sleeps() -> None:
    await asyncio.sleep(1_000)


async def numbers() -> AsyncIterator[int]:
    await asyncio.sleep(1_000)
    yield 1


async def iterates() -> None:
    async for _ in numbers():
        pass


async def digs(depth: int) -> None:
    await (digs(depth - 1) if depth else sleeps())


async def test_tasks_are_counted_by_what_they_wait_for() -> None:
    lock = asyncio.Lock()
    await lock.acquire()
    tasks = [asyncio.create_task(waits_in(lock)) for _ in range(500)]
    tasks += [asyncio.create_task(sleeps()), asyncio.create_task(iterates()), asyncio.create_task(digs(2 * MAX_DEPTH))]
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    # From another thread, as a report does it, while this loop goes on.
    groups = await asyncio.to_thread(tasks_by_wait, loop)
    (chain,) = [chain for chain, count in groups.items() if count == 500]
    first, *_, last_call, future = [part.partition(":")[0] for part in chain]
    assert (first, last_call, future) == ("waits_in", "Lock.acquire", "FutureIter")
    assert sum(count for chain, count in groups.items() if chain[0].startswith("sleeps:")) == 1
    assert max(map(len, groups)) == MAX_DEPTH
    assert (await asyncio.to_thread(lambda: tasks_by_wait(loop, max_tasks=5))).total() == 5
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def test_every_thread_is_told_with_its_calls() -> None:
    begun, over = threading.Event(), threading.Event()

    def wait_here() -> None:
        begun.set()
        over.wait(60)

    thread = threading.Thread(target=wait_here, name="a thread that waits")
    thread.start()
    begun.wait(60)
    stacks = dict(thread_stacks())
    over.set()
    thread.join()
    assert any("test_every_thread_is_told_with_its_calls.<locals>.wait_here" in call for call in stacks[thread.name])
    assert stacks["MainThread"][-1].endswith(" thread_stacks")


@pytest.mark.parametrize("depth", [10, 500])
def test_a_deep_stack_is_cut(depth: int) -> None:
    def dig(left: int) -> list[str]:
        return dig(left - 1) if left else dict(thread_stacks())["MainThread"]

    assert len(dig(depth)) <= MAX_DEPTH
