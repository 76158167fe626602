"""Runs a crawl on the terminal: with the panel, signals, a summary and an exit code."""

from __future__ import annotations

import os
from functools import partial

import uvloop

from rove.app.application import CrawlApp, Summary
from rove.app.diagnosis import Diagnosis
from rove.app.limit_watch import LimitWatch
from rove.app.panel import Panel
from rove.app.preparation import CrawlOptions
from rove.app.run_figures import is_whole_crawl
from rove.app.run_view import RunView
from rove.app.runner import RunContext, Runner
from rove.cli.conclusion import conclude
from rove.cli.output import crawl_console, print_sentence
from rove.cli.resume import resume_command
from rove.cli.terminal import StopSignals
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules
from rove.resources.runtime import tune_process


def run_crawl(
    options: CrawlOptions, *, can_resume: bool = True, outage_rules: OutageRules = DEFAULT_OUTAGE_RULES
) -> int:
    """Crawl, shut down at the first signal, and return the exit code.

    Without `can_resume`, nothing is said about continuing the crawl.
    """
    console = crawl_console(quiet=options.quiet)

    panels: list[Panel] = []
    diagnosis = Diagnosis("rove", DataDir(options.data_dir).log)

    async def watch(runner: Runner, context: RunContext, limits: LimitWatch) -> None:
        if not options.quiet:
            panel = Panel(console, view_of(runner, context, limits).view, plain_seconds=options.progress_interval)
            panels[:] = [panel]
            await panel.show()

    app = CrawlApp(
        options, say=partial(print_sentence, console), watch=watch, diagnosis=diagnosis, outage_rules=outage_rules
    )

    def stop() -> None:
        if app.stop():
            console.print("stopping: fetches in flight get a few seconds; press Ctrl-C again to stop at once")

    def end_at_once(number: int) -> None:
        app.kill()
        for panel in panels:
            panel.erase()
        console.show_cursor()
        advice = f"; continue with: {resume_command(options.data_dir)}" if can_resume else ""
        console.print(f"stopped at once{advice}")
        os._exit(128 + number)

    signals = StopSignals(stop, end_at_once)

    async def run() -> Summary | Ending:
        signals.install()
        return await app.run()

    tune_process()
    diagnosis.install()
    try:
        result = uvloop.run(run())
    except KeyboardInterrupt:
        return 130
    if isinstance(result, Ending):
        console.print(f"{result} before the crawl began; nothing was fetched")
        if can_resume and DataDir(options.data_dir).holds_crawl:
            console.print(f"continue with: {resume_command(options.data_dir)}")
        ending, exit_code = result, 0
    else:
        conclusion = conclude(
            result, resume_command=resume_command(options.data_dir) if can_resume else "", has_joined=options.join
        )
        for line in conclusion.lines:
            print_sentence(console, line)
        ending, exit_code = result.ending, conclusion.exit_code
    if signals.received is not None and ending is Ending.STOPPED:
        return 128 + signals.received
    return exit_code


def view_of(runner: Runner, context: RunContext, limits: LimitWatch) -> RunView:
    """Return the view of a running crawl."""
    return RunView(
        progress=runner.progress,
        frontier=context.frontier,
        remaining_limits=context.remaining_limits,
        limits=limits,
        is_whole_crawl=partial(is_whole_crawl, context),
    )
