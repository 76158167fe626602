"""One visit to one domain, with a real frontier and store, a scripted web, and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from rove.crawl.inflight_log import inflight_files, lost_visits
from rove.errors import StoreError
from rove.fetch.contract import Request
from rove.fetch.visit_connection import IdleConnection
from rove.frontier.contract import LostVisit
from rove.model.ledger import DelaySource, RequestKind
from rove.model.outcomes import (
    TEMPORARY_FAILURES,
    UNREACHABLE_FAILURES,
    FailureKind,
    Fetched,
    Outcome,
)
from rove.parse.reader import PageReader, Unread
from rove.parse.sitemap import MAX_SITEMAP_BYTES
from rove.policy.constants import (
    DEFAULT_REDIRECT_HOPS,
    MAX_REDIRECT_CHAIN,
    MAX_REQUESTS_PER_VISIT,
    VISIT_BUDGET,
)
from rove.policy.exclusions import Exclusions
from rove.policy.robots import MAX_ROBOTS_BYTES
from rove.urls.fingerprint import fingerprint, fingerprint_bytes
from tests.unit.crawl.scripted import (
    DELAY,
    World,
    bare_domain,
    crawl_url,
    failed,
    new_url,
    page,
    page_with_links,
    redirect,
    refused,
    robots,
    wrong_type,
)

A = "http://a.test"
ROBOTS = f"{A}/robots.txt"
NOTHING_ALLOWED = robots("User-agent: *\nDisallow: /\n")
NOTHING_PRIVATE = robots("User-agent: *\nDisallow: /private\n")
SERVER_FAILURES = (TEMPORARY_FAILURES | UNREACHABLE_FAILURES) - {FailureKind.BUSY}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


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

    async def test_requests_have_limits(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        await world.visit()
        for_robots, for_page = world.fetcher.requests
        assert for_robots.max_bytes == MAX_ROBOTS_BYTES and for_robots.accept_types is None
        assert for_page.max_bytes == 1 << 20
        assert set(for_page.accept_types or ()) == {
            "text/html",
            "application/xhtml+xml",
            "text/plain",
        }
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
        "answer",
        [
            refused(429),
            refused(500),
            refused(503),
            *(failed(kind) for kind in sorted(SERVER_FAILURES)),
        ],
    )
    async def test_without_robots_txt_nothing_is_fetched(self, world: World, answer: Outcome) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: answer})
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert record.requested
        assert await world.states() == {f"{A}/1": "pending", f"{A}/2": "pending"}
        assert await world.frontier.next_due() == pytest.approx(2 * DELAY)

    async def test_an_origin_that_keeps_failing_is_held_for_longer_and_longer(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: [refused(500)] * 5 + [refused(404)]})
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        waits: list[float] = []
        for _ in range(5):
            due = await world.frontier.next_due()
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
        assert await world.frontier.next_due() == pytest.approx(DELAY, abs=1.0)

    @pytest.mark.parametrize(
        ("answer", "wait"),
        [(refused(500), DELAY), (refused(503), 2 * DELAY), (failed(FailureKind.RESET), DELAY)],
    )
    async def test_a_held_origin_does_not_block_its_domain(self, world: World, answer: Outcome, wait: float) -> None:
        other = "http://www.a.test"
        await world.open(f"{A}/", f"{other}/", script={ROBOTS: answer, f"{other}/": page()})
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

    async def test_robots_txt_may_redirect_to_other_hosts(self, world: World) -> None:
        chain = [f"http://h{i}.test/r" for i in range(5)]
        script: dict[str, Outcome] = {
            url: redirect(target) for url, target in zip([ROBOTS, *chain], chain, strict=False)
        }
        await world.open(f"{A}/private", f"{A}/open")
        world.fetcher.script |= script | {chain[-1]: NOTHING_PRIVATE, f"{A}/open": page()}
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, *chain, f"{A}/open"]
        assert await world.states() == {f"{A}/private": "blocked", f"{A}/open": "done"}
        assert record.requests[0].other_domain is None
        assert record.requests[1].domain == fingerprint("a.test"), "the domain of the visit"
        assert record.requests[1].other_domain == fingerprint("h0.test")
        assert len(await world.rows("SELECT * FROM domain")) == 1, "the other domains are not in the frontier"

    async def test_the_sixth_redirect_means_no_rules(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: redirect("/robots.txt"), f"{A}/": page()})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS] * 6 + [f"{A}/"]
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
        assert await world.frontier.next_due() == 500.0

    async def test_a_shorter_crawl_delay_changes_nothing(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 5\n")
        await world.visit()
        assert await world.frontier.next_due() == DELAY

    async def test_a_crawl_delay_stays_in_force_while_robots_txt_is_unreachable(self, world: World) -> None:
        """A failing server does not cancel what its robots.txt has asked for."""
        answers = [robots("User-agent: *\nCrawl-delay: 5000\n"), refused(503)]
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: answers, f"{A}/1": page()})
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
        assert await world.frontier.next_due() is None, "a crawl does not stay up for it"
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
        assert await world.frontier.next_due() == 86_400.0
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
        assert await world.frontier.next_due() == 0.0, "no delay applies"

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


class TestRedirects:
    """Redirects inside the domain, and redirects that leave it."""

    @pytest.mark.parametrize("hops", range(1, DEFAULT_REDIRECT_HOPS + 1))
    async def test_up_to_three_hops_are_followed(self, world: World, hops: int) -> None:
        urls = [f"{A}/{i}" for i in range(hops + 1)]
        await world.open(urls[0], script={u: redirect(f"/{i + 1}") for i, u in enumerate(urls)})
        world.fetcher.script[urls[-1]] = page()
        await world.visit()
        assert world.fetcher.pages_requested == urls
        states = await world.states()
        assert [states[u] for u in urls] == ["redirected"] * hops + ["done"]
        assert await world.reason(urls[0]) == urls[1]

    async def test_the_fourth_hop_is_left_to_the_frontier(self, world: World) -> None:
        urls = [f"{A}/{i}" for i in range(6)]
        await world.open(urls[0], script={u: redirect(f"/{i + 1}") for i, u in enumerate(urls)})
        world.fetcher.script[urls[5]] = page()
        await world.visit()
        assert world.fetcher.pages_requested == urls[:4]
        assert (await world.states())[urls[4]] == "pending"
        waited, _ = await world.visit_next()
        assert waited == DELAY
        assert world.fetcher.pages_requested == urls
        assert (await world.states())[urls[5]] == "done"

    async def test_with_no_hops_allowed_every_redirect_waits_for_a_later_visit(self, world: World) -> None:
        world.redirect_hops = 0
        await world.open(f"{A}/0", script={f"{A}/0": redirect("/1"), f"{A}/1": page()})
        await world.visit()
        assert world.fetcher.pages_requested == [f"{A}/0"]
        assert await world.states() == {f"{A}/0": "redirected", f"{A}/1": "pending"}
        waited, _ = await world.visit_next()
        assert waited == DELAY
        assert await world.states() == {f"{A}/0": "redirected", f"{A}/1": "done"}

    async def test_with_no_hops_allowed_redirects_of_robots_txt_are_followed(self, world: World) -> None:
        world.redirect_hops = 0
        await world.open(f"{A}/private", script={ROBOTS: redirect("/r"), f"{A}/r": NOTHING_PRIVATE})
        await world.visit()
        assert await world.states() == {f"{A}/private": "blocked"}

    async def test_a_visit_never_makes_more_than_eight_requests(self, world: World) -> None:
        """Here: robots.txt with five hops, the page and one hop; the next hop waits."""
        await world.open(f"{A}/0", script={f"{A}/{i}": redirect(f"/{i + 1}") for i in range(9)})
        world.fetcher.script |= {f"{A}/r{i}": redirect(f"/r{i + 1}") for i in range(1, 5)}
        world.fetcher.script |= {ROBOTS: redirect("/r1"), f"{A}/r5": refused(404)}
        record = await world.visit()
        assert len(world.fetcher.requested) == len(record.requests) == MAX_REQUESTS_PER_VISIT == 8
        assert world.fetcher.requested[-2:] == [f"{A}/0", f"{A}/1"]
        assert (await world.states())[f"{A}/2"] == "pending"

    async def test_a_hop_whose_robots_txt_uses_up_the_requests_stays_pending(self, world: World) -> None:
        other = "http://www.a.test"
        await world.open(f"{A}/", script={f"{A}/": redirect(f"{other}/")})
        world.fetcher.script[f"{other}/robots.txt"] = redirect("/robots.txt")
        record = await world.visit()
        assert len(record.requests) == 8
        assert await world.states() == {f"{A}/": "redirected", f"{other}/": "pending"}

    async def test_a_hop_to_another_origin_of_the_domain_needs_its_robots_txt(self, world: World) -> None:
        other = "https://www.a.test"
        await world.open(f"{A}/", script={f"{A}/": redirect(f"{other}/"), f"{other}/": page()})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/", f"{other}/robots.txt", f"{other}/"]
        assert await world.states() == {f"{A}/": "redirected", f"{other}/": "done"}
        assert len(await world.rows("SELECT * FROM origin")) == 2

    async def test_a_hop_that_robots_txt_forbids_is_not_followed(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE, f"{A}/": redirect("/private")})
        await world.visit()
        assert world.fetcher.pages_requested == [f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected", f"{A}/private": "blocked"}

    async def test_a_hop_whose_robots_txt_is_unreachable_waits(self, world: World) -> None:
        other = "http://www.a.test"
        script = {f"{A}/": redirect(f"{other}/"), f"{other}/robots.txt": refused(500)}
        await world.open(f"{A}/", script=script)
        await world.visit()
        assert await world.states() == {f"{A}/": "redirected", f"{other}/": "pending"}
        assert await world.frontier.next_due() == pytest.approx(2 * DELAY)

    async def test_a_hop_that_fails_is_tried_again_as_a_url_of_its_own(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect("/b"), f"{A}/b": refused(500)})
        await world.visit()
        assert await world.states() == {f"{A}/": "redirected", f"{A}/b": "pending"}
        assert await world.rows("SELECT attempts FROM url WHERE url = ?", f"{A}/b") == [(1,)]

    @pytest.mark.parametrize("known_as", ["done", "failed", "blocked", "redirected"])
    async def test_a_hop_to_a_settled_url_is_not_fetched_again(self, world: World, known_as: str) -> None:
        first = {
            "done": page(),
            "failed": refused(404),
            "redirected": redirect("http://b.test/"),
            "blocked": page('<meta name="robots" content="noindex">'),
        }[known_as]
        await world.open(f"{A}/known", script={f"{A}/known": [first]})
        await world.visit()
        await world.frontier.add([new_url(f"{A}/")])
        world.fetcher.script[f"{A}/"] = redirect("/known")
        world.advance(DELAY)
        lease = next(lease for lease in await world.frontier.claim(9) if lease.name == "a.test")
        record, visit = world.start(await world.hold(lease))
        await visit.run()
        await world.write(record)
        assert world.fetcher.pages_requested == [f"{A}/known", f"{A}/"]
        states = await world.states()
        assert (states[f"{A}/"], states[f"{A}/known"]) == ("redirected", known_as)

    async def test_a_hop_to_a_pending_url_is_followed(self, world: World) -> None:
        await world.open(f"{A}/", new_url(f"{A}/b", depth=5))
        world.fetcher.script |= {f"{A}/": redirect("/b"), f"{A}/b": page()}
        await world.visit()
        assert await world.states() == {f"{A}/": "redirected", f"{A}/b": "done"}

    @pytest.mark.parametrize("location", ["/", f"{A}/", "#x", "?", "", f"{A}:80/#y"])
    async def test_a_redirect_to_itself_is_a_loop(self, world: World, location: str) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect(location)})
        await world.visit()
        assert world.fetcher.pages_requested == [f"{A}/"]
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "redirect loop"

    async def test_a_loop_over_hops_ends(self, world: World) -> None:
        await world.open(f"{A}/a", script={f"{A}/a": redirect("/b"), f"{A}/b": redirect("/a")})
        await world.visit()
        assert world.fetcher.pages_requested == [f"{A}/a", f"{A}/b"]
        assert await world.states() == {f"{A}/a": "redirected", f"{A}/b": "failed"}
        assert await world.reason(f"{A}/b") == "redirect loop"

    async def test_a_loop_over_visits_ends(self, world: World) -> None:
        urls = [f"{A}/{i}" for i in range(6)]
        await world.open(urls[0], script={u: redirect(f"/{(i + 1) % 6}") for i, u in enumerate(urls)})
        await world.visit()
        await world.visit_next()
        assert world.fetcher.pages_requested == urls
        assert set((await world.states()).values()) == {"redirected"}
        assert await world.frontier.next_due() is None

    async def test_a_redirect_to_a_url_blocked_in_this_visit_is_not_a_loop(self, world: World) -> None:
        script = {ROBOTS: NOTHING_PRIVATE, f"{A}/b": redirect("/private")}
        await world.open(f"{A}/private", f"{A}/b", script=script)
        await world.visit()
        assert await world.states() == {f"{A}/private": "blocked", f"{A}/b": "redirected"}

    async def test_a_redirect_that_leaves_the_domain_waits_for_that_domain(self, world: World) -> None:
        await world.open(new_url(f"{A}/", depth=3), script={f"{A}/": redirect("http://b.test/x")})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected", "http://b.test/x": "pending"}
        rows = await world.rows("SELECT depth, hops FROM url WHERE url = 'http://b.test/x'")
        assert rows == [(3, 1)], "a redirect does not add to the depth"
        names = await world.rows("SELECT name, pending FROM domain ORDER BY name")
        assert names == [("a.test", 0), ("b.test", 1)]

    async def test_a_chain_of_redirects_is_given_up_after_twenty(self, world: World) -> None:
        await world.open(f"{A}/0", script={f"{A}/{i}": redirect(f"/{i + 1}") for i in range(30)})
        await world.visit()
        while await world.frontier.next_due() is not None:
            await world.visit_next()
        assert world.fetcher.pages_requested == [f"{A}/{i}" for i in range(MAX_REDIRECT_CHAIN + 1)]
        assert (await world.frontier.counts()).not_accepted == {"too-many-redirects": 1}
        assert set((await world.states()).values()) == {"redirected"}

    async def test_a_link_starts_a_new_chain(self, world: World) -> None:
        await world.open(new_url(f"{A}/", hops=MAX_REDIRECT_CHAIN))
        world.fetcher.script[f"{A}/"] = page_with_links("/b")
        await world.visit()
        assert await world.rows("SELECT hops FROM url WHERE url = ?", f"{A}/b") == [(0,)]

    @pytest.mark.parametrize("host", ["www.a.test", "b.test", "x.b.test"])
    async def test_a_redirect_to_an_excluded_host_is_not_accepted(self, world: World, host: str) -> None:
        script = {f"{A}/": redirect(f"http://{host}/")}
        await world.open(f"{A}/", script=script, exclude=["www.a.test", "b.test"])
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected"}
        assert (await world.frontier.counts()).not_accepted == {"excluded": 1}

    @pytest.mark.parametrize("target", ["http://a.test:6379/", "http://b.test:25/"])
    async def test_a_redirect_to_an_unusual_port_is_not_accepted(self, world: World, target: str) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect(target)})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected"}
        assert (await world.frontier.counts()).not_accepted == {"port": 1}

    @pytest.mark.parametrize("location", ["ftp://a.test/", "mailto:x@a.test", "/" + "x" * 3000])
    async def test_a_redirect_to_something_else_than_a_web_address_is_a_failure(
        self, world: World, location: str
    ) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect(location)})
        await world.visit()
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "redirect to no web address"


class TestPages:
    """Reading and storing a page."""

    async def test_a_page_is_recorded_with_its_title_text_and_links(self, world: World) -> None:
        html = "<title>A title</title><p>Some text.<a href=/b>b</a><a href=http://c.test/>c</a>"
        await world.open(new_url(f"{A}/", depth=2), script={f"{A}/": page(html)})
        record = await world.visit()
        (saved,) = world.pages
        assert saved.url == f"{A}/" and b"Some text." in saved.text
        assert saved.source is None, "the answer is not kept if only texts are stored"
        row = record.requests[-1]
        assert (row.title, row.status, row.size) == ("A title", 200, len(html))
        assert row.content_hash == fingerprint_bytes(saved.text)
        assert saved.fetched_at == row.started
        rows = await world.rows("SELECT url, depth, hops, assume_https FROM url WHERE depth = 3 ORDER BY url")
        assert rows == [(f"{A}/b", 3, 0, 0), ("http://c.test/", 3, 0, 0)]

    async def test_the_answer_is_kept_if_it_is_to_be_stored(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page("<p>raw")})
        world.keep_raw = True
        await world.visit()
        (saved,) = world.pages
        assert saved.source is not None and saved.source.body == b"<p>raw"

    async def test_plain_text_is_a_page_without_links(self, world: World) -> None:
        text = "Some <a href=/b>text</a>\nhttp://c.test/"
        await world.open(f"{A}/", script={f"{A}/": page(text, "text/plain")})
        await world.visit()
        (saved,) = world.pages
        assert saved.text.decode() == text
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_page_with_too_many_links_is_marked(self, world: World) -> None:
        world.reader = PageReader(max_links=1)
        await world.open(f"{A}/", script={f"{A}/": page_with_links("/b", "/c")})
        record = await world.visit()
        assert record.requests[-1].marks == ("links-cut",)
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}
        assert (await world.counters())["marks.links-cut"] == 1

    @pytest.mark.system
    async def test_a_long_page_is_parsed_beside_the_event_loop(self, world: World) -> None:
        html = "<title>Long</title>" + "<p>Some text.<a href=/b>b</a>" * 5_000
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        record = await world.visit()
        await world.reader.close()
        assert record.requests[-1].title == "Long" and record.requests[-1].marks == ()
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}

    @pytest.mark.system
    async def test_nothing_is_taken_from_a_page_that_is_too_complex(self, world: World) -> None:
        world.reader = PageReader(max_cpu_seconds=0.5)
        html = "<a href=/b>b</a>" + "<dl><dt>" * 100_000
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        record = await world.visit()
        assert world.pages == [] and record.requests[-1].marks == ("html-too-complex",)
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "too complex to be read"

    async def test_a_page_that_could_not_be_read_in_time_is_tried_again(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def busy(*_: object, **__: object) -> Unread:
            return Unread.BUSY

        monkeypatch.setattr(world.reader, "read_apart", busy)
        await world.open(f"{A}/", script={f"{A}/": page("<br>" * 5_000)})
        record = await world.visit()
        assert world.pages == [] and record.requests[-1].marks == ()
        assert record.requests[-1].error == "busy", "the ledger shows why it is requested again"
        assert await world.states() == {f"{A}/": "pending"}

    async def test_links_are_relative_to_the_url_after_redirects(self, world: World) -> None:
        await world.open(f"{A}/x", script={f"{A}/x": redirect("/dir/")})
        world.fetcher.script[f"{A}/dir/"] = page_with_links("b")
        await world.visit()
        assert (await world.states())[f"{A}/dir/b"] == "pending"

    async def test_noindex_keeps_nothing_and_follows_links(self, world: World) -> None:
        html = '<meta name="robots" content="noindex"><a href=/b>b</a>'
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        await world.visit()
        assert world.pages == []
        assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending"}
        assert await world.reason(f"{A}/") == "noindex"

    async def test_nofollow_keeps_the_page_and_follows_nothing(self, world: World) -> None:
        html = '<meta name="robots" content="nofollow"><p>Text<a href=/b>b</a>'
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        await world.visit()
        assert len(world.pages) == 1
        assert await world.states() == {f"{A}/": "done"}

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (wrong_type("image/png"), "type image/png"),
            (wrong_type("x/" + "y" * 500), "type x/" + "y" * 93),
            (wrong_type(""), "type "),
            (refused(400), "status 400"),
            (refused(404), "status 404"),
            (refused(410), "status 410"),
            (refused(304), "status 304"),
        ],
    )
    async def test_an_answer_that_is_not_a_page_fails_at_once(self, world: World, answer: Outcome, reason: str) -> None:
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == reason
        assert len(reason) <= 100

    @pytest.mark.parametrize("answer", [refused(500), refused(503), refused(429), refused(408)])
    async def test_a_temporary_failure_is_tried_again_three_times(self, world: World, answer: Outcome) -> None:
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        waits = []
        for attempt in (1, 2, 3):
            assert await world.rows("SELECT state, attempts FROM url") == [(0, attempt)]
            waits.append((await world.visit_next())[0])
        assert waits == [2 * DELAY, 8 * DELAY, 32 * DELAY]
        assert await world.states() == {f"{A}/": "failed"}
        assert (await world.reason(f"{A}/")).startswith("status ")
        assert len(world.fetcher.pages_requested) == 4

    async def test_a_page_that_succeeds_on_a_retry_is_done(self, world: World) -> None:
        answers = [refused(503), failed(FailureKind.RESET), page()]
        await world.open(f"{A}/", script={f"{A}/": answers})
        await world.visit()
        await world.visit_next()
        await world.visit_next()
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_url_to_retry_waits_behind_the_others(self, world: World) -> None:
        await world.open(f"{A}/bad", new_url(f"{A}/good", depth=9))
        world.fetcher.script |= {f"{A}/bad": [refused(500), page()], f"{A}/good": page()}
        await world.visit()
        await world.visit_next()
        await world.visit_next()
        assert world.fetcher.pages_requested == [f"{A}/bad", f"{A}/good", f"{A}/bad"]

    async def test_a_busy_address_does_not_count_as_a_failure(self, world: World) -> None:
        await world.open(f"{A}/", f"{A}/2", script={f"{A}/": failed(FailureKind.BUSY)})
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert record.pacing(DELAY).pace.failures == 0
        assert await world.states() == {f"{A}/": "pending", f"{A}/2": "pending"}
        ((attempts,),) = await world.rows("SELECT max(attempts) FROM url")
        assert attempts == 0
        assert await world.frontier.next_due() == DELAY

    @pytest.mark.parametrize("kind", sorted(set(FailureKind) - {FailureKind.ABORTED, FailureKind.BUSY}))
    async def test_each_kind_of_failure_without_an_answer(self, world: World, kind: FailureKind) -> None:
        await world.open(f"{A}/", script={f"{A}/": failed(kind)})
        record = await world.visit()
        assert record.requests[-1].error == kind.value
        if kind in TEMPORARY_FAILURES:
            assert await world.states() == {f"{A}/": "pending"}
            assert await world.frontier.next_due() == 2 * DELAY
        else:
            assert await world.states() == {f"{A}/": "failed"}
            assert await world.reason(f"{A}/") == kind.value

    async def test_links_that_are_too_deep_are_counted(self, world: World) -> None:
        links = page_with_links("/1", "/2", "http://b.test/")
        await world.open(new_url(f"{A}/", depth=1), script={f"{A}/": links}, max_depth=1)
        await world.visit()
        assert await world.states() == {f"{A}/": "done"}
        assert (await world.frontier.counts()).not_accepted == {"too-deep": 3}

    async def test_links_to_unusual_ports_are_counted(self, world: World) -> None:
        links = page_with_links("http://b.test:8080/", "http://b.test:6379/", f"{A}:9999/")
        await world.open(f"{A}/", script={f"{A}/": links})
        await world.visit()
        assert set(await world.states()) == {f"{A}/", "http://b.test:8080/"}
        assert (await world.frontier.counts()).not_accepted == {"port": 2}

    async def test_links_to_the_port_of_a_seed_are_accepted_on_its_host(self, world: World) -> None:
        odd = "http://a.test:9999"
        links = page_with_links("/1", "https://a.test:9999/2", "http://www.a.test:9999/", f"{A}/")
        await world.open(f"{odd}/", script={f"{odd}/": links})
        await world.visit()
        assert set(await world.states()) == {
            *(f"{odd}/", f"{odd}/1"),
            *("https://a.test:9999/2", f"{A}/"),
        }
        assert (await world.frontier.counts()).not_accepted == {"port": 1}

    async def test_links_to_excluded_hosts_are_counted(self, world: World) -> None:
        links = page_with_links("/1", "http://x.test/", "http://www.x.test/", "http://nox.test/")
        await world.open(f"{A}/", script={f"{A}/": links}, exclude=["x.test"])
        await world.visit()
        assert set(await world.states()) == {f"{A}/", f"{A}/1", "http://nox.test/"}
        assert (await world.frontier.counts()).not_accepted == {"excluded": 2}

    @pytest.mark.parametrize("href", ["/a??", "/%%341", "/?x?", "http://1.2.3.4../", "/a%%37Eb"])
    async def test_an_odd_link_is_fetched_once_and_settled(self, world: World, href: str) -> None:
        """The fingerprint that is settled must be the one that was claimed, or the URL is fetched again for ever."""
        await world.open(f"{A}/", script={f"{A}/": page_with_links(href)})
        await world.visit()
        (link,) = set(await world.states()) - {f"{A}/"}
        world.fetcher.script |= {link: page(), crawl_url(link).text: page()}
        await world.visit_next()
        assert await world.states() == {f"{A}/": "done", link: "done"}

    async def test_an_invalid_link_does_not_affect_the_others(self, world: World) -> None:
        links = page_with_links("/b", "http://foo.1../", "/c")
        await world.open(f"{A}/", script={f"{A}/": links})
        await world.visit()
        assert set(await world.states()) == {f"{A}/", f"{A}/b", f"{A}/c"}


class TestBareDomains:
    """For a bare domain in the seeds https is a guess, and http will do."""

    HTTPS, HTTP = "https://a.test/", "http://a.test/"
    HTTPS_ROBOTS, HTTP_ROBOTS = "https://a.test/robots.txt", "http://a.test/robots.txt"

    async def test_https_is_used_if_it_answers(self, world: World) -> None:
        await world.open(bare_domain("a.test"), script={self.HTTPS: page()})
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS, self.HTTPS]
        assert await world.states() == {self.HTTPS: "done"}

    @pytest.mark.parametrize("kind", sorted(UNREACHABLE_FAILURES))
    async def test_http_is_tried_in_the_same_visit_if_https_is_unreachable(
        self, world: World, kind: FailureKind
    ) -> None:
        script = {self.HTTPS_ROBOTS: failed(kind), self.HTTP: page_with_links("/b")}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS, self.HTTP_ROBOTS, self.HTTP]
        assert await world.states() == {
            self.HTTPS: "redirected",
            self.HTTP: "done",
            "http://a.test/b": "pending",
        }
        assert await world.reason(self.HTTPS) == self.HTTP

    async def test_http_is_tried_if_only_the_page_is_unreachable(self, world: World) -> None:
        script = {self.HTTPS: failed(FailureKind.RESET), self.HTTP: page()}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        expected = [self.HTTPS_ROBOTS, self.HTTPS, self.HTTP_ROBOTS, self.HTTP]
        assert world.fetcher.requested == expected
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "done"}

    async def test_a_url_with_a_scheme_is_not_a_guess(self, world: World) -> None:
        await world.open(self.HTTPS, script={self.HTTPS_ROBOTS: failed()})
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS]
        assert await world.states() == {self.HTTPS: "pending"}

    @pytest.mark.parametrize(
        "answer",
        [
            refused(404),
            refused(500),
            wrong_type(),
            failed(FailureKind.TIMEOUT_FIRST_BYTE),
            failed(FailureKind.TIMEOUT_TOTAL),
            failed(FailureKind.ENCODING),
        ],
    )
    async def test_http_is_not_tried_if_the_https_server_answers_or_stalls(self, world: World, answer: Outcome) -> None:
        await world.open(bare_domain("a.test"), script={self.HTTPS: answer})
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS, self.HTTPS]
        assert list(await world.states()) == [self.HTTPS]

    @pytest.mark.parametrize(
        "answer",
        [refused(503), failed(FailureKind.DNS_NOT_FOUND), failed(FailureKind.TIMEOUT_TOTAL)],
    )
    async def test_http_is_not_tried_if_robots_txt_fails_for_other_reasons(self, world: World, answer: Outcome) -> None:
        await world.open(bare_domain("a.test"), script={self.HTTPS_ROBOTS: answer})
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS]

    async def test_if_neither_answers_only_the_https_url_is_kept(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP_ROBOTS: failed()}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS, self.HTTP_ROBOTS]
        assert await world.rows("SELECT url, state, assume_https FROM url") == [(self.HTTPS, 0, 1)]
        waited, _ = await world.visit_next()
        assert waited == 2 * DELAY
        assert world.fetcher.requested[2:] == [self.HTTPS_ROBOTS, self.HTTP_ROBOTS], "https is still a guess"
        world.fetcher.script |= {self.HTTPS_ROBOTS: refused(404), self.HTTPS: page()}
        await world.visit_next()
        assert await world.states() == {self.HTTPS: "done"}

    async def test_a_crawl_does_not_wait_for_a_domain_where_neither_answers(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP_ROBOTS: failed()}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        visits = 1
        while await world.frontier.next_due() is not None:
            await world.visit_next()
            visits += 1
        assert visits == 3
        assert await world.states() == {self.HTTPS: "pending"}

    @pytest.mark.parametrize(
        ("answer", "state", "reason"),
        [
            (refused(404), "failed", "status 404"),
            (wrong_type(), "failed", "type image/png"),
            (failed(FailureKind.ENCODING), "failed", "encoding"),
            (page('<meta name=robots content="noindex">'), "blocked", "noindex"),
            (redirect("http://b.test/"), "redirected", "http://b.test/"),
        ],
    )
    async def test_the_http_url_has_the_outcome(self, world: World, answer: Outcome, state: str, reason: str) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP: answer}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        states = await world.states()
        assert (states[self.HTTPS], states[self.HTTP]) == ("redirected", state)
        assert await world.reason(self.HTTP) == reason
        assert await world.reason(self.HTTPS) == self.HTTP

    async def test_http_that_robots_txt_forbids_is_blocked(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP_ROBOTS: NOTHING_ALLOWED}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "blocked"}

    async def test_http_may_redirect_inside_the_domain(self, world: World) -> None:
        other = "http://www.a.test/"
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP: redirect(other), other: page()}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert await world.states() == {
            self.HTTPS: "redirected",
            self.HTTP: "redirected",
            other: "done",
        }

    async def test_http_that_is_done_is_not_fetched_again(self, world: World) -> None:
        await world.open(self.HTTP, script={self.HTTP: page()})
        await world.visit()
        await world.frontier.add([bare_domain("a.test")])
        world.fetcher.script[self.HTTPS_ROBOTS] = failed()
        await world.visit_next()
        assert world.fetcher.requested[2:] == [self.HTTPS_ROBOTS]
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "done"}

    async def test_a_temporary_failure_of_http_is_tried_again_three_times(self, world: World) -> None:
        script = {self.HTTPS: failed(), self.HTTP: refused(503)}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        for _ in range(20):
            if await world.frontier.next_due() is None:
                break
            await world.visit_next()
        assert world.fetcher.requested.count(self.HTTP) == 4
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "failed"}

    @pytest.mark.parametrize("unreachable", ["robots.txt", "page"])
    async def test_a_redirect_from_http_back_to_https_does_not_lose_the_site(
        self, world: World, unreachable: str
    ) -> None:
        """Most sites redirect http to https, so the https URL stays pending and is tried again."""
        failing = self.HTTPS_ROBOTS if unreachable == "robots.txt" else self.HTTPS
        script = {failing: failed(FailureKind.TIMEOUT_CONNECT), self.HTTP: redirect(self.HTTPS)}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert (await world.states())[self.HTTPS] == "pending"
        world.fetcher.script |= {self.HTTPS_ROBOTS: refused(404), self.HTTPS: page()}
        await world.visit_next()
        assert (await world.states())[self.HTTPS] == "done"

    @pytest.mark.parametrize("unreachable", ["robots.txt", "page"])
    async def test_a_redirect_back_to_https_over_a_hop_does_not_lose_the_site(
        self, world: World, unreachable: str
    ) -> None:
        other = "http://www.a.test/"
        failing = self.HTTPS_ROBOTS if unreachable == "robots.txt" else self.HTTPS
        script = {failing: failed(), self.HTTP: redirect(other), other: redirect(self.HTTPS)}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert (await world.states())[self.HTTPS] == "pending"
        visits = 1
        while await world.frontier.next_due() is not None:
            await world.visit_next()
            visits += 1
            assert visits <= 5, "three retries, or the origin is held"

    async def test_an_http_url_that_was_settled_as_a_redirect_does_not_lose_the_site(self, world: World) -> None:
        """The http URL is in the frontier as well, and is settled by the time https is tried again."""
        script = {self.HTTPS_ROBOTS: [failed()] * 3 + [refused(404)], self.HTTPS: page()}
        await world.open(bare_domain("a.test"), new_url(self.HTTP, depth=1), script=script)
        world.fetcher.script[self.HTTP] = redirect(self.HTTPS)
        await world.visit()
        for _ in range(10):
            if (await world.states())[self.HTTPS] != "pending":
                break
            await world.visit_next()
        assert await world.states() == {self.HTTPS: "done", self.HTTP: "redirected"}

    async def test_https_that_answers_on_a_retry_is_used(self, world: World) -> None:
        other = "http://www.a.test/"
        script = {self.HTTP: redirect(other), other: redirect(self.HTTPS)}
        answers = [failed(FailureKind.RESET), page()]
        await world.open(bare_domain("a.test"), script={self.HTTPS: answers, **script})
        await world.visit()
        while await world.frontier.next_due() is not None:
            await world.visit_next()
        assert (await world.states())[self.HTTPS] == "done"


class TestPacing:
    """How long a domain is left alone, depending on its answers."""

    @pytest.mark.parametrize("status", [429, 503])
    async def test_retry_after_is_obeyed(self, world: World, status: int) -> None:
        answer = refused(status, ("Retry-After", "5000"))
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": answer, f"{A}/2": page()})
        await world.visit()
        waited, _ = await world.visit_next()
        assert waited == 5_000.0
        assert world.fetcher.pages_requested == [f"{A}/1", f"{A}/2"]

    async def test_an_overloaded_domain_is_visited_less_often_and_then_more_often_again(self, world: World) -> None:
        urls = [f"{A}/{i}" for i in range(7)]
        await world.open(*urls, script=dict.fromkeys(urls, page()))
        world.fetcher.script |= dict.fromkeys(urls[:3], refused(429))
        await world.visit()
        waits = []
        while len(world.fetcher.pages_requested) < 7:
            waits.append((await world.visit_next())[0] / DELAY)
        assert waits == [2, 4, 8, 4, 2, 1]

    async def test_a_slow_domain_is_left_alone_for_longer(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})

        async def slowly(request: Request) -> None:
            world.advance(20)

        world.fetcher.before_answer = slowly
        await world.visit()
        waited, _ = await world.visit_next()
        assert waited == 200.0

    async def test_a_bare_domain_that_answers_over_http_has_not_failed(self, world: World) -> None:
        script = {"https://a.test/robots.txt": failed(), f"{A}/": page()}
        await world.open(bare_domain("a.test"), script=script)
        record = await world.visit()
        assert record.result(world.now(), DELAY).pace.failures == 0

    @pytest.mark.parametrize("kind", [FailureKind.CONNECT, FailureKind.TIMEOUT_TOTAL])
    async def test_visits_without_an_answer_are_counted(self, world: World, kind: FailureKind) -> None:
        await world.open(f"{A}/", script={ROBOTS: [failed(kind)] * 3 + [refused(404)]})
        world.fetcher.script[f"{A}/"] = page()
        failures = [(await world.visit()).result(world.now(), DELAY).pace.failures]
        for _ in range(3):
            _, record = await world.visit_next()
            failures.append(record.result(world.now(), DELAY).pace.failures)
        assert failures == [1, 2, 3, 0]
        assert await world.states() == {f"{A}/": "done"}


class TestTags:
    """The X-Robots-Tag header."""

    async def test_noindex_keeps_nothing_and_follows_links(self, world: World) -> None:
        answer = tagged(page_with_links("/b"), "noindex")
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert world.pages == []
        assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending"}
        assert await world.reason(f"{A}/") == "noindex"

    async def test_nofollow_keeps_the_page_and_follows_nothing(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": tagged(page_with_links("/b"), "nofollow")})
        await world.visit()
        assert len(world.pages) == 1
        assert await world.states() == {f"{A}/": "done"}

    async def test_every_header_counts(self, world: World) -> None:
        answer = tagged(page_with_links("/b"), "googlebot: noindex", "nofollow", "rove: noindex")
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert await world.states() == {f"{A}/": "blocked"}

    async def test_headers_for_other_crawlers_do_not_count(self, world: World) -> None:
        answer = tagged(page_with_links("/b"), "googlebot: noindex, nofollow")
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}

    async def test_it_applies_to_plain_text_too(self, world: World) -> None:
        answer = tagged(page("Some text", "text/plain"), "noindex")
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert world.pages == []
        assert await world.states() == {f"{A}/": "blocked"}


class TestSitemaps:
    """Sitemaps that robots.txt names."""

    MAP, INDEX = f"{A}/map.xml", f"{A}/index.xml"

    @pytest.fixture
    def world(self, world: World) -> World:
        world.sitemaps = True
        return world

    async def pending(self, world: World) -> dict[str, tuple[int, str]]:
        rows = await world.rows("SELECT url, depth, sitemap_of FROM url WHERE state = 0")
        return {url: (depth, host) for url, depth, host in rows}

    async def test_robots_txt_adds_them_to_the_frontier(self, world: World) -> None:
        lines = f"Sitemap: {self.MAP}\nUser-agent: *\nDisallow: /private\nSitemap: http://b.test/x\n"
        await world.open(f"{A}/", script={ROBOTS: robots(lines), f"{A}/": page()})
        await world.visit()
        assert await self.pending(world) == {
            self.MAP: (0, "a.test"),
            "http://b.test/x": (0, "a.test"),
        }

    async def test_they_belong_to_the_host_whose_robots_txt_was_requested(self, world: World) -> None:
        other = "http://b.test/r"
        script = {ROBOTS: redirect(other), other: robots(f"Sitemap: {self.MAP}\n")}
        await world.open(f"{A}/", script={**script, f"{A}/": page()})
        await world.visit()
        assert await self.pending(world) == {self.MAP: (0, "a.test")}

    async def test_they_are_ignored_unless_the_settings_ask_for_them(self, world: World) -> None:
        world.sitemaps = False
        await world.open(f"{A}/", script={ROBOTS: robots(f"Sitemap: {self.MAP}")})
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        assert await world.states() == {f"{A}/": "done"}

    async def test_those_on_excluded_hosts_are_not_accepted(self, world: World) -> None:
        lines = f"Sitemap: http://x.test/map\nSitemap: nonsense\nSitemap: {self.MAP}\n"
        await world.open(f"{A}/", script={ROBOTS: robots(lines)}, exclude=["x.test"])
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        assert await self.pending(world) == {self.MAP: (0, "a.test")}
        assert (await world.frontier.counts()).not_accepted == {"excluded": 1}

    async def test_the_urls_of_a_sitemap_are_added(self, world: World) -> None:
        answer = sitemap("urlset", "/1", "/2", "http://b.test/3", "/map.xml", "https://a.test/4")
        await world.open(new_url(self.MAP, sitemap_of="a.test"), script={self.MAP: answer})
        record = await world.visit()
        assert [row.kind for row in record.requests] == [RequestKind.ROBOTS, RequestKind.SITEMAP]
        assert world.pages == []
        assert (await world.states())[self.MAP] == "read"
        assert await self.pending(world) == {
            f"{A}/1": (1, ""),
            f"{A}/2": (1, ""),
            "https://a.test/4": (1, ""),
        }
        assert (await world.frontier.counts()).pages == 0

    async def test_requests_have_limits(self, world: World) -> None:
        await world.open(new_url(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = sitemap("urlset")
        await world.visit()
        request = world.fetcher.requests[-1]
        assert request.max_bytes == MAX_SITEMAP_BYTES
        assert request.accept_types is None, "servers send sitemaps with any type"

    async def test_an_index_names_sitemaps_but_these_name_no_others(self, world: World) -> None:
        child, grandchild = f"{A}/child.xml", f"{A}/grandchild.xml"
        await world.open(new_url(self.INDEX, sitemap_of="a.test"))
        world.fetcher.script |= {
            self.INDEX: sitemap("sitemapindex", "/child.xml", "http://b.test/other.xml"),
            child: sitemap("sitemapindex", "/grandchild.xml"),
        }
        await world.visit()
        assert await self.pending(world) == {child: (1, "a.test")}
        await world.visit_next()
        assert await world.states() == {self.INDEX: "read", child: "read"}
        assert grandchild not in await world.states()

    async def test_a_sitemap_on_another_host_may_list_urls_of_the_host_that_named_it(self, world: World) -> None:
        other = "http://maps.test/a.xml"
        await world.open(new_url(other, sitemap_of="a.test"))
        world.fetcher.script[other] = sitemap("urlset", f"{A}/1", "http://maps.test/2", "http://c.test/3")
        await world.visit()
        assert set(await self.pending(world)) == {f"{A}/1", "http://maps.test/2"}

    async def test_a_sitemap_that_robots_txt_forbids_is_not_fetched(self, world: World) -> None:
        await world.open(new_url(f"{A}/private/map.xml", sitemap_of="a.test"))
        world.fetcher.script[ROBOTS] = NOTHING_PRIVATE
        await world.visit()
        assert world.fetcher.pages_requested == []
        assert await world.states() == {f"{A}/private/map.xml": "blocked"}

    async def test_a_redirect_leads_to_a_sitemap_of_the_same_host(self, world: World) -> None:
        moved = f"{A}/moved.xml"
        await world.open(new_url(self.MAP, sitemap_of="a.test"))
        world.fetcher.script |= {self.MAP: redirect("/moved.xml"), moved: sitemap("urlset", "/1")}
        record = await world.visit()
        assert [row.kind for row in record.requests[1:]] == [RequestKind.SITEMAP] * 2
        assert await world.states() == {
            self.MAP: "redirected",
            moved: "read",
            f"{A}/1": "pending",
        }

    @pytest.mark.parametrize(("answer", "state"), [(refused(404), "failed"), (refused(500), "pending")])
    async def test_a_sitemap_fails_like_a_page(self, world: World, answer: Outcome, state: str) -> None:
        await world.open(new_url(self.MAP, sitemap_of="a.test"), script={self.MAP: answer})
        await world.visit()
        assert await world.states() == {self.MAP: state}
        if state == "pending":
            assert await self.pending(world) == {self.MAP: (0, "a.test")}, "it stays a sitemap"

    @pytest.mark.parametrize("body", ["", "<html>", "\0", "<urlset><url><loc>http://a.test/x"])
    async def test_a_sitemap_without_urls_is_settled_as_read(self, world: World, body: str) -> None:
        await world.open(new_url(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = page(body, "application/xml")
        await world.visit()
        assert await world.states() == {self.MAP: "read"}

    async def test_urls_that_are_too_deep_are_not_added(self, world: World) -> None:
        await world.open(new_url(self.MAP, sitemap_of="a.test"), max_depth=0)
        world.fetcher.script[self.MAP] = sitemap("urlset", "/1", "/2")
        await world.visit()
        assert await self.pending(world) == {}
        assert (await world.frontier.counts()).not_accepted == {"too-deep": 2}

    async def test_a_visit_that_is_cancelled_while_it_reads_a_sitemap_records_that(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reading = asyncio.Event()

        async def read_for_ever(*_: object, **__: object) -> None:
            reading.set()
            await asyncio.Event().wait()

        await world.open(new_url(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = sitemap("urlset", "/1")
        held = await world.claim()
        record, visit = world.start(held)
        monkeypatch.setattr(world.reader, "list_sitemap", read_for_ever)
        task = asyncio.ensure_future(visit.run())
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.undo()
        assert record.requests[-1].error == FailureKind.ABORTED
        await world.write(record)
        assert await world.states() == {self.MAP: "pending"}


class TestInflightLog:
    """Every request is in the in-flight log before it is sent."""

    async def test_a_line_is_written_before_and_after_each_request(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE, f"{A}/": page()})
        seen: list[list[tuple[str, str, int]]] = []

        async def look(request: Request) -> None:
            world.advance(3)
            seen.append(logged(world))

        world.fetcher.before_answer = look
        held = await world.claim()
        record, visit = world.start(held)
        await visit.run()
        read = (ROBOTS, "", 200)
        assert seen == [[(ROBOTS, "lost", 0)], [read, (f"{A}/", "lost", 0)]]
        assert logged(world) == [read, (f"{A}/", "", 200)]
        (lost,) = logged_visits(world)
        assert (lost.visit, lost.domain) == (held.lease.token, held.lease.domain)
        assert lost.robots == [NOTHING_PRIVATE.body]
        assert lost.earliest == world.harness.now() + 1000 * DELAY
        hashes = [row.content_hash for row in lost.rows]
        assert hashes[0] == fingerprint_bytes(NOTHING_PRIVATE.body)
        assert [(row.began, row.ended) for row in lost.rows] == [(row.began, row.ended) for row in record.requests]

    async def test_the_pause_that_an_answer_asks_for_is_logged_with_it(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": refused(503, ("Retry-After", "900"))})
        held = await world.claim()
        _, visit = world.start(held)
        await visit.run()
        (lost,) = logged_visits(world)
        assert lost.earliest == world.harness.now() + 900_000
        assert {row.delay_from for row in lost.rows} == {DelaySource.RETRY_AFTER}

    async def test_a_crawl_delay_is_logged_before_the_page_is_requested(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 500\n")
        seen: dict[str, list[float]] = {}

        async def look(request: Request) -> None:
            seen[request.url.text] = [row.delay for lost in logged_visits(world) for row in lost.rows]

        world.fetcher.before_answer = look
        await world.visit()
        assert seen == {ROBOTS: [DELAY], f"{A}/": [500.0, 500.0]}

    async def test_a_cancelled_request_is_logged_as_aborted(self, world: World) -> None:
        await world.open(f"{A}/")
        started = asyncio.Event()

        async def hang(request: Request) -> None:
            started.set()
            await asyncio.Event().wait()

        world.fetcher.before_answer = hang
        held = await world.claim()
        _, visit = world.start(held)
        task = asyncio.ensure_future(visit.run())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert logged(world) == [(ROBOTS, "aborted", 0)]

    async def test_without_a_log_no_request_is_made(self, world: World) -> None:
        await world.open(f"{A}/")
        world.log_folder.write_text("in the way")
        held = await world.claim()
        _, visit = world.start(held)
        with pytest.raises(StoreError):
            await visit.run()
        assert world.fetcher.requested == []


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


def tagged(answer: Fetched, *tags: str) -> Fetched:
    """Return a page with X-Robots-Tag headers."""
    head = answer.response
    more = [("X-Robots-Tag", tag) for tag in tags]
    return replace(answer, response=replace(head, headers=[*head.headers, *more]))


def sitemap(root: str, *urls: str) -> Fetched:
    """Return a sitemap; paths are relative to a.test."""
    full = [url if "://" in url else A + url for url in urls]
    entries = "".join(f"<x><loc>{url}</loc></x>" for url in full)
    return page(f"<?xml version='1.0'?><{root}>{entries}</{root}>", "application/xml")


def logged_visits(world: World) -> list[LostVisit]:
    """Return the visits that the next start would find if this process were killed now."""
    paths = [path for _, path in inflight_files(world.log_folder)]
    return lost_visits(1, paths, DELAY)


def logged(world: World) -> list[tuple[str, str, int]]:
    rows = [row for lost in logged_visits(world) for row in lost.rows]
    return [(row.url, row.error, row.status) for row in rows]


class TestEnds:
    """Visits that end early."""

    async def test_no_request_starts_after_the_deadline(self, world: World) -> None:
        await world.open(f"{A}/")
        held = await world.claim()
        world.advance(VISIT_BUDGET - 0.1)
        record, visit = world.start(held)
        await visit.run()
        assert world.fetcher.requested == [] and not record.requested
        await world.write(record)
        assert await world.states() == {f"{A}/": "pending"}

    async def test_a_visit_ends_when_its_time_is_up(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect("/b")})

        async def slowly(request: Request) -> None:
            world.advance(VISIT_BUDGET / 2 - 0.2)

        world.fetcher.before_answer = slowly
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert world.fetcher.requests[1].timeout == pytest.approx(VISIT_BUDGET / 2 + 0.2)
        assert record.requested
        assert await world.states() == {f"{A}/": "redirected", f"{A}/b": "pending"}

    async def test_the_delay_counts_from_the_end_of_the_last_request(self, world: World) -> None:
        await world.open(f"{A}/", f"{A}/2", script={f"{A}/": page()})

        async def slowly(request: Request) -> None:
            world.advance(5)

        world.fetcher.before_answer = slowly
        held = await world.claim()
        record, visit = world.start(held)
        await visit.run()
        world.advance(30)
        await world.write(record)
        assert await world.frontier.next_due() == DELAY - 30

    async def test_a_shutdown_ends_the_visit(self, world: World) -> None:
        await world.open(f"{A}/")

        async def stop(request: Request) -> None:
            world.stop()

        world.fetcher.before_answer = stop
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert record.requested and len(record.origins(world.now())) == 1, "the robots.txt is kept"
        assert await world.states() == {f"{A}/": "pending"}
        assert await world.frontier.next_due() == DELAY

    async def test_after_a_shutdown_no_request_is_made(self, world: World) -> None:
        await world.open(f"{A}/")
        world.stop()
        record = await world.visit()
        assert not record.requested
        assert await world.frontier.next_due() == 0.0

    @pytest.mark.parametrize("during", ["robots.txt", ""])
    async def test_a_cancelled_request_counts_as_made(self, world: World, during: str) -> None:
        await world.open(f"{A}/")
        started = asyncio.Event()

        async def hang(request: Request) -> None:
            if request.url.text == f"{A}/{during}":
                started.set()
                await asyncio.Event().wait()

        world.fetcher.before_answer = hang
        held = await world.claim()
        record, visit = world.start(held)
        task = asyncio.ensure_future(visit.run())
        await started.wait()
        world.advance(20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert record.requested and record.finished_at == world.now()
        assert record.requests[-1].error == "aborted"
        await world.write(record)
        assert await world.states() == {f"{A}/": "pending"}
        assert await world.frontier.next_due() == DELAY

    async def test_a_request_that_raises_counts_as_made(self, world: World) -> None:
        await world.open(f"{A}/")

        async def break_down(request: Request) -> None:
            raise RuntimeError("broken")

        world.fetcher.before_answer = break_down
        held = await world.claim()
        record, visit = world.start(held)
        with pytest.raises(RuntimeError):
            await visit.run()
        assert record.requested
