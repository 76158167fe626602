"""`rove diagnose`: reports about the processes of a running crawl, and nothing else happens to it."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.hostile_text import HOST, UNSAFE
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import site
from tests.acceptance.stopping import MAX_SECONDS
from tests.acceptance.test_limiting import slow

scenario = Scenarios()
MAIN = "rove.diagnosis.txt"


def told(data: Path, processes: int) -> dict[str, str]:
    """Ask for reports, check what is printed, and return the reports by name."""
    done = rove("diagnose", "--data-dir", data, "--timeout", 100)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == processes
    reports = {}
    for line in lines:
        file, about, summary = line.split(": ", 2)
        assert about.startswith("process ") and " resident, " in summary
        reports[Path(file).name] = Path(file).read_text()
        assert reports[Path(file).name].startswith(f"{about}\n{summary}\n")
    return reports


def has_begun(log: Path) -> bool:
    """Whether a worker is in the crawl, so that it can be asked."""
    return log.exists() and " start process=" in log.read_text()


@scenario
def one_process(folder: Path) -> None:
    data = folder / "data"
    seeds = write_lines(folder / "seeds.txt", *(f"http://{host}/?q=a-secret-value" for host in (HOST, "b.test")))
    with site(slow) as web, started("crawl", seeds, *web.reach, *crawl_options(data)) as process:
        wait_for(lambda: len(web.pages) == 2)
        report = told(data, 1)[MAIN]
        assert "visits in flight 2 of at most 20 leases" in " ".join(report.split())
        assert "  Slots._visit:" in report and " > CurlFetcher.fetch:" in report
        assert "MainThread:" in report and "rove.sqlite" not in report.partition("open files:")[0]
        assert "frontier.sqlite" in report, "an open file"
        assert UNSAFE.search(report) is None and "a-secret-value" not in report and HOST not in report
        wait_for(lambda: " diagnosis file=" in (data / "rove.log").read_text())
        told(data, 1)
        assert (data / "rove.diagnosis.1.txt").read_text() == report
        assert process.poll() is None
        web.release.set()
        process.send_signal(signal.SIGINT)
        process.wait(MAX_SECONDS)
    ended = rove("diagnose", "--data-dir", data)
    assert ended.returncode == 1 and ended.stderr.endswith("; there is nothing to report\n")


@scenario
def several_processes(folder: Path) -> None:
    data = folder / "data"
    seeds = write_lines(folder / "seeds.txt", *(f"http://h{number}.test/" for number in range(8)))
    with site(slow) as web, started("crawl", seeds, *web.reach, *crawl_options(data, processes=2)) as process:
        wait_for(lambda: len(web.pages) == 8)
        for log in (data / "rove-1.log", data / "rove-2.log"):
            wait_for(partial(has_begun, log))
        reports = told(data, 3)
        assert set(reports) == {MAIN, "rove-1.diagnosis.txt", "rove-2.diagnosis.txt"}
        assert "worker 1  process " in reports[MAIN] and "worker 2  process " in reports[MAIN]
        assert "Supervisor.run:" in reports[MAIN]
        assert "visits in flight" in reports["rove-1.diagnosis.txt"]
        assert process.poll() is None
        web.release.set()
        process.send_signal(signal.SIGINT)
        process.wait(MAX_SECONDS)


@pytest.mark.parametrize("scenario", scenario.names)
def test_diagnose(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
