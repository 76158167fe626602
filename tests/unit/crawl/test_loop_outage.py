"""A crawl whose web stops answering: all of it at once, or a part of it. The web is scripted, the rest is real."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from rove.crawl.backoff_wait import backoffs_end
from rove.crawl.loop import Crawl
from rove.crawl.shutdown import Ending
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from rove.model.outcomes import FailureKind, Outcome
from rove.policy.outage import OutageRules
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from tests.unit.crawl.scripted import ScriptedFetcher, failed, page, page_with_links, robots
from tests.unit.crawl.workspace import Workspace

HOSTS = 8
PAGES = 6
FAST = OutageRules(silence=0.2, first_probe=0.01, longest_probe=0.1)
NEVER = OutageRules(silence=1_000.0)
"""The question stays open."""
NOTICED = "No site has answered for 0 s: is this machine online? Waiting."
KINDS = [FailureKind.CONNECT, FailureKind.DNS_NOT_FOUND]


class FragileWeb(ScriptedFetcher):
    """A scripted web that a test can cut off, in whole or in part."""

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__(script)
        self.is_cut_off: Callable[[str], bool] = lambda url: False
        self.failure = FailureKind.CONNECT
        self.answered = 0

    def _answer(self, url: str) -> Outcome:
        if self.is_cut_off(url):
            return failed(self.failure)
        self.answered += 1
        return super()._answer(url)


def script_of(hosts: int = HOSTS, pages: int = PAGES) -> dict[str, Any]:
    script: dict[str, Any] = {}
    for host in range(hosts):
        names = [f"http://h{host}.test/{number or ''}" for number in range(pages)]
        script |= {name: page(f"<p>This is {name}") for name in names}
        script[names[0]] = page_with_links(*names)
    return script


def seeds_of(hosts: int = HOSTS) -> list[str]:
    return [f"http://h{host}.test/" for host in range(hosts)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(100):
        while not holds():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(workspace: Workspace, **options: Any) -> AsyncIterator[tuple[Crawl, asyncio.Task[Ending]]]:
    """Run a crawl beside the test."""
    store = workspace.store()
    crawl = workspace.crawl(store=store, **options)
    task = asyncio.create_task(crawl.run())
    try:
        async with asyncio.timeout(120):
            yield crawl, task
    finally:
        crawl.stop()
        await task
        await store.close()


async def against_domains(workspace: Workspace) -> list[tuple[Any, ...]]:
    """Return everything that counts against a domain, a URL or a robots.txt."""
    return [
        *await workspace.rows("SELECT name, failures FROM domain WHERE failures > 0 OR failing = 1"),
        *await workspace.rows("SELECT url, attempts FROM url WHERE attempts > 0 OR state = 3"),
        *await workspace.rows("SELECT origin, failures FROM origin WHERE failures > 0"),
    ]


async def opened(workspace: Workspace, web: FragileWeb, hosts: int = HOSTS, delay: float = 0.02) -> FragileWeb:
    workspace.fetcher = web
    await workspace.open(*seeds_of(hosts), delay=delay)
    return web


@pytest.mark.parametrize("kind", KINDS)
async def test_an_outage_is_waited_out_and_counts_against_nobody(workspace: Workspace, kind: FailureKind) -> None:
    script = script_of()
    web = await opened(workspace, FragileWeb(script))
    async with running(workspace, outage_rules=FAST, delay=0.02) as (crawl, task):
        await until(lambda: web.answered >= 3 * HOSTS)
        web.failure, web.is_cut_off = kind, lambda url: True
        await until(lambda: NOTICED in workspace.news)
        failures = len(web.requested)
        await until(lambda: len(web.requested) > failures + 6)
        await until(lambda: "no site has answered" in crawl.progress.troubles.get("outage", ""))
        assert not task.done(), "the crawl waits"
        web.is_cut_off = lambda url: False
        assert await task is Ending.EXHAUSTED
    assert await against_domains(workspace) == []
    assert await workspace.states() == dict.fromkeys(script, "done")
    told = [sentence for sentence in workspace.news if not sentence.startswith("Sites answer again after")]
    assert told == [NOTICED]
    assert len(workspace.news) == 2
    errors = await workspace.rows(
        f"SELECT settlement, count(*) FROM request WHERE error = '{kind}' GROUP BY settlement"
    )
    ((settlement, count),) = errors
    assert settlement == "offline" and count > HOSTS


async def test_sites_that_answer_for_robots_txt_alone_look_like_an_outage_only_once(workspace: Workspace) -> None:
    """They fail all at once, and nothing else is left that could answer. A probe requests their robots.txt again."""
    script = script_of(pages=1)
    web = await opened(workspace, FragileWeb(script))
    web.is_cut_off, web.failure = lambda url: url in script, FailureKind.TIMEOUT_FIRST_BYTE
    all_asked = asyncio.Barrier(HOSTS)

    async def before_answer(request: Request) -> None:
        if request.url.text in script and web.requested.count(request.url.text) == 1:
            await all_asked.wait()

    web.before_answer = before_answer
    async with running(workspace, outage_rules=FAST, delay=0.02, concurrency=HOSTS) as (_, task):
        assert await task is Ending.EXHAUSTED
    assert [sentence[:19] for sentence in workspace.news] == [NOTICED[:19], "Sites answer again "]
    assert await workspace.states() == dict.fromkeys(script, "failed")


async def test_a_site_that_did_not_fail_is_probed_beside_those_that_are_gone_for_good(workspace: Workspace) -> None:
    """It asked for a longer delay, so it is not due while the others die."""
    living = "http://living.test/"
    script = script_of() | {f"{living}{number or ''}": page("<p>It lives") for number in range(3)}
    script[living] = page_with_links(f"{living}1", f"{living}2")
    script[f"{living}robots.txt"] = robots("User-agent: *\nCrawl-delay: 2\n")
    web = workspace.fetcher = FragileWeb(script)
    await workspace.open(living, *seeds_of(), delay=0.02)
    rules = OutageRules(silence=0.2, first_probe=0.01, longest_probe=0.05)
    async with running(workspace, outage_rules=rules, delay=0.02) as (_, _task):
        await until(lambda: web.answered >= 3 * HOSTS and living in web.requested)
        web.is_cut_off = lambda url: not url.startswith(living)
        await until(lambda: NOTICED in workspace.news)
        await until(lambda: any(sentence.startswith("Sites answer again") for sentence in workspace.news))


async def test_probes_visit_few_domains_and_respect_the_delay(workspace: Workspace) -> None:
    web = await opened(workspace, FragileWeb(script_of()), delay=0.5)
    rules = OutageRules(silence=0.2, first_probe=0.05, longest_probe=0.05, probes=2)
    async with running(workspace, outage_rules=rules, delay=0.5) as (crawl, _):
        await until(lambda: web.answered >= 2 * HOSTS)
        web.is_cut_off = lambda url: True
        await until(lambda: NOTICED in workspace.news)
        await until(lambda: crawl.progress.in_flight == 0)
        before = len(web.requested)
        await until(lambda: len(web.requested) > before + 2 * HOSTS)
    rows = await workspace.rows(
        "SELECT domain, min(began), max(ended) FROM request GROUP BY visit ORDER BY domain, visit"
    )
    for (domain, _, ended), (next_domain, began, _) in pairwise(rows):
        if domain == next_domain:
            assert began - ended >= 500


async def test_a_moment_without_any_answer_counts_against_nobody_either(workspace: Workspace) -> None:
    """The cause is never judged, because the web answers again before the minute is over."""
    script = script_of()
    web = await opened(workspace, FragileWeb(script))
    async with running(workspace, outage_rules=NEVER, delay=0.02) as (_, task):
        await until(lambda: web.answered >= 3 * HOSTS)
        before = len(web.requested)
        web.is_cut_off = lambda url: True
        await until(lambda: len(web.requested) >= before + HOSTS)
        assert not task.done()
        web.is_cut_off = lambda url: False
        # All domains are held back now, so only their leases' deadline or a new domain could bring an answer.
        await workspace.open("http://new.test/", delay=0.02)
        web.script["http://new.test/"] = page()
        assert await task is Ending.EXHAUSTED
    assert await against_domains(workspace) == []
    assert workspace.news == []


async def test_a_site_that_fails_while_others_answer_is_to_blame(workspace: Workspace) -> None:
    script = script_of()
    web = await opened(workspace, FragileWeb(script))
    async with running(workspace, outage_rules=FAST, delay=0.02, concurrency=HOSTS) as (_, task):
        await until(lambda: web.answered >= 3 * HOSTS)
        web.is_cut_off = lambda url: url.startswith("http://h0.test/")
        assert await task is Ending.EXHAUSTED
    ((name, failures),) = await workspace.rows("SELECT name, failures FROM domain WHERE failures > 0")
    assert name == "h0.test" and failures >= FAILURES_BEFORE_LEAVING
    assert workspace.news == []


@pytest.mark.parametrize("dead", [3, 500])
async def test_a_crawl_with_only_dead_domains_left_ends(workspace: Workspace, dead: int) -> None:
    """One site has answered, so the connection works. The minute is never waited for."""
    names = [f"http://dead{number}.test/" for number in range(dead)]
    web = FragileWeb(script_of(hosts=1, pages=2))
    web.is_cut_off = lambda url: "dead" in url
    workspace.fetcher = web
    await workspace.open("http://h0.test/", *names, delay=0.0)
    async with running(workspace, outage_rules=NEVER, concurrency=50) as (_, task):
        assert await task is Ending.EXHAUSTED
    ((least, count),) = await workspace.rows("SELECT min(failures), count(*) FROM domain WHERE name LIKE 'dead%'")
    assert least >= FAILURES_BEFORE_LEAVING and count == dead
    assert workspace.news == []


async def test_three_dead_seeds_end(workspace: Workspace) -> None:
    web = FragileWeb({})
    web.is_cut_off = lambda url: True
    await opened(workspace, web, hosts=3, delay=0.0)
    assert await workspace.run(outage_rules=NEVER) is Ending.EXHAUSTED


async def test_a_start_without_any_answer_waits_and_then_gives_up(workspace: Workspace) -> None:
    web = FragileWeb({})
    web.is_cut_off = lambda url: True
    await opened(workspace, web, hosts=21, delay=0.0)
    started = steady_seconds()
    rules = OutageRules(silence=0.2, first_probe=0.01, longest_probe=0.05, patience=1.0)
    assert await workspace.run(outage_rules=rules) is Ending.UNREACHABLE
    assert steady_seconds() - started >= 1.0
    assert await against_domains(workspace) == []
    assert workspace.news == [NOTICED]


async def test_a_start_before_the_connection_is_there_loses_nothing(workspace: Workspace) -> None:
    script = script_of(hosts=25, pages=1)
    web = FragileWeb(script)
    web.is_cut_off = lambda url: True
    await opened(workspace, web, hosts=25, delay=0.0)
    async with running(workspace, outage_rules=FAST) as (_, task):
        await until(lambda: NOTICED in workspace.news)
        web.is_cut_off = lambda url: False
        assert await task is Ending.EXHAUSTED
    assert await against_domains(workspace) == []
    assert await workspace.states() == dict.fromkeys(script, "done")


async def test_a_visit_is_not_held_back_beyond_its_lease(workspace: Workspace) -> None:
    """With a long delay it may take hours until the cause is known."""
    ahead = 0.0
    web = await opened(workspace, FragileWeb(script_of()), delay=0.3)
    async with running(workspace, outage_rules=NEVER, delay=0.3, clock=lambda: steady_seconds() + ahead) as (_, task):
        await until(lambda: web.answered >= 2 * HOSTS)
        web.is_cut_off = lambda url: True
        before = len(web.requested)
        await until(lambda: len(web.requested) >= before + HOSTS)
        ahead = 176.0
        await until(lambda: len(web.requested) >= before + 2 * HOSTS)
        assert not task.done()
    assert await against_domains(workspace) == []


async def test_a_crawl_that_is_stopped_while_the_cause_is_unknown_leaves_nothing_behind(workspace: Workspace) -> None:
    web = await opened(workspace, FragileWeb(script_of()))
    async with running(workspace, outage_rules=NEVER, delay=0.02) as (crawl, task):
        await until(lambda: web.answered >= 3 * HOSTS)
        before = len(web.requested)
        web.is_cut_off = lambda url: True
        await until(lambda: len(web.requested) >= before + HOSTS)
        crawl.stop()
        assert await task is Ending.STOPPED
    assert await against_domains(workspace) == []
    assert await workspace.rows("SELECT name FROM domain WHERE owner IS NOT NULL") == []
    ((requests,),) = await workspace.rows("SELECT count(*) FROM request")
    assert requests == len(web.requested), "every request is in the ledger"


async def test_a_crawl_that_was_resumed_waits_for_failing_sites_until_a_fixed_time(workspace: Workspace) -> None:
    script = script_of(hosts=1, pages=2)
    web = FragileWeb(script)
    web.is_cut_off = lambda url: True
    await opened(workspace, web, hosts=1, delay=0.0)
    assert await workspace.run() is Ending.EXHAUSTED, "it does not wait in its first run"
    await workspace.rows("UPDATE domain SET ready_at = ready_at + 2000")
    backoffs_over = await backoffs_end(workspace.frontier, now=steady_seconds())
    web.is_cut_off = lambda url: False
    await workspace.open(delay=0.0)
    assert await workspace.run(backoffs_end=backoffs_over) is Ending.EXHAUSTED
    assert await workspace.states() == dict.fromkeys(script, "done")
    (told,) = workspace.news
    assert told.startswith("Only sites that kept failing are left. Waiting for them until 20") and told.endswith("Z.")


async def test_a_page_that_fails_after_its_robots_txt_was_answered_counts_against_nobody(workspace: Workspace) -> None:
    """The connection is lost in the middle of the visits."""
    script = script_of(hosts=HOSTS, pages=1)
    web = await opened(workspace, FragileWeb(script))
    lost = asyncio.Event()

    async def lose(request: Request) -> None:
        if not request.url.text.endswith("/robots.txt"):
            await lost.wait()

    web.before_answer = lose
    async with running(workspace, outage_rules=FAST, concurrency=HOSTS) as (_, task):
        await until(lambda: web.answered == HOSTS)
        web.is_cut_off = lambda url: True
        lost.set()
        await until(lambda: NOTICED in workspace.news)
        web.is_cut_off = lambda url: False
        assert await task is Ending.EXHAUSTED
    assert await against_domains(workspace) == []
    assert await workspace.states() == dict.fromkeys(script, "done")
    assert web.answered <= 2 * HOSTS + FAST.probes, "only a probe requests robots.txt again"


async def test_a_response_that_was_on_its_way_when_the_connection_was_lost_proves_nothing(workspace: Workspace) -> None:
    """A site fails, and only then does the response to an earlier request to another site arrive."""
    web = await opened(workspace, FragileWeb(script_of()))
    is_on_its_way, has_failed = asyncio.Event(), asyncio.Event()

    async def be_on_its_way(request: Request) -> None:
        if request.url.text == "http://h0.test/1":
            is_on_its_way.set()
            await has_failed.wait()

    web.before_answer = be_on_its_way
    async with running(workspace, outage_rules=FAST, delay=0.02, concurrency=HOSTS) as (_, task):
        await until(lambda: is_on_its_way.is_set() and web.answered >= 3 * HOSTS)
        web.is_cut_off = lambda url: url != "http://h0.test/1"
        before = len(web.requested)
        await until(lambda: len(web.requested) > before)
        has_failed.set()
        await until(lambda: NOTICED in workspace.news)
        web.is_cut_off = lambda url: False
        assert await task is Ending.EXHAUSTED
    assert await against_domains(workspace) == []


@pytest.mark.parametrize("is_resolver_alive", [False, True])
async def test_names_that_cannot_be_looked_up_while_cached_ones_answer(
    workspace: Workspace, is_resolver_alive: bool
) -> None:
    """Only if a later lookup is answered do the sites themselves have a fault."""
    script = script_of(hosts=HOSTS, pages=200)
    web = FragileWeb(script)
    web.failure = FailureKind.DNS
    await opened(workspace, web)
    async with running(workspace, outage_rules=FAST, delay=0.02, concurrency=HOSTS) as (crawl, _):
        await until(lambda: web.answered >= 3 * HOSTS)
        if is_resolver_alive:
            web.names_answered_from = math.inf
        web.is_cut_off = lambda url: not url.startswith(("http://h0.", "http://h1."))
        before, answered = len(web.requested), web.answered
        await until(lambda: web.answered > answered + 60)
        assert len(web.requested) - before > web.answered - answered, "the others were requested"
        crawl.stop()
    assert bool(await against_domains(workspace)) is is_resolver_alive
    assert workspace.news == []


async def test_an_answer_from_before_the_outage_was_noticed_does_not_end_it(workspace: Workspace) -> None:
    """The name server dies, cached names answer a little longer, and then nobody does."""
    web = FragileWeb(script_of(hosts=HOSTS, pages=200))
    web.failure = FailureKind.DNS
    await opened(workspace, web)
    async with running(workspace, outage_rules=FAST, delay=0.02, concurrency=HOSTS) as (crawl, _):
        await until(lambda: web.answered >= 3 * HOSTS)
        web.is_cut_off = lambda url: not url.startswith("http://h0.")
        before, answered = len(web.requested), web.answered
        await until(lambda: len(web.requested) > before + 2 * HOSTS and web.answered > answered + 4)
        web.is_cut_off = lambda url: True
        await until(lambda: NOTICED in workspace.news)
        probes = len(web.requested)
        await until(lambda: len(web.requested) > probes + 6)
        assert workspace.news == [NOTICED]
        crawl.stop()
    assert await against_domains(workspace) == []


async def test_a_request_that_outlasts_the_outage_counts_against_nobody(workspace: Workspace) -> None:
    """It hangs until after the first answer of another site, and then fails."""
    web = await opened(workspace, FragileWeb(script_of()))
    is_over = asyncio.Event()
    hanging: list[str] = []

    async def hang(request: Request) -> None:
        if NOTICED in workspace.news and not hanging:
            hanging.append(request.url.text)
            await is_over.wait()

    web.before_answer = hang
    async with running(workspace, outage_rules=FAST, delay=0.02, concurrency=HOSTS) as (_, task):
        await until(lambda: web.answered >= 3 * HOSTS)
        web.is_cut_off = lambda url: True
        await until(lambda: bool(hanging))
        web.is_cut_off = lambda url: url in hanging
        await until(lambda: len(workspace.news) == 2)
        is_over.set()
        await until(lambda: web.requested.count(hanging[0]) == 2)
        web.is_cut_off = lambda url: False
        assert await task is Ending.EXHAUSTED
    assert await against_domains(workspace) == []
