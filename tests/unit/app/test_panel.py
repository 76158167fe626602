"""The panel: one view as a line and as a panel, and where the numbers come from."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from rove.app.panel import Panel, View, frame, plain_line
from rove.config import Limits
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Counters, Progress
from rove.model.ledger import Counts
from rove.model.urls import UrlState

DOMAINS = {"idle": 1, "waiting": 2_000, "ready": 30, "leased": 4, "excluded": 5}
COUNTS = Counts(
    urls=dict.fromkeys(UrlState, 0) | {UrlState.PENDING: 1_234_567}, domains=DOMAINS, pages=7, bytes=8, requests=9
)
EMPTY_COUNTS = Counts(urls=dict.fromkeys(UrlState, 0), domains=dict.fromkeys(DOMAINS, 0), pages=0, bytes=0, requests=0)
TYPICAL = View(
    counters=Counters(
        pages=98_765, bytes=5 * 1024**3, in_flight=432, errors=Counter({"status-404": 1_200, "timeout-connect": 30})
    ),
    counts=COUNTS,
    rate=12.34,
    average=5.67,
    share=0.456,
    left="12 min 05 s, 100 pages",
    seconds=3_700.0,
)
EMPTY = View(counters=Counters(), counts=EMPTY_COUNTS, rate=0.0, average=0.0, share=None, left="", seconds=0.0)


def rendered(view: View, width: int = 100) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(frame(view))
    return console.export_text()


def words(text: str) -> str:
    """Return the text without borders and repeated blanks."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_is_missing_on_a_narrow_terminal(width: int) -> None:
    text = words(rendered(TYPICAL, width))
    for number in ("98,765", "12.3", "5.0 GiB", "432", "ready 30", "waiting 2,000", "1,234,567"):
        assert number in text
    assert "ceiling used 46 %" in text


def test_a_typical_view_on_one_line() -> None:
    assert plain_line(TYPICAL) == (
        "1 h 01 min: 98,765 pages, 12.3/s now, 5.7/s on average, 5.0 GiB, 432 in flight, "
        "domains 30 ready 2,000 waiting 4 leased, 1,234,567 URLs pending, "
        "46 % of the politeness ceiling, 1,230 errors, left: 12 min 05 s, 100 pages"
    )


def test_an_empty_view_on_one_line() -> None:
    line = plain_line(EMPTY)
    assert line == (
        "0.0 s: 0 pages, 0.0/s now, 0.0/s on average, 0 B, 0 in flight, "
        "domains 0 ready 0 waiting 0 leased, 0 URLs pending, - of the politeness ceiling, 0 errors"
    )


def test_a_typical_view_as_a_panel() -> None:
    text = words(rendered(TYPICAL))
    for part in (
        "rove",
        "pages 98,765",
        "domains ready 30",
        "pages/s now 12.3",
        "waiting 2,000",
        "on average 5.7",
        "leased 4",
        "received 5.0 GiB",
        "idle 1",
        "in flight 432",
        "URLs pending 1,234,567",
        "running for 1 h 01 min",
        "ceiling used 46 %",
        "errors status-404 1,200, timeout-connect 30",
        "left 12 min 05 s, 100 pages",
    ):
        assert part in text, part


def test_an_empty_view_as_a_panel() -> None:
    text = words(rendered(EMPTY))
    for part in ("pages 0", "errors none", "left until all URLs are done", "ceiling used -"):
        assert part in text, part


@pytest.mark.parametrize("width", [40, 80, 100, 300])
def test_the_panel_fits_its_terminal(width: int) -> None:
    assert max(map(len, rendered(TYPICAL, width).splitlines())) <= width


class Counting:
    """A frontier that can only return its counts."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    async def counts(self) -> Counts:
        return self._counts


def panel_of(console: Console, *, limits: Limits | None = None, plain_seconds: float = 10.0) -> tuple[Panel, Progress]:
    """Make a panel of a crawl that began 50 seconds ago."""
    frontier: Any = Counting(COUNTS)
    progress = Progress(started=100.0)
    remaining_limits = RemainingLimits(
        limits=limits or Limits(), seconds_before=0.0, started=100.0, clock=lambda: 150.0
    )
    panel = Panel(
        console,
        progress=progress,
        frontier=frontier,
        delay=70.0,
        remaining_limits=remaining_limits,
        clock=lambda: 150.0,
        plain_seconds=plain_seconds,
    )
    return panel, progress


async def test_the_view_is_taken_from_the_crawl_and_its_frontier() -> None:
    panel, progress = panel_of(Console())
    progress.mark(140.0)
    progress.pages, progress.visits, progress.bytes, progress.in_flight = 100, 290, 12, 3
    progress.errors.update({"dns": 3, "reset": 5})
    progress.mark(150.0)
    view = await panel.view()
    assert (view.counters.pages, view.counters.bytes, view.counters.in_flight) == (100, 12, 3)
    assert view.rate == pytest.approx(10.0)
    assert view.average == pytest.approx(2.0)
    assert view.seconds == 50.0
    assert view.counts is COUNTS
    # 29 visits/s, where politeness allows (2,000 + 30 + 4) / 70.
    assert view.share == pytest.approx(29 / (2034 / 70))
    assert view.counters.errors == {"reset": 5, "dns": 3}
    assert view.left == ""


@pytest.mark.parametrize(
    ("limits", "pages", "expected"),
    [
        (Limits(max_duration=90.0), 0, "40.0 s"),
        (Limits(max_duration=10.0), 0, "0.0 s"),
        (Limits(max_pages=1000), 0, "993 pages"),
        (Limits(max_pages=1000, pages_before=7), 100, "1,000 pages (about 1 min 40 s)"),
        (Limits(max_pages=1000, max_duration=90.0), 0, "40.0 s, 993 pages"),
    ],
)
async def test_what_is_left_until_a_limit(limits: Limits, pages: int, expected: str) -> None:
    panel, progress = panel_of(Console(), limits=limits or Limits())
    progress.mark(140.0)
    progress.pages = pages
    progress.mark(150.0)
    assert (await panel.view()).left == expected


async def test_the_panel_shows_the_commonest_kinds_of_errors() -> None:
    panel, progress = panel_of(Console())
    progress.errors.update({f"status-{400 + i}": 10 + i for i in range(9)})
    text = words(rendered(await panel.view()))
    assert "errors status-408 18, status-407 17, status-406 16, status-405 15 left" in text


async def test_the_line_counts_all_errors_not_only_the_kinds_shown() -> None:
    panel, progress = panel_of(Console())
    progress.errors.update({f"status-{400 + i}": 10 for i in range(9)})
    assert "90 errors" in plain_line(await panel.view())


class Paper(io.StringIO):
    """An output file that a test can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = asyncio.Event()

    def write(self, text: str) -> int:
        self._printed.set()
        return super().write(text)

    async def holds(self, text: str, times: int = 1) -> None:
        """Wait until the text was printed."""
        while self.getvalue().count(text) < times:
            self._printed.clear()
            await self._printed.wait()


async def shown(panel: Panel, enough: Awaitable[None]) -> None:
    """Show the panel until `enough` is done."""
    task = asyncio.ensure_future(panel.show())
    async with asyncio.timeout(10):
        await enough
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled(), task.exception()


async def test_without_a_terminal_lines_are_printed() -> None:
    paper = Paper()
    panel, _ = panel_of(Console(file=paper, width=20), plain_seconds=0.0)
    await shown(panel, paper.holds("\n", times=3))
    line = plain_line(await panel.view())
    assert paper.getvalue().splitlines()[:3] == [line] * 3, "one line each, however narrow"


async def test_on_a_terminal_a_panel_is_shown() -> None:
    paper = Paper()
    panel, _ = panel_of(Console(file=paper, width=100, force_terminal=True))
    await shown(panel, paper.holds("left"))
    assert "domains ready" in paper.getvalue() and "1,234,567" in paper.getvalue()


def test_what_slows_the_crawl_down_is_shown() -> None:
    slowed = replace(TYPICAL, counters=Counters(trouble="paused: no room"))
    assert plain_line(slowed).endswith(", paused: no room")
    assert "state paused: no room" in words(rendered(slowed))
    assert "state" not in words(rendered(TYPICAL))
