"""Reports about a process: what is in them, that they are bounded, and that nothing goes wrong for the crawl."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rove.app import diagnosis as module
from rove.app.diagnosis import Diagnosis
from tests.acceptance.command import wait_for

HOSTILE = "a\x1b[2J\u202eb\nforged: 1"


def told(file: Path) -> str:
    return file.read_text()


async def test_a_report_has_every_part(tmp_path: Path) -> None:
    diagnosis = Diagnosis("rove-1", tmp_path / "rove-1.log")
    diagnosis.attach(lambda: {"visits in flight": "7 of at most 20", "hostile": HOSTILE})
    waiting = asyncio.create_task(asyncio.sleep(1_000))
    await asyncio.sleep(0)
    await asyncio.to_thread(diagnosis.write)
    waiting.cancel()
    report = told(tmp_path / "rove-1.diagnosis.txt")
    head, summary, *rest = report.splitlines()
    assert head.startswith(f"process {os.getpid()} (rove-1) at 20") and head.endswith("Z")
    assert " resident, " in summary and " open files, " in summary and summary.endswith(" tasks")
    titles = [line for line in rest if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "memory:",
        "by rove's own accounts:",
        "open files:",
        "tasks by what they wait for:",
        "threads:",
        "the commonest kinds of Python objects:",
    ]
    assert "  visits in flight  7 of at most 20\n" in report
    assert "       1  sleep:" in report and " > FutureIter\n" in report
    assert "  MainThread:\n" in report and "rove/app/diagnosis.py" in report
    assert "builtins.function" in report
    assert r"a\x1b[2J\u202eb\x0aforged: 1" in report and "\x1b" not in report and "\nforged" not in report


async def test_the_report_before_is_kept(tmp_path: Path) -> None:
    diagnosis = Diagnosis("rove", tmp_path / "rove.log")
    for _ in range(3):
        diagnosis.write()
    assert sorted(os.listdir(tmp_path)) == ["rove.diagnosis.1.txt", "rove.diagnosis.txt"]  # noqa: PTH208
    assert "the crawl has not begun" in told(tmp_path / "rove.diagnosis.txt")


async def test_a_part_that_fails_does_not_take_the_others_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> dict[str, str]:
        raise ValueError("a bug")

    diagnosis = Diagnosis("rove", tmp_path / "rove.log")
    diagnosis.attach(broken)
    diagnosis.write()
    report = told(tmp_path / "rove.diagnosis.txt")
    assert "  could not be told: ValueError: a bug\n" in report and "threads:\n" in report
    assert "this is a bug" in caplog.text


async def test_a_report_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 5_000)
    diagnosis = Diagnosis("rove", tmp_path / "rove.log")
    diagnosis.attach(lambda: {f"account {number}": "x" * 100 for number in range(10_000)})
    diagnosis.write()
    report = told(tmp_path / "rove.diagnosis.txt")
    assert len(report) <= 5_000 and report.endswith("(cut here: the report is as long as it may be)\n")


@pytest.mark.parametrize("log_file", ["missing/rove.log", "/dev/full/rove.log"])
async def test_a_folder_that_cannot_be_written_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, log_file: str
) -> None:
    Diagnosis("rove", tmp_path / log_file).write()
    assert "cannot be written" in caplog.text


BUSY = """
import asyncio, sys, time
from pathlib import Path
import uvloop
from rove.app.diagnosis import Diagnosis
diagnosis = Diagnosis("rove", Path(sys.argv[1]))
diagnosis.install()

def keep_busy():
    print("ready", flush=True)
    while True:
        sum(range(1000))

async def main():
    diagnosis.attach(lambda: {"an account": "of mine"})
    if sys.argv[2] == "busy":
        keep_busy()
    asyncio.get_running_loop().call_soon(lambda: print("ready", flush=True))
    await asyncio.sleep(1_000)

uvloop.run(main())
"""


@pytest.mark.system
@pytest.mark.parametrize("state", ["busy", "idle"])
def test_a_signal_brings_a_report_whatever_the_event_loop_does(tmp_path: Path, state: str) -> None:
    command = [sys.executable, "-c", BUSY, str(tmp_path / "rove.log"), state]
    report = tmp_path / "rove.diagnosis.txt"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for _ in range(3):
            process.send_signal(signal.SIGUSR1)
        wait_for(report.exists)
        text = report.read_text()
        assert process.poll() is None
        process.kill()
    assert "an account  of mine" in text
    assert ("keep_busy" if state == "busy" else "sleep:") in text
