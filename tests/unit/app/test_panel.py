"""The panel: one view as a line and as a panel, and where the numbers come from."""

from __future__ import annotations

import asyncio
import io
import signal
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from rove.app.limit_watch import LimitWatch, Surroundings
from rove.app.panel import Panel
from rove.app.panel_layout import Dashboard
from rove.app.panel_view import View, plain_line
from rove.app.run_view import RunView
from rove.config import Limits
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Counters, Progress
from rove.model.counts import Counts
from rove.model.request_counts import request_counts
from rove.model.urls import UrlState
from rove.policy.limiting import Factor, Limiting

DOMAINS = {"idle": 1, "waiting": 2_000, "ready": 30, "leased": 4, "excluded": 5}
REQUESTS = {
    "requests.page": 100_000,
    "requests.robots": 3_000,
    "errors.page.status-404": 1_200,
    "errors.page.timeout-connect": 30,
    "errors.robots.dns": 12,
}
COUNTS = Counts(
    urls=dict.fromkeys(UrlState, 0) | {UrlState.PENDING: 1_234_567},
    domains=DOMAINS,
    pages=1_207_000,
    bytes=80 * 1024**3,
    request_counts=request_counts({name: 10 * count for name, count in REQUESTS.items()}),
)
NO_DOMAINS = dict.fromkeys(DOMAINS, 0)
EMPTY_COUNTS = Counts(
    urls=dict.fromkeys(UrlState, 0), domains=NO_DOMAINS, pages=0, bytes=0, request_counts=request_counts({})
)
TYPICAL = View(
    counters=Counters(
        pages=98_765,
        bytes=5 * 1024**3,
        in_flight=432,
        at_once=1_500,
        held_by=Counter(cpu=2),
        request_counters=Counter(REQUESTS),
    ),
    counts=COUNTS,
    rate=12.34,
    average=5.67,
    share=0.985,
    left="12 min 05 s, 100 pages",
    seconds=3_700.0,
    limiting=Limiting(
        factor=Factor.CPU, why="the crawl gets 1.8 of 2 cores; 30 domains are ready. More cores or machines would help"
    ),
)
EMPTY = View(counters=Counters(), counts=EMPTY_COUNTS, rate=0.0, average=0.0, share=None, left="", seconds=0.0)
ONE_SEED = View(
    counters=Counters(pages=1, visits=1, request_counters=Counter({"requests.robots": 1, "requests.page": 1})),
    counts=replace(
        EMPTY_COUNTS,
        pages=1,
        domains=NO_DOMAINS | {"waiting": 1},
        request_counts=request_counts({"requests.robots": 1, "requests.page": 1}),
    ),
    rate=0.0,
    average=0.05,
    share=1.0,
    left="",
    seconds=19.0,
    next_visit=51.2,
)
"""A healthy crawl with one seed in its first minute."""


def rendered(view: View, width: int = 100) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Dashboard(view))
    return console.export_text()


def words(text: str) -> str:
    """Return the text without borders and repeated blanks."""
    return " ".join(text.replace("│", " ").split())


WIDTHS = [40, 60, 73, 74, 80, 115, 116, 140, 300]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_is_lost_at_any_width(width: int) -> None:
    text = words(rendered(TYPICAL, width))
    for part in (
        "running for 1 h 01 min",
        "pages stored 98,765 1,207,000",
        "received 5.0 GiB 80.0 GiB",
        "page requests 100,000 1,000,000",
        "failed 1,230 12,300",
        "robots requests 3,000 30,000",
        "failed 12 120",
        "pages per second 12.3",
        "on average 5.7",
        "fetches in flight 432 of 1,500",
        "URLs to fetch 1,234,567",
        "ready to visit 30",
        "being visited 4",
        "wait for their delay 2,000",
        "nothing to fetch 1",
        "excluded 5",
        "98 % of what politeness allows; 30 domains could be visited now",
        "cpu: the crawl gets 1.8 of 2 cores; 30 domains are ready. More cores or machines would help",
        "page: status-404 1,200, timeout-connect 30",
        "robots.txt: dns 12",
        "left 12 min 05 s, 100 pages",
    ):
        assert part in text or width >= 74, part
        assert all(word in text for word in part.split()), part


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", [TYPICAL, EMPTY, ONE_SEED])
def test_the_panel_uses_the_width_of_its_terminal(view: View, width: int) -> None:
    lines = rendered(view, width).splitlines()
    assert {len(line) for line in lines} == {width}
    assert "…" not in "".join(lines)


@pytest.mark.parametrize(("width", "rows"), [(80, 24), (140, 24)])
def test_the_panel_leaves_room_for_messages_on_a_usual_terminal(width: int, rows: int) -> None:
    assert len(rendered(TYPICAL, width).splitlines()) <= rows - 4


def test_a_typical_view_on_one_line() -> None:
    assert plain_line(TYPICAL) == (
        "1 h 01 min: 98,765 pages (1,207,000 in the whole crawl), 12.3/s now, 5.7/s on average, 5.0 GiB, "
        "432 in flight of at most 1,500, domains 30 ready 2,000 waiting 4 leased, 1,234,567 URLs pending, "
        "98 % of what politeness allows, limited by cpu, 1,230 of 100,000 page requests failed, "
        "12 of 3,000 robots.txt requests failed, left: 12 min 05 s, 100 pages"
    )


def test_the_first_run_of_a_crawl_has_no_totals_beside_it() -> None:
    """The frontier counts a page before the run does, so two different numbers would puzzle."""
    first = replace(TYPICAL, is_whole_crawl=True)
    assert plain_line(first).startswith("1 h 01 min: 1,207,000 pages, 12.3/s now, 5.7/s on average, 80.0 GiB")
    for width in WIDTHS:
        text = words(rendered(first, width))
        assert "pages stored 1,207,000 " in text and "98,765" not in text
        assert "so far" in text and "runs" not in text and "this run" not in text


def test_an_empty_view_on_one_line() -> None:
    assert plain_line(EMPTY) == (
        "0.0 s: 0 pages, 0.0/s now, 0.0/s on average, 0 B, 0 in flight, "
        "domains 0 ready 0 waiting 0 leased, 0 URLs pending, no domain has anything to fetch"
    )


def test_an_empty_view_as_a_panel() -> None:
    text = words(rendered(EMPTY))
    for part in ("pages stored 0 0", "state loading the seeds", "left until all URLs are done"):
        assert part in text, part
    assert "errors" not in text and "sitemap" not in text


def test_a_healthy_crawl_with_one_seed_looks_healthy() -> None:
    text = words(rendered(ONE_SEED))
    assert "state the domain waits for the next polite moment: next visit in 51 s" in text
    assert "speed 100 % of what politeness allows left" in text
    assert "errors" not in text and "attention" not in text
    assert ", 100 % of what politeness allows, " in plain_line(ONE_SEED)
    assert plain_line(ONE_SEED).endswith(", next visit in 51 s")


@pytest.mark.parametrize(
    ("view", "state"),
    [
        (TYPICAL, "fetching from 432 domains at once"),
        (replace(TYPICAL, counters=Counters(in_flight=1)), "fetching from 1 domain at once"),
        (replace(TYPICAL, counters=Counters()), "starting visits"),
        (
            replace(TYPICAL, counters=Counters(), next_visit=0.4),
            "all domains wait for the next polite moment: next visit in 0 s",
        ),
        (replace(EMPTY, counters=Counters(visits=1)), "writing the last pages"),
        (replace(TYPICAL, is_stopping=True), "stopping: 432 visits in flight may finish"),
        (replace(ONE_SEED, is_stopping=True), "stopping: writing the last pages"),
    ],
)
def test_the_state_in_words(view: View, state: str) -> None:
    assert view.state == state


def test_only_a_full_share_is_shown_as_one() -> None:
    assert replace(TYPICAL, share=0.9999).speed.startswith("99 %")
    assert replace(TYPICAL, share=0.0).speed.startswith("0 %")


class Counting:
    """A frontier that can only return its counts and when a domain is due."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    async def counts(self) -> Counts:
        return self._counts

    async def next_due(self) -> float | None:
        return 51.0


def limit_watch(progress: Progress, frontier: Any, remaining_limits: RemainingLimits) -> LimitWatch:
    async def surroundings() -> Surroundings:
        return Surroundings()

    return LimitWatch(
        progress, frontier, remaining_limits=remaining_limits, surroundings=surroundings, clock=lambda: 150.0
    )


def run_view_of(limits: Limits | None = None, counts: Counts = COUNTS) -> tuple[RunView, Progress]:
    """Make the view of a crawl that began 50 seconds ago."""
    frontier: Any = Counting(counts)

    async def whole_crawl() -> bool:
        return False

    progress = Progress(started=100.0)
    remaining_limits = RemainingLimits(
        limits=limits or Limits(), seconds_before=0.0, started=100.0, clock=lambda: 150.0
    )
    run_view = RunView(
        progress=progress,
        frontier=frontier,
        remaining_limits=remaining_limits,
        limits=limit_watch(progress, frontier, remaining_limits),
        is_whole_crawl=whole_crawl,
        clock=lambda: 150.0,
    )
    return run_view, progress


async def test_the_view_is_taken_from_the_crawl_and_its_frontier() -> None:
    run_view, progress = run_view_of()
    progress.mark(140.0)
    progress.pages, progress.visits, progress.bytes, progress.in_flight = 100, 290, 12, 3
    progress.mark(150.0)
    view = await run_view.view()
    assert (view.counters.pages, view.counters.bytes, view.counters.in_flight) == (100, 12, 3)
    assert view.rate == pytest.approx(10.0)
    assert view.average == pytest.approx(2.0)
    assert view.seconds == 50.0
    assert view.counts is COUNTS
    # 30 of 2,034 domains with work could be visited now.
    assert view.share == pytest.approx(2004 / 2034)
    assert view.next_visit is None, "domains can be visited now"
    assert view.left == ""
    assert view.limiting is not None and view.limiting.factor is Factor.POLITENESS


@pytest.mark.parametrize(
    ("limits", "pages", "expected"),
    [
        (Limits(max_duration=90.0), 0, "40.0 s"),
        (Limits(max_duration=10.0), 0, "0.0 s"),
        (Limits(max_pages=1000, pages_before=1_206_993), 0, "993 pages"),
        (Limits(max_pages=1000, pages_before=1_207_000), 100, "1,000 pages (about 1 min 40 s)"),
        (Limits(max_pages=1000, pages_before=1_206_993, max_duration=90.0), 0, "40.0 s, 993 pages"),
    ],
)
async def test_what_is_left_until_a_limit(limits: Limits, pages: int, expected: str) -> None:
    run_view, progress = run_view_of(limits)
    progress.mark(140.0)
    progress.pages = pages
    progress.mark(150.0)
    assert (await run_view.view()).left == expected


async def test_the_next_visit_is_named_when_all_domains_wait() -> None:
    run_view, progress = run_view_of(counts=ONE_SEED.counts)
    assert (await run_view.view()).next_visit == 51.0
    progress.in_flight = 1
    assert (await run_view.view()).next_visit is None


async def test_the_panel_shows_the_commonest_kinds_of_errors() -> None:
    run_view, progress = run_view_of()
    progress.request_counters.update({f"errors.page.status-{400 + i}": 10 + i for i in range(9)})
    progress.internal_errors = 3
    text = words(rendered(await run_view.view()))
    assert "errors page: status-408 18, status-407 17, status-406 16, status-405 15 errors internal: 3" in text


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
    run_view, _ = run_view_of()
    panel = Panel(Console(file=paper, width=20), run_view.view, plain_seconds=0.0)
    await shown(panel, paper.holds("\n", times=3))
    line = plain_line(await run_view.view())
    assert paper.getvalue().splitlines()[:3] == [line] * 3, "one line each, however narrow"


async def test_on_a_terminal_a_panel_is_shown() -> None:
    paper = Paper()
    panel = Panel(Console(file=paper, width=100, force_terminal=True), run_view_of()[0].view)
    await shown(panel, paper.holds("left"))
    assert "ready to visit" in paper.getvalue() and "1,234,567" in paper.getvalue()


async def test_a_resized_terminal_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rove.app.panel.TERMINAL_SECONDS", 1_000.0)
    paper = Paper()
    console = Console(file=paper, width=100, force_terminal=True)
    panel = Panel(console, run_view_of()[0].view)

    async def resize() -> None:
        await paper.holds("left")
        console.width = 50
        signal.raise_signal(signal.SIGWINCH)
        await paper.holds("left", times=2)

    await shown(panel, resize())
    assert signal.getsignal(signal.SIGWINCH) is signal.SIG_DFL


@pytest.mark.parametrize("is_terminal", [False, True])
async def test_the_panel_ends_with_the_crawl(is_terminal: bool) -> None:
    views: list[View | None] = [None, TYPICAL, TYPICAL]

    async def view() -> View | None:
        return views.pop()

    paper = Paper()
    console = Console(file=paper, width=100, force_terminal=is_terminal)
    async with asyncio.timeout(30):
        await Panel(console, view, plain_seconds=0.0).show()
    assert not views and paper.getvalue().count("1,207,000") == 2


def test_what_slows_the_crawl_down_is_shown() -> None:
    troubles = {"disk": "paused: no room", "network": "waiting: no site answers"}
    slowed = replace(TYPICAL, counters=Counters(troubles=troubles))
    assert plain_line(slowed).endswith(", paused: no room, waiting: no site answers")
    assert "attention paused: no room attention waiting: no site answers" in words(rendered(slowed))
    assert "attention" not in words(rendered(TYPICAL))
