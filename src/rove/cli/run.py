"""Runs a crawl on the terminal: with the panel, signals, a summary and an exit code."""

from __future__ import annotations

import os
import shlex

import uvloop
from rich.console import Console

from rove.app.application import CrawlApp, Summary
from rove.app.panel import Panel
from rove.app.preparation import CrawlOptions
from rove.app.runner import RunContext, Runner
from rove.cli.conclusion import conclude
from rove.cli.options import DEFAULT_DATA_DIR
from rove.cli.output import crawl_console
from rove.cli.terminal import StopSignals
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir
from rove.harmless import one_line
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules
from rove.resources.runtime import tune_process


def run_crawl(options: CrawlOptions, *, outage_rules: OutageRules = DEFAULT_OUTAGE_RULES) -> int:
    """Crawl, shut down at the first signal, and return the exit code."""
    console = crawl_console()

    async def watch(runner: Runner, context: RunContext) -> None:
        await panel_of(console, runner, context).show()

    app = CrawlApp(options, say=lambda line: console.print(one_line(line)), watch=watch, outage_rules=outage_rules)

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
        ending, exit_code = result, 0
    else:
        conclusion = conclude(result, resume_command=_resume_command(options), has_joined=options.join)
        for line in conclusion.lines:
            console.print(one_line(line))
        ending, exit_code = result.ending, conclusion.exit_code
    if signals.received is not None and ending is Ending.STOPPED:
        return 128 + signals.received
    return exit_code


def panel_of(console: Console, runner: Runner, context: RunContext) -> Panel:
    """Return the panel of a running crawl."""
    return Panel(
        console,
        progress=runner.progress,
        frontier=context.frontier,
        delay=context.settings.delay,
        remaining_limits=context.remaining_limits,
    )


def _resume_command(options: CrawlOptions) -> str:
    where = "" if options.data_dir == DEFAULT_DATA_DIR else f"--data-dir {shlex.quote(str(options.data_dir))}"
    return " ".join(filter(None, ["rove crawl --resume", where]))
