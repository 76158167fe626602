"""A full disk ends the crawl cleanly, and nothing has to be repaired when there is room again.

Writes are made to fail by the limit of a file's size, which everyone may set, and by a small file system of its own
in a mount namespace. This file is also the program that runs inside of that namespace.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import Completed, crawl_options, rove
from tests.acceptance.namespace import run_in_namespace
from tests.acceptance.results import exported_urls, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import served

LIMITED = (
    "import os, resource, sys; size = int(sys.argv[1]);"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size));"
    "os.execv(sys.executable, [sys.executable, '-m', 'rove', *sys.argv[2:]])"
)
KNOBS = ["crawl_delay=0.2"]
scenario = Scenarios()


def rove_with_small_files(size: int, *words: object) -> Completed:
    """Run a rove command that cannot write a file larger than this."""
    command = [sys.executable, "-c", LIMITED, str(size), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def check_ended_in_good_order(result: Completed, data: Path) -> None:
    """Check for one message that says what is wrong and what to do, no traceback, and a crawl that can be inspected."""
    assert result.returncode == 1, f"exit code {result.returncode}: {result.stderr}"
    assert "Traceback" not in result.stderr and "Error" not in result.stderr, result.stderr
    sentences = [line for line in result.stderr.splitlines() if line.startswith("rove: ")]
    assert len(sentences) == 1 and result.stderr.endswith(f"{sentences[0]}\n"), result.stderr
    assert "space" in sentences[0] and "resume" in sentences[0]
    status = status_of(data)
    assert status["running"] is False and status["urls"]["pending"] > 0
    assert len(exported_urls(data)) == status["pages"]


def check_goes_on(data: Path, expected: set[str]) -> None:
    result = rove("crawl", "--resume", "--data-dir", data)
    assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
    assert exported_urls(data) == expected
    assert not list((data / "warc").glob("*.open"))
    assert status_of(data)["domains"]["leased"] == 0


def large_pages(host: str, path: str) -> Reply:
    """Answer with pages that compress badly, a third of a megabyte each."""
    if path != "/":
        return Reply(status=404)
    noise = base64.b64encode(random.Random(host).randbytes(250_000)).decode()
    return Reply(f"<title>{host}</title><p>{noise}</p>", after=0.05)


@scenario
def no_room_for_pages(tmp_path: Path) -> None:
    data, seeds = tmp_path / "data", tmp_path / "seeds.txt"
    hosts = [f"host{i}.test" for i in range(20)]
    seeds.write_text("".join(f"http://{host}/\n" for host in hosts))
    with site(large_pages) as web:
        options = [*crawl_options(data, concurrency=1), *web.reach]
        result = rove_with_small_files(2_000_000, "crawl", seeds, *options)
        check_ended_in_good_order(result, data)
        assert "warc" in result.stderr
        assert 0 < status_of(data)["pages"] < len(hosts)
        check_goes_on(data, {f"http://{host}/" for host in hosts})


@scenario
def no_room_for_the_frontier(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, hosts=15, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = [*crawl_options(data, delay=0.05), *web.reach]
        result = rove_with_small_files(400_000, "crawl", seeds, *options)
        check_ended_in_good_order(result, data)
        assert "frontier" in result.stderr
        # With as little room as before it ends in the same way and loses nothing.
        again = rove_with_small_files(400_000, "crawl", "--resume", "--data-dir", data)
        check_ended_in_good_order(again, data)
        check_goes_on(data, web.expected())


@scenario
def no_room_for_the_seeds(tmp_path: Path) -> None:
    data, seeds = tmp_path / "data", tmp_path / "seeds.txt"
    seeds.write_text("".join(f"http://host{i}.test/\n" for i in range(20_000)))
    result = rove_with_small_files(200_000, "crawl", seeds, *crawl_options(data))
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("rove: the disk is full")
    assert not data.exists(), "a crawl that never began left something behind"


@scenario
def a_full_file_system(tmp_path: Path) -> None:
    report: dict[str, Any] = json.loads(run_in_namespace("tests.acceptance.test_disk_full", tmp_path))
    # The file system was full while the crawl ran. The space that only a running crawl needs is free again.
    assert report["free before"] < 2_000_000 < 5_000_000 < report["free after"]


def fill_a_file_system(folder: Path) -> dict[str, Any]:
    """Crawl the small web into a file system that is too small. Runs inside the namespace."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=True)
    data = folder / "data"
    with (
        tempfile.TemporaryDirectory() as elsewhere,
        served(Path(elsewhere), hosts=30, profile="calm", knobs=KNOBS) as web,
    ):
        seeds = web.write_seeds(Path(elsewhere) / "seeds.txt")
        options = [*crawl_options(data, delay=0.05), "--log-level", "debug", *web.reach]
        options += ["--min-free-disk", 0]
        result = rove("crawl", seeds, *options)
        report = {"free before": free_bytes(folder)}
        subprocess.run(["mount", "-o", "remount,size=100m", folder], check=True)
        report["free after"] = free_bytes(folder)
        check_ended_in_good_order(result, data)
        check_goes_on(data, web.expected())
    return report


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


@pytest.mark.parametrize("scenario", scenario.names)
def test_disk_full(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()


if __name__ == "__main__":
    print(json.dumps(fill_a_file_system(Path(sys.argv[1]))))
