"""The memory account: which bodies may grow, which wait, and that none waits for ever."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial

from rove.resources.memory import SMALL, Memory, Share
from tests.unit.fetch.server import on_loop

MiB = 1 << 20


class Waiting:
    """A paused transfer, which counts how often it is resumed."""

    def __init__(self) -> None:
        self.resumed = 0

    def __call__(self) -> None:
        self.resumed += 1


def grow(share: Share, size: int, most: int, go_on: Callable[[], None]) -> bool:
    """Grow as a transfer does."""
    if share.grow(size):
        return True
    return share.ask(most, go_on) and share.grow(size)


def filled(memory: Memory, size: int) -> Share:
    """Return a page of `size` bytes that is not written yet."""
    share = Share(memory)
    share.keep(size)
    return share


def test_small_bodies_never_wait() -> None:
    memory = Memory(MiB)
    filled(memory, MiB)
    assert grow(Share(memory), MiB, MiB, Waiting()) is False
    assert all(grow(Share(memory), SMALL, 5 * MiB, Waiting()) for _ in range(1000))
    assert memory.used == MiB


def test_up_to_half_of_the_room_bodies_grow_freely() -> None:
    memory = Memory(10 * MiB)
    shares = [Share(memory) for _ in range(5)]
    for share in shares:
        assert grow(share, MiB, 5 * MiB, Waiting())
    assert memory.used == 5 * (MiB - SMALL) and not memory.is_short


def test_beyond_half_of_the_room_a_body_reserves_all_it_may_need_or_waits() -> None:
    memory = Memory(10 * MiB)
    first, second, third = Share(memory), Share(memory), Share(memory)
    go_on = Waiting()
    assert grow(first, 5 * MiB, 5 * MiB, Waiting())
    assert grow(second, MiB, 5 * MiB, Waiting())
    assert memory.used == 2 * (5 * MiB - SMALL)
    assert grow(second, 4 * MiB, 5 * MiB, Waiting())
    assert memory.used == 2 * (5 * MiB - SMALL), "a reservation is not counted twice"
    assert grow(third, MiB, 5 * MiB, go_on) is False
    assert (memory.is_short, memory.waiting) == (True, 1)
    first.keep(100)
    assert go_on.resumed == 1 and not memory.is_short
    assert grow(third, MiB, 5 * MiB, go_on)


def test_the_body_that_waits_longest_goes_first_even_if_another_needs_less() -> None:
    memory = Memory(10 * MiB)
    full = filled(memory, 10 * MiB)
    large, little = Waiting(), Waiting()
    first, second = Share(memory), Share(memory)
    assert not grow(first, MiB, 5 * MiB, large)
    assert not grow(second, MiB, MiB, little)
    full.keep(6 * MiB)
    assert (large.resumed, little.resumed) == (0, 0)
    full.keep(0)
    assert (large.resumed, little.resumed) == (1, 1)


def test_a_transfer_that_ends_while_it_waits_blocks_nobody() -> None:
    memory = Memory(10 * MiB)
    filled(memory, 9 * MiB)
    large, little = Waiting(), Waiting()
    first, second = Share(memory), Share(memory)
    assert not grow(first, 5 * MiB, 5 * MiB, large)
    assert not grow(second, MiB // 2, MiB // 2, little)
    first.wait_no_more()
    assert (large.resumed, little.resumed) == (0, 1)


def test_beginnings_and_ends_of_a_shortage_are_reported() -> None:
    reported: list[str] = []
    memory = Memory(2 * MiB, on_short=lambda: reported.append("short"), on_eased=lambda: reported.append("eased"))
    full = filled(memory, 2 * MiB)
    for _ in range(3):
        assert not grow(Share(memory), MiB, MiB, Waiting())
    assert reported == ["short"]
    full.keep(0)
    assert reported == ["short"], "two of the three have room"
    memory.room = 4 * MiB
    assert reported == ["short", "eased"]


@on_loop
async def test_after_a_page_overdraws_the_account_the_next_waits_until_it_is_written() -> None:
    memory = Memory(10 * MiB)
    page = Share(memory)
    grow(page, 5 * MiB, 5 * MiB, Waiting())
    page.keep(20 * MiB)
    assert memory.is_overdrawn and memory.is_short
    reading = asyncio.create_task(memory.turn())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    page.keep(0)
    async with asyncio.timeout(5):
        await reading
    assert memory.used == 0


@on_loop
async def test_large_pages_are_read_by_turns_with_other_work_in_between() -> None:
    memory, order = Memory(10 * MiB), []
    loop = asyncio.get_running_loop()

    async def read(number: int) -> None:
        await memory.turn()
        order.append(f"page {number}")
        loop.call_soon(order.append, "other work")

    async with asyncio.timeout(5):
        left = asyncio.create_task(read(0))
        readers = [asyncio.create_task(read(number)) for number in range(1, 4)]
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.wait(readers)
    assert order[:5] == ["page 1", "other work", "page 2", "other work", "page 3"]


def test_a_body_larger_than_the_room_continues_when_it_is_alone() -> None:
    memory = Memory(4 * MiB)
    go_on = Waiting()
    full, larger = filled(memory, 3 * MiB), Share(memory)
    assert not grow(larger, 3 * MiB, 10 * MiB, go_on)
    full.keep(0)
    assert go_on.resumed == 1
    assert grow(larger, 3 * MiB, 10 * MiB, go_on) and grow(larger, 7 * MiB, 10 * MiB, go_on)


def test_nobody_waits_for_ever() -> None:
    """Bodies of all sizes grow chunk by chunk in random order. Complete ones are read, and written later."""
    for seed in range(30):
        chance = random.Random(seed)
        memory = Memory(chance.choice([4, 10, 40]) * MiB)
        most = 5 * MiB if memory.room > 4 * MiB else 2 * MiB
        left = {Share(memory): chance.randrange(1, most) for _ in range(100)}
        paused: set[Share] = set()
        written: list[Share] = []
        while left or written:
            running = [share for share in left if share not in paused]
            assert running or written, "all wait for each other"
            if running and chance.random() < 0.9:
                share = chance.choice(running)
                size = min(left[share], 256 * 1024)
                if not grow(share, size, most, partial(paused.discard, share)):
                    paused.add(share)
                    continue
                left[share] -= size
                if not left[share] and not memory.is_overdrawn:
                    del left[share]
                    share.keep(chance.randrange(most))
                    written.append(share)
                elif not left[share]:
                    left[share] = 1
            elif written:
                written.pop(0).keep(0)
        assert memory.used == 0
