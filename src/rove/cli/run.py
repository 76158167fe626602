"""Runs a crawl on the terminal: with the panel, signals, a summary and an exit code."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal

import uvloop
from rich.console import Console

from rove.app.application import CrawlApp, Summary
from rove.app.panel import Panel
from rove.app.preparation import CrawlOptions
from rove.app.runner import RunContext, Runner
from rove.cli.options import DEFAULT_DATA_DIR
from rove.crawl.shutdown import Ending
from rove.humanize import counted, seconds_text, size_text
from rove.resources.runtime import tune_process

_LIMIT_OPTIONS = {Ending.MAX_PAGES: "--max-pages N", Ending.MAX_DURATION: "--max-duration TIME"}


def run_crawl(options: CrawlOptions) -> int:
    """Crawl, shut down at the first signal, and return the exit code."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    received: list[int] = []

    async def watch(runner: Runner, context: RunContext) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop, runner, number)
        await panel_of(console, runner, context).show()

    def stop(runner: Runner, number: int) -> None:
        if received:
            console.print("stopped at once")
            runner.kill()
            os._exit(128 + number)
        received.append(number)
        console.print("stopping: fetches in flight get a few seconds; press Ctrl-C again to stop at once")
        runner.stop()

    tune_process()
    app = CrawlApp(options, say=console.print, watch=watch)
    try:
        summary = uvloop.run(app.run())
    except KeyboardInterrupt:
        return 130
    _print_summary(console, options, summary)
    return 128 + received[0] if received and summary.ending is Ending.STOPPED else 0


def panel_of(console: Console, runner: Runner, context: RunContext) -> Panel:
    """Return the panel of a running crawl."""
    return Panel(
        console,
        progress=runner.progress,
        frontier=context.frontier,
        delay=context.settings.delay,
        remaining_limits=context.remaining_limits,
    )


def _print_summary(console: Console, options: CrawlOptions, summary: Summary) -> None:
    counters, ending, pending = summary.counters, summary.ending, summary.counts.urls_pending
    console.print(
        f"{ending}: {counted(counters.pages, 'page')}, {size_text(counters.bytes)}, "
        f"{counters.requests:,} requests in {seconds_text(summary.seconds)} "
        f"({counters.pages / max(summary.seconds, 0.001):.1f} pages/s)"
    )
    limit = _LIMIT_OPTIONS.get(ending, "")
    was_reached_before = (ending is Ending.MAX_PAGES and not counters.pages) or (
        ending is Ending.MAX_DURATION and summary.seconds < 1
    )
    if was_reached_before:
        console.print(f"an earlier run reached this limit; to continue, set a new one with {limit}")
    elif ending is Ending.EXHAUSTED and pending:
        console.print(f"{pending:,} URLs are left: their sites keep failing, or a limit per domain was reached")
    elif pending:
        words = ["rove crawl --resume", limit]
        if options.data_dir != DEFAULT_DATA_DIR:
            words.insert(1, f"--data-dir {shlex.quote(str(options.data_dir))}")
        command = " ".join(filter(None, words))
        console.print(f"{pending:,} URLs are pending; continue with: {command}")
