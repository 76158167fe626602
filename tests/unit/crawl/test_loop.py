"""The crawl loop end to end, with a scripted web, a real frontier and a real store."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from rove.config import Limits
from rove.crawl.claimer import CLAIM_WHILE_SEEDING, PAUSE_WHILE_SEEDING
from rove.crawl.shutdown import Ending
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from rove.model.ledger import Content, RequestKind
from rove.policy import budget
from rove.policy.scope import SeedScope
from rove.store.contract import Page, Stored
from tests.unit.crawl.scripted import ScriptedFetcher, failed, new_url, page, page_with_links, redirect, refused
from tests.unit.crawl.workspace import Workspace, Wrapped, chain_of_hosts, front_pages


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
    assert workspace.progress.errors == {}, "a site without robots.txt is not an error"
    counts = workspace.progress.request_counts
    assert counts.by_kind == {RequestKind.PAGE: 20, RequestKind.ROBOTS: 5, RequestKind.SITEMAP: 0}
    assert counts.without_content_by_kind[RequestKind.ROBOTS] == {"no-robots-txt": 5}
    assert (await workspace.counts()).request_counts == counts, "the frontier counts the same"


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
    additions = Counter(link.url for name, links in calls if name == "add begins" for link in links)
    assert set(additions.values()) == {1}


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
        assert {(reason, url) for reason, url, _ in await workspace.skipped()} == {("budget", url) for url in urls[3:]}

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


async def test_a_crawl_goes_slowly_while_seeds_are_loaded_and_not_after(workspace: Workspace) -> None:
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
    assert workspace.progress.troubles["disk"].startswith("paused: less than")
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


async def test_a_scope_keeps_to_the_domains_of_the_seeds(workspace: Workspace) -> None:
    links = page_with_links("/more", "http://b.test/in", "http://c.test/out")
    workspace.fetcher = ScriptedFetcher({"http://a.test/": links, "http://b.test/": page()})
    workspace.fetcher.script |= {"http://a.test/more": page(), "http://b.test/in": page()}
    await workspace.open("http://a.test/")

    async def load(_: Callable[[], None]) -> None:
        await workspace.some_turns()
        assert workspace.fetcher.requested == [], "links to seeds that are not loaded yet would be out of scope"
        await workspace.frontier.add([new_url("http://b.test/")])

    await workspace.run(load, scope=SeedScope.DOMAIN)
    assert set(await workspace.states()) == {
        *("http://a.test/", "http://a.test/more", "http://b.test/", "http://b.test/in")
    }
    assert (await workspace.counts()).not_accepted == {"out-of-scope": 1}
    assert await workspace.skipped() == {("out-of-scope", "http://c.test/out", "http://a.test/")}


async def test_a_crawl_does_not_end_while_changed_rules_may_bring_urls_back(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher({"http://a.test/": page(), "http://b.test/": page()})
    await workspace.open("http://a.test/")
    workspace.rules_applied = False

    async def lift(_: Callable[[], None]) -> None:
        while workspace.progress.pages < 1:
            await workspace.some_turns()
        await workspace.some_turns()
        await workspace.frontier.add([new_url("http://b.test/")])
        workspace.rules_applied = True

    assert await workspace.run(lift) is Ending.EXHAUSTED
    assert (await workspace.states())["http://b.test/"] == "done"


async def test_a_crawl_ends_when_only_failing_origins_are_left(workspace: Workspace) -> None:
    script = {"http://h0.test/": page(), "http://dead.test/robots.txt": failed()}
    workspace.fetcher = ScriptedFetcher(script)
    await workspace.open("http://h0.test/", "http://dead.test/")
    assert await workspace.run() is Ending.EXHAUSTED
    assert await workspace.states() == {"http://h0.test/": "done", "http://dead.test/": "pending"}
    assert workspace.fetcher.requested.count("http://dead.test/robots.txt") == 3


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


async def test_a_text_is_stored_once_and_a_domain_that_repeats_itself_is_known(workspace: Workspace) -> None:
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


async def test_the_memory_is_known_before_the_first_report(workspace: Workspace) -> None:
    """If the process dies at once, its death can still be explained."""
    await workspace.open("http://a.test/")
    store = workspace.store()
    crawl = workspace.crawl(store=store)
    crawling = asyncio.create_task(crawl.run())
    await asyncio.sleep(0)
    assert crawl.progress.resident > 0
    crawl.stop()
    await crawling
    await store.close()
