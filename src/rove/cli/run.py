"""Runs a crawl on the terminal: with the panel, signals, a summary and an exit code."""

from __future__ import annotations

import os
import shlex
import sys
from functools import partial
from typing import TextIO, cast

import uvloop
from rich.console import Console

from rove.app.application import CrawlApp
from rove.app.panel import Panel
from rove.app.preparation import CrawlOptions
from rove.app.runner import RunContext, Runner
from rove.cli.conclusion import conclude
from rove.cli.options import DEFAULT_DATA_DIR
from rove.cli.terminal import SafeOutput, StopSignals
from rove.crawl.shutdown import Ending
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules
from rove.resources.runtime import tune_process


def run_crawl(options: CrawlOptions, *, outage_rules: OutageRules = DEFAULT_OUTAGE_RULES) -> int:
    """Crawl, shut down at the first signal, and return the exit code."""
    console = Console(file=cast(TextIO, SafeOutput(sys.stderr)), highlight=False, soft_wrap=True, markup=False)
    signals: StopSignals | None = None

    async def watch(runner: Runner, context: RunContext) -> None:
        nonlocal signals

        def stop() -> None:
            runner.stop()
            console.print("stopping: fetches in flight get a few seconds; press Ctrl-C again to stop at once")

        def end_at_once(number: int) -> None:
            runner.kill()
            console.show_cursor()
            console.print(f"stopped at once; continue with: {_resume_command(options)}")
            os._exit(128 + number)

        signals = StopSignals(stop, end_at_once)
        signals.install()
        await panel_of(console, runner, context).show()

    tune_process()
    app = CrawlApp(options, say=console.print, watch=watch, outage_rules=outage_rules)
    try:
        summary = uvloop.run(app.run())
    except KeyboardInterrupt:
        return 130
    conclusion = conclude(summary, partial(_resume_command, options))
    for line in conclusion.lines:
        console.print(line)
    if signals is not None and signals.received is not None and summary.ending is Ending.STOPPED:
        return 128 + signals.received
    return conclusion.exit_code


def panel_of(console: Console, runner: Runner, context: RunContext) -> Panel:
    """Return the panel of a running crawl."""
    return Panel(
        console,
        progress=runner.progress,
        frontier=context.frontier,
        delay=context.settings.delay,
        remaining_limits=context.remaining_limits,
    )


def _resume_command(options: CrawlOptions, limit: str = "") -> str:
    where = "" if options.data_dir == DEFAULT_DATA_DIR else f"--data-dir {shlex.quote(str(options.data_dir))}"
    return " ".join(filter(None, ["rove crawl --resume", where, limit]))
