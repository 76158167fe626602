"""The crawl loop end to end, with a scripted web, a real frontier and a real store; also when one of them fails."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections import Counter, defaultdict
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rove.config import Limits, Settings
from rove.crawl.claimer import CLAIM_WHILE_SEEDING, PAUSE_WHILE_SEEDING
from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import InflightLog, Note, inflight_files, lost_visits
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Crawl
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.shutdown import GRACE_SECONDS, Ending, Shutdown
from rove.errors import DiskFull, FrontierError, RoveError, StoreError
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier, Policy
from rove.frontier.reader import CrawlReader
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteTables
from rove.model.ledger import Content, Counts, RequestRow
from rove.model.urls import UrlState
from rove.model.visits import VisitResult
from rove.parse.reader import PageReader
from rove.policy import budget
from rove.policy.constants import VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.store.contract import Keep, Page, Stored
from rove.store.reader import WarcReader
from rove.store.warc import WarcStore
from tests.unit.crawl.scripted import (
    ScriptedFetcher,
    World,
    failed,
    new_url,
    page,
    page_with_links,
    query,
    redirect,
    refused,
    states,
)


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
        **changes: Any,
    ) -> Crawl:
        """Return a crawl that has not begun yet."""
        chosen: dict[str, Any] = {"delay": 0.0, "concurrency": 4} | changes
        settings = Settings(email="me@example.org", **chosen)
        self.progress = Progress(started=clock())
        self.pressure = Pressure(
            settings,
            concurrency=settings.concurrency,
            directory=self.folder,
            clock=clock,
            on_news=self.news.append,
        )
        frontier = frontier or self.frontier
        context = CrawlContext(
            settings=settings,
            frontier=frontier,
            fetcher=self.fetcher,
            store=store or self.store(),
            gate=Gate(Exclusions()),
            reader=PageReader(),
            inflight_log=self.inflight_log(),
            pressure=self.pressure,
            progress=self.progress,
            shutdown=Shutdown(frontier, grace_seconds=grace_seconds),
            clock=clock,
            batch_size=batch_size,
            batch_seconds=0.0,
        )
        return Crawl(
            context,
            remaining_limits=RemainingLimits(limits=settings.limits, seconds_before=0.0, started=clock(), clock=clock),
            all_seeds_loaded=self._all_seeds_loaded,
            follow_exclusions=follow_exclusions or self._follow,
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


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(tmp_path)
    yield made
    made.close()


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


async def test_a_crawl_runs_until_nothing_is_left(workspace: Workspace) -> None:
    script = chain_of_hosts(hosts=5, pages=4)
    workspace.fetcher = ScriptedFetcher(script)
    await workspace.open("http://h0.test/")
    assert await workspace.run() is Ending.EXHAUSTED
    assert await workspace.states() == dict.fromkeys(script, "done")
    assert Counter(workspace.fetcher.pages_requested) == Counter(list(script))
    robots = Counter(workspace.fetcher.requested) - Counter(list(script))
    assert robots == Counter(f"{front}robots.txt" for front in front_pages(5))
    assert workspace.progress.pages == 20 and workspace.progress.visits == 20
    assert workspace.progress.requests == 25 == len(workspace.fetcher.requested)
    assert workspace.progress.in_flight == 0
    assert workspace.progress.errors == {"status-404": 5}


async def test_every_page_that_is_done_has_its_text_in_the_store(workspace: Workspace) -> None:
    script = chain_of_hosts(hosts=2, pages=3)
    workspace.fetcher = ScriptedFetcher(script)
    await workspace.open("http://h0.test/")
    await workspace.run()
    assert set(await workspace.pages()) == set(script)
    for url in script:
        if not url.endswith(".test/"):
            assert await workspace.text(url) == f"This is {url}"
    assert [path.suffix for path in (workspace.folder / "warc").iterdir()] == [".gz"]


def links_of(url: str, script: dict[str, Any]) -> set[str]:
    """Return the links of a scripted page, without the link to itself."""
    return set(re.findall(r'href="([^"]+)"', script[url].body.decode())) - {url}


async def test_pages_are_stored_then_links_added_then_visits_settled(workspace: Workspace) -> None:
    calls: list[tuple[str, Any]] = []
    script = chain_of_hosts(hosts=6, pages=5)
    workspace.fetcher = ScriptedFetcher(script)
    await workspace.open("http://h0.test/")
    await workspace.run(frontier=Wrapped(workspace.frontier, calls), store=Wrapped(workspace.store(), calls))
    stored: set[str] = set()
    added: set[str] = set()
    settled: set[str] = set()
    for name, argument in calls:
        if name == "write ends":
            stored |= {written.url for written in argument}
        elif name == "add ends":
            added |= {link.url for link in argument}
        elif name == "settle begins":
            rows = [row for visit in argument for row in visit.requests]
            done = {row.url for row in rows if row.text is not None}
            assert done <= stored, "no URL is done without its content"
            for url in done:
                assert links_of(url, script) <= added, "no link is lost"
            settled |= done
    assert settled == set(script)


async def test_a_link_is_added_once(workspace: Workspace) -> None:
    calls: list[tuple[str, Any]] = []
    urls = [f"http://h{i}.test/" for i in range(10)]
    workspace.fetcher = ScriptedFetcher({url: page_with_links(*urls) for url in urls})
    await workspace.open("http://h0.test/")
    await workspace.run(frontier=Wrapped(workspace.frontier, calls), concurrency=1)
    offers = Counter(link.url for name, links in calls if name == "add begins" for link in links)
    assert set(offers.values()) == {1}


LINKED = [f"http://h0.test/{i}" for i in range(1, 6)]


class TestRoom:
    """A domain with more links than the frontier has room for."""

    @pytest.fixture(autouse=True)
    def room_for_three(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "FEWEST_VISITS", 3)
        monkeypatch.setattr(budget, "MULTIPLE", 1)

    async def test_links_that_were_refused_are_added_again_later(self, workspace: Workspace) -> None:
        calls: list[tuple[str, Any]] = []
        urls = ["http://h0.test/", *LINKED]
        workspace.fetcher = ScriptedFetcher({url: page_with_links(*LINKED) for url in urls})
        await workspace.open("http://h0.test/", horizon=0.1)
        await workspace.run(frontier=Wrapped(workspace.frontier, calls), concurrency=1)
        assert await workspace.states() == dict.fromkeys(urls[:3], "done")
        offered = [link.url for name, links in calls if name == "add begins" for link in links]
        assert Counter(offered) == dict.fromkeys(urls[1:3], 1) | dict.fromkeys(urls[3:], 3)
        assert (await workspace.counts()).not_accepted == {"budget": 9}

    async def test_the_target_of_a_redirect_is_settled_even_without_room(self, workspace: Workspace) -> None:
        first, second, *_ = LINKED
        workspace.fetcher = ScriptedFetcher(
            {
                "http://h0.test/": page_with_links(*LINKED),
                first: redirect("/new1"),
                second: redirect("/new2"),
                "http://h0.test/new1": page_with_links(*LINKED),
                "http://h0.test/new2": page(),
            }
        )
        await workspace.open("http://h0.test/", horizon=0.1)
        await workspace.run(concurrency=1)
        done = ["http://h0.test/", "http://h0.test/new1", "http://h0.test/new2"]
        assert await workspace.states() == dict.fromkeys(done, "done") | dict.fromkeys([first, second], "redirected")
        assert (await workspace.counts()).pages == 3

    @pytest.mark.parametrize("target", ["2", "new"])
    async def test_both_ends_of_a_redirect_are_settled_even_if_better_urls_need_the_room(
        self, workspace: Workspace, target: str
    ) -> None:
        """Better URLs are added during the request, so a known URL is evicted and no further URL is accepted."""
        first, second, *_ = LINKED
        led_to = f"http://h0.test/{target}"
        better = ["http://h0.test/a", "http://h0.test/b"]
        workspace.fetcher = ScriptedFetcher(
            {"http://h0.test/": page_with_links(first, second), first: redirect(f"/{target}")}
            | dict.fromkeys([led_to, *better], page())
        )
        await workspace.open("http://h0.test/", horizon=0.1)

        async def add_better(request: Request) -> None:
            if request.url.text == first:
                await workspace.frontier.add([new_url(url) for url in better])

        workspace.fetcher.before_answer = add_better
        await workspace.run(concurrency=1)
        done = ["http://h0.test/", led_to, *better]
        assert await workspace.states() == dict.fromkeys(done, "done") | {first: "redirected"}
        assert (await workspace.counts()).pages == 4


async def test_seeds_are_claimed_while_others_are_still_loading(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=1, pages=1) | {"http://b.test/": page()})
    await workspace.open()
    first_fetched = asyncio.Event()

    async def note(request: Request) -> None:
        first_fetched.set()

    workspace.fetcher.before_answer = note
    crawl = workspace.crawl(store=workspace.store())

    async def load(on_added: Callable[[], None]) -> None:
        await workspace.frontier.add([new_url("http://h0.test/")])
        on_added()
        await first_fetched.wait()
        await workspace.frontier.add([new_url("http://b.test/")])

    async with asyncio.timeout(10):
        assert await crawl.run(workspace.seeds(load)) is Ending.EXHAUSTED
    assert await workspace.states() == {"http://h0.test/": "done", "http://b.test/": "done"}


async def test_a_crawl_is_not_exhausted_while_seeds_are_loaded(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher({"http://a.test/": page()})
    await workspace.open()

    async def load(_: Callable[[], None]) -> None:
        await workspace.some_turns()
        await workspace.frontier.add([new_url("http://a.test/")])

    assert await workspace.run(load) is Ending.EXHAUSTED
    assert await workspace.states() == {"http://a.test/": "done"}


async def test_a_crawl_goes_slowly_while_seeds_are_loaded_and_not_after(
    workspace: Workspace,
) -> None:
    seeds = front_pages(400)
    workspace.fetcher = ScriptedFetcher({url: page() for url in seeds})
    await workspace.open(*seeds)
    claimed: list[int] = []
    loading = 0.0

    async def load(_: Callable[[], None]) -> None:
        nonlocal claimed, loading
        begun = steady_seconds()
        await asyncio.sleep(0.6)
        loading = steady_seconds() - begun
        claimed += [row[0] for row in await workspace.rows("SELECT id FROM domain WHERE token > 0")]

    assert await workspace.run(load, concurrency=100) is Ending.EXHAUSTED
    at_most = CLAIM_WHILE_SEEDING * (1 + math.ceil(loading / PAUSE_WHILE_SEEDING))
    assert 0 < len(claimed) <= at_most
    assert set((await workspace.states()).values()) == {"done"}


async def test_an_empty_crawl_is_exhausted(workspace: Workspace) -> None:
    await workspace.open()
    assert await workspace.run() is Ending.EXHAUSTED


async def test_the_delay_lies_between_visits_to_a_domain(workspace: Workspace) -> None:
    delay = 0.1
    workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=2, pages=4))
    workspace.fetcher.script["http://h1.test/"] = redirect("http://www.h1.test/")
    workspace.fetcher.script["http://www.h1.test/"] = page_with_links("http://h1.test/1")
    await workspace.open("http://h0.test/", "http://h1.test/", delay=delay)
    await workspace.run(delay=delay)
    visits = await workspace.rows(
        "SELECT domain, visit, min(began), max(ended), count(*) FROM request "
        "GROUP BY domain, visit ORDER BY domain, visit"
    )
    assert sorted(count for *_, count in visits) == [1, 1, 1, 1, 2, 4], "hops belong to the visit"
    for earlier, later in pairwise(visits):
        if earlier[0] == later[0]:
            assert (later[2] - earlier[3]) / 1000 >= delay - 0.005


@pytest.mark.parametrize("concurrency", [1, 3, 50])
@pytest.mark.parametrize("limit", [1, 2, 7, 19])
async def test_the_page_limit_is_kept_exactly(workspace: Workspace, limit: int, concurrency: int) -> None:
    workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=20, pages=1))
    workspace.fetcher.script["http://h3.test/"] = refused(404)
    await workspace.open(*front_pages(20))
    ending = await workspace.run(concurrency=concurrency, limits=Limits(max_pages=limit))
    assert ending is Ending.MAX_PAGES
    assert (await workspace.counts()).pages == workspace.progress.pages == limit
    assert (await workspace.counts()).domains["leased"] == 0


async def test_pages_of_earlier_runs_count_against_the_limit(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=9, pages=1))
    await workspace.open(*front_pages(9))
    assert await workspace.run(limits=Limits(max_pages=3)) is Ending.MAX_PAGES
    assert await workspace.run(limits=Limits(max_pages=7)) is Ending.MAX_PAGES
    assert workspace.progress.pages == 4
    await workspace.run(limits=Limits(max_pages=7))
    assert workspace.progress.pages == 0
    assert await workspace.run(limits=Limits(max_pages=1, pages_before=7)) is Ending.MAX_PAGES
    assert workspace.progress.pages == 1


async def test_the_time_limit_ends_the_crawl(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
    await workspace.open("http://h0.test/", "http://h0.test/later", delay=1000.0)
    ending = await workspace.run(delay=1000.0, limits=Limits(max_duration=0.2))
    assert ending is Ending.MAX_DURATION
    assert (await workspace.counts()).domains["leased"] == 0


async def test_on_a_full_disk_the_crawl_pauses_without_requests(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=3, pages=2))
    await workspace.open(*front_pages(3))
    crawl = workspace.crawl(min_free_disk=1 << 60)
    running = asyncio.create_task(crawl.run())
    await workspace.some_turns()
    assert not running.done() and not workspace.progress.requests
    assert workspace.progress.trouble.startswith("paused: less than")
    assert len(workspace.news) == 1 and "the crawl pauses" in workspace.news[0]
    crawl.stop()
    assert await running is Ending.STOPPED
    limits = Limits(max_duration=0.05)
    assert await workspace.run(min_free_disk=1 << 60, limits=limits) is Ending.MAX_DURATION
    assert not workspace.progress.requests
    assert await workspace.run(min_free_disk=0) is Ending.EXHAUSTED
    assert workspace.progress.pages == 6


async def test_a_crawl_with_little_memory_fetches_everything(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=3, pages=2))
    await workspace.open(*front_pages(3))
    crawl = workspace.crawl()
    assert workspace.pressure is not None
    workspace.pressure.memory.room = 1
    assert await crawl.run() is Ending.EXHAUSTED
    assert workspace.progress.pages == 6
    assert workspace.pressure.memory.used == 0, "all memory is given back"


async def test_seeds_only_keeps_to_the_domains_of_the_seeds(workspace: Workspace) -> None:
    links = page_with_links("/more", "http://b.test/in", "http://c.test/out")
    workspace.fetcher = ScriptedFetcher({"http://a.test/": links, "http://b.test/": page()})
    workspace.fetcher.script |= {"http://a.test/more": page(), "http://b.test/in": page()}
    await workspace.open("http://a.test/")

    async def load(_: Callable[[], None]) -> None:
        await workspace.some_turns()
        assert workspace.fetcher.requested == [], "links to seeds that are not loaded yet would be out of scope"
        await workspace.frontier.add([new_url("http://b.test/")])

    await workspace.run(load, seeds_only=True)
    assert set(await workspace.states()) == {
        *("http://a.test/", "http://a.test/more", "http://b.test/", "http://b.test/in")
    }
    assert (await workspace.counts()).not_accepted == {"out-of-scope": 1}


async def test_a_crawl_ends_when_only_failing_origins_are_left(workspace: Workspace) -> None:
    script = {"http://h0.test/": page(), "http://dead.test/robots.txt": failed()}
    workspace.fetcher = ScriptedFetcher(script)
    await workspace.open("http://h0.test/", "http://dead.test/")
    assert await workspace.run() is Ending.EXHAUSTED
    assert await workspace.states() == {"http://h0.test/": "done", "http://dead.test/": "pending"}
    assert workspace.fetcher.requested.count("http://dead.test/robots.txt") == 3


class TestStop:
    """Shutting a crawl down."""

    async def test_unused_leases_are_given_back(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(10), page()))
        await workspace.open(*front_pages(10), delay=1000.0)
        crawl = workspace.crawl(concurrency=2, delay=1000.0, store=workspace.store())
        leased = 0

        async def stop(request: Request) -> None:
            """Stop once both slots are busy, then wait until the unused leases are given back."""
            nonlocal leased
            while len(workspace.fetcher.requested) < 2:
                await workspace.counts()
            leased = max(leased, (await workspace.counts()).domains["leased"])
            crawl.stop()
            while (await workspace.counts()).domains["leased"] > 2:
                pass

        workspace.fetcher.before_answer = stop
        assert await crawl.run() is Ending.STOPPED
        assert leased > 2, "some domains were claimed ahead"
        counts = await workspace.counts()
        assert len(workspace.fetcher.requested) == 2
        assert counts.domains["leased"] == 0
        assert counts.domains["waiting"] == 2
        assert counts.domains["ready"] == 8
        assert counts.urls_pending == 10

    async def test_fetches_in_flight_may_finish(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await workspace.open(*front_pages(3))
        crawl = workspace.crawl(concurrency=1, store=workspace.store())

        async def stop(request: Request) -> None:
            if not request.url.text.endswith("robots.txt"):
                crawl.stop()
                await workspace.some_turns()

        workspace.fetcher.before_answer = stop
        await crawl.run()
        assert len(workspace.fetcher.pages_requested) == 1
        assert (await workspace.counts()).pages == workspace.progress.pages == 1
        assert set(await workspace.pages()) == set(workspace.fetcher.pages_requested)

    async def test_a_fetch_that_outlasts_the_grace_period_is_cancelled(self, workspace: Workspace) -> None:
        await workspace.open("http://h0.test/", delay=1000.0)
        crawl = workspace.crawl(delay=1000.0, store=workspace.store(), grace_seconds=0.05)

        async def hang(request: Request) -> None:
            crawl.stop()
            await asyncio.Event().wait()

        workspace.fetcher.before_answer = hang
        assert await crawl.run() is Ending.STOPPED
        counts = await workspace.counts()
        assert (counts.urls_pending, counts.requests, counts.domains["leased"]) == (1, 1, 0)
        due = await workspace.frontier.next_due()
        assert due is not None and 990 < due <= 1000, "a request was made, so the delay applies"

    async def test_a_crawl_that_is_stopped_at_once_ends_at_once(self, workspace: Workspace) -> None:
        await workspace.open(*front_pages(3))
        crawl = workspace.crawl(store=workspace.store())
        crawl.stop()
        async with asyncio.timeout(5):
            assert await crawl.run() is Ending.STOPPED
        assert workspace.fetcher.requested == []
        assert (await workspace.counts()).domains["ready"] == 3

    async def test_the_first_reason_to_end_counts(self, workspace: Workspace) -> None:
        await workspace.open()
        crawl = workspace.crawl(store=workspace.store())
        crawl.stop(Ending.MAX_DURATION)
        crawl.stop(Ending.STOPPED)
        assert await crawl.run() is Ending.MAX_DURATION

    async def test_loading_seeds_is_stopped_too(self, workspace: Workspace) -> None:
        await workspace.open()
        crawl = workspace.crawl(store=workspace.store())
        cancelled = False

        async def load(_: Callable[[], None]) -> None:
            nonlocal cancelled
            crawl.stop()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise

        async with asyncio.timeout(5):
            assert await crawl.run(workspace.seeds(load)) is Ending.STOPPED
        assert cancelled


class TestOverdue:
    """No request starts after the deadline of a lease, by the steady clock."""

    async def test_a_visit_past_its_deadline_is_cancelled(self, workspace: Workspace) -> None:
        await workspace.open("http://h0.test/", delay=1000.0)
        suspended = 0.0
        crawl = workspace.crawl(delay=1000.0, store=workspace.store(), clock=lambda: steady_seconds() + suspended)

        async def suspend(request: Request) -> None:
            nonlocal suspended
            suspended = VISIT_BUDGET + 1
            try:
                await asyncio.Event().wait()
            finally:
                crawl.stop()

        workspace.fetcher.before_answer = suspend
        async with asyncio.timeout(10):
            await crawl.run()
        assert workspace.fetcher.requested == ["http://h0.test/robots.txt"]
        assert await workspace.states() == {"http://h0.test/": "pending"}
        assert workspace.progress.errors == {"aborted": 1}

    async def test_a_lease_that_waited_too_long_is_not_used(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(2), page()))
        await workspace.open(*front_pages(2), delay=1000.0)
        suspended = 0.0
        crawl = workspace.crawl(
            concurrency=1,
            delay=1000.0,
            store=workspace.store(),
            clock=lambda: steady_seconds() + suspended,
        )

        async def suspend(request: Request) -> None:
            nonlocal suspended
            while (await workspace.counts()).domains["leased"] < 2:
                pass
            suspended = VISIT_BUDGET + 1
            workspace.fetcher.before_answer = stop

        async def stop(request: Request) -> None:
            crawl.stop()

        workspace.fetcher.before_answer = suspend
        async with asyncio.timeout(10):
            await crawl.run()
        # The first visit was in flight during the suspend. The second domain was claimed again before its request.
        assert len(workspace.fetcher.requested) == 2
        assert len(set(workspace.fetcher.requested)) == 2
        ((visits,),) = await workspace.rows("SELECT value FROM counter WHERE name = 'visits'")
        assert visits >= 3


async def assert_unharmed(workspace: Workspace, urls: Sequence[str], *, delay: float) -> None:
    """Assert that no URL is lost or done, no domain is leased, and the domains visited wait for their delay."""
    states = await workspace.states()
    assert set(states) >= set(urls) and set(states.values()) == {"pending"}
    counts = await workspace.counts()
    assert counts.pages == 0 and counts.domains["leased"] == 0
    visited = {url.removesuffix("robots.txt") for url in workspace.fetcher.requested}
    rows = dict(await workspace.rows("SELECT 'http://' || name || '/', not_before FROM domain"))
    clock = await workspace.database.run(workspace.database.clock)
    left = {url: (rows[url] - clock()) / 1000 for url in urls}
    assert all(delay - 10 < left[url] <= delay for url in visited)
    assert all(left[url] <= 0 for url in set(urls) - visited)


async def resume(workspace: Workspace) -> None:
    """Resume without waiting for the delay, and crawl to the end."""
    await workspace.open()
    await workspace.rows("UPDATE domain SET ready_at = min(ready_at, 0), not_before = 0")
    assert await workspace.run() is Ending.EXHAUSTED


class TestStoreErrors:
    """The store fails."""

    @pytest.mark.parametrize("error", [DiskFull("no room"), StoreError("broken")])
    @pytest.mark.parametrize("hosts", [1, 12])
    async def test_the_crawl_ends_with_the_error_and_nothing_is_lost(
        self, workspace: Workspace, error: RoveError, hosts: int
    ) -> None:
        urls = front_pages(hosts)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await workspace.open(*urls, delay=1000.0)
        store = Wrapped(workspace.store()).fail("write", *[error] * 50)
        with pytest.raises(type(error)) as caught:
            await workspace.run(store=store, delay=1000.0)
        assert caught.value is error
        await assert_unharmed(workspace, urls, delay=1000.0)
        workspace.fetcher.requested.clear()
        await resume(workspace)
        assert await workspace.states() == dict.fromkeys(urls, "done")
        assert set(await workspace.pages()) == set(urls)

    async def test_what_was_stored_before_stays_done(self, workspace: Workspace) -> None:
        urls = front_pages(6)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await workspace.open(*urls)
        store = Wrapped(workspace.store()).fail("write", None, None, *[DiskFull("no room")] * 9)
        with pytest.raises(DiskFull):
            await workspace.run(store=store, concurrency=1, batch_size=1)
        counts = await workspace.counts()
        assert (counts.pages, counts.urls_pending, counts.domains["leased"]) == (2, 4, 0)
        assert len(await workspace.pages()) == 2
        await resume(workspace)
        assert set(await workspace.pages()) == set(urls)

    async def test_links_of_a_page_that_was_not_stored_are_added_when_it_is(self, workspace: Workspace) -> None:
        script = chain_of_hosts(hosts=3, pages=2)
        workspace.fetcher = ScriptedFetcher(script)
        await workspace.open("http://h0.test/")
        with pytest.raises(DiskFull):
            await workspace.run(store=Wrapped(workspace.store()).fail("write", DiskFull("no room")))
        await resume(workspace)
        assert await workspace.states() == dict.fromkeys(script, "done")

    async def test_a_stop_does_not_hide_a_full_disk(self, workspace: Workspace) -> None:
        """The crawl is stopped while its last batch cannot be written."""
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")
        crawl = workspace.crawl(store=Wrapped(workspace.store()).fail("write", DiskFull("no room")))

        async def stop(request: Request) -> None:
            if not request.url.text.endswith("robots.txt"):
                crawl.stop()

        workspace.fetcher.before_answer = stop
        with pytest.raises(DiskFull):
            await crawl.run()


class TestFrontierErrors:
    """The frontier fails."""

    @pytest.mark.parametrize("verb", ["put_origins", "add", "settle"])
    async def test_a_batch_that_cannot_be_settled_ends_the_crawl_at_once(self, workspace: Workspace, verb: str) -> None:
        """It does so even if nothing else is in flight: the next visit may be hours away, or never come."""
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page_with_links("/b")})
        await workspace.open("http://h0.test/", delay=1000.0)
        frontier = Wrapped(workspace.frontier).fail(verb, FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            async with asyncio.timeout(10):
                await workspace.run(frontier=frontier, delay=1000.0)
        await assert_unharmed(workspace, ["http://h0.test/"], delay=1000.0)

    @pytest.mark.parametrize("batch_size", [1, 256])
    @pytest.mark.parametrize("verb", ["put_origins", "add", "settle"])
    async def test_nothing_is_lost_when_a_batch_cannot_be_settled(
        self, workspace: Workspace, verb: str, batch_size: int
    ) -> None:
        script = chain_of_hosts(hosts=8, pages=3)
        workspace.fetcher = ScriptedFetcher(script)
        await workspace.open(*front_pages(8))
        frontier = Wrapped(workspace.frontier).fail(verb, FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            async with asyncio.timeout(10):
                await workspace.run(frontier=frontier, batch_size=batch_size)
        assert (await workspace.counts()).domains["leased"] == 0
        done = {url for url, state in (await workspace.states()).items() if state == "done"}
        assert done == set(await workspace.pages())
        await resume(workspace)
        assert await workspace.states() == dict.fromkeys(script, "done")

    @pytest.mark.parametrize("verb", ["claim", "origins", "next_due"])
    @pytest.mark.parametrize("calls", [0, 1])
    async def test_nothing_is_lost_when_a_claim_fails(self, workspace: Workspace, verb: str, calls: int) -> None:
        script = chain_of_hosts(hosts=8, pages=3)
        workspace.fetcher = ScriptedFetcher(script)
        await workspace.open(*front_pages(8))
        frontier = Wrapped(workspace.frontier).fail(verb, *[None] * calls, FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            await workspace.run(frontier=frontier, concurrency=2)
        assert (await workspace.counts()).domains["leased"] == 0
        done = {url for url, state in (await workspace.states()).items() if state == "done"}
        assert done == set(await workspace.pages())
        await resume(workspace)
        assert await workspace.states() == dict.fromkeys(script, "done")

    async def test_a_frontier_that_fails_during_a_visit_ends_the_crawl(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": redirect("/b")})
        await workspace.open("http://h0.test/")
        frontier = Wrapped(workspace.frontier).fail("states", FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            await workspace.run(frontier=frontier)
        workspace.fetcher.script["http://h0.test/b"] = page()
        await resume(workspace)
        assert (await workspace.states())["http://h0.test/b"] == "done"

    async def test_a_frontier_that_keeps_failing_raises_its_first_error(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await workspace.open(*front_pages(3), delay=1000.0)
        errors = [FrontierError(f"lost {i}") for i in range(20)]
        with pytest.raises(FrontierError, match="lost 0"):
            async with asyncio.timeout(10):
                await workspace.run(frontier=Wrapped(workspace.frontier).fail("settle", *errors))
        counts = await workspace.counts()
        assert (counts.urls_pending, counts.pages) == (3, 0)
        await workspace.frontier.recover([workspace.frontier.process])
        assert (await workspace.counts()).domains["leased"] == 0

    async def test_seeds_that_cannot_be_loaded_end_the_crawl(self, workspace: Workspace) -> None:
        await workspace.open("http://h0.test/")
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})

        async def load(_: Callable[[], None]) -> None:
            raise FrontierError("lost")

        with pytest.raises(FrontierError, match="lost"):
            await workspace.run(load)


class TestExclusions:
    """Exclusions that change during the crawl."""

    @pytest.mark.parametrize("pattern", ["h0.test", "=h0.test", "h0*", "test"])
    async def test_a_fetch_in_flight_to_an_excluded_host_is_cancelled(self, workspace: Workspace, pattern: str) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")

        async def exclude(request: Request) -> None:
            if request.url.text == "http://h0.test/":
                workspace.exclusions.put_nowait([pattern])
                await asyncio.Event().wait()

        workspace.fetcher.before_answer = exclude
        assert await workspace.run() is Ending.EXHAUSTED
        assert workspace.fetcher.pages_requested == ["http://h0.test/"], "once, and never again"
        assert await workspace.states() == {"http://h0.test/": "blocked"}
        assert await workspace.rows("SELECT reason FROM url") == [("excluded",)]
        assert workspace.progress.errors["aborted"] == 1
        rows = await workspace.rows("SELECT error, settlement FROM request ORDER BY seq")
        assert rows == [("status-404", ""), ("aborted", "")]

    async def test_other_fetches_in_flight_go_on(self, workspace: Workspace) -> None:
        urls = front_pages(3)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await workspace.open(*urls)
        cancelled = asyncio.Event()

        async def exclude(request: Request) -> None:
            if request.url.text.endswith("robots.txt"):
                return
            if len(workspace.fetcher.pages_requested) == 3:
                workspace.exclusions.put_nowait(["h1.test", "elsewhere.test"])
            try:
                await cancelled.wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        workspace.fetcher.before_answer = exclude
        assert await workspace.run() is Ending.EXHAUSTED
        states = await workspace.states()
        assert states == {urls[0]: "done", urls[1]: "blocked", urls[2]: "done"}

    async def test_a_slot_survives_cancelled_visits(self, workspace: Workspace) -> None:
        """It survives one that ends in another error, too, and its next visit can be cancelled as well."""
        urls = front_pages(3)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await workspace.open(*urls)

        async def exclude(request: Request) -> None:
            requested = workspace.fetcher.pages_requested
            if request.url.text.endswith("robots.txt") or len(requested) == 3:
                return
            workspace.exclusions.put_nowait([url.split("/")[2] for url in requested])
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if len(requested) == 1:
                    raise ValueError("while it was cancelled") from None
                raise

        workspace.fetcher.before_answer = exclude
        assert await workspace.run(concurrency=1) is Ending.EXHAUSTED
        assert len(workspace.fetcher.pages_requested) == 3
        assert workspace.progress.errors["internal"] == 1
        assert workspace.progress.errors["aborted"] == 2

    async def test_a_robots_txt_redirect_to_an_excluded_host_is_cancelled(self, workspace: Workspace) -> None:
        """The host of the request in flight counts, not the domain of the visit."""
        other = "http://x.test/r"
        workspace.fetcher = ScriptedFetcher({"http://h0.test/robots.txt": redirect(other)})
        await workspace.open("http://h0.test/", delay=1000.0)
        crawl = workspace.crawl(delay=1000.0, store=workspace.store())

        async def exclude(request: Request) -> None:
            if request.url.text == other:
                workspace.exclusions.put_nowait(["x.test"])
                try:
                    await asyncio.Event().wait()
                finally:
                    crawl.stop()

        workspace.fetcher.before_answer = exclude
        async with asyncio.timeout(10):
            await crawl.run()
        assert workspace.fetcher.requested == ["http://h0.test/robots.txt", other]
        assert await workspace.states() == {"http://h0.test/": "pending"}
        assert await workspace.rows("SELECT error FROM request WHERE seq = 1") == [("aborted",)]

    async def test_a_host_whose_exclusion_is_lifted_is_fetched_again(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page_with_links("http://h1.test/")})
        workspace.fetcher.script["http://h1.test/"] = page()
        await workspace.open("http://h0.test/")

        async def lift(request: Request) -> None:
            workspace.exclusions.put_nowait([])
            await workspace.exclusions.join()

        workspace.exclusions.put_nowait(["h1.test"])
        workspace.fetcher.before_answer = lift
        await workspace.run()
        assert set((await workspace.states()).values()) == {"done"}
        assert "http://h1.test/" in workspace.fetcher.requested

    async def test_following_exclusions_stops_with_the_crawl(self, workspace: Workspace) -> None:
        await workspace.open()
        ended = False

        async def follow(_: Callable[[Exclusions], None]) -> None:
            nonlocal ended
            try:
                await asyncio.Event().wait()
            finally:
                ended = True

        crawl = workspace.crawl(store=workspace.store(), follow_exclusions=follow)
        await crawl.run()
        assert ended

    async def test_the_crawl_ends_if_following_exclusions_fails(self, workspace: Workspace) -> None:
        await workspace.open("http://h0.test/")

        async def follow(_: Callable[[Exclusions], None]) -> None:
            raise RuntimeError("broken")

        crawl = workspace.crawl(store=workspace.store(), follow_exclusions=follow)
        with pytest.raises(RuntimeError, match="broken"):
            async with asyncio.timeout(10):
                await crawl.run()


class TestGivingUp:
    """A domain that has not answered for a long time."""

    @pytest.mark.parametrize(("failures", "is_given_up"), [(8, False), (9, True), (10, True)])
    async def test_the_tenth_visit_without_an_answer_fails_all_urls_of_the_domain(
        self, workspace: Workspace, failures: int, is_given_up: bool
    ) -> None:
        urls = [f"http://dead.test/{n}" for n in range(5)] + ["http://www.dead.test/"]
        workspace.fetcher = ScriptedFetcher({"http://dead.test/robots.txt": failed()})
        await workspace.open(*urls, "http://h0.test/")
        await workspace.rows(f"UPDATE domain SET failures = {failures} WHERE name = 'dead.test'")
        workspace.fetcher.script["http://h0.test/"] = page()
        assert await workspace.run() is Ending.EXHAUSTED
        states = await workspace.states()
        assert states.pop("http://h0.test/") == "done"
        assert set(states.values()) == ({"failed"} if is_given_up else {"pending"})
        reasons = {reason for (reason,) in await workspace.rows("SELECT reason FROM url")}
        assert ("domain given up: connect" in reasons) is is_given_up
        assert workspace.fetcher.requested.count("http://dead.test/robots.txt") == 1
        assert (await workspace.counts()).urls[UrlState.FAILED] == (6 if is_given_up else 0)

    async def test_a_crawl_whose_domains_are_all_given_up_is_exhausted(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://dead.test/robots.txt": failed()})
        await workspace.open("http://dead.test/1", "http://dead.test/2")
        await workspace.rows("UPDATE domain SET failures = 9")
        assert await workspace.run() is Ending.EXHAUSTED
        assert (await workspace.counts()).urls_pending == 0

    async def test_a_visit_that_is_settled_too_late_gives_nothing_up(self, tmp_path: Path) -> None:
        """Its lease has run out, and the domain has answered another process since."""
        world = World(tmp_path)
        await world.open("http://a.test/1", "http://a.test/2", "http://a.test/3")
        await world.rows("UPDATE domain SET failures = 9")
        world.fetcher.script["http://a.test/robots.txt"] = [failed(), refused(404)]
        world.fetcher.script["http://a.test/1"] = page()
        held = await world.claim()
        late, visit = world.start(held)
        await visit.run()
        world.advance(10_000)
        await world.visit()
        await world.write(late)
        states = await world.states()
        world.inflight_log.close()
        await world.harness.close()
        assert sorted(states.values()) == ["done", "pending", "pending"]

    async def test_an_answer_in_time_saves_it(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")
        await workspace.rows("UPDATE domain SET failures = 9")
        assert await workspace.run() is Ending.EXHAUSTED
        assert await workspace.states() == {"http://h0.test/": "done"}
        assert await workspace.rows("SELECT failures FROM domain") == [(0,)]


class TestInflightLog:
    """Requests are in the in-flight log until their visit is settled."""

    async def test_nothing_is_left_after_a_crawl(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(chain_of_hosts(hosts=3, pages=3))
        await workspace.open("http://h0.test/")
        await workspace.run()
        workspace.inflight_log().close()
        assert inflight_files(workspace.folder / "inflight") == []

    async def test_a_visit_is_forgotten_when_it_is_settled_and_not_before(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await workspace.open(*front_pages(3))
        calls: list[tuple[str, set[int]]] = []
        inflight_log = workspace.inflight_log()
        settled = inflight_log.settled

        class Noting(Wrapped):
            async def settle(self, visits: Sequence[VisitResult]) -> int:
                calls.append(("settle", {visit.lease.token for visit in visits}))
                counted: int = await self._part.settle(visits)
                return counted

        def note(visits: Iterable[int]) -> None:
            calls.append(("forget", set(visits)))
            settled(calls[-1][1])

        inflight_log.settled = note  # type: ignore[method-assign]
        await workspace.run(frontier=Noting(workspace.frontier))
        assert calls
        for (first, told), (second, forgotten) in zip(calls[::2], calls[1::2], strict=True):
            assert (first, second, told) == ("settle", "forget", forgotten)

    async def test_a_visit_that_could_not_be_settled_stays(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")
        errors = [FrontierError("lost")] * 20
        with pytest.raises(FrontierError, match="lost"):
            await workspace.run(frontier=Wrapped(workspace.frontier).fail("settle", *errors))
        workspace.inflight_log().close()
        paths = [path for _, path in inflight_files(workspace.folder / "inflight")]
        (lost,) = lost_visits(workspace.frontier.process, paths, 70.0)
        assert [row.url for row in lost.rows] == ["http://h0.test/robots.txt", "http://h0.test/"]

    async def test_a_visit_that_was_salvaged_is_forgotten(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")
        with pytest.raises(DiskFull):
            await workspace.run(store=Wrapped(workspace.store()).fail("write", DiskFull("no room")))
        workspace.inflight_log().close()
        assert inflight_files(workspace.folder / "inflight") == []
        rows = await workspace.rows("SELECT url, settlement FROM request ORDER BY seq")
        assert rows == [("http://h0.test/robots.txt", "lost"), ("http://h0.test/", "lost")]

    async def test_a_full_disk_ends_the_crawl(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")
        inflight_log = workspace.inflight_log()

        def full(_: Note) -> None:
            raise DiskFull("no room")

        inflight_log.note = full  # type: ignore[method-assign, assignment]
        with pytest.raises(DiskFull, match="no room"):
            await workspace.run()
        assert workspace.fetcher.requested == []
        assert (await workspace.counts()).domains["leased"] == 0


class TestErrorsInVisits:
    """A page must neither end the crawl nor come back for ever."""

    async def test_an_internal_error_fails_its_page_and_no_other(self, workspace: Workspace) -> None:
        urls = front_pages(5)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))

        async def break_down(request: Request) -> None:
            if request.url.text == "http://h2.test/":
                raise RuntimeError("broken")

        workspace.fetcher.before_answer = break_down
        await workspace.open(*urls)
        assert await workspace.run() is Ending.EXHAUSTED
        states = await workspace.states()
        assert states.pop("http://h2.test/") == "failed"
        assert set(states.values()) == {"done"}
        assert workspace.progress.errors["internal"] == 1
        reasons = await workspace.rows("SELECT reason FROM url WHERE url = 'http://h2.test/'")
        assert reasons == [("internal error",)]
        assert workspace.fetcher.requested.count("http://h2.test/") == 1

    async def test_an_internal_error_behind_a_redirect_is_not_repeated_for_ever(self, workspace: Workspace) -> None:
        script = {"http://h0.test/": redirect("/b"), "http://h0.test/b": page()}
        workspace.fetcher = ScriptedFetcher(script)

        async def break_down(request: Request) -> None:
            if request.url.text == "http://h0.test/b":
                raise RuntimeError("broken")

        workspace.fetcher.before_answer = break_down
        await workspace.open("http://h0.test/")
        assert await workspace.run() is Ending.EXHAUSTED
        assert (await workspace.states())["http://h0.test/b"] == "failed"
        assert workspace.fetcher.requested.count("http://h0.test/b") <= 2


async def test_a_batch_of_pages_is_stored_in_one_write(workspace: Workspace) -> None:
    sizes: list[int] = []

    class Counting(Wrapped):
        async def write(self, pages: Sequence[Page], known: Mapping[int, Content] | None = None) -> list[Stored]:
            sizes.append(len(pages))
            stored: list[Stored] = await self._part.write(pages)
            return stored

    release = asyncio.Event()
    urls = front_pages(40)
    workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))

    async def together(request: Request) -> None:
        if not request.url.text.endswith("robots.txt"):
            if len(workspace.fetcher.pages_requested) == len(urls):
                release.set()
            await release.wait()

    workspace.fetcher.before_answer = together
    await workspace.open(*urls)
    await workspace.run(store=Counting(workspace.store()), concurrency=40)
    assert sum(sizes) == 40
    assert max(sizes) == 40


async def test_a_text_is_stored_once_and_a_domain_that_repeats_itself_is_known(
    workspace: Workspace,
) -> None:
    """A text that another domain had first is a copy, but not a repeat."""
    same = page("<title>Same</title><p>" + "One text for all of them. " * 20)
    urls = [*(f"http://h0.test/{n}" for n in range(4)), "http://h1.test/"]
    workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, same))
    await workspace.open(*urls)
    await workspace.run()
    copies = await workspace.rows("SELECT is_copy, count(*) FROM request WHERE kind = 'page' GROUP BY is_copy")
    assert dict(copies) == {0: 1, 1: 4}
    assert len(await workspace.rows("SELECT 1 FROM content")) == 1
    repeats = await workspace.rows("SELECT name, repeats FROM domain")
    assert dict(repeats) == {"h0.test": round(1000 * (1 - (15 / 16) ** 3)), "h1.test": 0}
