"""Answers that several readers share."""

from __future__ import annotations

import asyncio

import pytest

from rove.observe.dashboard.cached import SHARE, Cached


class Source:
    """Counts how often it is read, each time taking some seconds of its own clock."""

    def __init__(self, *, takes: float = 0.0) -> None:
        self.now = 0.0
        self.reads = 0
        self._takes = takes

    async def read(self) -> int:
        await asyncio.sleep(0)
        self.now += self._takes
        self.reads += 1
        return self.reads


async def test_readers_at_the_same_time_share_one_answer() -> None:
    source = Source()
    cached = Cached(source.read, seconds=1.0, clock=lambda: source.now)
    assert await asyncio.gather(*(cached.get() for _ in range(10))) == [1] * 10
    source.now = 0.99
    assert await cached.get() == 1
    source.now = 1.0
    assert await cached.get() == 2


async def test_an_answer_that_took_long_is_kept_for_longer() -> None:
    source = Source(takes=2.0)
    cached = Cached(source.read, seconds=1.0, clock=lambda: source.now)
    await cached.get()
    source.now += 2.0 * SHARE - 0.01
    assert await cached.get() == 1
    source.now += 0.02
    assert await cached.get() == 2


async def test_an_error_is_not_kept() -> None:
    fails = True

    async def read() -> str:
        if fails:
            raise RuntimeError
        return "answer"

    cached = Cached(read, seconds=60.0)
    with pytest.raises(RuntimeError):
        await cached.get()
    fails = False
    assert await cached.get() == "answer"
