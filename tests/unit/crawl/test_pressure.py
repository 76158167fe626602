"""Resource limits: measurements, decisions, and the news for the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rove.config import LEAST_MEMORY, Settings
from rove.crawl.pressure import SLOT_BYTES, DiskWatch, Pressure, fetches_within, free_bytes
from rove.model.outcomes import Failed, FailureKind
from rove.policy.concurrency import FILES_REST, Bounds, HeldBy, fixed
from rove.resources.memory import Share
from rove.resources.process_state import resident_bytes

MiB = 1 << 20
GiB = 1 << 30


class Here:
    """The pressure on a process, and the news that it has sent."""

    def __init__(
        self,
        folder: Path,
        *,
        bounds: Bounds = fixed(100),  # noqa: B008 - it cannot change
        measure_disk: Callable[[Path], int | None] = free_bytes,
        measure_memory: Callable[[], int | None] = resident_bytes,
        measure_machine: Callable[[], int | None] = lambda: None,
        processes: int = 1,
        **settings: Any,
    ) -> None:
        self.now = 100.0
        self.news: list[str] = []
        self.pressure = Pressure(
            Settings(email="me@crawler.test", **settings),
            bounds=bounds,
            directory=folder,
            clock=lambda: self.now,
            on_news=self.news.append,
            measure_disk=measure_disk,
            measure_memory=measure_memory,
            measure_machine=measure_machine,
            processes=processes,
        )

    def check(self, seconds: int = 1, *, are_waiting: bool = True) -> int:
        """Check once a second; return how many visits may be in flight."""
        for _ in range(seconds):
            self.now += 1.0
            self.pressure.check(are_waiting=are_waiting)
        return self.pressure.throttle.limit


def out_of_files() -> Failed:
    return Failed(kind=FailureKind.BUSY, detail="Too many open files", shortage=True)


def test_a_shortage_ends_only_when_some_more_is_free() -> None:
    watch = DiskWatch(GiB)
    enough = GiB + GiB // 20 + 64 * MiB
    changes = [(watch.update(free), watch.is_short) for free in (GiB, GiB - 1, GiB, enough - 1, enough)]
    assert changes == [(False, False), (True, True), (False, True), (False, True), (True, False)]


def test_with_a_small_limit_half_as_much_again_is_enough() -> None:
    watch = DiskWatch(10 * MiB)
    watch.update(0)
    assert not watch.update(15 * MiB - 1)
    assert watch.update(15 * MiB) and not watch.is_short


def test_a_limit_of_zero_is_never_reached() -> None:
    watch = DiskWatch(0)
    assert not watch.update(0) and not watch.is_short


def test_the_user_is_told_once_that_the_disk_is_full_and_once_that_it_is_not(tmp_path: Path) -> None:
    free = 0
    here = Here(tmp_path, min_free_disk=GiB, measure_disk=lambda _: free)
    for _ in range(3):
        here.pressure.check()
    assert here.pressure.is_paused is True
    assert here.pressure.troubles()["disk"].startswith("paused: less than 1.0 GiB")
    free = 2 * GiB
    for _ in range(3):
        here.pressure.check()
    assert not any(here.pressure.troubles().values())
    assert here.news == [
        f"less than 1.0 GiB is free on {tmp_path}: the crawl pauses until there is room",
        f"there is room again on {tmp_path}: the crawl goes on",
    ]


def test_a_disk_that_cannot_be_measured_does_not_pause_the_crawl(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) is not None
    assert free_bytes(tmp_path / "gone") is None
    here = Here(tmp_path / "gone", min_free_disk=1 << 60)
    here.pressure.check()
    assert not here.pressure.is_paused and not here.news


def test_bodies_get_the_memory_that_everything_else_leaves(tmp_path: Path) -> None:
    resident = 60 * MiB
    here = Here(tmp_path, max_memory=GiB, measure_memory=lambda: resident)
    memory = here.pressure.memory
    before = memory.room
    assert 700 * MiB < before < GiB - 60 * MiB
    Share(memory).keep(100 * MiB)
    resident += 100 * MiB
    here.pressure.check()
    assert memory.room == before, "the memory of pages is accounted for"
    resident += 200 * MiB
    here.pressure.check()
    assert before - 200 * MiB < memory.room < before - 190 * MiB, "the memory of caches is not"
    resident = 2 * GiB
    here.pressure.check()
    assert memory.room > 0, "there is always room for one body at a time"


def test_the_memory_of_this_process_is_known() -> None:
    resident = resident_bytes()
    assert resident is None or 10 * MiB < resident < 10 * GiB


def test_bodies_that_wait_shut_the_slots_and_lower_their_number(tmp_path: Path) -> None:
    here = Here(tmp_path, max_memory=LEAST_MEMORY)
    pressure, page = here.pressure, Share(here.pressure.memory)
    page.keep(pressure.memory.room)
    body = Share(pressure.memory)
    assert not body.grow(5 * MiB) and not body.ask(5 * MiB, lambda: None)
    assert pressure.throttle.allowed == 0
    assert pressure.troubles() == {"disk": "", "memory": "slowed: 1 fetch waiting for memory", "fetches": ""}
    page.keep(0)
    assert here.check() == pressure.throttle.allowed == 25
    assert pressure.troubles()["fetches"] == "slowed: 25 fetches at once"
    assert not here.news, "the user is not told"


def test_pages_that_wait_to_be_written_shut_the_slots_and_do_not_lower_their_number(tmp_path: Path) -> None:
    pressure = Here(tmp_path, max_memory=LEAST_MEMORY).pressure
    page = Share(pressure.memory)
    page.keep(pressure.memory.room + 1)
    assert pressure.throttle.allowed == 0
    page.keep(0)
    assert pressure.throttle.allowed == 100


def test_a_shortage_of_files_lowers_the_fetches_for_a_while(tmp_path: Path) -> None:
    here = Here(tmp_path)
    for _ in range(50):
        here.pressure.note_failure(out_of_files())
    assert here.check() == 75
    assert here.news == ["open files ran out: 75 fetches at once from now on (Too many open files)"]
    assert here.check(int(FILES_REST) - 2) == 75
    assert here.pressure.troubles()["fetches"] == "slowed: 75 fetches at once"
    here.pressure.note_failure(out_of_files())
    assert here.check() == 56
    assert here.check(int(FILES_REST) + 60) == 100
    assert not here.pressure.troubles()["fetches"]


@pytest.mark.parametrize(
    "failure",
    [
        Failed(kind=FailureKind.BUSY, detail="stayed busy with as many connections as are allowed"),
        Failed(kind=FailureKind.BUSY, detail="no memory", address="192.0.2.1", status=200),
        Failed(kind=FailureKind.CONNECT, detail="refused", address="192.0.2.1"),
    ],
)
def test_other_failures_do_not_lower_the_fetches(tmp_path: Path, failure: Failed) -> None:
    here = Here(tmp_path)
    here.pressure.note_failure(failure)
    assert here.check() == 100 and not here.news


def automatic(most: int = 10_000) -> Bounds:
    return Bounds(start=50, most=most, most_by=HeldBy.MOST, bytes_each=SLOT_BYTES)


def test_fetches_grow_until_the_memory_limit(tmp_path: Path) -> None:
    """Every visit takes the memory that is set aside for it; the limit leaves room for bodies."""
    settings: dict[str, Any] = {"max_memory": 512 * MiB, "max_page_size": MiB}
    base = 60 * MiB
    here = Here(tmp_path, bounds=automatic(), measure_memory=lambda: base, **settings)
    limit = here.check(120)
    assert here.pressure.steering.state.held_by is HeldBy.MEMORY
    assert limit > 1_000
    assert limit * SLOT_BYTES + base < 512 * MiB
    assert here.check(60) <= 1.05 * limit, "it has settled"
    assert not here.pressure.troubles()["fetches"], "that is no trouble"


def test_processes_share_what_the_machine_has_left(tmp_path: Path) -> None:
    available = 400 * MiB
    alone = Here(tmp_path, bounds=automatic(), measure_machine=lambda: available)
    one_of_four = Here(tmp_path, bounds=automatic(), measure_machine=lambda: available, processes=4)
    available = 8 * MiB
    assert alone.check(30) > one_of_four.check(30)


def test_fetches_do_not_grow_while_no_domain_waits(tmp_path: Path) -> None:
    here = Here(tmp_path, bounds=automatic())
    assert here.check(60, are_waiting=False) == 50
    assert here.pressure.steering.state.held_by is HeldBy.DEMAND


def test_two_checks_at_once_are_one_decision(tmp_path: Path) -> None:
    here = Here(tmp_path, bounds=automatic())
    for _ in range(100):
        here.pressure.check(are_waiting=True)
    assert here.pressure.throttle.limit == 50


def test_how_many_fetches_fit_into_a_memory_limit() -> None:
    settings = Settings(email="me@crawler.test")
    assert fetches_within(LEAST_MEMORY, settings.max_page_size) >= 100
    assert fetches_within(512 * MiB, settings.max_page_size) >= 1_000
    assert fetches_within(settings.max_memory, settings.max_page_size) >= 5_000
    assert fetches_within(MiB, settings.max_page_size) == 1
