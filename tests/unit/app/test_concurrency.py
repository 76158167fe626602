"""How many processes crawl, and how the fetches are shared among them."""

from __future__ import annotations

from typing import Any

import pytest

from rove.app.concurrency import bounds_per_process, process_count
from rove.config import Settings
from rove.policy.concurrency import START, Bounds, HeldBy

MiB = 1 << 20


@pytest.mark.parametrize(
    ("wanted", "cores", "is_sqlite", "expected"),
    [(None, 2, True, 2), (None, 16, True, 3), (None, 16, False, 16), (8, 2, True, 8), (1, 16, False, 1)],
)
def test_one_process_per_core_unless_the_user_says_otherwise(
    wanted: int | None, cores: int, is_sqlite: bool, expected: int
) -> None:
    assert process_count(wanted, cores=cores, concurrency=500, is_sqlite=is_sqlite) == expected


def test_no_process_is_without_a_fetch() -> None:
    assert process_count(8, cores=8, concurrency=5, is_sqlite=False) == 5


def test_auto_starts_as_many_processes_as_there_are_cores() -> None:
    assert process_count(None, cores=8, concurrency="auto", is_sqlite=False) == 8


def bounds(
    concurrency: Any, processes: int, open_files: int | None = None, memory: int = 1024 * MiB
) -> tuple[list[Bounds], list[str]]:
    said: list[str] = []
    settings = Settings(email="me@crawler.test", concurrency=concurrency, max_memory=memory)
    return bounds_per_process(settings, processes, open_files=open_files, say=said.append), said


def shares(concurrency: int, processes: int, **limits: int) -> tuple[list[int], list[str]]:
    """Return what each process starts with if the user has chosen a number, which is its maximum too."""
    all_bounds, said = bounds(concurrency, processes, **limits)
    assert all(one.is_fixed and one.start == one.most for one in all_bounds)
    return [one.most for one in all_bounds], said


def test_fetches_are_shared_evenly() -> None:
    assert shares(500, 1) == ([500], [])
    assert shares(500, 3) == ([167, 167, 166], [])


def test_too_few_open_files_lower_the_concurrency() -> None:
    fetches, said = shares(500, 2, open_files=264)
    assert fetches == [100, 100], "two files for each fetch, and 64 for other purposes"
    assert said == ["a process may open only 264 files here; --concurrency is lowered from 500 to 200"]


def test_too_little_memory_lowers_the_concurrency() -> None:
    fetches, said = shares(100_000, 2, memory=256 * MiB)
    assert 100 < fetches[0] == fetches[1] < 2_000
    (sentence,) = said
    assert sentence.startswith("--max-memory 256.0 MiB is too little for 100,000 fetches at once;")
    assert sentence.endswith(f"--concurrency is lowered to {sum(fetches):,}")


def test_every_process_has_at_least_one_fetch() -> None:
    assert shares(500, 2, open_files=10)[0] == [1, 1]
    assert all(one.start == 1 for one in bounds("auto", 600)[0])


def test_auto_shares_the_start_and_gives_each_process_the_same_maximum() -> None:
    both, said = bounds("auto", 2, open_files=1 << 20)
    assert [one.start for one in both] == [START // 2] * 2 and not said
    assert both[0].most > 5_000 and not both[0].is_fixed


def test_auto_keeps_within_few_open_files_and_says_so() -> None:
    (one,), said = bounds("auto", 1, open_files=1_024)
    assert (one.start, one.most, one.most_by) == (480, 480, HeldBy.FILES)
    assert said == ["a process may open only 1,024 files here (ulimit -Hn), so each has at most 480 fetches in flight"]
    (one,), said = bounds("auto", 1, open_files=20_000)
    assert (one.most, one.most_by) == (9_968, HeldBy.FILES) and not said, "few crawls need more"


def test_auto_keeps_within_little_memory() -> None:
    (one,), said = bounds("auto", 1, memory=256 * MiB)
    assert 500 <= one.start <= one.most < 2_000 and one.most_by is HeldBy.MEMORY and not said
