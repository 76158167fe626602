"""Shows a running crawl: as a panel on a terminal, elsewhere as one line of text every ten seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel as Frame
from rich.table import Table
from rich.text import Text

from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Counters, Progress, ceiling_share
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier
from rove.humanize import counted, seconds_text, size_text
from rove.model.ledger import Counts

TERMINAL_SECONDS = 1.0
ERRORS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class View:
    """The numbers on display at one moment."""

    counters: Counters
    counts: Counts
    rate: float
    average: float
    share: float | None
    """The visits made, as a share of those that politeness allows."""
    left: str
    """The time and the pages until a limit is reached; '' without a limit."""
    seconds: float


class Panel:
    """Shows a crawl until the task is cancelled."""

    def __init__(
        self,
        console: Console,
        *,
        progress: Progress,
        frontier: Frontier,
        delay: float,
        remaining_limits: RemainingLimits,
        clock: Callable[[], float] = steady_seconds,
        plain_seconds: float = 10.0,
    ) -> None:
        """`plain_seconds` is the time between two lines where there is no terminal."""
        self._console = console
        self._progress = progress
        self._frontier = frontier
        self._delay = delay
        self._remaining_limits = remaining_limits
        self._clock = clock
        self._plain_seconds = plain_seconds

    async def show(self) -> None:
        """Show the current numbers again and again."""
        if not self._console.is_terminal:
            while True:
                await asyncio.sleep(self._plain_seconds)
                self._console.print(plain_line(await self.view()), soft_wrap=True)
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(frame(await self.view()), refresh=True)
                await asyncio.sleep(TERMINAL_SECONDS)

    async def view(self) -> View:
        """Collect the current numbers."""
        progress = self._progress
        counts = await self._frontier.counts()
        now = self._clock()
        domains = counts.domains
        with_work = domains["waiting"] + domains["ready"] + domains["leased"]
        return View(
            counters=progress.snapshot(),
            counts=counts,
            rate=progress.pages_per_second(),
            average=progress.average(now),
            share=ceiling_share(progress.visits_per_second(), with_work, self._delay),
            left=self._left(counts),
            seconds=now - progress.started,
        )

    def _left(self, counts: Counts) -> str:
        parts = []
        seconds = self._remaining_limits.seconds_left()
        pages = self._remaining_limits.pages_left(counts.pages)
        if seconds is not None:
            parts.append(seconds_text(max(0.0, seconds)))
        if pages is not None:
            rate = self._progress.pages_per_second()
            time = f" (about {seconds_text(pages / rate)})" if rate > 0 else ""
            parts.append(f"{counted(max(0, pages), 'page')}{time}")
        return ", ".join(parts)


def plain_line(view: View) -> str:
    """Return the view as one line of text."""
    counters, domains = view.counters, view.counts.domains
    return (
        f"{seconds_text(view.seconds)}: {counted(counters.pages, 'page')}, {view.rate:.1f}/s now, "
        f"{view.average:.1f}/s on average, {size_text(counters.bytes)}, {counters.in_flight} in flight, "
        f"domains {domains['ready']:,} ready {domains['waiting']:,} waiting {domains['leased']:,} leased, "
        f"{view.counts.urls_pending:,} URLs pending, {_percent(view.share)} of the politeness ceiling, "
        f"{counters.errors.total():,} errors"
        + (f", left: {view.left}" if view.left else "")
        + (f", {counters.trouble}" if counters.trouble else "")
    )


def frame(view: View) -> Frame:
    """Return the view as a panel."""
    counters, domains = view.counters, view.counts.domains
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(min_width=14)
    table.add_column(style="dim")
    table.add_column()
    table.add_row("pages", Text(f"{counters.pages:,}", style="bold"), "domains ready", f"{domains['ready']:,}")
    table.add_row("pages/s now", Text(f"{view.rate:.1f}", style="bold"), "waiting", f"{domains['waiting']:,}")
    table.add_row("on average", f"{view.average:.1f}", "leased", f"{domains['leased']:,}")
    table.add_row("received", size_text(counters.bytes), "idle", f"{domains['idle']:,}")
    table.add_row("in flight", f"{counters.in_flight:,}", "URLs pending", f"{view.counts.urls_pending:,}")
    table.add_row("running for", seconds_text(view.seconds), "ceiling used", _percent(view.share))
    errors = ", ".join(f"{name} {count:,}" for name, count in counters.errors.most_common(ERRORS_SHOWN))
    below = Table.grid(padding=(0, 2))
    below.add_column(style="dim")
    below.add_column()
    below.add_row("errors", errors or "none")
    below.add_row("left", view.left or "until all URLs are done")
    if counters.trouble:
        below.add_row("state", Text(counters.trouble, style="bold"))
    return Frame(Group(table, below), title="rove", title_align="left", expand=False)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
