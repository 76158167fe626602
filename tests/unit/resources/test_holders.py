"""Processes that hold a file open, and whether a signal would end them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rove.resources.holders import handles, holders
from rove.resources.open_descriptors import descriptors_by_kind
from rove.resources.process_state import memory_by_kind

HOLDING = """
import signal, sys
file = open(sys.argv[1])
signal.signal(signal.SIGUSR1, lambda *_: None)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.system
def test_a_process_is_found_by_the_file_that_it_holds(tmp_path: Path) -> None:
    held, other = tmp_path / "held", tmp_path / "other"
    held.touch()
    other.touch()
    command = [sys.executable, "-c", HOLDING, str(held)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        assert holders([held, tmp_path / "missing"]) == [process.pid]
        assert holders([other]) == []
        assert handles(process.pid, signal.SIGUSR1) and not handles(process.pid, signal.SIGUSR2)
        with held.open():
            assert sorted(holders([held])) == sorted([process.pid, os.getpid()])
        process.stdin.close()
    assert holders([held]) == []
    assert not handles(process.pid, signal.SIGUSR1), "it has ended"


def test_open_files_and_memory_are_told_by_kind(tmp_path: Path) -> None:
    before = descriptors_by_kind()
    with (tmp_path / "a file").open("w") as file:
        reading, writing = os.pipe()
        found = descriptors_by_kind() - before
        os.close(reading)
        os.close(writing)
    assert found == {file.name: 1, "pipe": 2}
    sizes = memory_by_kind()
    assert sizes["resident"] > 0
    status = tmp_path / "status"
    status.write_text("Name:\trove\nVmHWM:\t  8 kB\nVmRSS:\t  6 kB\nRssAnon:\t  4 kB\nThreads:\t3\n")
    assert memory_by_kind(status) == {
        "resident": 6144,
        "of it heap and stacks": 4096,
        "the most that was ever resident": 8192,
    }
    assert memory_by_kind(tmp_path / "missing") == {}
