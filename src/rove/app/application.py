"""The composition root: it puts the parts of a crawl together, runs it, takes it apart again, and says how it ended."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Protocol

import msgspec

from rove import __version__
from rove.app.preparation import CrawlOrder, check, prepare
from rove.app.process import (
    assembled,
    fitting,
    gate_of,
    raise_open_files,
    start_logging,
)
from rove.app.seeds import SeedLoader
from rove.app.supervisor import Supervisor
from rove.app.worker import WorkOrder
from rove.config import Settings, settings_from_json
from rove.crawl.inflight_log import inflight_files, lost_visits
from rove.crawl.limits import RemainingLimits
from rove.crawl.pressure import fetches_within
from rove.crawl.progress import Progress
from rove.crawl.shutdown import GRACE_SECONDS, Ending
from rove.datadir import DataDir, Remote
from rove.errors import RoveError, UsageError
from rove.frontier.backends import backend_for, policy_of, remote_given
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Backend, Frontier
from rove.frontier.dsn import redacted
from rove.frontier.runs import crawled_seconds
from rove.humanize import size_text
from rove.model.ledger import Counts
from rove.policy.exclusions import whole_domains
from rove.store.recovery import recover

SQLITE_PROCESSES = 3
"""More processes than these wait for each other's turn to write into one SQLite file (docs/performance.md)."""
QUIET_SECONDS = 10.0
"""News that several processes bring within so long is said once."""
LOST_VISITS = 500
"""Visits entered into the ledger in one go after a crash."""
REVISION_SECONDS = 2.0
"""How often a crawl looks whether somebody has changed its settings."""

log = logging.getLogger(__name__)


class Runner(Protocol):
    """Whoever does the crawling: this process, or several others."""

    @property
    def progress(self) -> Progress:
        """How far it is, over all processes of this machine."""

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """End in good order."""

    def kill(self) -> None:
        """End at once all that would outlive this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A crawl under way, for whoever shows it."""

    crew: Runner
    frontier: Frontier
    settings: Settings
    remaining_limits: RemainingLimits
    data: DataDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a run ended."""

    ending: Ending
    progress: Progress
    seconds: float
    counts: Counts


def _together(parts: list[Summary]) -> Summary:
    """A run in which the settings were changed, as one."""
    last = parts[-1]
    progress = Progress(
        started=parts[0].progress.started,
        pages=sum(part.progress.pages for part in parts),
        visits=sum(part.progress.visits for part in parts),
        requests=sum(part.progress.requests for part in parts),
        bytes=sum(part.progress.bytes for part in parts),
        errors=sum((part.progress.errors for part in parts), Counter()),
    )
    seconds = sum(part.seconds for part in parts)
    return replace(last, progress=progress, seconds=seconds)


class CrawlApp:
    """One `rove crawl` or `rove join`."""

    def __init__(
        self,
        order: CrawlOrder,
        *,
        say: Callable[[str], None],
        watch: Callable[[Running], Awaitable[None]],
    ) -> None:
        """`say` shows a sentence; `watch` shows the running crawl until it is cancelled."""
        self._order = order
        self._say = say
        self._watch = watch
        self._told: dict[str, float] = {}

    async def run(self) -> Summary:
        """Crawl from what was asked for to how it ended."""
        data = DataDir(self._order.data_dir)
        known = data.remote()
        order = replace(self._order, crawl_identity=known.crawl if known else "")
        if known is not None and known.crawl and not (order.resume or order.join):
            raise UsageError(
                f"{data.root} belongs to the crawl {known.crawl_name!r} at {redacted(known.url)}; "
                "add --resume to go on with it, or choose another --data-dir"
            )
        remote = remote_given(data, order.frontier, order.crawl_name)
        backend = backend_for(data, remote, on_news=self._tell)
        await check(order, backend)
        with data.held():
            try:
                await data.wait_for_workers(self._say)
                with _remembered(data, remote):
                    await prepare(order, data, backend)
                if remote is not None:
                    identity = await backend.catalog.identity()
                    data.remember(msgspec.structs.replace(remote, crawl=identity))
                start_logging(data.log, order.log_level)
                parts: list[Summary] = []
                while not parts or parts[-1].ending is Ending.CHANGED:
                    if parts:
                        self._say(
                            "the settings of the crawl were changed; going on with the new ones"
                        )
                    parts.append(await self._crawl(await _stage(order, data, remote, backend)))
                return _together(parts)
            finally:
                await backend.close()

    async def _crawl(self, stage: _Stage) -> Summary:
        data, backend, settings = stage.data, stage.backend, stage.settings
        log.info("rove %s starts in %s with %s", __version__, data.root, settings)
        await _recover_store(data)
        remaining_limits = RemainingLimits(
            limits=settings.limits,
            seconds_before=crawled_seconds(await backend.reader.runs())
            - settings.limits.seconds_before,
            started=steady_seconds(),
            clock=steady_seconds,
        )
        processes = self._processes(stage)
        run = await backend.begin_run()
        frontier = await backend.begin(policy_of(settings), run if processes == 1 else None)
        await _recover_requests(stage, frontier, None)
        await frontier.exclude(whole_domains(await backend.catalog.exclusions()))
        lead = self._lead_one if processes == 1 else self._lead_many
        ending, progress = await lead(stage, frontier, remaining_limits, run, processes)
        seconds = steady_seconds() - remaining_limits.started
        log.info("%s after %.1f s, %d pages", ending, seconds, progress.pages)
        counts = await frontier.counts()
        return Summary(ending=ending, progress=progress, seconds=seconds, counts=counts)

    async def _lead_one(
        self,
        stage: _Stage,
        frontier: Frontier,
        remaining_limits: RemainingLimits,
        run: int,
        processes: int,
    ) -> tuple[Ending, Progress]:
        """Crawl in this process."""
        async with assembled(
            data=stage.data,
            settings=stage.settings,
            frontier=frontier,
            catalog=stage.backend.catalog,
            concurrency=self._fetches(stage, 1),
            name="rove",
            remaining_limits=remaining_limits,
            on_news=self._tell,
        ) as crawl:
            loader = await self._loader(stage, frontier)
            async with self._watched(stage, crawl, frontier, remaining_limits):
                ending = await crawl.run(loader)
        return ending, crawl.progress

    async def _lead_many(
        self,
        stage: _Stage,
        frontier: Frontier,
        remaining_limits: RemainingLimits,
        run: int,
        processes: int,
    ) -> tuple[Ending, Progress]:
        """Have other processes crawl."""

        async def on_death(process: int) -> None:
            await _recover_store(stage.data)
            await _recover_requests(stage, frontier, [process] if process else [])

        fetches = self._fetches(stage, processes)
        orders = [
            WorkOrder(
                data_dir=str(stage.data.root),
                remote=stage.remote,
                settings=stage.settings,
                run=run,
                number=number + 1,
                concurrency=fetches // processes + (number < fetches % processes),
                seconds_before=remaining_limits.seconds_before,
                started=remaining_limits.started,
                log_level=self._order.log_level,
            )
            for number in range(processes)
        ]
        supervisor = Supervisor(
            orders,
            progress=Progress(started=remaining_limits.started),
            clock=steady_seconds,
            on_death=on_death,
            say=self._say,
            on_news=self._tell,
            on_stop=lambda: frontier.stop_waiting(2 * GRACE_SECONDS),
        )
        loader = await self._loader(stage, frontier)
        async with self._watched(stage, supervisor, frontier, remaining_limits):
            ending = await supervisor.run(loader.run)
        return ending, supervisor.progress

    @asynccontextmanager
    async def _watched(
        self, stage: _Stage, crew: Runner, frontier: Frontier, remaining_limits: RemainingLimits
    ) -> AsyncIterator[None]:
        """Show the crawl, and look out for changed settings, while it goes on."""
        running = Running(
            crew=crew,
            frontier=frontier,
            settings=stage.settings,
            remaining_limits=remaining_limits,
            data=stage.data,
        )
        tasks = [
            asyncio.ensure_future(self._watch(running)),
            asyncio.ensure_future(_stop_when_changed(stage, crew)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _loader(self, stage: _Stage, frontier: Frontier) -> SeedLoader:
        return SeedLoader(
            frontier=frontier,
            catalog=stage.backend.catalog,
            gate=await gate_of(stage.backend.catalog, stage.settings),
            directory=stage.data.root,
            ignored_params=stage.settings.ignored_params,
            say=self._say,
        )

    def _processes(self, stage: _Stage) -> int:
        """How many processes crawl: as asked, else one a core, as far as the database lets them help."""
        cores = len(os.sched_getaffinity(0))
        most = SQLITE_PROCESSES if stage.remote is None else cores
        wanted = self._order.processes or min(cores, most)
        return min(wanted, stage.concurrency(self._order))

    def _fetches(self, stage: _Stage, processes: int) -> int:
        """Fetches in flight, no more than so many processes may have files open and memory for."""
        wanted, open_files = stage.concurrency(self._order), raise_open_files()
        fetches = wanted
        if open_files is not None and wanted > processes * fitting(open_files):
            fetches = processes * fitting(open_files)
            self._say(
                f"only {open_files:,} files may be open here: "
                f"--concurrency is lowered from {wanted:,} to {fetches:,}"
            )
        memory = stage.settings.max_memory
        most = processes * fetches_within(memory, stage.settings.max_body)
        if fetches > most:
            self._say(
                f"--max-memory {size_text(memory)} is too little for {fetches:,} fetches at once: "
                f"--concurrency is lowered to {most:,}"
            )
        return min(fetches, most)

    def _tell(self, sentence: str) -> None:
        """Say what several processes notice at about the same time once."""
        log.warning("%s", sentence)
        subject, now = " ".join(sentence.split()[:4]), steady_seconds()
        if now - self._told.get(subject, -QUIET_SECONDS) >= QUIET_SECONDS:
            self._told[subject] = now
            self._say(sentence)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where a crawl takes place."""

    data: DataDir
    remote: Remote | None
    backend: Backend
    revision: int
    """Which giving of settings and exclusions these are."""
    settings: Settings

    def concurrency(self, order: CrawlOrder) -> int:
        """Fetches in flight on this machine."""
        return order.own_concurrency or self.settings.concurrency


async def _recover_store(data: DataDir) -> None:
    recovered = await asyncio.to_thread(recover, data.warc)
    if recovered.files:
        log.info("after a crash: %s", recovered)


async def _recover_requests(stage: _Stage, frontier: Frontier, processes: list[int] | None) -> None:
    """Cut the leases of processes that are gone, and enter into the ledger what they had asked."""
    cut = await frontier.recover(processes)
    if cut:
        log.info("%d leases of a process that is gone were cut to the delay", cut)
    left = inflight_files(
        stage.data.inflight_log, processes=processes, except_process=frontier.process
    )
    for process, files in groupby(left, key=itemgetter(0)):
        # All files of a process at once: a request may have begun in one and ended in the next.
        paths = [path for _, path in files]
        visits = await asyncio.to_thread(lost_visits, process, paths, stage.settings.delay)
        for start in range(0, len(visits), LOST_VISITS):
            await frontier.record_lost(visits[start : start + LOST_VISITS])
        for path in paths:
            path.unlink()
        log.info("process %d left %d visits that may not have been settled", process, len(visits))


async def _stage(
    order: CrawlOrder, data: DataDir, remote: Remote | None, backend: Backend
) -> _Stage:
    revision = await backend.catalog.revision()
    kept = await backend.catalog.settings()
    assert kept is not None, "a crawl that is prepared has settings"
    settings = replace(settings_from_json(kept), **order.own).checked()
    return _Stage(data, remote, backend, revision, settings)


async def _stop_when_changed(stage: _Stage, crew: Runner) -> None:
    """A crawl on several machines may be given other settings on one of them: all must keep to them."""
    while True:
        await asyncio.sleep(REVISION_SECONDS)
        try:
            revision = await stage.backend.catalog.revision()
        except RoveError as error:
            log.warning("whether the settings have changed could not be seen: %s", error)
            continue
        if stage.revision != revision:
            crew.stop(Ending.CHANGED)
            return


@contextmanager
def _remembered(data: DataDir, remote: Remote | None) -> Iterator[None]:
    """Note where the crawl is, before anything of this directory is in there; unless nothing comes of it."""
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
