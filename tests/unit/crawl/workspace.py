"""A crawl in a directory of its own, with a scripted web, a real frontier and a real store."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from rove.config import Settings
from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import InflightLog
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Crawl
from rove.crawl.meter import Meter
from rove.crawl.new_domains import MAX_PER_PAGE, NewDomainLimits
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.seed_scope import ScopeCheck
from rove.crawl.shutdown import GRACE_SECONDS, Ending, Shutdown
from rove.crawl.silence import SilentVisits
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier
from rove.frontier.reader import CrawlReader
from rove.frontier.records import Policy
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteTables
from rove.model.counts import Counts
from rove.model.ledger import RequestRow
from rove.policy.concurrency import fixed
from rove.policy.constants import VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules
from rove.policy.spread import Spread
from rove.store.contract import Keep
from rove.store.reader import WarcReader
from rove.store.warc import WarcStore
from tests.unit.crawl.scripted import ScriptedFetcher, new_url, page, page_with_links, query, states
from tests.urls import FORM


class Wrapped:
    """A real part that logs its calls, and fails some of them on demand."""

    def __init__(self, part: Any, calls: list[tuple[str, Any]] | None = None) -> None:
        self._part = part
        self._calls = calls
        self._failures: dict[str, list[BaseException | None]] = defaultdict(list)

    def fail(self, name: str, *errors: BaseException | None) -> Wrapped:
        """Let the next calls of a method raise these errors; None lets a call succeed."""
        self._failures[name].extend(errors)
        return self

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._part, name)
        if not inspect.iscoroutinefunction(real):
            return real

        async def call(*args: Any, **more: Any) -> Any:
            failures = self._failures[name]
            error = failures.pop(0) if failures else None
            if error is not None:
                raise error
            if self._calls is not None:
                self._calls.append((f"{name} begins", args[0] if args else None))
            result = await real(*args, **more)
            if self._calls is not None:
                self._calls.append((f"{name} ends", args[0] if args else None))
            return result

        return call


LoadSeeds = Callable[[Callable[[], None]], Awaitable[None]]

Follow = Callable[[Callable[[Exclusions], None]], Coroutine[Any, Any, None]]


class Seeds:
    """A seed loader that does what the test says."""

    def __init__(self, load: LoadSeeds) -> None:
        self._load = load

    async def run(self, on_added: Callable[[], None]) -> None:
        await self._load(on_added)


class Workspace:
    """A data directory in which crawls run, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = SqliteDatabase(folder / "frontier.sqlite")
        self.fetcher = ScriptedFetcher()
        self.progress = Progress(started=0.0)
        self.seeds_loaded = True
        self.rules_applied = True
        self.new_domains_per_page = MAX_PER_PAGE
        self.news: list[str] = []
        self.exclusions: asyncio.Queue[list[str]] = asyncio.Queue()
        self.real_frontier: SqliteFrontier | None = None
        self._logs: dict[int, InflightLog] = {}
        self.pressure: Pressure | None = None

    async def open(self, *urls: str, delay: float = 0.0, horizon: float = math.inf) -> None:
        """Open the frontier, as one more run, with these URLs in it."""
        if self.real_frontier is None:
            await self.database.open(create=True)
        policy = Policy(delay=delay, budget=VISIT_BUDGET, horizon=horizon)
        self.real_frontier = SqliteFrontier(self.database, policy)
        await self.real_frontier.begin(run=1)
        await self.frontier.add([new_url(url) for url in urls])

    @property
    def frontier(self) -> Frontier:
        assert self.real_frontier is not None, "the workspace is not open"
        return self.real_frontier

    def inflight_log(self) -> InflightLog:
        """Return the in-flight log of the process that was opened last."""
        process = self.frontier.process
        return self._logs.setdefault(process, InflightLog(self.folder / "inflight", process))

    def store(self) -> WarcStore:
        return WarcStore(self.folder / "warc", keep=Keep.TEXT, name="crawl", software="rove/test")

    def crawl(
        self,
        *,
        frontier: Any = None,
        store: Any = None,
        clock: Callable[[], float] = steady_seconds,
        batch_size: int = 256,
        grace_seconds: float = GRACE_SECONDS,
        follow_exclusions: Follow | None = None,
        outage_rules: OutageRules = DEFAULT_OUTAGE_RULES,
        backoffs_end: float = 0.0,
        **changes: Any,
    ) -> Crawl:
        """Return a crawl that has not begun yet."""
        chosen: dict[str, Any] = {"delay": 0.0, "concurrency": 4} | changes
        concurrency: int = chosen["concurrency"]
        settings = Settings(email="me@crawler.test", **chosen)
        self.progress = Progress(started=clock())
        self.pressure = Pressure(
            settings, bounds=fixed(concurrency), directory=self.folder, clock=clock, on_news=self.news.append
        )
        frontier = frontier or self.frontier
        context = CrawlContext(
            settings=settings,
            frontier=frontier,
            fetcher=self.fetcher,
            store=store or self.store(),
            gate=Gate(Exclusions()),
            scope=ScopeCheck(frontier, settings.scope, clock),
            form=FORM,
            inflight_log=self.inflight_log(),
            pressure=self.pressure,
            silence=SilentVisits(self.pressure.throttle, clock),
            new_domains=NewDomainLimits(clock, per_page=self.new_domains_per_page),
            spread=Spread(settings.delay, lambda: 0.5),
            progress=self.progress,
            meter=Meter("1", delay=settings.delay, clock=clock),
            shutdown=Shutdown(frontier, grace_seconds=grace_seconds),
            clock=clock,
            batch_size=batch_size,
            batch_seconds=0.0,
        )
        return Crawl(
            context,
            remaining_limits=RemainingLimits(limits=settings.limits, seconds_before=0.0, started=clock(), clock=clock),
            all_seeds_loaded=self._all_seeds_loaded,
            are_rules_applied=self._are_rules_applied,
            follow_exclusions=follow_exclusions or self._follow,
            on_news=self.news.append,
            outage_rules=outage_rules,
            backoffs_end=backoffs_end,
        )

    def close(self) -> None:
        for inflight_log in self._logs.values():
            inflight_log.close()
        asyncio.run(self.database.close())

    async def _follow(self, tell: Callable[[Exclusions], None]) -> None:
        """Pass on each list of exclusions that the test puts into the queue."""
        while True:
            tell(Exclusions(await self.exclusions.get()))
            self.exclusions.task_done()

    async def _all_seeds_loaded(self) -> bool:
        return self.seeds_loaded

    async def _are_rules_applied(self) -> bool:
        return self.rules_applied

    async def run(self, load: LoadSeeds | None = None, **more: Any) -> Ending:
        """Crawl to the end, while `load` loads the seeds."""
        store = more.setdefault("store", self.store())
        try:
            async with asyncio.timeout(20):
                return await self.crawl(**more).run(None if load is None else self.seeds(load))
        finally:
            await store.close()

    def seeds(self, load: LoadSeeds) -> Seeds:
        """Return a seed loader; the seeds count as loaded when it has run."""
        self.seeds_loaded = False

        async def run(on_added: Callable[[], None]) -> None:
            await load(on_added)
            self.seeds_loaded = True

        return Seeds(run)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on the database."""
        return query(self.folder, sql)

    async def states(self) -> dict[str, str]:
        """Return all URLs with their states."""
        return states(self.folder)

    async def counts(self) -> Counts:
        return await self.frontier.counts()

    async def skipped(self) -> set[tuple[str, str, str]]:
        """Return reason, URL and page of the examples of links that were not taken."""
        reader = CrawlReader(SqliteTables(self.database))
        return {(link.reason, link.url, link.page) for link in await reader.skipped()}

    async def some_turns(self) -> None:
        """Give the crawl time to work: it shares the thread of the database and the event loop with this call."""
        for _ in range(20):
            await self.counts()

    async def pages(self) -> dict[str, RequestRow]:
        """Return the requests whose pages were stored, by URL."""
        rows = [row async for row in CrawlReader(SqliteTables(self.database)).pages()]
        return {row.url: row for row in rows if row.text is not None}

    async def text(self, url: str) -> str:
        """Return the stored text of a page."""
        row = (await self.pages())[url]
        assert row.text is not None
        return WarcReader(self.folder / "warc").read_text(row.text, expect_url=url)


def chain_of_hosts(hosts: int, pages: int) -> dict[str, Any]:
    """Script hosts with several pages each; the first page links to the others and to the next host."""
    script: dict[str, Any] = {}
    for host in range(hosts):
        names = [f"http://h{host}.test/{n or ''}" for n in range(pages)]
        onward = [f"http://h{host + 1}.test/"] if host + 1 < hosts else []
        script[names[0]] = page_with_links(*names, *onward)
        script |= {name: page(f"<p>This is {name}") for name in names[1:]}
    return script


def front_pages(count: int) -> list[str]:
    return [f"http://h{i}.test/" for i in range(count)]
