"""Run the `rove` command as a user does: to its end, in the background, or several at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.acceptance.forked import completed

EMAIL = "tester@crawler.test"

Completed = subprocess.CompletedProcess[str]
Process = subprocess.Popen[str]


def crawl_options(data: Path, *, delay: float = 0.1, concurrency: int = 20, processes: int = 1) -> list[object]:
    """Return the options that nearly every crawl in these tests needs."""
    return [
        *["--email", EMAIL, "--data-dir", data, "--delay", delay, "--allow-short-delay"],
        *["--concurrency", concurrency, "--processes", processes],
    ]


def rove(
    *arguments: object,
    input: str | None = None,
    cwd: Path | None = None,
    timeout: float = 200.0,
    stdin: int | None = None,
) -> Completed:
    """Run a rove command to its end, without the time that it takes to import rove (forked.py)."""
    assert stdin in (None, subprocess.DEVNULL), "only an empty standard input or `input` can be given"
    words = [str(argument) for argument in arguments]
    return completed(words, cwd=None if cwd is None else str(cwd), input=input, timeout=timeout)


def rove_alone(*arguments: object, **options: object) -> subprocess.CompletedProcess[Any]:
    """Run a rove command to its end in an interpreter of its own, with options of `subprocess.run`."""
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "timeout": 200, **options}
    return subprocess.run(command, **settings)  # type: ignore[call-overload, no-any-return]


def rove_each(commands: Sequence[Sequence[object]], **options: Any) -> list[Completed]:
    """Run several rove commands side by side and return their results in the same order."""
    run = rove_alone if "env" in options else rove
    with ThreadPoolExecutor(max_workers=3) as threads:
        return list(threads.map(lambda words: run(*words, **options), commands))


def start(*arguments: object, outage_rules: Mapping[str, float] | None = None, **options: object) -> Process:
    """Start a rove command in a process group of its own, with other rules for outages if they are given."""
    program = ["rove"] if outage_rules is None else ["tests.acceptance.impatient_rove", json.dumps(outage_rules)]
    command = [sys.executable, "-m", *program, *map(str, arguments)]
    settings = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "start_new_session": True,
        **options,
    }
    return subprocess.Popen(command, **settings)  # type: ignore[call-overload, no-any-return]


@contextmanager
def started(*arguments: object, **options: Any) -> Iterator[Process]:
    """Start a rove command and kill it, if it still runs, at the end of the block."""
    process = start(*arguments, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def logged(*arguments: object, **options: Any) -> Iterator[tuple[Process, Callable[[], str]]]:
    """Like `started`, but also yield a function that returns everything the command has printed so far."""
    with (
        tempfile.NamedTemporaryFile("r+") as output,
        started(*arguments, stdout=output, **options) as process,
    ):
        yield process, Path(output.name).read_text


def kill_hard(process: Process) -> None:
    """Kill the command and every process it started with SIGKILL."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_for(holds: Callable[[], object], *, seconds: float = 120.0, pause: float = 0.02) -> None:
    """Wait until a condition holds. The checks become rarer, because many of them read a whole log.

    The timeout only ends a test that would hang: no test may pass or fail by how fast the machine is.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds} s"
        time.sleep(pause)
        pause = min(1.3 * pause, max(pause, 0.2))


def write_lines(path: Path, *lines: str) -> Path:
    """Write a file with these lines."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
