"""Visits and robots.txt: when it is requested, what it blocks, and exclusions that change during a visit."""

from __future__ import annotations

import asyncio
import itertools
import random
import zlib
from typing import cast

import pytest
from msgspec.structs import replace

from rove.fetch.contract import Request
from rove.fetch.visit_connection import IdleConnection
from rove.frontier.records import MAX_ROBOTS_BYTES_A_DAY
from rove.model.ledger import RequestKind
from rove.model.outcomes import TEMPORARY_FAILURES, UNREACHABLE_FAILURES, FailureKind, Outcome
from rove.model.text_hash import robots_name
from rove.policy.constants import VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.robots_lines import MAX_ROBOTS_BYTES
from tests.unit.crawl.scripted import (
    DELAY,
    NOTHING_ALLOWED,
    NOTHING_PRIVATE,
    ROBOTS,
    A,
    World,
    failed,
    new_url,
    page,
    page_with_links,
    redirect,
    refused,
    robots,
)

SERVER_FAILURES = (TEMPORARY_FAILURES | UNREACHABLE_FAILURES) - {FailureKind.BUSY}


class LeftOpen:
    """Leaves a connection open when a request is made, and then raises an error if given one."""

    def __init__(self, *, then: BaseException | None = None) -> None:
        self.closed = 0
        self._then = then

    async def __call__(self, request: Request) -> None:
        assert request.connection is not None
        request.connection.idle = cast(IdleConnection, self)
        if self._then is not None:
            raise self._then

    def close(self) -> None:
        self.closed += 1


class TestRobots:
    """robots.txt is fetched before the first page of an origin."""

    async def test_robots_txt_is_requested_before_the_page(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert [row.kind for row in record.requests] == [RequestKind.ROBOTS, RequestKind.PAGE]
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_text_that_is_not_kept_applies_and_is_read_again(self, world: World) -> None:
        """A domain that has stored its share of robots.txt files is still crawled by their rules."""
        await world.open(f"{A}/private", f"{A}/1", f"{A}/2", script={ROBOTS: NOTHING_PRIVATE})
        world.fetcher.script |= {f"{A}/1": page(), f"{A}/2": page()}
        share = random.Random(1).randbytes(MAX_ROBOTS_BYTES_A_DAY - 4096)
        left = MAX_ROBOTS_BYTES_A_DAY - len(zlib.compress(share, 6))
        await world.keep_origin("http://b.a.test", share)
        await world.keep_origin("http://c.a.test", random.Random(2).randbytes(left - 30))
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/1"]
        assert record.requests[0].robots == robots_name(NOTHING_PRIVATE.body)
        assert [row.marks for row in record.requests] == [("robots-not-kept",), ()]
        await world.visit_next()
        assert world.fetcher.requested == [ROBOTS, f"{A}/1", ROBOTS, f"{A}/2"]
        assert await world.states() == {f"{A}/private": "blocked", f"{A}/1": "done", f"{A}/2": "done"}
        assert (await world.counters())["marks.robots-not-kept"] == 2

    async def test_requests_have_limits(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        await world.visit()
        for_robots, for_page = world.fetcher.requests
        assert for_robots.max_bytes == MAX_ROBOTS_BYTES and for_robots.accept_types is None
        assert for_page.max_bytes == 1 << 20
        assert set(for_page.accept_types or ()) == {"text/html", "application/xhtml+xml", "text/plain"}
        assert for_page.timeout == pytest.approx(VISIT_BUDGET)

    async def test_only_a_robots_txt_leaves_its_connection_open(self, world: World) -> None:
        script = {f"{A}/": redirect("/2"), f"{A}/2": page()}
        await world.open(f"{A}/", script=script)
        await world.visit()
        requests = world.fetcher.requests
        assert [request.keep_open for request in requests] == [True, False, False]
        assert len({id(request.connection) for request in requests}) == 1

    @pytest.mark.parametrize("rules", [NOTHING_ALLOWED, refused(503), failed()])
    async def test_a_visit_leaves_no_connection_open(self, world: World, rules: Outcome) -> None:
        left_open = LeftOpen()
        await world.open(f"{A}/", script={ROBOTS: rules})
        world.fetcher.before_answer = left_open
        await world.visit()
        assert left_open.closed == 1

    async def test_a_cancelled_visit_leaves_no_connection_open(self, world: World) -> None:
        left_open = LeftOpen(then=asyncio.CancelledError())
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE})
        world.fetcher.before_answer = left_open
        with pytest.raises(asyncio.CancelledError):
            await world.visit()
        assert left_open.closed == 1

    async def test_marks_of_an_answer_are_in_its_row(self, world: World) -> None:
        truncated = page()
        truncated = replace(truncated, response=replace(truncated.response, marks=("tls-expired", "body-cut")))
        strict = replace(failed(FailureKind.TLS), marks=("tls-expired",))
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": truncated, f"{A}/2": strict})
        rows = (await world.visit()).requests
        assert [row.marks for row in rows] == [(), ("tls-expired", "body-cut")]
        _, record = await world.visit_next()
        assert [row.marks for row in record.requests] == [("tls-expired",)]
        assert (await world.frontier.counts()).marks == {"tls-expired": 2, "body-cut": 1}

    async def test_a_known_robots_txt_is_not_requested_again(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})
        await world.visit()
        await world.visit_next()
        assert world.fetcher.requested == [ROBOTS, f"{A}/1", f"{A}/2"]

    @pytest.mark.parametrize(("age", "requested_again"), [(86_400 - 1, False), (86_400, True), (90_000, True)])
    async def test_it_is_requested_again_after_a_day(self, world: World, age: float, requested_again: bool) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})
        await world.visit()
        world.advance(age)
        await world.visit()
        assert world.fetcher.requested.count(ROBOTS) == 1 + requested_again
        assert world.fetcher.requested[-1] == f"{A}/2"

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
    async def test_a_4xx_allows_everything(self, world: World, status: int) -> None:
        await world.open(f"{A}/", script={ROBOTS: refused(status), f"{A}/": page()})
        await world.visit()
        assert await world.states() == {f"{A}/": "done"}

    @pytest.mark.parametrize(
        "outcome", [refused(429), refused(500), refused(503), *(failed(kind) for kind in sorted(SERVER_FAILURES))]
    )
    async def test_without_robots_txt_nothing_is_fetched(self, world: World, outcome: Outcome) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: outcome})
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert record.requested
        assert await world.states() == {f"{A}/1": "pending", f"{A}/2": "pending"}
        assert await world.next_due() == pytest.approx(2 * DELAY)

    async def test_an_origin_that_keeps_failing_is_held_for_longer_and_longer(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: [refused(500)] * 5 + [refused(404)]})
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        waits: list[float] = []
        for _ in range(5):
            due = await world.next_due()
            assert (due is None) is (len(waits) >= 2), "after three failures the crawl does not wait for it"
            waits.append((await world.visit_next())[0])
        assert waits == [2 * DELAY, 8 * DELAY, 32 * DELAY, 128 * DELAY, 512 * DELAY]
        assert await world.states() == {f"{A}/": "done"}
        ((failures,),) = await world.rows("SELECT failures FROM origin")
        assert failures == 0

    async def test_a_held_origin_gets_no_requests(self, world: World) -> None:
        await world.open(f"{A}/1", script={ROBOTS: [refused(500), refused(404)]})
        await world.visit()
        world.advance(DELAY)
        await world.frontier.add([new_url(f"{A}/2", depth=1)])
        record = await world.visit()
        assert not record.requested
        assert world.fetcher.requested == [ROBOTS]
        assert await world.next_due() == pytest.approx(DELAY, abs=1.0)

    @pytest.mark.parametrize(
        ("outcome", "wait"), [(refused(500), DELAY), (refused(503), 2 * DELAY), (failed(FailureKind.RESET), DELAY)]
    )
    async def test_a_held_origin_does_not_block_its_domain(self, world: World, outcome: Outcome, wait: float) -> None:
        other = "http://www.a.test"
        await world.open(f"{A}/", f"{other}/", script={ROBOTS: outcome, f"{other}/": page()})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS], "another origin waits for a later visit"
        waited, _ = await world.visit_next()
        assert waited == wait
        assert world.fetcher.requested == [ROBOTS, f"{other}/robots.txt", f"{other}/"]
        assert await world.states() == {f"{A}/": "pending", f"{other}/": "done"}

    @pytest.mark.parametrize("kind", [FailureKind.DNS_NOT_FOUND, FailureKind.ADDRESS_REFUSED, FailureKind.ENCODING])
    async def test_a_permanent_failure_fails_the_urls_at_once(self, world: World, kind: FailureKind) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: failed(kind)})
        await world.visit()
        assert await world.states() == {f"{A}/1": "failed", f"{A}/2": "failed"}
        assert await world.reason(f"{A}/1") == kind.value

    async def test_robots_txt_may_redirect_inside_the_domain(self, world: World) -> None:
        chain = [f"http://h{i}.a.test/r" for i in range(5)]
        script: dict[str, Outcome] = {
            url: redirect(target) for url, target in zip([ROBOTS, *chain], chain, strict=False)
        }
        await world.open(f"{A}/private", f"{A}/open")
        world.fetcher.script |= script | {chain[-1]: NOTHING_PRIVATE, f"{A}/open": page()}
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, *chain, f"{A}/open"]
        assert await world.states() == {f"{A}/private": "blocked", f"{A}/open": "done"}

    async def test_the_sixth_redirect_means_no_rules(self, world: World) -> None:
        chain = [ROBOTS, *(f"{A}/{i}" for i in range(1, 7))]
        script: dict[str, Outcome] = {url: redirect(target) for url, target in itertools.pairwise(chain)}
        await world.open(f"{A}/", script={**script, f"{A}/": page()})
        await world.visit()
        assert world.fetcher.requested == [*chain[:6], f"{A}/"]
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_loop_means_no_rules(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: redirect("/r"), f"{A}/r": redirect("/robots.txt"), f"{A}/": page()})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/r", f"{A}/"]
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_redirect_of_robots_txt_to_an_excluded_host_is_not_followed(self, world: World) -> None:
        """Excluded hosts get no requests at all, redirect hops included."""
        other = "http://www.x.test/robots.txt"
        script = {ROBOTS: redirect(other), other: NOTHING_ALLOWED, f"{A}/": page()}
        await world.open(f"{A}/", script=script, exclude=["x.test"])
        await world.visit()
        assert other not in world.fetcher.requested

    @pytest.mark.parametrize("host", ["a.test", "b.test"])
    async def test_a_redirect_of_robots_txt_to_an_unusual_port_is_not_followed(self, world: World, host: str) -> None:
        script = {ROBOTS: redirect(f"http://{host}:6379/robots.txt")}
        await world.open(f"{A}/", script=script)
        await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert await world.states() == {f"{A}/": "pending"}

    async def test_a_longer_crawl_delay_is_in_the_frontier_before_the_page_is_requested(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 500\n")
        known: dict[str, tuple[int, int, int]] = {}

        async def look(request: Request) -> None:
            rows = await world.rows("SELECT crawl_delay, ready_at, not_before FROM domain")
            known[request.url.text] = rows[0]

        world.fetcher.before_answer = look
        claimed_at = world.harness.now()
        await world.visit()
        longest = claimed_at + 1000 * round(VISIT_BUDGET + 500)
        assert known[ROBOTS][0] == 0
        assert known[f"{A}/1"] == (500_000, longest, longest)
        assert await world.next_due() == 500.0

    async def test_a_shorter_crawl_delay_changes_nothing(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 5\n")
        await world.visit()
        assert await world.next_due() == DELAY

    async def test_a_crawl_delay_stays_in_force_while_robots_txt_is_unreachable(self, world: World) -> None:
        """A failing server does not cancel what its robots.txt has asked for."""
        outcomes = [robots("User-agent: *\nCrawl-delay: 5000\n"), refused(503)]
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: outcomes, f"{A}/1": page()})
        await world.visit()
        world.advance(86_400)
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/1", ROBOTS]
        ((crawl_delay,),) = await world.rows("SELECT crawl_delay FROM domain")
        assert crawl_delay == 5_000_000

    async def test_a_crawl_delay_over_a_day_blocks_the_whole_domain(self, world: World) -> None:
        """Such a site does not want to be crawled, and all hosts of a domain share one delay."""
        other = "http://www.a.test"
        urls = [f"{A}/1", f"{A}/2", f"{other}/"]
        await world.open(*urls, script={f"{other}/robots.txt": refused(404)})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 86401\n")
        await world.visit()
        assert await world.next_due() is None, "a crawl does not stay up for it"
        world.advance(86_401)
        await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert await world.states() == dict.fromkeys(urls, "blocked")
        assert await world.reason(f"{A}/1") == "Crawl-delay over a day"
        assert await world.reason(f"{other}/") == "Crawl-delay over a day"

    async def test_a_crawl_delay_of_a_day_is_obeyed(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 86400\n")
        await world.visit()
        assert await world.next_due() == 86_400.0
        await world.visit_next()
        assert world.fetcher.pages_requested == [f"{A}/1", f"{A}/2"]


class TestBlocked:
    """URLs that may not be fetched."""

    async def test_they_are_skipped_without_a_request(self, world: World) -> None:
        urls = [f"{A}/private/{i}" for i in range(9)] + [f"{A}/open"]
        await world.open(*urls, script={ROBOTS: NOTHING_PRIVATE, f"{A}/open": page()})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/open"]
        states = await world.states()
        assert states.pop(f"{A}/open") == "done"
        assert set(states.values()) == {"blocked"}
        assert await world.reason(f"{A}/private/0") == "robots.txt"

    async def test_a_visit_ends_after_its_first_page(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": refused(404)})
        await world.visit()
        assert await world.states() == {f"{A}/1": "failed", f"{A}/2": "pending"}

    async def test_a_domain_with_only_blocked_urls_gets_no_requests(self, world: World) -> None:
        await world.open(*(f"{A}/{i}" for i in range(20)))
        await world.keep_origin(A, "User-agent: *\nDisallow: /")
        record = await world.visit()
        assert not record.requested and world.fetcher.requested == []
        assert set((await world.states()).values()) == {"blocked"}
        await world.frontier.add([new_url(f"{A}/new")])
        assert await world.next_due() == 0.0, "no delay applies"

    async def test_ten_thousand_forbidden_urls_cost_a_handful_of_leases(self, world: World) -> None:
        await world.open(*(f"{A}/private/{i}" for i in range(10_000)), f"{A}/open")
        await world.keep_origin(A, "User-agent: *\nDisallow: /private\n")
        world.fetcher.script[f"{A}/open"] = page()
        start, leases = world.now(), 0
        while world.fetcher.requested == []:
            await world.visit()
            leases += 1
        assert leases <= 4
        assert world.now() == start, "no time has passed"
        counts = await world.counters()
        assert (counts["urls.blocked"], counts["urls.done"]) == (10_000, 1)

    async def test_an_excluded_host_of_the_domain_is_blocked(self, world: World) -> None:
        other = "http://www.a.test/"
        await world.open(other, f"{A}/", script={f"{A}/": page()}, exclude=["www.a.test"])
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert await world.states() == {other: "blocked", f"{A}/": "done"}
        assert await world.reason(other) == "excluded"


class TestChangedExclusions:
    """Exclusions that change during a visit."""

    async def after(self, world: World, moment: str, *patterns: str) -> None:
        async def exclude(request: Request) -> None:
            if request.url.text == moment:
                world.gate.exclusions = Exclusions(patterns)

        world.fetcher.before_answer = exclude
        await world.visit()

    async def test_the_page_after_robots_txt_is_blocked(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2")
        await self.after(world, ROBOTS, "a.test")
        assert world.fetcher.requested == [ROBOTS]
        assert await world.states() == {f"{A}/1": "blocked", f"{A}/2": "blocked"}
        assert await world.reason(f"{A}/1") == "excluded"

    async def test_the_next_hop_is_not_followed(self, world: World) -> None:
        other = "http://www.a.test/"
        await world.open(f"{A}/", script={f"{A}/": redirect(other), other: page()})
        await self.after(world, f"{A}/", "=www.a.test")
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected"}

    async def test_a_hop_whose_robots_txt_was_just_fetched_is_blocked(self, world: World) -> None:
        other = "http://www.a.test/"
        await world.open(f"{A}/", script={f"{A}/": redirect(other), other: page()})
        await self.after(world, f"{other}robots.txt", "www.a.test")
        assert world.fetcher.requested == [ROBOTS, f"{A}/", f"{other}robots.txt"]
        assert await world.states() == {f"{A}/": "redirected", other: "blocked"}

    async def test_a_redirect_of_robots_txt_is_not_followed(self, world: World) -> None:
        other = "http://b.test/robots.txt"
        await world.open(f"{A}/", script={ROBOTS: redirect(other)})
        await self.after(world, ROBOTS, "b*.test")
        assert world.fetcher.requested == [ROBOTS]

    async def test_links_to_it_are_not_accepted(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page_with_links("/1", "http://b.test/")})
        await self.after(world, f"{A}/", "b.test")
        assert await world.states() == {f"{A}/": "done", f"{A}/1": "pending"}
