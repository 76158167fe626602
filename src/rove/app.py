"""The composition root: the only file that names a backend.

It puts the parts of a crawl together, runs it, takes it apart again, and says how it ended; and it opens what the
inspecting commands read.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from logging.handlers import RotatingFileHandler
from pathlib import Path

from rove import __version__
from rove.config import Settings
from rove.crawl import Crawl, Ending
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.dns import AresLookup, CachingResolver
from rove.fetch.http import CurlFetcher
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import (
    Backend,
    Frontier,
    FrontierReader,
    Policy,
    SeedSource,
    crawled_seconds,
)
from rove.frontier.sqlite_backend import SqliteBackend
from rove.gate import Exclusions, Gate
from rove.model import Counts
from rove.politeness import VISIT_BUDGET, user_agent
from rove.prepare import Order, check, prepare
from rove.progress import Progress
from rove.seeds import BadLine, SeedLoader
from rove.store.contract import Keep
from rove.store.reader import WarcReader
from rove.store.recovery import recover
from rove.store.warc import WarcStore
from rove.url import domain_of

SPARE_FILES = 64
"""Open files that are not fetches: the database, WARC files, the log, the resolver."""
FILES_PER_FETCH = 2
"""libcurl keeps a TLS connection open for up to a second after its end."""
BAD_LINES_SHOWN = 5
LOG_BYTES = 32 * 1024 * 1024
LOG_FILES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A crawl under way, for whoever shows it."""

    crawl: Crawl
    frontier: Frontier
    settings: Settings
    data: DataDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a run ended."""

    ending: Ending
    progress: Progress
    seconds: float
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A crawl to look into."""

    data: DataDir
    reader: FrontierReader
    pages: WarcReader


class CrawlApp:
    """One `rove crawl`."""

    def __init__(
        self,
        order: Order,
        *,
        say: Callable[[str], None],
        watch: Callable[[Running], Awaitable[None]],
    ) -> None:
        """`say` shows a sentence; `watch` shows the running crawl until it is cancelled."""
        self._order = order
        self._say = say
        self._watch = watch
        self._bad_lines = 0

    async def run(self) -> Summary:
        """Crawl from what was asked for to how it ended."""
        data = DataDir(self._order.data_dir)
        backend = SqliteBackend(data.frontier)
        for rule in self._order.options.get("connect_to", ()):
            parse_connect_to(rule)
        await check(self._order, backend)
        with data.held():
            try:
                settings = await prepare(self._order, data, backend)
                start_logging(data, self._order.log_level)
                return await self._crawl(data, backend, self._fit_open_files(settings))
            finally:
                await backend.close()

    async def _crawl(self, data: DataDir, backend: Backend, settings: Settings) -> Summary:
        log.info("rove %s starts in %s with %s", __version__, data.root, settings)
        recovered = await asyncio.to_thread(recover, data.warc)
        if recovered.files:
            log.info("after a crash: %s", recovered)
        before, runs = await backend.reader.counts(), await backend.reader.runs()
        frontier = await backend.begin(_policy(settings), await backend.begin_run())
        cut = await frontier.recover()
        if cut:
            log.info("%d leases of a process that is gone were cut to the delay", cut)
        patterns = await backend.catalog.exclusions()
        await frontier.exclude(_whole_domains(patterns))
        gate = Gate(Exclusions(patterns), max_depth=settings.max_depth)
        fetcher = _fetcher(settings)
        store = WarcStore(
            data.warc,
            keep=Keep(settings.store),
            name="rove",
            software=f"rove/{__version__}",
            info={
                "operator": settings.email,
                "http-header-user-agent": user_agent(settings.email, settings.info_url),
                "robots": "obey",
            },
        )
        crawl = Crawl(
            frontier=frontier,
            fetcher=fetcher,
            store=store,
            gate=gate,
            settings=settings,
            progress=Progress(started=steady_seconds()),
            clock=steady_seconds,
            pages_before=before.pages - settings.limits.pages_before,
            seconds_before=crawled_seconds(runs) - settings.limits.seconds_before,
        )
        loader = SeedLoader(
            frontier=frontier,
            catalog=backend.catalog,
            gate=gate,
            on_added=crawl.fed_some,
            on_bad=self._show_bad_line,
        )
        running = Running(crawl=crawl, frontier=frontier, settings=settings, data=data)
        watching = asyncio.ensure_future(self._watch(running))
        try:
            ending = await crawl.run(lambda: self._feed(loader, backend, data))
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            await fetcher.close()
            await store.close()
        seconds = steady_seconds() - crawl.progress.started
        log.info("%s after %.1f s, %d pages", ending, seconds, crawl.progress.pages)
        return Summary(
            ending=ending,
            progress=crawl.progress,
            seconds=seconds,
            counts=await frontier.counts(),
        )

    async def _feed(self, loader: SeedLoader, backend: Backend, data: DataDir) -> None:
        for source in await backend.catalog.seed_sources():
            if not source.finished:
                loaded = await loader.load(source, data.root / source.path)
                bad = f", {loaded.bad:,} bad lines left out" if loaded.bad else ""
                self._say(f"{loaded.name}: {loaded.good:,} seeds{bad}")

    def _show_bad_line(self, source: SeedSource, line: BadLine) -> None:
        self._bad_lines += 1
        if self._bad_lines <= BAD_LINES_SHOWN:
            self._say(f"{source.name}, line {line.number}: {line.text[:80]!r} is no domain or URL")

    def _fit_open_files(self, settings: Settings) -> Settings:
        """Raise the soft limit of open files to the hard one; lower the concurrency where that is too little."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        fits = max(1, (hard - SPARE_FILES) // FILES_PER_FETCH)
        if hard == resource.RLIM_INFINITY or settings.concurrency <= fits:
            return settings
        self._say(
            f"only {hard:,} files may be open here: --concurrency is lowered from "
            f"{settings.concurrency:,} to {fits:,}"
        )
        return replace(settings, concurrency=fits)


@asynccontextmanager
async def opened(data_dir: Path) -> AsyncIterator[Archive]:
    """A crawl to look into, running or not."""
    data = DataDir(data_dir)
    backend = SqliteBackend(data.frontier, read_only=True)
    try:
        if not await backend.exists():
            raise UsageError(f"{data_dir} holds no crawl")
        await backend.open()
        if await backend.catalog.settings() is None:
            raise UsageError(f"{data_dir} holds no crawl")
        yield Archive(data=data, reader=backend.reader, pages=WarcReader(data.warc))
    finally:
        await backend.close()


def start_logging(data: DataDir, level: str) -> None:
    """Write the log file of the data directory."""
    handler = RotatingFileHandler(
        data.log, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger("rove")
    root.setLevel(level.upper())
    root.addHandler(handler)


def _policy(settings: Settings) -> Policy:
    return Policy(
        delay=settings.delay,
        budget=VISIT_BUDGET,
        max_pages_per_domain=settings.limits.max_pages_per_domain,
        limits_epoch=settings.limits.epoch,
    )


def _fetcher(settings: Settings) -> CurlFetcher:
    return CurlFetcher(
        user_agent=user_agent(settings.email, settings.info_url),
        resolver=CachingResolver(AresLookup()),
        guard=AddressGuard(allow_private=settings.allow_private_addresses),
        connect_to=[parse_connect_to(rule) for rule in settings.connect_to],
    )


def _whole_domains(patterns: Iterable[str]) -> dict[int, str]:
    """The exclusions that cover a registrable domain, not just a host in one."""
    found = {}
    for pattern in patterns:
        name, domain = domain_of(pattern)
        if name == pattern:
            found[domain] = name
    return found
