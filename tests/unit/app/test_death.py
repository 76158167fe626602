"""How a worker died, in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from rove.app.death import Death

MEMORY = "the kernel ran out of memory (OOM killer): lower --max-memory or --processes"
SOMEBODY = "not by the kernel's OOM killer, so somebody sent the signal"


@pytest.mark.parametrize(
    ("exit_code", "expected"),
    [
        (0, "somebody stopped it"),
        (1, "exit code 1; see rove-2.log"),
        (-signal.SIGTERM, "killed by SIGTERM with 1.0 GiB of memory"),
        (-signal.SIGSEGV, "killed by SIGSEGV with 1.0 GiB of memory; see rove-2.log"),
        (-63, "killed by signal 63 with 1.0 GiB of memory"),
    ],
)
def test_every_kind_of_death(exit_code: int, expected: str) -> None:
    assert str(Death(exit_code=exit_code, log_name="rove-2.log", resident=1 << 30)) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([5, 0], [5, 0], SOMEBODY),
        ([5, 0], [6, 0], MEMORY),
        ([5, 0], [5, 1], MEMORY),
        ([5], [6], MEMORY),
        ([], [], "the kernel may have run out of memory"),
    ],
)
def test_whether_the_kernel_killed_it_for_memory(before: Sequence[int], after: Sequence[int], expected: str) -> None:
    death = Death(exit_code=-signal.SIGKILL, log_name="x", oom_kills_before=before, oom_kills_after=after)
    assert str(death) == f"killed by SIGKILL; {expected}"


def test_a_worker_that_rove_killed_itself_is_no_case_for_the_kernel() -> None:
    death = Death(
        exit_code=-signal.SIGKILL, log_name="x", was_killed_by_us=True, oom_kills_before=[1], oom_kills_after=[2]
    )
    assert str(death) == "killed by SIGKILL"
