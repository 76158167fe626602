"""The limits of a machine: what is measured, what is decided from it, and what a person is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rove.crawl.pressure
from rove.config import LEAST_MEMORY, Settings
from rove.crawl.pressure import DiskWatch, Pressure, fetches_within, free_bytes, resident_bytes
from rove.model.outcomes import Failed, FailureKind
from rove.resources.memory import Share

MiB = 1 << 20
GiB = 1 << 30


class Here:
    """A machine and what it says."""

    def __init__(self, folder: Path, *, concurrency: int = 100, **settings: Any) -> None:
        self.now = 100.0
        self.news: list[str] = []
        self.machine = Pressure(
            Settings(email="me@example.org", **settings),
            concurrency=concurrency,
            directory=folder,
            clock=lambda: self.now,
            on_news=self.news.append,
        )


def out_of_files() -> Failed:
    return Failed(kind=FailureKind.BUSY, detail="Too many open files", shortage=True)


def test_too_little_room_ends_only_when_there_is_some_more() -> None:
    watch = DiskWatch(GiB)
    assert not watch.look(GiB) and not watch.is_short
    assert watch.look(GiB - 1) and watch.is_short
    assert not watch.look(GiB) and watch.is_short
    assert not watch.look(GiB + GiB // 20 + 64 * MiB - 1) and watch.is_short
    assert watch.look(GiB + GiB // 20 + 64 * MiB) and not watch.is_short


def test_with_a_small_limit_half_as_much_again_will_do() -> None:
    watch = DiskWatch(10 * MiB)
    watch.look(0)
    assert not watch.look(15 * MiB - 1)
    assert watch.look(15 * MiB) and not watch.is_short


def test_a_limit_of_nothing_is_never_reached() -> None:
    watch = DiskWatch(0)
    assert not watch.look(0) and not watch.is_short


def test_the_disk_is_said_to_be_full_once_and_to_be_free_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, min_free_disk=GiB)
    free = 0
    monkeypatch.setattr(rove.crawl.pressure, "free_bytes", lambda _: free)
    for _ in range(3):
        here.machine.look()
    assert here.machine.is_paused and here.machine.trouble.startswith("paused: less than 1.0 GiB")
    free = 2 * GiB
    for _ in range(3):
        here.machine.look()
    assert not here.machine.is_paused and here.machine.trouble == ""
    assert here.news == [
        f"less than 1.0 GiB is free on {tmp_path}: the crawl pauses until there is room",
        f"there is room again on {tmp_path}: the crawl goes on",
    ]


def test_a_disk_that_cannot_be_looked_at_is_no_reason_to_pause(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) is not None
    assert free_bytes(tmp_path / "gone") is None
    here = Here(tmp_path / "gone", min_free_disk=1 << 60)
    here.machine.look()
    assert not here.machine.is_paused and not here.news


def test_what_everything_else_leaves_is_for_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident = 60 * MiB
    monkeypatch.setattr(rove.crawl.pressure, "resident_bytes", lambda: resident)
    here = Here(tmp_path, max_memory=GiB)
    memory = here.machine.memory
    before = memory.room
    assert 700 * MiB < before < GiB - 60 * MiB
    Share(memory).keep(100 * MiB)
    resident += 100 * MiB
    here.machine.look()
    assert memory.room == before, "what the pages take is accounted for"
    resident += 200 * MiB
    here.machine.look()
    assert before - 200 * MiB < memory.room < before - 190 * MiB, "what the caches take is not"
    resident = 2 * GiB
    here.machine.look()
    assert memory.room > 0, "one body after the other goes on, whatever happens"


def test_what_this_process_takes_is_known() -> None:
    resident = resident_bytes()
    assert resident is None or 10 * MiB < resident < 10 * GiB


def test_bodies_that_wait_shut_the_slots_and_lower_their_number(tmp_path: Path) -> None:
    here = Here(tmp_path, max_memory=LEAST_MEMORY, concurrency=100)
    machine, page = here.machine, Share(here.machine.memory)
    page.keep(machine.memory.room)
    body = Share(machine.memory)
    assert not body.grow(5 * MiB) and not body.ask(5 * MiB, lambda: None)
    assert machine.throttle.allowed == 0
    assert machine.trouble == "slowed: 1 fetches wait for memory"
    page.keep(0)
    assert machine.throttle.allowed == 25
    assert machine.trouble == "slowed: 25 fetches at once"
    assert not here.news, "this is no matter for a person"


def test_pages_that_wait_to_be_written_shut_the_slots_and_do_not_lower_their_number(
    tmp_path: Path,
) -> None:
    machine = Here(tmp_path, max_memory=LEAST_MEMORY).machine
    page = Share(machine.memory)
    page.keep(machine.memory.room + 1)
    assert machine.throttle.allowed == 0
    page.keep(0)
    assert machine.throttle.allowed == 100


def test_without_files_there_are_fewer_fetches_for_a_while(tmp_path: Path) -> None:
    here = Here(tmp_path)
    for _ in range(50):
        here.machine.note_failure(out_of_files())
    assert here.machine.throttle.allowed == 75
    assert here.news == ["open files ran out: 75 fetches at once from now on (Too many open files)"]
    here.now += 10
    here.machine.note_failure(out_of_files())
    assert here.machine.throttle.allowed == 56


@pytest.mark.parametrize(
    "failure",
    [
        Failed(kind=FailureKind.BUSY, detail="stayed busy with as many connections as are allowed"),
        Failed(kind=FailureKind.BUSY, detail="no memory", address="192.0.2.1", status=200),
        Failed(kind=FailureKind.CONNECT, detail="refused", address="192.0.2.1"),
    ],
)
def test_other_failures_are_no_reason(tmp_path: Path, failure: Failed) -> None:
    here = Here(tmp_path)
    here.machine.note_failure(failure)
    assert here.machine.throttle.allowed == 100 and not here.news


def test_how_many_fetches_a_ceiling_is_enough_for() -> None:
    settings = Settings(email="me@example.org")
    assert fetches_within(LEAST_MEMORY, settings.max_page_size) >= 100
    assert fetches_within(512 * MiB, settings.max_page_size) >= 1_000
    assert fetches_within(settings.max_memory, settings.max_page_size) >= 5_000
    assert fetches_within(MiB, settings.max_page_size) == 1
