"""The loop end to end: a scripted web, a real frontier and a real store, and what happens when one of them fails."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections import Counter, defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rove.crawl.loop
import rove.crawl.writer
from rove.config import Limits, Settings
from rove.crawl.inflight_log import InflightLog, Note, lost_visits, spool_files
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import CLAIM_WHILE_FEEDING, REST_WHILE_FEEDING, Crawl, Ending
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.seen import SeenSet
from rove.crawl.writer import GroupWriter
from rove.errors import DiskFull, FrontierError, RoveError, StoreError
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier, Policy
from rove.frontier.sqlite.database import Database
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteReader
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
    DELAY,
    ScriptedFetcher,
    World,
    failed,
    offered,
    page,
    page_with_links,
    redirect,
    refused,
)


@pytest.fixture(autouse=True)
def no_waiting_for_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rove.crawl.writer, "GROUP_SECONDS", 0.0)


class Wrapped:
    """A real part of which some calls are made to fail, or are written down."""

    def __init__(self, part: Any, calls: list[tuple[str, Any]] | None = None) -> None:
        self._part = part
        self._calls = calls
        self._failures: dict[str, list[BaseException | None]] = defaultdict(list)

    def fail(self, name: str, *errors: BaseException | None) -> Wrapped:
        """Let the next calls of a verb raise these, None for one that works."""
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


async def no_seeds() -> None:
    return


class Place:
    """Where a crawl runs, again and again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = Database(folder / "frontier.sqlite")
        self.fetcher = ScriptedFetcher()
        self.progress = Progress(started=0.0)
        self.fed = True
        self.news: list[str] = []
        self.exclusions: asyncio.Queue[list[str]] = asyncio.Queue()
        self.real_frontier: SqliteFrontier | None = None
        self._spools: dict[int, InflightLog] = {}

    async def open(self, *urls: str, delay: float = 0.0, horizon: float = math.inf) -> None:
        """Open the frontier, as one more run, with these URLs in it."""
        if self.real_frontier is None:
            await self.database.open(create=True)
        policy = Policy(delay=delay, budget=VISIT_BUDGET, horizon=horizon)
        self.real_frontier = SqliteFrontier(self.database, policy)
        await self.real_frontier.begin(run=1)
        await self.frontier.add([offered(url) for url in urls])

    @property
    def frontier(self) -> Frontier:
        assert self.real_frontier is not None, "the place is not open"
        return self.real_frontier

    def inflight_log(self) -> InflightLog:
        """That of the process which was opened last."""
        process = self.frontier.process
        return self._spools.setdefault(process, InflightLog(self.folder / "spool", process))

    def store(self) -> WarcStore:
        return WarcStore(self.folder / "warc", keep=Keep.TEXT, name="crawl", software="rove/test")

    def crawl(
        self,
        *,
        frontier: Any = None,
        store: Any = None,
        clock: Callable[[], float] = steady_seconds,
        **settings: Any,
    ) -> Crawl:
        """A crawl of this place, not begun yet."""
        self.progress = Progress(started=clock())
        given = {"email": "me@example.org", "delay": 0.0, "concurrency": 4} | settings
        made = Settings(**given)
        return Crawl(
            frontier=frontier or self.frontier,
            fetcher=self.fetcher,
            store=store or self.store(),
            gate=Gate(Exclusions()),
            reader=PageReader(),
            inflight_log=self.inflight_log(),
            settings=made,
            concurrency=made.concurrency,
            progress=self.progress,
            clock=clock,
            remaining_limits=RemainingLimits(
                limits=made.limits, seconds_before=0.0, started=clock(), clock=clock
            ),
            all_fed=self._all_fed,
            follow_exclusions=self._follow,
            machine=Pressure(
                made,
                concurrency=made.concurrency,
                directory=self.folder,
                clock=clock,
                on_news=self.news.append,
            ),
        )

    def close(self) -> None:
        for inflight_log in self._spools.values():
            inflight_log.close()
        asyncio.run(self.database.close())

    async def _follow(self, tell: Callable[[Exclusions], None]) -> None:
        """In the catalog's place: tells each time that the test has put other exclusions in."""
        while True:
            tell(Exclusions(await self.exclusions.get()))
            self.exclusions.task_done()

    async def _all_fed(self) -> bool:
        return self.fed

    async def run(self, feed: Callable[[], Awaitable[None]] = no_seeds, **more: Any) -> Ending:
        """Crawl to the end."""
        store = more.setdefault("store", self.store())
        try:
            async with asyncio.timeout(20):
                return await self.crawl(**more).run(self._feeding(feed))
        finally:
            await store.close()

    def _feeding(self, feed: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        self.fed = False

        async def whole() -> None:
            await feed()
            self.fed = True

        return whole

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the database says."""
        connection = self.database._connection
        assert connection is not None, "the database is open"
        return await self.database.run(lambda: connection.execute(sql).fetchall())

    async def states(self) -> dict[str, str]:
        """All URLs by state."""
        rows = await self.rows("SELECT url, state FROM url")
        return {url: UrlState(state).name.lower() for url, state in rows}

    async def counts(self) -> Counts:
        return await self.frontier.counts()

    async def some_turns(self) -> None:
        """Let the crawl do what it would do: it shares the database's one thread, and the event loop."""
        for _ in range(20):
            await self.counts()

    async def pages(self) -> dict[str, RequestRow]:
        """What the crawl holds of the pages that it stored, by URL."""
        rows = [row async for row in SqliteReader(self.database).pages()]
        return {row.url: row for row in rows if row.text is not None}

    async def text(self, url: str) -> str:
        """The stored text of a page."""
        row = (await self.pages())[url]
        assert row.text is not None
        return WarcReader(self.folder / "warc").read_text(row.text, expect_url=url)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def chain_of_hosts(hosts: int, pages: int) -> dict[str, Any]:
    """Hosts of so many pages each, of which the first links to the others and to the next host."""
    script: dict[str, Any] = {}
    for host in range(hosts):
        names = [f"http://h{host}.test/{n or ''}" for n in range(pages)]
        onward = [f"http://h{host + 1}.test/"] if host + 1 < hosts else []
        script[names[0]] = page_with_links(*names, *onward)
        script |= {name: page(f"<p>This is {name}") for name in names[1:]}
    return script


def front_pages(count: int) -> list[str]:
    return [f"http://h{i}.test/" for i in range(count)]


async def test_a_crawl_runs_until_nothing_is_left(place: Place) -> None:
    script = chain_of_hosts(hosts=5, pages=4)
    place.fetcher = ScriptedFetcher(script)
    await place.open("http://h0.test/")
    assert await place.run() is Ending.EXHAUSTED
    assert await place.states() == dict.fromkeys(script, "done")
    assert Counter(place.fetcher.pages_asked) == Counter(list(script))
    robots = Counter(place.fetcher.asked) - Counter(list(script))
    assert robots == Counter(f"{front}robots.txt" for front in front_pages(5))
    assert place.progress.pages == 20 and place.progress.visits == 20
    assert place.progress.requests == 25 == len(place.fetcher.asked)
    assert place.progress.in_flight == 0
    assert place.progress.errors == {"status-404": 5}


async def test_every_page_that_is_done_has_its_text_in_the_store(place: Place) -> None:
    script = chain_of_hosts(hosts=2, pages=3)
    place.fetcher = ScriptedFetcher(script)
    await place.open("http://h0.test/")
    await place.run()
    assert set(await place.pages()) == set(script)
    for url in script:
        if not url.endswith(".test/"):
            assert await place.text(url) == f"This is {url}"
    assert [path.suffix for path in (place.folder / "warc").iterdir()] == [".gz"]


def links_of(url: str, script: dict[str, Any]) -> set[str]:
    """What a scripted page links to, but for itself."""
    return set(re.findall(r'href="([^"]+)"', script[url].body.decode())) - {url}


async def test_pages_are_stored_then_links_added_then_visits_settled(place: Place) -> None:
    calls: list[tuple[str, Any]] = []
    script = chain_of_hosts(hosts=6, pages=5)
    place.fetcher = ScriptedFetcher(script)
    await place.open("http://h0.test/")
    await place.run(frontier=Wrapped(place.frontier, calls), store=Wrapped(place.store(), calls))
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
            assert done <= stored, "nothing is done without its content"
            for url in done:
                assert links_of(url, script) <= added, "no link is lost"
            settled |= done
    assert settled == set(script)


async def test_a_known_link_is_offered_once(place: Place) -> None:
    calls: list[tuple[str, Any]] = []
    urls = [f"http://h{i}.test/" for i in range(10)]
    place.fetcher = ScriptedFetcher({url: page_with_links(*urls) for url in urls})
    await place.open("http://h0.test/")
    await place.run(frontier=Wrapped(place.frontier, calls), concurrency=1)
    offers = Counter(link.url for name, links in calls if name == "add begins" for link in links)
    assert set(offers.values()) == {1}


LINKED = [f"http://h0.test/{i}" for i in range(1, 6)]


class TestRoom:
    """A domain of which more is offered than there is room for."""

    @pytest.fixture(autouse=True)
    def room_for_three(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "FEWEST_VISITS", 3)
        monkeypatch.setattr(budget, "MULTIPLE", 1)

    async def test_what_was_not_taken_is_offered_again(self, place: Place) -> None:
        calls: list[tuple[str, Any]] = []
        urls = ["http://h0.test/", *LINKED]
        place.fetcher = ScriptedFetcher({url: page_with_links(*LINKED) for url in urls})
        await place.open("http://h0.test/", horizon=0.1)
        await place.run(frontier=Wrapped(place.frontier, calls), concurrency=1)
        assert await place.states() == dict.fromkeys(urls[:3], "done")
        offered = [link.url for name, links in calls if name == "add begins" for link in links]
        assert Counter(offered) == dict.fromkeys(urls[1:3], 1) | dict.fromkeys(urls[3:], 3)
        assert (await place.counts()).not_accepted == {"budget": 9}

    async def test_where_a_redirect_led_is_settled_all_the_same(self, place: Place) -> None:
        first, second, *_ = LINKED
        place.fetcher = ScriptedFetcher(
            {
                "http://h0.test/": page_with_links(*LINKED),
                first: redirect("/new1"),
                second: redirect("/new2"),
                "http://h0.test/new1": page_with_links(*LINKED),
                "http://h0.test/new2": page(),
            }
        )
        await place.open("http://h0.test/", horizon=0.1)
        await place.run(concurrency=1)
        done = ["http://h0.test/", "http://h0.test/new1", "http://h0.test/new2"]
        assert await place.states() == dict.fromkeys(done, "done") | dict.fromkeys(
            [first, second], "redirected"
        )
        assert (await place.counts()).pages == 3

    @pytest.mark.parametrize("target", ["2", "new"])
    async def test_both_ends_of_a_redirect_are_settled_although_others_need_the_room(
        self, place: Place, target: str
    ) -> None:
        """Somebody adds better URLs in the very moment: the one that was known has to go, and nothing more may come."""
        first, second, *_ = LINKED
        led_to = f"http://h0.test/{target}"
        better = ["http://h0.test/a", "http://h0.test/b"]
        place.fetcher = ScriptedFetcher(
            {"http://h0.test/": page_with_links(first, second), first: redirect(f"/{target}")}
            | dict.fromkeys([led_to, *better], page())
        )
        await place.open("http://h0.test/", horizon=0.1)

        async def add_better(request: Request) -> None:
            if request.url.text == first:
                await place.frontier.add([offered(url) for url in better])

        place.fetcher.before_answer = add_better
        await place.run(concurrency=1)
        done = ["http://h0.test/", led_to, *better]
        assert await place.states() == dict.fromkeys(done, "done") | {first: "redirected"}
        assert (await place.counts()).pages == 4


async def test_seeds_are_claimed_as_they_come(place: Place) -> None:
    place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=1, pages=1) | {"http://b.test/": page()})
    await place.open()
    first_fetched = asyncio.Event()

    async def note(request: Request) -> None:
        first_fetched.set()

    place.fetcher.before_answer = note
    crawl = place.crawl(store=place.store())

    async def feed() -> None:
        await place.frontier.add([offered("http://h0.test/")])
        crawl.fed_some()
        await first_fetched.wait()
        await place.frontier.add([offered("http://b.test/")])

    async with asyncio.timeout(10):
        assert await crawl.run(feed) is Ending.EXHAUSTED
    assert await place.states() == {"http://h0.test/": "done", "http://b.test/": "done"}


async def test_a_crawl_is_not_exhausted_while_seeds_are_loaded(place: Place) -> None:
    place.fetcher = ScriptedFetcher({"http://a.test/": page()})
    await place.open()

    async def feed() -> None:
        await place.some_turns()
        await place.frontier.add([offered("http://a.test/")])

    assert await place.run(feed) is Ending.EXHAUSTED
    assert await place.states() == {"http://a.test/": "done"}


async def test_a_crawl_goes_slowly_while_seeds_are_loaded_and_not_after(place: Place) -> None:
    seeds = front_pages(400)
    place.fetcher = ScriptedFetcher({url: page() for url in seeds})
    await place.open(*seeds)
    claimed: list[int] = []
    loading = 0.0

    async def feed() -> None:
        nonlocal claimed, loading
        begun = steady_seconds()
        await asyncio.sleep(0.6)
        loading = steady_seconds() - begun
        claimed += [row[0] for row in await place.rows("SELECT id FROM domain WHERE token > 0")]

    assert await place.run(feed, concurrency=100) is Ending.EXHAUSTED
    at_most = CLAIM_WHILE_FEEDING * (1 + math.ceil(loading / REST_WHILE_FEEDING))
    assert 0 < len(claimed) <= at_most
    assert set((await place.states()).values()) == {"done"}


async def test_an_empty_crawl_is_exhausted(place: Place) -> None:
    await place.open()
    assert await place.run() is Ending.EXHAUSTED


async def test_the_delay_lies_between_visits_to_a_domain(place: Place) -> None:
    delay = 0.1
    place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=2, pages=4))
    place.fetcher.script["http://h1.test/"] = redirect("http://www.h1.test/")
    place.fetcher.script["http://www.h1.test/"] = page_with_links("http://h1.test/1")
    await place.open("http://h0.test/", "http://h1.test/", delay=delay)
    await place.run(delay=delay)
    visits = await place.rows(
        "SELECT domain, visit, min(began), max(ended), count(*) FROM request "
        "GROUP BY domain, visit ORDER BY domain, visit"
    )
    assert sorted(count for *_, count in visits) == [1, 1, 1, 1, 2, 4], "hops belong to the visit"
    for earlier, later in pairwise(visits):
        if earlier[0] == later[0]:
            assert (later[2] - earlier[3]) / 1000 >= delay - 0.005


@pytest.mark.parametrize("concurrency", [1, 3, 50])
@pytest.mark.parametrize("limit", [1, 2, 7, 19])
async def test_the_page_limit_is_kept_exactly(place: Place, limit: int, concurrency: int) -> None:
    place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=20, pages=1))
    place.fetcher.script["http://h3.test/"] = refused(404)
    await place.open(*front_pages(20))
    ending = await place.run(concurrency=concurrency, limits=Limits(max_pages=limit))
    assert ending is Ending.MAX_PAGES
    assert (await place.counts()).pages == place.progress.pages == limit
    assert (await place.counts()).domains["leased"] == 0


async def test_pages_of_earlier_runs_count_against_the_limit(place: Place) -> None:
    place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=9, pages=1))
    await place.open(*front_pages(9))
    assert await place.run(limits=Limits(max_pages=3)) is Ending.MAX_PAGES
    assert await place.run(limits=Limits(max_pages=7)) is Ending.MAX_PAGES
    assert place.progress.pages == 4
    await place.run(limits=Limits(max_pages=7))
    assert place.progress.pages == 0
    assert await place.run(limits=Limits(max_pages=1, pages_before=7)) is Ending.MAX_PAGES
    assert place.progress.pages == 1


async def test_the_time_limit_ends_the_crawl(place: Place) -> None:
    place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
    await place.open("http://h0.test/", "http://h0.test/later", delay=1000.0)
    ending = await place.run(delay=1000.0, limits=Limits(max_duration=0.2))
    assert ending is Ending.MAX_DURATION
    assert (await place.counts()).domains["leased"] == 0


async def test_without_room_on_the_disk_nothing_is_asked_and_nothing_ends(place: Place) -> None:
    place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=3, pages=2))
    await place.open(*front_pages(3))
    crawl = place.crawl(min_free_disk=1 << 60)
    running = asyncio.create_task(crawl.run())
    await place.some_turns()
    assert not running.done() and not place.progress.requests
    assert place.progress.trouble.startswith("paused: less than")
    assert len(place.news) == 1 and "the crawl pauses" in place.news[0]
    crawl.stop()
    assert await running is Ending.STOPPED
    limits = Limits(max_duration=0.05)
    assert await place.run(min_free_disk=1 << 60, limits=limits) is Ending.MAX_DURATION
    assert not place.progress.requests
    assert await place.run(min_free_disk=0) is Ending.EXHAUSTED
    assert place.progress.pages == 6


async def test_a_crawl_with_little_memory_comes_to_the_same_end(place: Place) -> None:
    place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=3, pages=2))
    await place.open(*front_pages(3))
    crawl = place.crawl()
    crawl._machine.memory.room = 1
    assert await crawl.run() is Ending.EXHAUSTED
    assert place.progress.pages == 6
    assert crawl._machine.memory.used == 0, "all that was held is given back"


async def test_seeds_only_keeps_to_the_domains_of_the_seeds(place: Place) -> None:
    links = page_with_links("/more", "http://b.test/in", "http://c.test/out")
    place.fetcher = ScriptedFetcher({"http://a.test/": links, "http://b.test/": page()})
    place.fetcher.script |= {"http://a.test/more": page(), "http://b.test/in": page()}
    await place.open("http://a.test/")

    async def feed() -> None:
        await place.some_turns()
        assert place.fetcher.asked == [], "links into seeds not loaded yet would be out of scope"
        await place.frontier.add([offered("http://b.test/")])

    await place.run(feed, seeds_only=True)
    assert set(await place.states()) == {
        *("http://a.test/", "http://a.test/more", "http://b.test/", "http://b.test/in")
    }
    assert (await place.counts()).not_accepted == {"out-of-scope": 1}


async def test_a_crawl_ends_when_only_failing_origins_are_left(place: Place) -> None:
    script = {"http://h0.test/": page(), "http://dead.test/robots.txt": failed()}
    place.fetcher = ScriptedFetcher(script)
    await place.open("http://h0.test/", "http://dead.test/")
    assert await place.run() is Ending.EXHAUSTED
    assert await place.states() == {"http://h0.test/": "done", "http://dead.test/": "pending"}
    assert place.fetcher.asked.count("http://dead.test/robots.txt") == 3


class TestStop:
    """Ending in good order."""

    async def test_leases_that_were_not_used_are_given_back(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(10), page()))
        await place.open(*front_pages(10), delay=1000.0)
        crawl = place.crawl(concurrency=2, delay=1000.0, store=place.store())
        leased = 0

        async def stop(request: Request) -> None:
            """Once both slots are taken; then hang until the others are back."""
            nonlocal leased
            while len(place.fetcher.asked) < 2:
                await place.counts()
            leased = max(leased, (await place.counts()).domains["leased"])
            crawl.stop()
            while (await place.counts()).domains["leased"] > 2:
                pass

        place.fetcher.before_answer = stop
        assert await crawl.run(no_seeds) is Ending.STOPPED
        assert leased > 2, "some were leased ahead"
        counts = await place.counts()
        assert len(place.fetcher.asked) == 2
        assert counts.domains["leased"] == 0
        assert counts.domains["waiting"] == 2
        assert counts.domains["ready"] == 8
        assert counts.urls_pending == 10

    async def test_fetches_in_flight_come_to_their_end(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await place.open(*front_pages(3))
        crawl = place.crawl(concurrency=1, store=place.store())

        async def stop(request: Request) -> None:
            if not request.url.text.endswith("robots.txt"):
                crawl.stop()
                await place.some_turns()

        place.fetcher.before_answer = stop
        await crawl.run(no_seeds)
        assert len(place.fetcher.pages_asked) == 1
        assert (await place.counts()).pages == place.progress.pages == 1
        assert set(await place.pages()) == set(place.fetcher.pages_asked)

    async def test_what_takes_longer_than_the_grace_is_cut(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.loop, "GRACE_SECONDS", 0.05)
        await place.open("http://h0.test/", delay=1000.0)
        crawl = place.crawl(delay=1000.0, store=place.store())

        async def hang(request: Request) -> None:
            crawl.stop()
            await asyncio.Event().wait()

        place.fetcher.before_answer = hang
        assert await crawl.run(no_seeds) is Ending.STOPPED
        counts = await place.counts()
        assert (counts.urls_pending, counts.requests, counts.domains["leased"]) == (1, 1, 0)
        due = await place.frontier.next_due()
        assert due is not None and 990 < due <= 1000, "it was asked, and its delay is due"

    async def test_a_crawl_that_is_stopped_at_once_ends_at_once(self, place: Place) -> None:
        await place.open(*front_pages(3))
        crawl = place.crawl(store=place.store())
        crawl.stop()
        async with asyncio.timeout(5):
            assert await crawl.run(no_seeds) is Ending.STOPPED
        assert place.fetcher.asked == []
        assert (await place.counts()).domains["ready"] == 3

    async def test_the_first_reason_to_end_counts(self, place: Place) -> None:
        await place.open()
        crawl = place.crawl(store=place.store())
        crawl.stop(Ending.MAX_DURATION)
        crawl.stop(Ending.STOPPED)
        assert await crawl.run(no_seeds) is Ending.MAX_DURATION

    async def test_loading_seeds_is_stopped_too(self, place: Place) -> None:
        await place.open()
        crawl = place.crawl(store=place.store())
        cancelled = False

        async def feed() -> None:
            nonlocal cancelled
            crawl.stop()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise

        async with asyncio.timeout(5):
            assert await crawl.run(feed) is Ending.STOPPED
        assert cancelled


class TestOverdue:
    """Nothing is asked after the end of a lease, by the crawl's steady clock."""

    async def test_a_visit_past_its_lease_is_cut(self, place: Place) -> None:
        await place.open("http://h0.test/", delay=1000.0)
        suspended = 0.0
        crawl = place.crawl(
            delay=1000.0, store=place.store(), clock=lambda: steady_seconds() + suspended
        )

        async def suspend(request: Request) -> None:
            nonlocal suspended
            suspended = VISIT_BUDGET + 1
            try:
                await asyncio.Event().wait()
            finally:
                crawl.stop()

        place.fetcher.before_answer = suspend
        async with asyncio.timeout(10):
            await crawl.run(no_seeds)
        assert place.fetcher.asked == ["http://h0.test/robots.txt"]
        assert await place.states() == {"http://h0.test/": "pending"}
        assert place.progress.errors == {"aborted": 1}

    async def test_a_lease_that_waited_too_long_is_not_used(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(2), page()))
        await place.open(*front_pages(2), delay=1000.0)
        suspended = 0.0
        crawl = place.crawl(
            concurrency=1,
            delay=1000.0,
            store=place.store(),
            clock=lambda: steady_seconds() + suspended,
        )

        async def suspend(request: Request) -> None:
            nonlocal suspended
            while (await place.counts()).domains["leased"] < 2:
                pass
            suspended = VISIT_BUDGET + 1
            place.fetcher.before_answer = stop

        async def stop(request: Request) -> None:
            crawl.stop()

        place.fetcher.before_answer = suspend
        async with asyncio.timeout(10):
            await crawl.run(no_seeds)
        # The first was under way when the machine slept; the second was claimed anew before it was asked.
        assert len(place.fetcher.asked) == 2
        assert len(set(place.fetcher.asked)) == 2
        ((visits,),) = await place.rows("SELECT value FROM counter WHERE name = 'visits'")
        assert visits >= 3


async def assert_unharmed(place: Place, urls: Sequence[str], *, delay: float) -> None:
    """No URL is lost or done, no lease is out, and what was asked is waiting for its delay."""
    states = await place.states()
    assert set(states) >= set(urls) and set(states.values()) == {"pending"}
    counts = await place.counts()
    assert counts.pages == 0 and counts.domains["leased"] == 0
    asked = {url.removesuffix("robots.txt") for url in place.fetcher.asked}
    rows = dict(await place.rows("SELECT 'http://' || name || '/', not_before FROM domain"))
    clock = await place.database.run(place.database.clock)
    left = {url: (rows[url] - clock()) / 1000 for url in urls}
    assert all(delay - 10 < left[url] <= delay for url in asked)
    assert all(left[url] <= 0 for url in set(urls) - asked)


async def resume(place: Place) -> None:
    """Crawl on without waiting for the delay, and find everything."""
    await place.open()
    await place.rows("UPDATE domain SET ready_at = min(ready_at, 0), not_before = 0")
    assert await place.run() is Ending.EXHAUSTED


class TestStoreErrors:
    """A store that cannot be written."""

    @pytest.mark.parametrize("error", [DiskFull("no room"), StoreError("broken")])
    @pytest.mark.parametrize("hosts", [1, 12])
    async def test_the_crawl_ends_with_the_error_and_nothing_is_lost(
        self, place: Place, error: RoveError, hosts: int
    ) -> None:
        urls = front_pages(hosts)
        place.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await place.open(*urls, delay=1000.0)
        store = Wrapped(place.store()).fail("write", *[error] * 50)
        with pytest.raises(type(error)) as caught:
            await place.run(store=store, delay=1000.0)
        assert caught.value is error
        await assert_unharmed(place, urls, delay=1000.0)
        place.fetcher.asked.clear()
        await resume(place)
        assert await place.states() == dict.fromkeys(urls, "done")
        assert set(await place.pages()) == set(urls)

    async def test_what_was_stored_before_stays_done(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.writer, "GROUP", 1)
        urls = front_pages(6)
        place.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await place.open(*urls)
        store = Wrapped(place.store()).fail("write", None, None, *[DiskFull("no room")] * 9)
        with pytest.raises(DiskFull):
            await place.run(store=store, concurrency=1)
        counts = await place.counts()
        assert (counts.pages, counts.urls_pending, counts.domains["leased"]) == (2, 4, 0)
        assert len(await place.pages()) == 2
        await resume(place)
        assert set(await place.pages()) == set(urls)

    async def test_links_of_a_page_that_was_not_stored_come_with_it_later(
        self, place: Place
    ) -> None:
        script = chain_of_hosts(hosts=3, pages=2)
        place.fetcher = ScriptedFetcher(script)
        await place.open("http://h0.test/")
        with pytest.raises(DiskFull):
            await place.run(store=Wrapped(place.store()).fail("write", DiskFull("no room")))
        await resume(place)
        assert await place.states() == dict.fromkeys(script, "done")

    async def test_a_full_disk_is_told_from_a_stop(self, place: Place) -> None:
        """A signal while the last group is written does not hide that it was lost."""
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await place.open("http://h0.test/")
        crawl = place.crawl(store=Wrapped(place.store()).fail("write", DiskFull("no room")))

        async def stop(request: Request) -> None:
            if not request.url.text.endswith("robots.txt"):
                crawl.stop()

        place.fetcher.before_answer = stop
        with pytest.raises(DiskFull):
            await crawl.run(no_seeds)


class TestFrontierErrors:
    """A frontier that is lost for a moment."""

    @pytest.mark.parametrize("verb", ["put_origins", "add", "settle"])
    async def test_a_group_that_cannot_be_settled_ends_the_crawl_at_once(
        self, place: Place, verb: str
    ) -> None:
        """Also where nothing else is going on: the next visit may be hours away, or never come."""
        place.fetcher = ScriptedFetcher({"http://h0.test/": page_with_links("/b")})
        await place.open("http://h0.test/", delay=1000.0)
        frontier = Wrapped(place.frontier).fail(verb, FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            async with asyncio.timeout(10):
                await place.run(frontier=frontier, delay=1000.0)
        await assert_unharmed(place, ["http://h0.test/"], delay=1000.0)

    @pytest.mark.parametrize("group", [1, 256])
    @pytest.mark.parametrize("verb", ["put_origins", "add", "settle"])
    async def test_nothing_is_lost_when_a_group_cannot_be_settled(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, verb: str, group: int
    ) -> None:
        monkeypatch.setattr(rove.crawl.writer, "GROUP", group)
        script = chain_of_hosts(hosts=8, pages=3)
        place.fetcher = ScriptedFetcher(script)
        await place.open(*front_pages(8))
        frontier = Wrapped(place.frontier).fail(verb, FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            async with asyncio.timeout(10):
                await place.run(frontier=frontier)
        assert (await place.counts()).domains["leased"] == 0
        done = {url for url, state in (await place.states()).items() if state == "done"}
        assert done == set(await place.pages())
        await resume(place)
        assert await place.states() == dict.fromkeys(script, "done")

    @pytest.mark.parametrize("verb", ["claim", "origins", "next_due"])
    @pytest.mark.parametrize("calls", [0, 1])
    async def test_nothing_is_lost_when_nothing_can_be_claimed(
        self, place: Place, verb: str, calls: int
    ) -> None:
        script = chain_of_hosts(hosts=8, pages=3)
        place.fetcher = ScriptedFetcher(script)
        await place.open(*front_pages(8))
        frontier = Wrapped(place.frontier).fail(verb, *[None] * calls, FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            await place.run(frontier=frontier, concurrency=2)
        assert (await place.counts()).domains["leased"] == 0
        done = {url for url, state in (await place.states()).items() if state == "done"}
        assert done == set(await place.pages())
        await resume(place)
        assert await place.states() == dict.fromkeys(script, "done")

    async def test_a_frontier_that_is_lost_during_a_visit_ends_the_crawl(
        self, place: Place
    ) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": redirect("/b")})
        await place.open("http://h0.test/")
        frontier = Wrapped(place.frontier).fail("states", FrontierError("lost"))
        with pytest.raises(FrontierError, match="lost"):
            await place.run(frontier=frontier)
        place.fetcher.script["http://h0.test/b"] = page()
        await resume(place)
        assert (await place.states())["http://h0.test/b"] == "done"

    async def test_a_frontier_that_stays_lost_says_so_once(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await place.open(*front_pages(3), delay=1000.0)
        errors = [FrontierError(f"lost {i}") for i in range(20)]
        with pytest.raises(FrontierError, match="lost 0"):
            async with asyncio.timeout(10):
                await place.run(frontier=Wrapped(place.frontier).fail("settle", *errors))
        counts = await place.counts()
        assert (counts.urls_pending, counts.pages) == (3, 0)
        await place.frontier.recover([place.frontier.process])
        assert (await place.counts()).domains["leased"] == 0

    async def test_seeds_that_cannot_be_loaded_end_the_crawl(self, place: Place) -> None:
        await place.open("http://h0.test/")
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})

        async def feed() -> None:
            raise FrontierError("lost")

        with pytest.raises(FrontierError, match="lost"):
            await place.run(feed)


class TestExclusions:
    """Other exclusions, while the crawl goes on."""

    @pytest.mark.parametrize("pattern", ["h0.test", "=h0.test", "h0*", "test"])
    async def test_a_fetch_in_flight_to_an_excluded_host_is_cut(
        self, place: Place, pattern: str
    ) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await place.open("http://h0.test/")

        async def exclude(request: Request) -> None:
            if request.url.text == "http://h0.test/":
                place.exclusions.put_nowait([pattern])
                await asyncio.Event().wait()

        place.fetcher.before_answer = exclude
        assert await place.run() is Ending.EXHAUSTED
        assert place.fetcher.pages_asked == ["http://h0.test/"], "once, and never again"
        assert await place.states() == {"http://h0.test/": "blocked"}
        assert await place.rows("SELECT reason FROM url") == [("excluded",)]
        assert place.progress.errors["aborted"] == 1
        rows = await place.rows("SELECT error, fate FROM request ORDER BY seq")
        assert rows == [("status-404", ""), ("aborted", "")]

    async def test_other_fetches_in_flight_go_on(self, place: Place) -> None:
        urls = front_pages(3)
        place.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await place.open(*urls)
        cut = asyncio.Event()

        async def exclude(request: Request) -> None:
            if request.url.text.endswith("robots.txt"):
                return
            if len(place.fetcher.pages_asked) == 3:
                place.exclusions.put_nowait(["h1.test", "elsewhere.test"])
            try:
                await cut.wait()
            except asyncio.CancelledError:
                cut.set()
                raise

        place.fetcher.before_answer = exclude
        assert await place.run() is Ending.EXHAUSTED
        states = await place.states()
        assert states == {urls[0]: "done", urls[1]: "blocked", urls[2]: "done"}

    async def test_a_slot_outlives_visits_that_were_cut(self, place: Place) -> None:
        """Even one that ends in another error: the only slot goes on, and its next visit can be cut as well."""
        urls = front_pages(3)
        place.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))
        await place.open(*urls)

        async def exclude(request: Request) -> None:
            asked = place.fetcher.pages_asked
            if request.url.text.endswith("robots.txt") or len(asked) == 3:
                return
            place.exclusions.put_nowait([url.split("/")[2] for url in asked])
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if len(asked) == 1:
                    raise ValueError("as it was cut") from None
                raise

        place.fetcher.before_answer = exclude
        assert await place.run(concurrency=1) is Ending.EXHAUSTED
        assert len(place.fetcher.pages_asked) == 3
        assert place.progress.errors["internal"] == 1
        assert place.progress.errors["aborted"] == 2

    async def test_a_robots_txt_that_led_to_an_excluded_host_is_cut(self, place: Place) -> None:
        """Not the domain of the visit counts, but the host that is being asked."""
        other = "http://x.test/r"
        place.fetcher = ScriptedFetcher({"http://h0.test/robots.txt": redirect(other)})
        await place.open("http://h0.test/", delay=1000.0)
        crawl = place.crawl(delay=1000.0, store=place.store())

        async def exclude(request: Request) -> None:
            if request.url.text == other:
                place.exclusions.put_nowait(["x.test"])
                try:
                    await asyncio.Event().wait()
                finally:
                    crawl.stop()

        place.fetcher.before_answer = exclude
        async with asyncio.timeout(10):
            await crawl.run(no_seeds)
        assert place.fetcher.asked == ["http://h0.test/robots.txt", other]
        assert await place.states() == {"http://h0.test/": "pending"}
        assert await place.rows("SELECT error FROM request WHERE seq = 1") == [("aborted",)]

    async def test_what_is_lifted_is_asked_again(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": page_with_links("http://h1.test/")})
        place.fetcher.script["http://h1.test/"] = page()
        await place.open("http://h0.test/")

        async def lift(request: Request) -> None:
            place.exclusions.put_nowait([])
            await place.exclusions.join()

        place.exclusions.put_nowait(["h1.test"])
        place.fetcher.before_answer = lift
        await place.run()
        assert set((await place.states()).values()) == {"done"}
        assert "http://h1.test/" in place.fetcher.asked

    async def test_whoever_follows_is_stopped_with_the_crawl(self, place: Place) -> None:
        await place.open()
        ended = False

        async def follow(_: Callable[[Exclusions], None]) -> None:
            nonlocal ended
            try:
                await asyncio.Event().wait()
            finally:
                ended = True

        crawl = place.crawl(store=place.store())
        crawl._follow_exclusions = follow
        await crawl.run(no_seeds)
        assert ended

    async def test_if_it_breaks_the_crawl_does_not_go_on_without_it(self, place: Place) -> None:
        await place.open("http://h0.test/")

        async def follow(_: Callable[[Exclusions], None]) -> None:
            raise RuntimeError("broken")

        crawl = place.crawl(store=place.store())
        crawl._follow_exclusions = follow
        with pytest.raises(RuntimeError, match="broken"):
            async with asyncio.timeout(10):
                await crawl.run(no_seeds)


class TestGivingUp:
    """A domain that has not answered for long."""

    @pytest.mark.parametrize(("failures", "is_given_up"), [(8, False), (9, True), (10, True)])
    async def test_the_tenth_visit_without_an_answer_takes_its_urls_out(
        self, place: Place, failures: int, is_given_up: bool
    ) -> None:
        urls = [f"http://dead.test/{n}" for n in range(5)] + ["http://www.dead.test/"]
        place.fetcher = ScriptedFetcher({"http://dead.test/robots.txt": failed()})
        await place.open(*urls, "http://h0.test/")
        await place.rows(f"UPDATE domain SET failures = {failures} WHERE name = 'dead.test'")
        place.fetcher.script["http://h0.test/"] = page()
        assert await place.run() is Ending.EXHAUSTED
        states = await place.states()
        assert states.pop("http://h0.test/") == "done"
        assert set(states.values()) == ({"failed"} if is_given_up else {"pending"})
        reasons = {reason for (reason,) in await place.rows("SELECT reason FROM url")}
        assert ("domain given up: connect" in reasons) is is_given_up
        assert place.fetcher.asked.count("http://dead.test/robots.txt") == 1
        assert (await place.counts()).urls[UrlState.FAILED] == (6 if is_given_up else 0)

    async def test_a_crawl_in_which_all_is_given_up_is_exhausted(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher({"http://dead.test/robots.txt": failed()})
        await place.open("http://dead.test/1", "http://dead.test/2")
        await place.rows("UPDATE domain SET failures = 9")
        assert await place.run() is Ending.EXHAUSTED
        assert (await place.counts()).urls_pending == 0

    async def test_a_visit_that_came_too_late_gives_nothing_up(self, tmp_path: Path) -> None:
        """Its lease had run out, and since then the domain has answered another process."""
        world = World(tmp_path)
        await world.open("http://a.test/1", "http://a.test/2", "http://a.test/3")
        await world.rows("UPDATE domain SET failures = 9")
        world.fetcher.script["http://a.test/robots.txt"] = [failed(), refused(404)]
        world.fetcher.script["http://a.test/1"] = page()
        lease = await world.claim()
        assert lease is not None
        late, visit = await world.start(lease)
        await visit.run()
        world.advance(10_000)
        await world.visit()
        async with self.writer(world) as writer:
            writer.put(late)
        states = await world.states()
        world.inflight_log.close()
        await world.harness.close()
        assert sorted(states.values()) == ["done", "pending", "pending"]

    @asynccontextmanager
    async def writer(self, world: World) -> AsyncIterator[GroupWriter]:
        store = WarcStore(world.spool_folder, keep=Keep.TEXT, name="crawl", software="rove/test")
        writer = GroupWriter(
            store=store,
            frontier=world.frontier,
            clock=world.now,
            inflight_log=world.inflight_log,
            seen=SeenSet(),
            delay=DELAY,
            only_known_domains=False,
            on_settled=lambda _: None,
        )
        yield writer
        writer.finish()
        await writer.run()
        await store.close()

    async def test_an_answer_in_time_saves_it(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await place.open("http://h0.test/")
        await place.rows("UPDATE domain SET failures = 9")
        assert await place.run() is Ending.EXHAUSTED
        assert await place.states() == {"http://h0.test/": "done"}
        assert await place.rows("SELECT failures FROM domain") == [(0,)]


class TestSpool:
    """What was asked and is not settled is in a file; what is settled is not."""

    async def test_nothing_is_left_after_a_crawl_in_good_order(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher(chain_of_hosts(hosts=3, pages=3))
        await place.open("http://h0.test/")
        await place.run()
        place.inflight_log().close()
        assert spool_files(place.folder / "spool") == []

    async def test_a_visit_is_forgotten_when_it_is_settled_and_not_before(
        self, place: Place
    ) -> None:
        place.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await place.open(*front_pages(3))
        calls: list[tuple[str, set[int]]] = []
        inflight_log = place.inflight_log()
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
        await place.run(frontier=Noting(place.frontier))
        assert calls
        for (first, told), (second, forgotten) in zip(calls[::2], calls[1::2], strict=True):
            assert (first, second, told) == ("settle", "forget", forgotten)

    async def test_a_visit_that_could_not_be_settled_stays(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await place.open("http://h0.test/")
        errors = [FrontierError("lost")] * 20
        with pytest.raises(FrontierError, match="lost"):
            await place.run(frontier=Wrapped(place.frontier).fail("settle", *errors))
        place.inflight_log().close()
        paths = [path for _, path in spool_files(place.folder / "spool")]
        (lost,) = lost_visits(place.frontier.process, paths, 70.0)
        assert [row.url for row in lost.rows] == ["http://h0.test/robots.txt", "http://h0.test/"]

    async def test_a_visit_that_was_salvaged_is_forgotten(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await place.open("http://h0.test/")
        with pytest.raises(DiskFull):
            await place.run(store=Wrapped(place.store()).fail("write", DiskFull("no room")))
        place.inflight_log().close()
        assert spool_files(place.folder / "spool") == []
        rows = await place.rows("SELECT url, fate FROM request ORDER BY seq")
        assert rows == [("http://h0.test/robots.txt", "lost"), ("http://h0.test/", "lost")]

    async def test_a_full_disk_ends_the_crawl(self, place: Place) -> None:
        place.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await place.open("http://h0.test/")
        inflight_log = place.inflight_log()

        def full(_: Note) -> None:
            raise DiskFull("no room")

        inflight_log.note = full  # type: ignore[method-assign]
        with pytest.raises(DiskFull, match="no room"):
            await place.run()
        assert place.fetcher.asked == []
        assert (await place.counts()).domains["leased"] == 0


class TestErrorsInVisits:
    """A page must not end the crawl, nor come back for ever."""

    async def test_an_internal_error_fails_its_page_and_no_other(self, place: Place) -> None:
        urls = front_pages(5)
        place.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))

        async def break_down(request: Request) -> None:
            if request.url.text == "http://h2.test/":
                raise RuntimeError("broken")

        place.fetcher.before_answer = break_down
        await place.open(*urls)
        assert await place.run() is Ending.EXHAUSTED
        states = await place.states()
        assert states.pop("http://h2.test/") == "failed"
        assert set(states.values()) == {"done"}
        assert place.progress.errors["internal"] == 1
        reasons = await place.rows("SELECT reason FROM url WHERE url = 'http://h2.test/'")
        assert reasons == [("internal error",)]
        assert place.fetcher.asked.count("http://h2.test/") == 1

    async def test_an_internal_error_behind_a_redirect_comes_to_an_end(self, place: Place) -> None:
        script = {"http://h0.test/": redirect("/b"), "http://h0.test/b": page()}
        place.fetcher = ScriptedFetcher(script)

        async def break_down(request: Request) -> None:
            if request.url.text == "http://h0.test/b":
                raise RuntimeError("broken")

        place.fetcher.before_answer = break_down
        await place.open("http://h0.test/")
        assert await place.run() is Ending.EXHAUSTED
        assert (await place.states())["http://h0.test/b"] == "failed"
        assert place.fetcher.asked.count("http://h0.test/b") <= 2


async def test_a_group_of_pages_is_stored_in_one_go(place: Place) -> None:
    sizes: list[int] = []

    class Counting(Wrapped):
        async def write(
            self, pages: Sequence[Page], known: Mapping[int, Content] | None = None
        ) -> list[Stored]:
            sizes.append(len(pages))
            stored: list[Stored] = await self._part.write(pages)
            return stored

    release = asyncio.Event()
    urls = front_pages(40)
    place.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))

    async def together(request: Request) -> None:
        if not request.url.text.endswith("robots.txt"):
            if len(place.fetcher.pages_asked) == len(urls):
                release.set()
            await release.wait()

    place.fetcher.before_answer = together
    await place.open(*urls)
    await place.run(store=Counting(place.store()), concurrency=40)
    assert sum(sizes) == 40
    assert max(sizes) == 40


async def test_a_text_is_stored_once_and_a_domain_that_repeats_itself_is_known(
    place: Place,
) -> None:
    """What another domain gave is a copy, but no repetition."""
    same = page("<title>Same</title><p>" + "One text for all of them. " * 20)
    urls = [*(f"http://h0.test/{n}" for n in range(4)), "http://h1.test/"]
    place.fetcher = ScriptedFetcher(dict.fromkeys(urls, same))
    await place.open(*urls)
    await place.run()

    def rows(sql: str) -> list[tuple[Any, ...]]:
        assert place.database._connection is not None
        return place.database._connection.execute(sql).fetchall()

    copies = await place.database.run(
        lambda: rows("SELECT is_copy, count(*) FROM request WHERE kind = 'page' GROUP BY is_copy")
    )
    assert dict(copies) == {0: 1, 1: 4}
    assert len(await place.database.run(lambda: rows("SELECT 1 FROM content"))) == 1
    repeats = await place.database.run(lambda: rows("SELECT name, repeats FROM domain"))
    assert dict(repeats) == {"h0.test": round(1000 * (1 - (15 / 16) ** 3)), "h1.test": 0}
