"""One `rove crawl` or `rove join`, from the options that the user gave to the summary."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from rove import __version__
from rove.admin.apply_exclusions import domains_excluded
from rove.admin.apply_rules import RulesApplier
from rove.app.concurrency import available_cores, bounds_per_process, process_count, raise_open_files
from rove.app.control import Control, StoppedInPreparation, beside
from rove.app.crawl_log import CrawlLog, settings_lines
from rove.app.dashboard_process import DashboardProcess
from rove.app.diagnosis import Diagnosis
from rove.app.limit_watch import LimitWatch, limit_watch
from rove.app.limits_line import GIVEN, limits_line
from rove.app.log_file import start_logging
from rove.app.metrics import metrics_served
from rove.app.preparation import CrawlOptions, check, check_directory, prepare
from rove.app.process import gate_of
from rove.app.proxies import proxy_note
from rove.app.recovery import recover_requests, recover_store
from rove.app.run_figures import has_had_company, stored_figures
from rove.app.runner import RunContext, Runner
from rove.app.running import Running
from rove.app.seeds import SeedLoader
from rove.app.suspicions import tell_suspicions
from rove.config import settings_from_json
from rove.crawl.backoff_wait import backoffs_end
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Counters
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir, Remote
from rove.errors import RoveError
from rove.frontier.backends import backend_for, form_of, policy_of, remote_given
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Backend
from rove.frontier.records import FailingDomain
from rove.frontier.runs import crawled_seconds
from rove.inspect.pauses import scope_options
from rove.model.counts import Counts
from rove.model.samples import Sample
from rove.notation.log_line import log_line
from rove.observe.machine import Machine
from rove.observe.metrics.accumulator import Accumulator
from rove.observe.sampler import Sampler
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules

REPEAT_SECONDS = 60.0
"""News that several processes report within this time is shown once."""
REVISION_SECONDS = 2.0
"""How often a crawl checks for changed settings."""

MAX_FAILING_SHOWN = 1_000
"""Failing domains that the summary of a run looks at."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a run ended."""

    ending: Ending
    counters: Counters
    seconds: float
    counts: Counts
    failing: Sequence[FailingDomain] = ()
    """The sites that keep failing and have pending URLs, in the order in which they are tried again."""

    def followed_by(self, later: Summary) -> Summary:
        """Return the summary of two runs, one after the other."""
        return replace(later, counters=self.counters + later.counters, seconds=self.seconds + later.seconds)


class CrawlApp:
    """One `rove crawl` or `rove join`."""

    def __init__(
        self,
        options: CrawlOptions,
        *,
        say: Callable[[str], None],
        watch: Callable[[Runner, RunContext, LimitWatch], Coroutine[Any, Any, None]],
        diagnosis: Diagnosis | None = None,
        outage_rules: OutageRules = DEFAULT_OUTAGE_RULES,
    ) -> None:
        """`say` shows a sentence; `watch` shows the running crawl, and what limits it, until it is cancelled.

        `diagnosis` writes reports about this process.
        """
        self._options = options
        self._show = say
        self._watch = watch
        self._diagnosis = diagnosis
        self._outage_rules = outage_rules
        self._told: dict[str, float] = {}
        self._control: Control | None = None
        self._metrics = Accumulator()

    def stop(self) -> bool:
        """Stop the crawl, or give up its preparation. Return whether it is running."""
        return self._control is not None and self._control.stop()

    def kill(self) -> None:
        """Kill the worker processes, if there are any."""
        if self._control is not None:
            self._control.kill()

    async def run(self) -> Summary | Ending:
        """Crawl until the end and return the summary; only the ending if the crawl is stopped before it runs."""
        options, data = self._options, DataDir(self._options.data_dir)
        check_directory(options, data)
        remote = remote_given(data, options.frontier, options.crawl_name)
        control = self._control = Control(data, scope_options(data, remote), say=self._say)
        backend = backend_for(data, remote, on_news=self._tell)
        try:
            async with metrics_served(options.metrics, self._metrics.reading, self._say):
                with control.preparing():
                    await check(options, backend)
                with data.held():
                    async with beside(control.follow_file()):
                        return await self._prepare_and_run(data, remote, backend, control)
        except StoppedInPreparation:
            assert control.ending is not None, "the owner has stopped the crawl"
            return control.ending

    async def _prepare_and_run(
        self, data: DataDir, remote: Remote | None, backend: Backend, control: Control
    ) -> Summary:
        options, known = self._options, data.remote()
        try:
            with control.preparing():
                await data.wait_for_workers(self._say)
                with _remembered(data, remote):
                    identity = known.crawl if known else ""
                    await prepare(options, data, backend, identity=identity, say=self._say)
                if remote is not None:
                    identity = await backend.catalog.identity()
                    data.remember(msgspec.structs.replace(remote, crawl=identity))
                start_logging(data.log, options.log_level)
                if note := proxy_note(os.environ):
                    self._tell(note)
                await control.begin_everywhere(backend.catalog)
            async with beside(control.follow_catalog(backend.catalog), self._dashboard(data)):
                return await self._run_until_end(data, remote, backend, control)
        finally:
            await backend.close()

    async def _run_until_end(self, data: DataDir, remote: Remote | None, backend: Backend, control: Control) -> Summary:
        """Run the crawl, and run it again whenever another machine changes its settings."""
        summary: Summary | None = None
        given = [*self._options.settings, *self._options.limits, *self._options.machine_settings]
        files = self._options.sources
        sources = {name: f"from {files[name]}" if name in files else GIVEN for name in given}
        while True:
            try:
                with control.preparing():
                    context = await self._begin_run(data, remote, backend, sources)
            except StoppedInPreparation:
                if summary is None or control.ending is None:
                    raise
                return replace(summary, ending=control.ending)
            sources = {}
            run = await self._run(context, control)
            summary = run if summary is None else summary.followed_by(run)
            if summary.ending is not Ending.CHANGED:
                return summary
            self._say("the settings of the crawl were changed; continuing with the new ones")

    async def _begin_run(
        self, data: DataDir, remote: Remote | None, backend: Backend, sources: Mapping[str, str]
    ) -> RunContext:
        """Recover from earlier crashes and start a run with the settings in the catalog.

        `sources` says where settings were given, for those that were given now.
        """
        revision = await backend.catalog.revision()
        saved = await backend.catalog.settings()
        assert saved is not None, "a crawl that is prepared has settings"
        settings = replace(settings_from_json(saved), **self._options.machine_settings).checked()
        log.info("%s", log_line("start", version=__version__, data_dir=data.root, frontier=backend.location))
        for line in settings_lines(settings):
            log.info("%s", line)
        earlier_runs = await backend.reader.runs()
        crawled = crawled_seconds(earlier_runs)
        self._say(limits_line(settings, sources, pages=(await backend.reader.counts()).pages, seconds=crawled))
        await recover_store(data.warc)
        processes = process_count(
            self._options.processes, cores=available_cores(), concurrency=settings.concurrency, is_sqlite=remote is None
        )
        bounds = bounds_per_process(settings, processes, open_files=raise_open_files(), say=self._say)
        run = await backend.begin_run()
        # Measured after the run has begun, so that a time limit that this process finds reached is reached by the
        # run's own record too.
        remaining_limits = RemainingLimits(
            limits=settings.limits, seconds_before=crawled - settings.limits.seconds_before, started=steady_seconds()
        )
        frontier = await backend.begin(policy_of(settings), run if processes == 1 else None)
        suspicions = await recover_requests(frontier, data.inflight_log, delay=settings.delay)
        tell_suspicions(suspicions, self._say)
        form = await form_of(backend.catalog, settings)
        await frontier.exclude(domains_excluded(await backend.catalog.exclusions(), form))
        return RunContext(
            data=data,
            remote=remote,
            backend=backend,
            frontier=frontier,
            settings=settings,
            revision=revision,
            run=run,
            is_first_run=not earlier_runs,
            remaining_limits=remaining_limits,
            bounds=bounds,
            outage_rules=self._outage_rules,
            backoffs_end=await backoffs_end(frontier, now=steady_seconds()) if earlier_runs else 0.0,
        )

    async def _run(self, context: RunContext, control: Control) -> Summary:
        before = await context.frontier.counts()
        running = Running(context, log_level=self._options.log_level, say=self._say, on_news=self._tell)
        async with running.runner() as runner:
            if self._diagnosis is not None:
                self._diagnosis.attach(runner.accounts)
            with control.running(runner):
                loader = await self._loader(context)
                limits = limit_watch(context, runner.progress)

                def note_sample(sample: Sample) -> None:
                    self._metrics.take(sample, limiting=limits.latest)
                    limits.note_sample(sample)

                sampler = Sampler(
                    context.frontier,
                    Machine(context.data.root),
                    take=lambda: self._metrics.noted(running.take_samples()),
                    is_loading=lambda: loader.is_loading,
                    on_sample=note_sample,
                )
                async with (
                    sampler.running(),
                    CrawlLog(runner.progress, context.frontier, limits=limits).written(),
                    beside(
                        self._watch(runner, context, limits),
                        _stop_when_changed(runner, context),
                        self._applier(context).run(context.backend.reader),
                    ),
                ):
                    ending = await runner.run(loader)
        seconds = steady_seconds() - context.remaining_limits.started
        counters, counts = runner.progress.snapshot(), await context.frontier.counts()
        if not has_had_company(await context.backend.reader.participants(), seconds):
            counters = stored_figures(counters, before=before, after=counts)
        log.info("%s", log_line("end", ending=ending, seconds=seconds, pages=counters.pages))
        return Summary(
            ending=ending,
            counters=counters,
            seconds=seconds,
            counts=counts,
            failing=await context.backend.reader.failing_domains(MAX_FAILING_SHOWN),
        )

    async def _dashboard(self, data: DataDir) -> None:
        if self._options.dashboard is not None:
            # Not `_say` for the address with the token: it would be in the log.
            await DashboardProcess(data, self._options.dashboard, say=self._say, show=self._show).run()

    def _applier(self, context: RunContext) -> RulesApplier:
        return RulesApplier(context.frontier, context.backend.catalog, context.settings.rules, say=self._say)

    async def _loader(self, context: RunContext) -> SeedLoader:
        return SeedLoader(
            frontier=context.frontier,
            catalog=context.backend.catalog,
            gate=await gate_of(context.backend.catalog, context.settings),
            directory=context.data.root,
            delay=context.settings.delay,
            form=await form_of(context.backend.catalog, context.settings),
            say=self._say,
        )

    def _say(self, sentence: str) -> None:
        """Show a sentence, and log it, because nobody may be looking."""
        log.info("%s", sentence)
        self._show(sentence)

    def _tell(self, sentence: str) -> None:
        """Show news, but only once if several processes report the same at about the same time."""
        log.warning("%s", sentence)
        subject, now = " ".join(sentence.split()[:4]), steady_seconds()
        if now - self._told.get(subject, -REPEAT_SECONDS) >= REPEAT_SECONDS:
            self._told[subject] = now
            self._show(sentence)


async def _stop_when_changed(runner: Runner, context: RunContext) -> None:
    """Stop this run when another machine saves new settings, so that all machines use the same."""
    while True:
        await asyncio.sleep(REVISION_SECONDS)
        try:
            revision = await context.backend.catalog.revision()
        except RoveError as error:
            log.warning("could not check for changed settings: %s", error)
            continue
        if revision != context.revision:
            runner.stop(Ending.CHANGED)
            return


@contextmanager
def _remembered(data: DataDir, remote: Remote | None) -> Iterator[None]:
    """Save in the data directory which database holds the crawl; undo that if an exception is raised."""
    before = data.remote()
    if remote is not None:
        data.remember(remote)
    try:
        yield
    except BaseException:
        if before is not None:
            data.remember(before)
        elif remote is not None:
            data.forget()
        raise
