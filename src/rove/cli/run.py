"""Runs a crawl on the terminal: with the panel, signals, a summary and an exit code."""

from __future__ import annotations

import os
import shlex

import uvloop
from rich.console import Console

from rove.app.application import CrawlApp, Summary
from rove.app.panel import PLAIN_SECONDS, Panel
from rove.app.preparation import CrawlOptions
from rove.app.runner import RunContext, Runner
from rove.cli.options import DEFAULT_DATA_DIR
from rove.cli.output import crawl_console
from rove.cli.terminal import StopSignals
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir
from rove.harmless import one_line
from rove.humanize import counted, seconds_text, size_text
from rove.resources.runtime import tune_process

_LIMIT_OPTIONS = {Ending.MAX_PAGES: "--max-pages", Ending.MAX_DURATION: "--max-duration"}


def run_crawl(options: CrawlOptions) -> int:
    """Crawl, shut down at the first signal, and return the exit code."""
    console = crawl_console(quiet=options.quiet)

    async def watch(runner: Runner, context: RunContext) -> None:
        if not options.quiet:
            await panel_of(console, runner, context, plain_seconds=options.progress_interval).show()

    app = CrawlApp(options, say=lambda line: console.print(one_line(line)), watch=watch)

    def stop() -> None:
        if app.stop():
            console.print("stopping: fetches in flight get a few seconds; press Ctrl-C again to stop at once")

    def end_at_once(number: int) -> None:
        app.kill()
        console.show_cursor()
        console.print(f"stopped at once; continue with: {_resume_command(options)}")
        os._exit(128 + number)

    signals = StopSignals(stop, end_at_once)

    async def run() -> Summary | Ending:
        signals.install()
        return await app.run()

    tune_process()
    try:
        result = uvloop.run(run())
    except KeyboardInterrupt:
        return 130
    if isinstance(result, Ending):
        console.print(f"{result} before the crawl began; nothing was fetched")
        if DataDir(options.data_dir).holds_crawl:
            console.print(f"continue with: {_resume_command(options)}")
        ending = result
    else:
        _print_summary(console, options, result)
        ending = result.ending
    if signals.received is not None and ending is Ending.STOPPED:
        return 128 + signals.received
    return 0


def panel_of(console: Console, runner: Runner, context: RunContext, *, plain_seconds: float = PLAIN_SECONDS) -> Panel:
    """Return the panel of a running crawl."""
    return Panel(
        console,
        progress=runner.progress,
        frontier=context.frontier,
        remaining_limits=context.remaining_limits,
        plain_seconds=plain_seconds,
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
    if was_reached_before and options.join:
        console.print(f"the crawl had reached its {limit} before; 'rove crawl --resume' continues it without the limit")
    elif ending is Ending.EXHAUSTED and pending:
        console.print(f"{pending:,} URLs are left: their sites keep failing, or a limit per domain was reached")
    elif pending:
        console.print(f"{pending:,} URLs are pending; continue with: {_resume_command(options)}")


def _resume_command(options: CrawlOptions) -> str:
    where = "" if options.data_dir == DEFAULT_DATA_DIR else f"--data-dir {shlex.quote(str(options.data_dir))}"
    return " ".join(filter(None, ["rove crawl --resume", where]))
