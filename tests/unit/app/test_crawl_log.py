"""The lines that tell the story of a crawl, and the file that they are written to."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rove.app.crawl_log import CrawlLog, LimitLog, PauseLog, settings_lines
from rove.app.limit_watch import LimitWatch
from rove.config import Limits, Settings
from rove.crawl.progress import Progress
from rove.errors import FrontierError
from rove.frontier.query_times import TimesReader, Timings
from rove.model.counts import Counts
from rove.model.samples import Distribution
from rove.model.urls import UrlState
from rove.policy.limiting import Factor, Limiting
from tests.unit.app.test_limit_watch import Watched
from tests.unit.app.test_panel import COUNTS


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="rove.app.crawl_log")
    return caplog


class Figures:
    """A frontier that only has figures, and that may hang or fail."""

    def __init__(self) -> None:
        self.timings = Timings()
        self.hangs = False
        self.error: Exception | None = None
        self._times_asked = 0
        self._was_asked = asyncio.Event()

    async def asked(self, times: int) -> None:
        """Wait until the counts were asked for this many times."""
        while self._times_asked < times:
            self._was_asked.clear()
            await self._was_asked.wait()

    async def counts(self) -> Counts:
        self._times_asked += 1
        self._was_asked.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return COUNTS

    def query_times(self, reader: TimesReader) -> dict[str, Distribution]:
        return self.timings.take_recent(reader)


def fields(line: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.split()[1:])


async def one_line(
    progress: Progress, frontier: Any, lines: pytest.LogCaptureFixture, limits: LimitWatch | None = None
) -> dict[str, str]:
    """Let a log write its last line, with what was counted since its beginning."""
    now = [100.0]
    crawl_log = CrawlLog(progress, frontier, limits=limits, clock=lambda: now[0], patience=0.01)
    async with crawl_log.written():
        now[0] += 20.0
        progress.pages += 100
        progress.visits += 200
        progress.request_counters.update({"requests.page": 150, "requests.robots": 50})
        progress.request_counters.update({"errors.page.status-404": 30, "errors.robots.dns": 2})
        progress.request_counters.update({"without_content.robots.no-robots-txt": 9})
    return fields(next(line for line in lines.messages if line.startswith("minute ")))


async def test_the_figures_of_the_last_minute(lines: pytest.LogCaptureFixture) -> None:
    progress = Progress(started=40.0, pages=900, in_flight=7, at_once=9, queued=3, resident=300 << 20, open_files=88)
    progress.longest_lag = 0.25
    progress.request_counters["errors.page.status-404"] = 5
    progress.held_by["cpu"] = 2
    frontier = Figures()
    frontier.timings.add("lease", 0.25)
    figures = await one_line(progress, frontier, lines)
    assert figures == {
        "elapsed_s": "80",
        "pages": "1000",
        "pages_per_s": "5",
        "visits_per_s": "10",
        "kib_per_s": "0",
        "page_requests": "150",
        "robots_requests": "50",
        "sitemap_requests": "0",
        "errors": "page.status-404:30,robots.dns:2",
        "in_flight": "7",
        "at_once": "9",
        "held_by": "cpu",
        "queued": "3",
        "rss_mib": "300",
        "open_files": "88",
        "longest_lag_s": "0.25",
        "paused_by": "-",
        "ready": str(COUNTS.domains["ready"]),
        "waiting": str(COUNTS.domains["waiting"]),
        "leased": str(COUNTS.domains["leased"]),
        "idle": str(COUNTS.domains["idle"]),
        "excluded": str(COUNTS.domains["excluded"]),
        "pending": str(COUNTS.urls[UrlState.PENDING]),
        "pages_all_runs": str(COUNTS.pages),
    }
    assert "query name=lease times=1 total_s=0.25 p50_ms=250 p95_ms=250 max_ms=250" in lines.messages


async def test_what_limits_the_crawl_is_a_line_of_its_own(lines: pytest.LogCaptureFixture) -> None:
    watched, frontier = Watched(processes=1), Figures()
    watched.progress.held_by = Counter(memory=1)
    frontier.timings.add("commit", 19.0)
    await one_line(watched.progress, frontier, lines, watched.watch)
    (line,) = [line for line in lines.messages if line.startswith("limit ")]
    assert line.startswith('limit factor=politeness domains_served=- why="2,034 domains, ')
    await one_line(watched.progress, frontier, lines)
    assert len([line for line in lines.messages if line.startswith("limit ")]) == 1, "only if it is watched"


def test_another_limit_is_logged_when_it_was_found_twice(lines: pytest.LogCaptureFixture) -> None:
    limit_log = LimitLog()

    def factors(*found: Factor) -> list[str]:
        lines.clear()
        for factor in found:
            limit_log.note(Limiting(factor=factor, why="because"))
        return [fields(line)["factor"] for line in lines.messages]

    cpu, polite = Factor.CPU, Factor.POLITENESS
    assert factors(polite) == []
    assert factors(polite, polite, polite) == ["politeness"]
    assert factors(cpu, polite, cpu, polite) == [], "it may go to and fro"
    assert factors(cpu, cpu, cpu, polite, polite) == ["cpu", "politeness"]
    limit_log.write(Limiting(factor=cpu, why="the line of a minute"))
    assert factors(cpu, cpu) == []


async def test_the_limit_is_looked_at_between_two_lines_with_figures(lines: pytest.LogCaptureFixture) -> None:
    watched, frontier = Watched(), Figures()
    source: Any = frontier
    crawl_log = CrawlLog(
        watched.progress, source, limits=watched.watch, interval=1_000.0, check_seconds=0.0, limit_seconds=0.0
    )
    async with asyncio.timeout(30), crawl_log.written():
        await frontier.asked(4)
        frontier.error = FrontierError("gone")
        await frontier.asked(6)
        watched.progress.is_stopping = True
    assert len([line for line in lines.messages if line.startswith("limit ")]) == 1, "none at the end"


@pytest.mark.parametrize("error", [None, FrontierError("gone")])
async def test_without_a_database_the_line_is_written_all_the_same(
    lines: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    frontier = Figures()
    frontier.hangs, frontier.error = error is None, error
    figures = await one_line(Progress(started=0.0), frontier, lines)
    assert (figures["pages"], figures["pending"], figures["ready"]) == ("100", "-", "-")


async def test_a_line_is_written_whenever_the_interval_has_passed(lines: pytest.LogCaptureFixture) -> None:
    written = asyncio.Event()
    frontier: Any = Figures()
    counts = frontier.counts

    async def count() -> Counts:
        if len(lines.messages) >= 3:
            written.set()
        result: Counts = await counts()
        return result

    frontier.counts = count
    crawl_log = CrawlLog(Progress(started=0.0), frontier, interval=0.0, check_seconds=0.0)
    async with asyncio.timeout(30), crawl_log.written():
        await written.wait()
    assert len([line for line in lines.messages if line.startswith("minute ")]) >= 4


def test_every_pause_has_a_cause_and_an_end(lines: pytest.LogCaptureFixture) -> None:
    now = [10.0]
    pauses = PauseLog(lambda: now[0])
    pauses.note({})
    pauses.note({"disk": "paused: no room"})
    now[0] = 15.0
    pauses.note({"disk": "paused: still no room", "memory": "slowed"})
    now[0] = 20.5
    pauses.note({"memory": "slowed"})
    pauses.note({})
    assert lines.messages == [
        'pause cause=disk why="paused: no room"',
        "pause cause=memory why=slowed",
        "pause-end cause=disk seconds=10.5",
        "pause-end cause=memory seconds=5.5",
    ]


def test_settings_are_one_line_each_with_what_differs_from_the_default() -> None:
    settings = Settings(
        email="me@crawler.test", delay=5.0, connect_to=("a=b", "c=d"), limits=Limits(max_pages=10), sitemaps=True
    )
    found = settings_lines(settings)
    for line in (
        "setting email=me@crawler.test",
        "setting delay=5 default=70",
        'setting connect_to="a=b,c=d" default=-',
        "setting limits.max_pages=10 default=-",
        "setting limits.max_duration=-",
        "setting sitemaps=True default=False",
        "setting timeout=60",
    ):
        assert line in found
    assert all(line.startswith("setting ") for line in found)


CRASHING = """
import logging, os, signal, sys
from pathlib import Path
from rove.app.log_file import LogFile
handler = LogFile(Path(sys.argv[1]), takes_stderr=True, max_bytes=300)
log = logging.getLogger("rove")
log.addHandler(handler)
log.warning("x" * 250)
log.warning("this one is in a new file")
os.write(2, b"a library complains\\n")
os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.system
def test_the_log_takes_standard_error_and_crashes_even_after_a_rotation(tmp_path: Path) -> None:
    file = tmp_path / "rove-1.log"
    result = subprocess.run([sys.executable, "-c", CRASHING, file], capture_output=True, timeout=60, check=False)
    assert result.returncode < 0 and result.stderr == b""
    assert "xxx" in file.with_name("rove-1.log.1").read_text()
    text = file.read_text()
    assert text.index("this one is in a new file") < text.index("a library complains")
    assert "Fatal Python error: Segmentation fault" in text
