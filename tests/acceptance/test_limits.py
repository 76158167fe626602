"""At the limits of the machine, a crawl slows down or pauses and loses nothing.

Free room is that of a small file system of its own in a mount namespace, as in test_disk_full.py. This file is also the
program that runs inside of that namespace.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tests.acceptance.command import Process, crawl_options, logged, rove, started, wait_for
from tests.acceptance.namespace import run_in_namespace
from tests.acceptance.results import exported_urls, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site

MIB = 1 << 20
LARGE = b"<p>" + b"words of a page that is very long " * 200 + b"</p>\n"
scenario = Scenarios()


@scenario
def bodies_that_do_not_fit_into_memory_wait(tmp_path: Path) -> None:
    """200 MiB of bodies are in flight at once, but a process may use only 256 MiB in all."""
    data, seeds, count, ceiling = tmp_path / "data", tmp_path / "seeds.txt", 40, 256 * MIB
    urls = {f"http://host{i}.test/" for i in range(count)}
    seeds.write_text("\n".join(urls))
    body = (LARGE * (5 * MIB // len(LARGE) + 1))[: 5 * MIB]
    asked: set[str] = set()

    def answer(host: str, path: str) -> Reply:
        if path != "/":
            return Reply(status=404)
        asked.add(host)
        if len(asked) == count:
            web.release.set()
        return Reply(body, held=True)

    with site(answer) as web:
        options = [*crawl_options(data, concurrency=count), *web.reach, "--max-depth", 0]
        with started("crawl", seeds, *options, "--max-memory", "256MiB") as process:
            peak = peak_memory(process)
    assert web.most_unanswered >= count
    assert process.returncode == 0
    assert status_of(data)["pages"] == count
    assert 100 * MIB < peak < ceiling, f"{peak / MIB:.0f} MiB"
    assert all(len(web.requests_to(f"host{i}.test", "/")) == 1 for i in range(count))


def peak_memory(process: Process) -> int:
    """Wait for a process to end, and return its peak memory by the operating system's count."""
    peak = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status")
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
        peak = max(peak, int(found[1]) * 1024) if found else peak
        threading.Event().wait(0.02)
    return peak


@scenario
def too_little_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("a.test\n")
    result = rove(
        *("crawl", tmp_path / "seeds.txt", *crawl_options(tmp_path / "data")),
        *("--max-memory", "100MiB"),
    )
    assert result.returncode == 2
    assert "--max-memory 100.0 MiB is too little" in result.stderr and "256" in result.stderr
    assert not (tmp_path / "data").exists()


@scenario
def a_disk_without_room_pauses_the_crawl(tmp_path: Path) -> None:
    run_in_namespace("tests.acceptance.test_limits", tmp_path)


def chain(host: str, path: str) -> Reply:
    """Answer with a chain of thirty pages."""
    number = int(path[1:] or 0) if path[1:].isdecimal() or path == "/" else 30
    if number >= 30:
        return Reply(status=404)
    return Reply(f"<title>{host}</title><p>Page {number}.</p><a href='/{number + 1}'>next</a>")


def pause_and_go_on(folder: Path) -> None:
    """Fill and free the disk while a crawl runs. Runs inside the namespace."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "none", folder], check=True)
    data, filler = folder / "data", folder / "filler"
    with tempfile.TemporaryDirectory() as elsewhere, site(chain) as web:
        seeds = Path(elsewhere) / "seeds.txt"
        hosts = [f"host{i}.test" for i in range(5)]
        seeds.write_text("".join(f"http://{host}/\n" for host in hosts))
        options = [*crawl_options(data), *web.reach, "--min-free-disk", "40MiB"]
        with logged("crawl", seeds, *options) as (process, said):
            wait_for(lambda: len(web.pages) > 10)
            fill(filler)
            wait_for(lambda: f"less than 40.0 MiB is free on {data}: the crawl pauses" in said())
            wait_for(lambda: status_of(data)["domains"]["leased"] == 0)
            asked = len(web.requests)
            assert status_of(data)["running"] and process.poll() is None
            assert len(web.requests) == asked < 150, "a request was sent in a pause"
            filler.unlink()
            wait_for(lambda: f"there is room again on {data}: the crawl goes on" in said())
            wait_for(lambda: len(web.requests) > asked)
            # A paused crawl can be stopped and loses nothing.
            fill(filler)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130, said()
        with logged("crawl", "--resume", "--data-dir", data) as (process, said):
            wait_for(lambda: "the crawl pauses" in said())
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130, said()
        # A pause counts towards the time limit.
        result = rove("crawl", "--resume", "--data-dir", data, "--max-duration", "0.5s")
        assert result.returncode == 0 and "time limit reached: 0 pages" in result.stderr
        filler.unlink()
        result = rove("crawl", "--resume", "--data-dir", data, "--max-duration", "1h")
        assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
        expected = {f"http://{host}/{number or ''}" for host in hosts for number in range(30)}
        assert exported_urls(data) == expected
        assert len(web.pages) == len(set(web.pages)), "a page was asked for twice"


def fill(path: Path) -> None:
    """Leave less than 40 of the 100 MiB free."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 70 * MIB)


@pytest.mark.parametrize("scenario", scenario.names)
def test_limits(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()


if __name__ == "__main__":
    pause_and_go_on(Path(sys.argv[1]))
