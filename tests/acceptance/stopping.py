"""Stop a crawl from outside, and check that it has stopped cleanly and in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.acceptance.command import Process, rove, wait_for
from tests.acceptance.results import status_of
from tests.acceptance.site import Reply, Site, site

REQUESTS_BEFORE = 25
"""Requests after which the crawl is well under way."""
HOSTS = 12
STOP_SECONDS = 10.0
"""A crawl stops within this time, apart from the time in which it waits for a core."""
MAX_SECONDS = 120.0
"""Only a hang may take this long, on the busiest machine."""


@contextmanager
def launched(setup: str, *arguments: object, **streams: object) -> Iterator[Process]:
    """Start a rove command after some Python has prepared its process; kill it at the end of the block."""
    program = f"import fcntl, os, signal, sys, termios\n{setup}\nos.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    process: Process = subprocess.Popen(
        [sys.executable, "-c", program, *command], text=True, start_new_session=True, **streams
    )  # type: ignore[call-overload]
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def web_and_seeds(folder: Path) -> Iterator[tuple[Site, list[object]]]:
    """Serve sites without end; yield them with the words of a command that crawls them."""
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"http://host{number}.test/\n" for number in range(HOSTS)))
    with site(_endless) as web:
        yield web, ["crawl", seeds, *web.reach]


def _endless(host: str, path: str) -> Reply:
    """Answer with a page of its own text that links to two others."""
    if path == "/robots.txt":
        return Reply(status=404)
    return Reply(f"<p>This is {path} of {host}.</p><a href='{path}0'>one</a> <a href='{path}1'>two</a>")


def under_way(web: Site, more_than: int = REQUESTS_BEFORE) -> None:
    """Wait until the crawl has made more than this many requests."""
    wait_for(lambda: len(web.requests) > more_than)


def check_clean_end(process: Process, data: Path, code: int) -> None:
    """Check that the crawl ends with this code in time, and that frontier, store and ledger agree."""
    assert seconds_until_end(process) < STOP_SECONDS
    assert process.returncode == code
    status = status_of(data)
    assert status["running"] is False and status["domains"]["leased"] == 0
    assert status["urls"]["pending"] > 0, "the crawl ended by itself, so nothing was shown"
    assert not list((data / "warc").glob("*.open")), "a file is left open"
    audit = rove("audit", "--data-dir", data)
    assert audit.returncode == 0, audit.stdout
    logs = "".join(path.read_text() for path in data.glob("rove*.log"))
    assert "this is a bug" not in logs and "Traceback" not in logs, logs


def seconds_until_end(process: Process) -> float:
    """Wait until a command ends; return the seconds, without those in which it was ready and another program ran."""
    began, starved, first = time.monotonic(), 0.0, _starved_seconds(process.pid)
    while process.poll() is None:
        assert time.monotonic() - began < MAX_SECONDS, "it does not stop"
        starved = max(starved, _starved_seconds(process.pid) - first)
        time.sleep(0.05)
    return time.monotonic() - began - starved


def _starved_seconds(session: int) -> float:
    """Return how long the main threads of a session's processes have waited for a core; 0 if the system cannot say."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            if os.getsid(int(folder.name)) == session:
                total += int((folder / "schedstat").read_text().split()[1])
    return total / 1e9
