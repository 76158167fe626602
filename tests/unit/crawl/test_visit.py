"""One visit to one domain: a real frontier, a scripted web in the network's place, a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rove.crawl.inflight_log import lost_visits, spool_files
from rove.errors import StoreError
from rove.fetch.contract import Request
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
    assume_https,
    crawl_url,
    failed,
    offered,
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
TROUBLE_OF_THEIRS = (TEMPORARY_FAILURES | UNREACHABLE_FAILURES) - {FailureKind.BUSY}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


class LeftOpen:
    """A connection that a request leaves open, before its answer or what happens instead."""

    def __init__(self, *, then: BaseException | None = None) -> None:
        self.closed = 0
        self._then = then

    async def __call__(self, request: Request) -> None:
        assert request.line is not None
        request.line.kept = self
        if self._then is not None:
            raise self._then

    def close(self) -> None:
        self.closed += 1


class TestRobots:
    """robots.txt before the first page of an origin."""

    async def test_robots_txt_is_asked_first_then_the_page(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        journal = await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert [row.kind for row in journal.requests] == [RequestKind.ROBOTS, RequestKind.PAGE]
        assert await world.states() == {f"{A}/": "done"}

    async def test_what_is_asked_for_is_bounded(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        await world.visit()
        for_robots, for_page = world.fetcher.requests
        assert for_robots.max_bytes == MAX_ROBOTS_BYTES and for_robots.accept_types is None
        assert for_page.max_bytes == 1 << 20
        assert for_page.accept_types == {"text/html", "application/xhtml+xml", "text/plain"}
        assert for_page.timeout == pytest.approx(VISIT_BUDGET)

    async def test_only_a_robots_txt_leaves_its_connection_open(self, world: World) -> None:
        script = {f"{A}/": redirect("/2"), f"{A}/2": page()}
        await world.open(f"{A}/", script=script)
        await world.visit()
        requests = world.fetcher.requests
        assert [request.more_follows for request in requests] == [True, False, False]
        assert len({id(request.line) for request in requests}) == 1

    @pytest.mark.parametrize("rules", [NOTHING_ALLOWED, refused(503), failed()])
    async def test_a_visit_leaves_no_connection_open(self, world: World, rules: Outcome) -> None:
        left_open = LeftOpen()
        await world.open(f"{A}/", script={ROBOTS: rules})
        world.fetcher.before_answer = left_open
        await world.visit()
        assert left_open.closed == 1

    async def test_nor_does_one_that_is_cut_short(self, world: World) -> None:
        left_open = LeftOpen(then=asyncio.CancelledError())
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE})
        world.fetcher.before_answer = left_open
        with pytest.raises(asyncio.CancelledError):
            await world.visit()
        assert left_open.closed == 1

    async def test_what_is_doubtful_about_an_answer_is_in_its_row(self, world: World) -> None:
        cut = page()
        cut = replace(cut, response=replace(cut.response, marks=("tls-expired", "body-cut")))
        strict = replace(failed(FailureKind.TLS), marks=("tls-expired",))
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": cut, f"{A}/2": strict})
        rows = (await world.visit()).requests
        assert [row.marks for row in rows] == [(), ("tls-expired", "body-cut")]
        _, journal = await world.visit_next()
        assert [row.marks for row in journal.requests] == [("tls-expired",)]
        assert (await world.frontier.counts()).marks == {"tls-expired": 2, "body-cut": 1}

    async def test_a_robots_txt_that_is_known_is_not_asked_again(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})
        await world.visit()
        await world.visit_next()
        assert world.fetcher.asked == [ROBOTS, f"{A}/1", f"{A}/2"]

    @pytest.mark.parametrize(
        ("age", "asked_again"), [(86_400 - 1, False), (86_400, True), (90_000, True)]
    )
    async def test_it_is_asked_again_after_a_day(
        self, world: World, age: float, asked_again: bool
    ) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})
        await world.visit()
        world.advance(age)
        await world.visit()
        assert world.fetcher.asked.count(ROBOTS) == 1 + asked_again
        assert world.fetcher.asked[-1] == f"{A}/2"

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
            *(failed(kind) for kind in sorted(TROUBLE_OF_THEIRS)),
        ],
    )
    async def test_when_it_cannot_be_had_nothing_is_fetched(
        self, world: World, answer: Outcome
    ) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: answer})
        journal = await world.visit()
        assert world.fetcher.asked == [ROBOTS]
        assert journal.asked
        assert await world.states() == {f"{A}/1": "pending", f"{A}/2": "pending"}
        assert await world.frontier.next_due() == pytest.approx(2 * DELAY)

    async def test_an_origin_that_cannot_be_had_is_held_for_longer_and_longer(
        self, world: World
    ) -> None:
        await world.open(f"{A}/", script={ROBOTS: [refused(500)] * 5 + [refused(404)]})
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        waits = []
        for _ in range(5):
            due = await world.frontier.next_due()
            assert (due is None) is (len(waits) >= 2), "after three failures nobody waits for it"
            waits.append((await world.visit_next())[0])
        assert waits == [2 * DELAY, 8 * DELAY, 32 * DELAY, 128 * DELAY, 512 * DELAY]
        assert await world.states() == {f"{A}/": "done"}
        ((failures,),) = await world.rows("SELECT failures FROM origin")
        assert failures == 0

    async def test_while_an_origin_is_held_nothing_is_asked_of_it(self, world: World) -> None:
        await world.open(f"{A}/1", script={ROBOTS: [refused(500), refused(404)]})
        await world.visit()
        world.advance(DELAY)
        await world.frontier.add([offered(f"{A}/2", depth=1)])
        journal = await world.visit()
        assert not journal.asked
        assert world.fetcher.asked == [ROBOTS]
        assert await world.frontier.next_due() == pytest.approx(DELAY, abs=1.0)

    @pytest.mark.parametrize(
        ("answer", "wait"),
        [(refused(500), DELAY), (refused(503), 2 * DELAY), (failed(FailureKind.RESET), DELAY)],
    )
    async def test_a_held_origin_does_not_block_its_domain(
        self, world: World, answer: Outcome, wait: float
    ) -> None:
        other = "http://www.a.test"
        await world.open(f"{A}/", f"{other}/", script={ROBOTS: answer, f"{other}/": page()})
        await world.visit()
        assert world.fetcher.asked == [ROBOTS], "another origin waits for its turn"
        waited, _ = await world.visit_next()
        assert waited == wait
        assert world.fetcher.asked == [ROBOTS, f"{other}/robots.txt", f"{other}/"]
        assert await world.states() == {f"{A}/": "pending", f"{other}/": "done"}

    @pytest.mark.parametrize(
        "kind", [FailureKind.DNS_NOT_FOUND, FailureKind.ADDRESS_REFUSED, FailureKind.ENCODING]
    )
    async def test_what_cannot_be_mended_fails_at_once(
        self, world: World, kind: FailureKind
    ) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: failed(kind)})
        await world.visit()
        assert await world.states() == {f"{A}/1": "failed", f"{A}/2": "failed"}
        assert await world.reason(f"{A}/1") == kind.value

    async def test_robots_txt_may_lead_over_other_hosts(self, world: World) -> None:
        chain = [f"http://h{i}.test/r" for i in range(5)]
        script: dict[str, Outcome] = {
            url: redirect(target) for url, target in zip([ROBOTS, *chain], chain, strict=False)
        }
        await world.open(f"{A}/private", f"{A}/open")
        world.fetcher.script |= script | {chain[-1]: NOTHING_PRIVATE, f"{A}/open": page()}
        journal = await world.visit()
        assert world.fetcher.asked == [ROBOTS, *chain, f"{A}/open"]
        assert await world.states() == {f"{A}/private": "blocked", f"{A}/open": "done"}
        assert journal.requests[0].other_domain is None
        assert journal.requests[1].domain == fingerprint("a.test"), "the visit is to this one"
        assert journal.requests[1].other_domain == fingerprint("h0.test")
        assert len(await world.rows("SELECT * FROM domain")) == 1, "no visit to those domains"

    async def test_the_sixth_redirect_means_no_rules(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: redirect("/robots.txt"), f"{A}/": page()})
        await world.visit()
        assert world.fetcher.asked == [ROBOTS] * 6 + [f"{A}/"]
        assert await world.states() == {f"{A}/": "done"}

    async def test_robots_txt_never_leads_to_an_excluded_host(self, world: World) -> None:
        """Exclusions are domains never to be touched, redirect hops included."""
        other = "http://www.x.test/robots.txt"
        script = {ROBOTS: redirect(other), other: NOTHING_ALLOWED, f"{A}/": page()}
        await world.open(f"{A}/", script=script, exclude=["x.test"])
        await world.visit()
        assert other not in world.fetcher.asked

    @pytest.mark.parametrize("host", ["a.test", "b.test"])
    async def test_robots_txt_never_leads_to_an_odd_port(self, world: World, host: str) -> None:
        script = {ROBOTS: redirect(f"http://{host}:6379/robots.txt")}
        await world.open(f"{A}/", script=script)
        await world.visit()
        assert world.fetcher.asked == [ROBOTS]
        assert await world.states() == {f"{A}/": "pending"}

    async def test_a_longer_crawl_delay_is_in_the_frontier_before_the_page_is_asked(
        self, world: World
    ) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 500\n")
        known: dict[str, tuple[int, int, int]] = {}

        async def look(request: Request) -> None:
            rows = await world.rows("SELECT crawl_delay, ready_at, not_before FROM domain")
            known[request.url] = rows[0]

        world.fetcher.before_answer = look
        claimed_at = world.harness._now
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

    async def test_a_crawl_delay_holds_while_robots_txt_cannot_be_had(self, world: World) -> None:
        """What an origin asked for is not forgotten because its server is in trouble."""
        answers = [robots("User-agent: *\nCrawl-delay: 5000\n"), refused(503)]
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: answers, f"{A}/1": page()})
        await world.visit()
        world.advance(86_400)
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/1", ROBOTS]
        ((crawl_delay,),) = await world.rows("SELECT crawl_delay FROM domain")
        assert crawl_delay == 5_000_000

    async def test_a_crawl_delay_over_a_day_blocks_the_whole_domain(self, world: World) -> None:
        """Whoever asks for that does not want to be crawled; and all of the domain shares one clock."""
        other = "http://www.a.test"
        urls = [f"{A}/1", f"{A}/2", f"{other}/"]
        await world.open(*urls, script={f"{other}/robots.txt": refused(404)})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 86401\n")
        await world.visit()
        assert await world.frontier.next_due() is None, "a crawl does not stay up for it"
        world.advance(86_401)
        await world.visit()
        assert world.fetcher.asked == [ROBOTS]
        assert await world.states() == dict.fromkeys(urls, "blocked")
        assert await world.reason(f"{A}/1") == "Crawl-delay over a day"
        assert await world.reason(f"{other}/") == "Crawl-delay over a day"

    async def test_a_crawl_delay_of_a_day_is_kept_to(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 86400\n")
        await world.visit()
        assert await world.frontier.next_due() == 86_400.0
        await world.visit_next()
        assert world.fetcher.pages_asked == [f"{A}/1", f"{A}/2"]


class TestBlocked:
    """URLs that may not be fetched."""

    async def test_they_are_passed_over_without_a_request(self, world: World) -> None:
        urls = [f"{A}/private/{i}" for i in range(9)] + [f"{A}/open"]
        await world.open(*urls, script={ROBOTS: NOTHING_PRIVATE, f"{A}/open": page()})
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/open"]
        states = await world.states()
        assert states.pop(f"{A}/open") == "done"
        assert set(states.values()) == {"blocked"}
        assert await world.reason(f"{A}/private/0") == "robots.txt"

    async def test_a_visit_ends_with_its_first_page(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": refused(404)})
        await world.visit()
        assert await world.states() == {f"{A}/1": "failed", f"{A}/2": "pending"}

    async def test_a_domain_of_which_all_is_blocked_is_asked_nothing(self, world: World) -> None:
        await world.open(*(f"{A}/{i}" for i in range(20)))
        await world.keep_origin(A, "User-agent: *\nDisallow: /")
        journal = await world.visit()
        assert not journal.asked and world.fetcher.asked == []
        assert set((await world.states()).values()) == {"blocked"}
        await world.frontier.add([offered(f"{A}/new")])
        assert await world.frontier.next_due() == 0.0, "it costs no delay"

    async def test_ten_thousand_forbidden_urls_cost_a_handful_of_leases(self, world: World) -> None:
        await world.open(*(f"{A}/private/{i}" for i in range(10_000)), f"{A}/open")
        await world.keep_origin(A, "User-agent: *\nDisallow: /private\n")
        world.fetcher.script[f"{A}/open"] = page()
        start, leases = world.now(), 0
        while world.fetcher.asked == []:
            await world.visit()
            leases += 1
        assert leases <= 4
        assert world.now() == start, "none of them had to wait"
        counts = await world.counters()
        assert (counts["urls.blocked"], counts["urls.done"]) == (10_000, 1)

    async def test_an_excluded_host_of_the_domain_is_blocked(self, world: World) -> None:
        other = "http://www.a.test/"
        await world.open(other, f"{A}/", script={f"{A}/": page()}, exclude=["www.a.test"])
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert await world.states() == {other: "blocked", f"{A}/": "done"}
        assert await world.reason(other) == "excluded"


class TestRedirects:
    """Hops inside the domain, and those that leave it."""

    @pytest.mark.parametrize("hops", range(1, DEFAULT_REDIRECT_HOPS + 1))
    async def test_up_to_three_hops_are_followed(self, world: World, hops: int) -> None:
        urls = [f"{A}/{i}" for i in range(hops + 1)]
        await world.open(urls[0], script={u: redirect(f"/{i + 1}") for i, u in enumerate(urls)})
        world.fetcher.script[urls[-1]] = page()
        await world.visit()
        assert world.fetcher.pages_asked == urls
        states = await world.states()
        assert [states[u] for u in urls] == ["redirected"] * hops + ["done"]
        assert await world.reason(urls[0]) == urls[1]

    async def test_the_fourth_hop_is_left_to_the_frontier(self, world: World) -> None:
        urls = [f"{A}/{i}" for i in range(6)]
        await world.open(urls[0], script={u: redirect(f"/{i + 1}") for i, u in enumerate(urls)})
        world.fetcher.script[urls[5]] = page()
        await world.visit()
        assert world.fetcher.pages_asked == urls[:4]
        assert (await world.states())[urls[4]] == "pending"
        waited, _ = await world.visit_next()
        assert waited == DELAY
        assert world.fetcher.pages_asked == urls
        assert (await world.states())[urls[5]] == "done"

    async def test_without_hops_every_redirect_waits_for_its_turn(self, world: World) -> None:
        world.redirect_hops = 0
        await world.open(f"{A}/0", script={f"{A}/0": redirect("/1"), f"{A}/1": page()})
        await world.visit()
        assert world.fetcher.pages_asked == [f"{A}/0"]
        assert await world.states() == {f"{A}/0": "redirected", f"{A}/1": "pending"}
        waited, _ = await world.visit_next()
        assert waited == DELAY
        assert await world.states() == {f"{A}/0": "redirected", f"{A}/1": "done"}

    async def test_without_hops_robots_txt_still_leads_on(self, world: World) -> None:
        world.redirect_hops = 0
        await world.open(f"{A}/private", script={ROBOTS: redirect("/r"), f"{A}/r": NOTHING_PRIVATE})
        await world.visit()
        assert await world.states() == {f"{A}/private": "blocked"}

    async def test_a_visit_never_makes_more_than_eight_requests(self, world: World) -> None:
        """Five hops to robots.txt, the page and one of its hops; the rest waits."""
        await world.open(f"{A}/0", script={f"{A}/{i}": redirect(f"/{i + 1}") for i in range(9)})
        world.fetcher.script |= {f"{A}/r{i}": redirect(f"/r{i + 1}") for i in range(1, 5)}
        world.fetcher.script |= {ROBOTS: redirect("/r1"), f"{A}/r5": refused(404)}
        journal = await world.visit()
        assert len(world.fetcher.asked) == len(journal.requests) == MAX_REQUESTS_PER_VISIT == 8
        assert world.fetcher.asked[-2:] == [f"{A}/0", f"{A}/1"]
        assert (await world.states())[f"{A}/2"] == "pending"

    async def test_a_hop_whose_robots_txt_uses_up_the_requests_stays_pending(
        self, world: World
    ) -> None:
        other = "http://www.a.test"
        await world.open(f"{A}/", script={f"{A}/": redirect(f"{other}/")})
        world.fetcher.script[f"{other}/robots.txt"] = redirect("/robots.txt")
        journal = await world.visit()
        assert len(journal.requests) == 8
        assert await world.states() == {f"{A}/": "redirected", f"{other}/": "pending"}

    async def test_a_hop_to_another_origin_of_the_domain_asks_its_robots_txt(
        self, world: World
    ) -> None:
        other = "https://www.a.test"
        await world.open(f"{A}/", script={f"{A}/": redirect(f"{other}/"), f"{other}/": page()})
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/", f"{other}/robots.txt", f"{other}/"]
        assert await world.states() == {f"{A}/": "redirected", f"{other}/": "done"}
        assert len(await world.rows("SELECT * FROM origin")) == 2

    async def test_a_hop_that_robots_txt_forbids_is_not_followed(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE, f"{A}/": redirect("/private")})
        await world.visit()
        assert world.fetcher.pages_asked == [f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected", f"{A}/private": "blocked"}

    async def test_a_hop_whose_robots_txt_cannot_be_had_waits(self, world: World) -> None:
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
    async def test_a_hop_to_what_is_settled_is_not_fetched_again(
        self, world: World, known_as: str
    ) -> None:
        first = {
            "done": page(),
            "failed": refused(404),
            "redirected": redirect("http://b.test/"),
            "blocked": page('<meta name="robots" content="noindex">'),
        }[known_as]
        await world.open(f"{A}/known", script={f"{A}/known": [first]})
        await world.visit()
        await world.frontier.add([offered(f"{A}/")])
        world.fetcher.script[f"{A}/"] = redirect("/known")
        world.advance(DELAY)
        lease = next(lease for lease in await world.frontier.claim(9) if lease.name == "a.test")
        journal, visit = await world.start(world.timed(lease))
        await visit.run()
        await world.write_down(journal)
        assert world.fetcher.pages_asked == [f"{A}/known", f"{A}/"]
        states = await world.states()
        assert (states[f"{A}/"], states[f"{A}/known"]) == ("redirected", known_as)

    async def test_a_hop_to_what_is_pending_is_followed(self, world: World) -> None:
        await world.open(f"{A}/", offered(f"{A}/b", depth=5))
        world.fetcher.script |= {f"{A}/": redirect("/b"), f"{A}/b": page()}
        await world.visit()
        assert await world.states() == {f"{A}/": "redirected", f"{A}/b": "done"}

    @pytest.mark.parametrize("location", ["/", f"{A}/", "#x", "?", "", f"{A}:80/#y"])
    async def test_a_redirect_to_itself_is_a_loop(self, world: World, location: str) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect(location)})
        await world.visit()
        assert world.fetcher.pages_asked == [f"{A}/"]
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "redirect loop"

    async def test_a_loop_over_hops_ends(self, world: World) -> None:
        await world.open(f"{A}/a", script={f"{A}/a": redirect("/b"), f"{A}/b": redirect("/a")})
        await world.visit()
        assert world.fetcher.pages_asked == [f"{A}/a", f"{A}/b"]
        assert await world.states() == {f"{A}/a": "redirected", f"{A}/b": "failed"}
        assert await world.reason(f"{A}/b") == "redirect loop"

    async def test_a_loop_over_visits_ends(self, world: World) -> None:
        urls = [f"{A}/{i}" for i in range(6)]
        await world.open(
            urls[0], script={u: redirect(f"/{(i + 1) % 6}") for i, u in enumerate(urls)}
        )
        await world.visit()
        await world.visit_next()
        assert world.fetcher.pages_asked == urls
        assert set((await world.states()).values()) == {"redirected"}
        assert await world.frontier.next_due() is None

    async def test_a_redirect_to_a_url_blocked_in_this_visit_is_no_loop(self, world: World) -> None:
        script = {ROBOTS: NOTHING_PRIVATE, f"{A}/b": redirect("/private")}
        await world.open(f"{A}/private", f"{A}/b", script=script)
        await world.visit()
        assert await world.states() == {f"{A}/private": "blocked", f"{A}/b": "redirected"}

    async def test_a_redirect_that_leaves_the_domain_waits_for_that_domain(
        self, world: World
    ) -> None:
        await world.open(offered(f"{A}/", depth=3), script={f"{A}/": redirect("http://b.test/x")})
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected", "http://b.test/x": "pending"}
        rows = await world.rows("SELECT depth, hops FROM url WHERE url = 'http://b.test/x'")
        assert rows == [(3, 1)], "a redirect is no link: the depth stays"
        names = await world.rows("SELECT name, pending FROM domain ORDER BY name")
        assert names == [("a.test", 0), ("b.test", 1)]

    async def test_a_chain_of_redirects_is_given_up_after_twenty(self, world: World) -> None:
        await world.open(f"{A}/0", script={f"{A}/{i}": redirect(f"/{i + 1}") for i in range(30)})
        await world.visit()
        while await world.frontier.next_due() is not None:
            await world.visit_next()
        assert world.fetcher.pages_asked == [f"{A}/{i}" for i in range(MAX_REDIRECT_CHAIN + 1)]
        assert (await world.frontier.counts()).not_accepted == {"too-many-redirects": 1}
        assert set((await world.states()).values()) == {"redirected"}

    async def test_a_link_begins_a_new_chain(self, world: World) -> None:
        await world.open(offered(f"{A}/", hops=MAX_REDIRECT_CHAIN))
        world.fetcher.script[f"{A}/"] = page_with_links("/b")
        await world.visit()
        assert await world.rows("SELECT hops FROM url WHERE url = ?", f"{A}/b") == [(0,)]

    @pytest.mark.parametrize("host", ["www.a.test", "b.test", "x.b.test"])
    async def test_a_redirect_to_an_excluded_host_is_not_taken(
        self, world: World, host: str
    ) -> None:
        script = {f"{A}/": redirect(f"http://{host}/")}
        await world.open(f"{A}/", script=script, exclude=["www.a.test", "b.test"])
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected"}
        assert (await world.frontier.counts()).not_accepted == {"excluded": 1}

    @pytest.mark.parametrize("target", ["http://a.test:6379/", "http://b.test:25/"])
    async def test_a_redirect_to_an_odd_port_is_not_taken(self, world: World, target: str) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect(target)})
        await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected"}
        assert (await world.frontier.counts()).not_accepted == {"port": 1}

    @pytest.mark.parametrize("location", ["ftp://a.test/", "mailto:x@a.test", "/" + "x" * 3000])
    async def test_a_redirect_to_no_web_address_is_a_failure(
        self, world: World, location: str
    ) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect(location)})
        await world.visit()
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "redirect to no web address"


class TestPages:
    """What becomes of a page."""

    async def test_a_page_is_noted_with_its_title_text_and_links(self, world: World) -> None:
        html = "<title>A title</title><p>Some text.<a href=/b>b</a><a href=http://c.test/>c</a>"
        await world.open(offered(f"{A}/", depth=2), script={f"{A}/": page(html)})
        journal = await world.visit()
        (kept,) = journal.pages
        assert kept.url == f"{A}/" and b"Some text." in kept.text
        assert kept.source is None, "the answer is not kept where only texts are"
        row = journal.requests[-1]
        assert (row.title, row.status, row.size) == ("A title", 200, len(html))
        assert row.content_hash == fingerprint_bytes(kept.text)
        assert kept.fetched_at == row.started
        rows = await world.rows(
            "SELECT url, depth, hops, bare FROM url WHERE depth = 3 ORDER BY url"
        )
        assert rows == [(f"{A}/b", 3, 0, 0), ("http://c.test/", 3, 0, 0)]

    async def test_the_answer_is_kept_where_it_is_wanted(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page("<p>raw")})
        world.keep_raw = True
        (kept,) = (await world.visit()).pages
        assert kept.source is not None and kept.source.body == b"<p>raw"

    async def test_plain_text_is_a_page_without_links(self, world: World) -> None:
        text = "Some <a href=/b>text</a>\nhttp://c.test/"
        await world.open(f"{A}/", script={f"{A}/": page(text, "text/plain")})
        (kept,) = (await world.visit()).pages
        assert kept.text.decode() == text
        assert await world.states() == {f"{A}/": "done"}

    async def test_what_is_cut_is_marked(self, world: World) -> None:
        world.reader = PageReader(max_links=1)
        await world.open(f"{A}/", script={f"{A}/": page_with_links("/b", "/c")})
        journal = await world.visit()
        assert journal.requests[-1].marks == ("links-cut",)
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}
        assert (await world.counters())["marks.links-cut"] == 1

    async def test_a_long_page_is_read_apart(self, world: World) -> None:
        html = "<title>Long</title>" + "<p>Some text.<a href=/b>b</a>" * 5_000
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        journal = await world.visit()
        await world.reader.close()
        assert journal.requests[-1].title == "Long" and journal.requests[-1].marks == ()
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}

    async def test_nothing_is_taken_from_a_page_that_is_too_complex(self, world: World) -> None:
        world.reader = PageReader(max_cpu_seconds=0.5)
        html = "<a href=/b>b</a>" + "<dl><dt>" * 100_000
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        journal = await world.visit()
        assert journal.pages == [] and journal.requests[-1].marks == ("html-too-complex",)
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "too complex to be read"

    async def test_a_page_that_could_not_be_read_in_time_is_tried_again(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def busy(*_: object, **__: object) -> Unread:
            return Unread.BUSY

        monkeypatch.setattr(world.reader, "read_apart", busy)
        await world.open(f"{A}/", script={f"{A}/": page("<br>" * 5_000)})
        journal = await world.visit()
        assert journal.pages == [] and journal.requests[-1].marks == ()
        assert journal.requests[-1].error == "busy", "the ledger says why it is asked again"
        assert await world.states() == {f"{A}/": "pending"}

    async def test_links_are_relative_to_where_the_page_was(self, world: World) -> None:
        await world.open(f"{A}/x", script={f"{A}/x": redirect("/dir/")})
        world.fetcher.script[f"{A}/dir/"] = page_with_links("b")
        await world.visit()
        assert (await world.states())[f"{A}/dir/b"] == "pending"

    async def test_noindex_keeps_nothing_and_follows_links(self, world: World) -> None:
        html = '<meta name="robots" content="noindex"><a href=/b>b</a>'
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        journal = await world.visit()
        assert journal.pages == []
        assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending"}
        assert await world.reason(f"{A}/") == "noindex"

    async def test_nofollow_keeps_the_page_and_follows_nothing(self, world: World) -> None:
        html = '<meta name="robots" content="nofollow"><p>Text<a href=/b>b</a>'
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        journal = await world.visit()
        assert len(journal.pages) == 1
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
    async def test_what_is_no_page_fails_at_once(
        self, world: World, answer: Outcome, reason: str
    ) -> None:
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == reason
        assert len(reason) <= 100

    @pytest.mark.parametrize("answer", [refused(500), refused(503), refused(429), refused(408)])
    async def test_a_temporary_failure_is_tried_again_three_times(
        self, world: World, answer: Outcome
    ) -> None:
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        waits = []
        for attempt in (1, 2, 3):
            assert await world.rows("SELECT state, attempts FROM url") == [(0, attempt)]
            waits.append((await world.visit_next())[0])
        assert waits == [2 * DELAY, 8 * DELAY, 32 * DELAY]
        assert await world.states() == {f"{A}/": "failed"}
        assert (await world.reason(f"{A}/")).startswith("status ")
        assert len(world.fetcher.pages_asked) == 4

    async def test_a_page_that_comes_back_is_taken(self, world: World) -> None:
        answers = [refused(503), failed(FailureKind.RESET), page()]
        await world.open(f"{A}/", script={f"{A}/": answers})
        await world.visit()
        await world.visit_next()
        await world.visit_next()
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_url_to_be_tried_again_waits_behind_the_others(self, world: World) -> None:
        await world.open(f"{A}/bad", offered(f"{A}/good", depth=9))
        world.fetcher.script |= {f"{A}/bad": [refused(500), page()], f"{A}/good": page()}
        await world.visit()
        await world.visit_next()
        await world.visit_next()
        assert world.fetcher.pages_asked == [f"{A}/bad", f"{A}/good", f"{A}/bad"]

    async def test_an_address_that_stays_busy_with_us_is_nobodys_failure(
        self, world: World
    ) -> None:
        await world.open(f"{A}/", f"{A}/2", script={f"{A}/": failed(FailureKind.BUSY)})
        journal = await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert journal.verdict(DELAY).pace.failures == 0
        assert await world.states() == {f"{A}/": "pending", f"{A}/2": "pending"}
        ((attempts,),) = await world.rows("SELECT max(attempts) FROM url")
        assert attempts == 0
        assert await world.frontier.next_due() == DELAY

    @pytest.mark.parametrize(
        "kind", sorted(set(FailureKind) - {FailureKind.ABORTED, FailureKind.BUSY})
    )
    async def test_each_way_to_get_no_answer(self, world: World, kind: FailureKind) -> None:
        await world.open(f"{A}/", script={f"{A}/": failed(kind)})
        journal = await world.visit()
        assert journal.requests[-1].error == kind.value
        if kind in TEMPORARY_FAILURES:
            assert await world.states() == {f"{A}/": "pending"}
            assert await world.frontier.next_due() == 2 * DELAY
        else:
            assert await world.states() == {f"{A}/": "failed"}
            assert await world.reason(f"{A}/") == kind.value

    async def test_what_lies_too_deep_is_counted(self, world: World) -> None:
        links = page_with_links("/1", "/2", "http://b.test/")
        await world.open(offered(f"{A}/", depth=1), script={f"{A}/": links}, max_depth=1)
        await world.visit()
        assert await world.states() == {f"{A}/": "done"}
        assert (await world.frontier.counts()).not_accepted == {"too-deep": 3}

    async def test_links_to_odd_ports_are_counted(self, world: World) -> None:
        links = page_with_links("http://b.test:8080/", "http://b.test:6379/", f"{A}:9999/")
        await world.open(f"{A}/", script={f"{A}/": links})
        await world.visit()
        assert set(await world.states()) == {f"{A}/", "http://b.test:8080/"}
        assert (await world.frontier.counts()).not_accepted == {"port": 2}

    async def test_the_port_that_a_seed_names_is_followed_on_its_host(self, world: World) -> None:
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
        """What is settled must be what was claimed, or it is fetched again for ever."""
        await world.open(f"{A}/", script={f"{A}/": page_with_links(href)})
        await world.visit()
        (link,) = set(await world.states()) - {f"{A}/"}
        world.fetcher.script |= {link: page(), crawl_url(link).text: page()}
        await world.visit_next()
        assert await world.states() == {f"{A}/": "done", link: "done"}

    async def test_an_address_that_is_none_does_not_spoil_its_page(self, world: World) -> None:
        links = page_with_links("/b", "http://foo.1../", "/c")
        await world.open(f"{A}/", script={f"{A}/": links})
        await world.visit()
        assert set(await world.states()) == {f"{A}/", f"{A}/b", f"{A}/c"}


class TestBareDomains:
    """https is a guess; http will do."""

    HTTPS, HTTP = "https://a.test/", "http://a.test/"
    HTTPS_ROBOTS, HTTP_ROBOTS = "https://a.test/robots.txt", "http://a.test/robots.txt"

    async def test_https_that_answers_is_taken(self, world: World) -> None:
        await world.open(assume_https("a.test"), script={self.HTTPS: page()})
        await world.visit()
        assert world.fetcher.asked == [self.HTTPS_ROBOTS, self.HTTPS]
        assert await world.states() == {self.HTTPS: "done"}

    @pytest.mark.parametrize("kind", sorted(UNREACHABLE_FAILURES))
    async def test_http_is_asked_in_the_same_visit_if_https_cannot_be_reached(
        self, world: World, kind: FailureKind
    ) -> None:
        script = {self.HTTPS_ROBOTS: failed(kind), self.HTTP: page_with_links("/b")}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        assert world.fetcher.asked == [self.HTTPS_ROBOTS, self.HTTP_ROBOTS, self.HTTP]
        assert await world.states() == {
            self.HTTPS: "redirected",
            self.HTTP: "done",
            "http://a.test/b": "pending",
        }
        assert await world.reason(self.HTTPS) == self.HTTP

    async def test_http_is_asked_if_the_page_cannot_be_reached(self, world: World) -> None:
        script = {self.HTTPS: failed(FailureKind.RESET), self.HTTP: page()}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        expected = [self.HTTPS_ROBOTS, self.HTTPS, self.HTTP_ROBOTS, self.HTTP]
        assert world.fetcher.asked == expected
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "done"}

    async def test_a_url_that_was_given_with_its_scheme_is_no_guess(self, world: World) -> None:
        await world.open(self.HTTPS, script={self.HTTPS_ROBOTS: failed()})
        await world.visit()
        assert world.fetcher.asked == [self.HTTPS_ROBOTS]
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
    async def test_https_that_is_spoken_there_is_no_reason_for_http(
        self, world: World, answer: Outcome
    ) -> None:
        await world.open(assume_https("a.test"), script={self.HTTPS: answer})
        await world.visit()
        assert world.fetcher.asked == [self.HTTPS_ROBOTS, self.HTTPS]
        assert list(await world.states()) == [self.HTTPS]

    @pytest.mark.parametrize(
        "answer",
        [refused(503), failed(FailureKind.DNS_NOT_FOUND), failed(FailureKind.TIMEOUT_TOTAL)],
    )
    async def test_nor_is_a_robots_txt_that_cannot_be_had_for_other_reasons(
        self, world: World, answer: Outcome
    ) -> None:
        await world.open(assume_https("a.test"), script={self.HTTPS_ROBOTS: answer})
        await world.visit()
        assert world.fetcher.asked == [self.HTTPS_ROBOTS]

    async def test_if_neither_answers_only_the_guess_exists(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP_ROBOTS: failed()}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        assert world.fetcher.asked == [self.HTTPS_ROBOTS, self.HTTP_ROBOTS]
        assert await world.rows("SELECT url, state, bare FROM url") == [(self.HTTPS, 0, 1)]
        waited, _ = await world.visit_next()
        assert waited == 2 * DELAY
        assert world.fetcher.asked[2:] == [self.HTTPS_ROBOTS, self.HTTP_ROBOTS], "again as a guess"
        world.fetcher.script |= {self.HTTPS_ROBOTS: refused(404), self.HTTPS: page()}
        await world.visit_next()
        assert await world.states() == {self.HTTPS: "done"}

    async def test_two_that_never_answer_are_not_waited_for(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP_ROBOTS: failed()}
        await world.open(assume_https("a.test"), script=script)
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
    async def test_the_http_url_has_the_outcome(
        self, world: World, answer: Outcome, state: str, reason: str
    ) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP: answer}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        states = await world.states()
        assert (states[self.HTTPS], states[self.HTTP]) == ("redirected", state)
        assert await world.reason(self.HTTP) == reason
        assert await world.reason(self.HTTPS) == self.HTTP

    async def test_http_that_robots_txt_forbids_is_blocked(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP_ROBOTS: NOTHING_ALLOWED}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "blocked"}

    async def test_http_may_lead_on_inside_the_domain(self, world: World) -> None:
        other = "http://www.a.test/"
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP: redirect(other), other: page()}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        assert await world.states() == {
            self.HTTPS: "redirected",
            self.HTTP: "redirected",
            other: "done",
        }

    async def test_http_that_is_done_is_not_fetched_again(self, world: World) -> None:
        await world.open(self.HTTP, script={self.HTTP: page()})
        await world.visit()
        await world.frontier.add([assume_https("a.test")])
        world.fetcher.script[self.HTTPS_ROBOTS] = failed()
        await world.visit_next()
        assert world.fetcher.asked[2:] == [self.HTTPS_ROBOTS]
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "done"}

    async def test_a_temporary_failure_of_http_is_tried_again_three_times(
        self, world: World
    ) -> None:
        script = {self.HTTPS: failed(), self.HTTP: refused(503)}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        for _ in range(20):
            if await world.frontier.next_due() is None:
                break
            await world.visit_next()
        assert world.fetcher.asked.count(self.HTTP) == 4
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "failed"}

    @pytest.mark.parametrize("unreachable", ["robots.txt", "page"])
    async def test_http_that_leads_back_to_https_does_not_lose_the_site(
        self, world: World, unreachable: str
    ) -> None:
        """Most sites answer http with a redirect to https: the guess stays what it was, and is tried again."""
        place = self.HTTPS_ROBOTS if unreachable == "robots.txt" else self.HTTPS
        script = {place: failed(FailureKind.TIMEOUT_CONNECT), self.HTTP: redirect(self.HTTPS)}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        assert (await world.states())[self.HTTPS] == "pending"
        world.fetcher.script |= {self.HTTPS_ROBOTS: refused(404), self.HTTPS: page()}
        await world.visit_next()
        assert (await world.states())[self.HTTPS] == "done"

    @pytest.mark.parametrize("unreachable", ["robots.txt", "page"])
    async def test_http_that_leads_back_to_https_over_a_hop_does_not_lose_the_site(
        self, world: World, unreachable: str
    ) -> None:
        other = "http://www.a.test/"
        place = self.HTTPS_ROBOTS if unreachable == "robots.txt" else self.HTTPS
        script = {place: failed(), self.HTTP: redirect(other), other: redirect(self.HTTPS)}
        await world.open(assume_https("a.test"), script=script)
        await world.visit()
        assert (await world.states())[self.HTTPS] == "pending"
        visits = 1
        while await world.frontier.next_due() is not None:
            await world.visit_next()
            visits += 1
            assert visits <= 5, "it is tried again three times, or its origin is held"

    async def test_http_that_was_seen_to_lead_to_https_does_not_lose_the_site(
        self, world: World
    ) -> None:
        """http is a URL of its own as well, which has been settled when https is tried again."""
        script = {self.HTTPS_ROBOTS: [failed()] * 3 + [refused(404)], self.HTTPS: page()}
        await world.open(assume_https("a.test"), offered(self.HTTP, depth=1), script=script)
        world.fetcher.script[self.HTTP] = redirect(self.HTTPS)
        await world.visit()
        for _ in range(10):
            if (await world.states())[self.HTTPS] != "pending":
                break
            await world.visit_next()
        assert await world.states() == {self.HTTPS: "done", self.HTTP: "redirected"}

    async def test_https_that_answers_the_second_time_is_taken(self, world: World) -> None:
        other = "http://www.a.test/"
        script = {self.HTTP: redirect(other), other: redirect(self.HTTPS)}
        answers = [failed(FailureKind.RESET), page()]
        await world.open(assume_https("a.test"), script={self.HTTPS: answers, **script})
        await world.visit()
        while await world.frontier.next_due() is not None:
            await world.visit_next()
        assert (await world.states())[self.HTTPS] == "done"


class TestPacing:
    """How long a domain is left alone after what it has answered."""

    @pytest.mark.parametrize("status", [429, 503])
    async def test_a_retry_after_is_kept_to(self, world: World, status: int) -> None:
        answer = refused(status, ("Retry-After", "5000"))
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": answer, f"{A}/2": page()})
        await world.visit()
        waited, _ = await world.visit_next()
        assert waited == 5_000.0
        assert world.fetcher.pages_asked == [f"{A}/1", f"{A}/2"]

    async def test_a_domain_that_is_overloaded_is_asked_less_and_then_more_again(
        self, world: World
    ) -> None:
        urls = [f"{A}/{i}" for i in range(7)]
        await world.open(*urls, script=dict.fromkeys(urls, page()))
        world.fetcher.script |= dict.fromkeys(urls[:3], refused(429))
        await world.visit()
        waits = []
        while len(world.fetcher.pages_asked) < 7:
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
        await world.open(assume_https("a.test"), script=script)
        journal = await world.visit()
        assert journal.result(world.now(), DELAY).pace.failures == 0

    @pytest.mark.parametrize("kind", [FailureKind.CONNECT, FailureKind.TIMEOUT_TOTAL])
    async def test_visits_without_an_answer_are_counted(
        self, world: World, kind: FailureKind
    ) -> None:
        await world.open(f"{A}/", script={ROBOTS: [failed(kind)] * 3 + [refused(404)]})
        world.fetcher.script[f"{A}/"] = page()
        failures = [(await world.visit()).result(world.now(), DELAY).pace.failures]
        for _ in range(3):
            _, journal = await world.visit_next()
            failures.append(journal.result(world.now(), DELAY).pace.failures)
        assert failures == [1, 2, 3, 0]
        assert await world.states() == {f"{A}/": "done"}


class TestTags:
    """X-Robots-Tag: what a server says besides the page."""

    async def test_noindex_keeps_nothing_and_follows_links(self, world: World) -> None:
        answer = tagged(page_with_links("/b"), "noindex")
        await world.open(f"{A}/", script={f"{A}/": answer})
        journal = await world.visit()
        assert journal.pages == []
        assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending"}
        assert await world.reason(f"{A}/") == "noindex"

    async def test_nofollow_keeps_the_page_and_follows_nothing(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": tagged(page_with_links("/b"), "nofollow")})
        assert len((await world.visit()).pages) == 1
        assert await world.states() == {f"{A}/": "done"}

    async def test_every_one_of_them_counts(self, world: World) -> None:
        answer = tagged(page_with_links("/b"), "googlebot: noindex", "nofollow", "rove: noindex")
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert await world.states() == {f"{A}/": "blocked"}

    async def test_those_for_others_do_not(self, world: World) -> None:
        answer = tagged(page_with_links("/b"), "googlebot: noindex, nofollow")
        await world.open(f"{A}/", script={f"{A}/": answer})
        await world.visit()
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}

    async def test_a_plain_text_has_them_too(self, world: World) -> None:
        answer = tagged(page("Some text", "text/plain"), "noindex")
        await world.open(f"{A}/", script={f"{A}/": answer})
        assert (await world.visit()).pages == []
        assert await world.states() == {f"{A}/": "blocked"}


class TestSitemaps:
    """The URLs that a site lists of itself."""

    MAP, INDEX = f"{A}/map.xml", f"{A}/index.xml"

    @pytest.fixture
    def world(self, world: World) -> World:
        world.sitemaps = True
        return world

    async def offers(self, world: World) -> dict[str, tuple[int, str]]:
        rows = await world.rows("SELECT url, depth, sitemap_of FROM url WHERE state = 0")
        return {url: (depth, host) for url, depth, host in rows}

    async def test_robots_txt_names_them(self, world: World) -> None:
        lines = (
            f"Sitemap: {self.MAP}\nUser-agent: *\nDisallow: /private\nSitemap: http://b.test/x\n"
        )
        await world.open(f"{A}/", script={ROBOTS: robots(lines), f"{A}/": page()})
        await world.visit()
        assert await self.offers(world) == {
            self.MAP: (0, "a.test"),
            "http://b.test/x": (0, "a.test"),
        }

    async def test_they_are_named_in_the_name_of_the_host_that_was_asked(
        self, world: World
    ) -> None:
        other = "http://b.test/r"
        script = {ROBOTS: redirect(other), other: robots(f"Sitemap: {self.MAP}\n")}
        await world.open(f"{A}/", script={**script, f"{A}/": page()})
        await world.visit()
        assert await self.offers(world) == {self.MAP: (0, "a.test")}

    async def test_they_are_passed_over_where_nobody_wants_them(self, world: World) -> None:
        world.sitemaps = False
        await world.open(f"{A}/", script={ROBOTS: robots(f"Sitemap: {self.MAP}")})
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        assert await world.states() == {f"{A}/": "done"}

    async def test_those_of_excluded_hosts_are_not_taken(self, world: World) -> None:
        lines = f"Sitemap: http://x.test/map\nSitemap: nonsense\nSitemap: {self.MAP}\n"
        await world.open(f"{A}/", script={ROBOTS: robots(lines)}, exclude=["x.test"])
        world.fetcher.script[f"{A}/"] = page()
        await world.visit()
        assert await self.offers(world) == {self.MAP: (0, "a.test")}
        assert (await world.frontier.counts()).not_accepted == {"excluded": 1}

    async def test_one_is_fetched_and_what_it_lists_is_offered(self, world: World) -> None:
        answer = sitemap("urlset", "/1", "/2", "http://b.test/3", "/map.xml", "https://a.test/4")
        await world.open(offered(self.MAP, sitemap_of="a.test"), script={self.MAP: answer})
        journal = await world.visit()
        assert [row.kind for row in journal.requests] == [RequestKind.ROBOTS, RequestKind.SITEMAP]
        assert journal.pages == []
        assert (await world.states())[self.MAP] == "read"
        assert await self.offers(world) == {
            f"{A}/1": (1, ""),
            f"{A}/2": (1, ""),
            "https://a.test/4": (1, ""),
        }
        assert (await world.frontier.counts()).pages == 0

    async def test_what_is_asked_for_is_bounded(self, world: World) -> None:
        await world.open(offered(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = sitemap("urlset")
        await world.visit()
        request = world.fetcher.requests[-1]
        assert request.max_bytes == MAX_SITEMAP_BYTES
        assert request.accept_types is None, "they come as anything"

    async def test_an_index_names_others_and_these_no_more(self, world: World) -> None:
        child, grandchild = f"{A}/child.xml", f"{A}/grandchild.xml"
        await world.open(offered(self.INDEX, sitemap_of="a.test"))
        world.fetcher.script |= {
            self.INDEX: sitemap("sitemapindex", "/child.xml", "http://b.test/other.xml"),
            child: sitemap("sitemapindex", "/grandchild.xml"),
        }
        await world.visit()
        assert await self.offers(world) == {child: (1, "a.test")}
        await world.visit_next()
        assert await world.states() == {self.INDEX: "read", child: "read"}
        assert grandchild not in await world.states()

    async def test_one_on_another_host_lists_for_the_host_that_named_it(self, world: World) -> None:
        other = "http://maps.test/a.xml"
        await world.open(offered(other, sitemap_of="a.test"))
        world.fetcher.script[other] = sitemap(
            "urlset", f"{A}/1", "http://maps.test/2", "http://c.test/3"
        )
        await world.visit()
        assert set(await self.offers(world)) == {f"{A}/1", "http://maps.test/2"}

    async def test_one_that_robots_txt_forbids_is_not_fetched(self, world: World) -> None:
        await world.open(offered(f"{A}/private/map.xml", sitemap_of="a.test"))
        world.fetcher.script[ROBOTS] = NOTHING_PRIVATE
        await world.visit()
        assert world.fetcher.pages_asked == []
        assert await world.states() == {f"{A}/private/map.xml": "blocked"}

    async def test_a_redirect_leads_to_a_sitemap_of_the_same_host(self, world: World) -> None:
        moved = f"{A}/moved.xml"
        await world.open(offered(self.MAP, sitemap_of="a.test"))
        world.fetcher.script |= {self.MAP: redirect("/moved.xml"), moved: sitemap("urlset", "/1")}
        journal = await world.visit()
        assert [row.kind for row in journal.requests[1:]] == [RequestKind.SITEMAP] * 2
        assert await world.states() == {
            self.MAP: "redirected",
            moved: "read",
            f"{A}/1": "pending",
        }

    @pytest.mark.parametrize(
        ("answer", "state"), [(refused(404), "failed"), (refused(500), "pending")]
    )
    async def test_one_that_cannot_be_had_fails_as_a_page_does(
        self, world: World, answer: Outcome, state: str
    ) -> None:
        await world.open(offered(self.MAP, sitemap_of="a.test"), script={self.MAP: answer})
        await world.visit()
        assert await world.states() == {self.MAP: state}
        if state == "pending":
            assert await self.offers(world) == {self.MAP: (0, "a.test")}, "it stays a sitemap"

    @pytest.mark.parametrize("body", ["", "<html>", "\0", "<urlset><url><loc>http://a.test/x"])
    async def test_one_that_lists_nothing_is_read(self, world: World, body: str) -> None:
        await world.open(offered(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = page(body, "application/xml")
        await world.visit()
        assert await world.states() == {self.MAP: "read"}

    async def test_what_lies_too_deep_is_not_offered(self, world: World) -> None:
        await world.open(offered(self.MAP, sitemap_of="a.test"), max_depth=0)
        world.fetcher.script[self.MAP] = sitemap("urlset", "/1", "/2")
        await world.visit()
        assert await self.offers(world) == {}
        assert (await world.frontier.counts()).not_accepted == {"too-deep": 2}

    async def test_a_visit_that_is_cut_while_one_is_read_says_so(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reading = asyncio.Event()

        async def read_for_ever(*_: object, **__: object) -> None:
            reading.set()
            await asyncio.Event().wait()

        await world.open(offered(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = sitemap("urlset", "/1")
        lease = await world.claim()
        assert lease is not None
        journal, visit = await world.start(lease)
        monkeypatch.setattr(world.reader, "list_sitemap", read_for_ever)
        task = asyncio.ensure_future(visit.run())
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.undo()
        assert journal.requests[-1].error == FailureKind.ABORTED
        await world.write_down(journal)
        assert await world.states() == {self.MAP: "pending"}


class TestSpool:
    """What is asked is noted before it is asked."""

    async def test_a_line_is_there_before_each_request_and_after_it(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE, f"{A}/": page()})
        seen: list[list[tuple[str, str, int]]] = []

        async def look(request: Request) -> None:
            world.advance(3)
            seen.append(spooled(world))

        world.fetcher.before_answer = look
        lease = await world.claim()
        assert lease is not None
        journal, visit = await world.start(lease)
        await visit.run()
        read = (ROBOTS, "", 200)
        assert seen == [[(ROBOTS, "lost", 0)], [read, (f"{A}/", "lost", 0)]]
        assert spooled(world) == [read, (f"{A}/", "", 200)]
        (lost,) = spooled_visits(world)
        assert (lost.visit, lost.domain) == (lease.token, lease.domain)
        assert lost.robots == [NOTHING_PRIVATE.body]
        assert lost.earliest == world.harness._now + 1000 * DELAY
        hashes = [row.content_hash for row in lost.rows]
        assert hashes[0] == fingerprint_bytes(NOTHING_PRIVATE.body)
        assert [(row.began, row.ended) for row in lost.rows] == [
            (row.began, row.ended) for row in journal.requests
        ]

    async def test_what_an_answer_asked_for_is_noted_with_it(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": refused(503, ("Retry-After", "900"))})
        lease = await world.claim()
        assert lease is not None
        _, visit = await world.start(lease)
        await visit.run()
        (lost,) = spooled_visits(world)
        assert lost.earliest == world.harness._now + 900_000
        assert {row.delay_from for row in lost.rows} == {DelaySource.RETRY_AFTER}

    async def test_a_crawl_delay_is_noted_before_the_page_is_asked(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 500\n")
        seen: dict[str, list[float]] = {}

        async def look(request: Request) -> None:
            seen[request.url] = [row.delay for lost in spooled_visits(world) for row in lost.rows]

        world.fetcher.before_answer = look
        await world.visit()
        assert seen == {ROBOTS: [DELAY], f"{A}/": [500.0, 500.0]}

    async def test_a_request_that_is_cut_is_noted_as_such(self, world: World) -> None:
        await world.open(f"{A}/")
        started = asyncio.Event()

        async def hang(request: Request) -> None:
            started.set()
            await asyncio.Event().wait()

        world.fetcher.before_answer = hang
        lease = await world.claim()
        assert lease is not None
        _, visit = await world.start(lease)
        task = asyncio.ensure_future(visit.run())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert spooled(world) == [(ROBOTS, "aborted", 0)]

    async def test_where_nothing_can_be_noted_nothing_is_asked(self, world: World) -> None:
        await world.open(f"{A}/")
        world.spool_folder.write_text("in the way")
        lease = await world.claim()
        assert lease is not None
        _, visit = await world.start(lease)
        with pytest.raises(StoreError):
            await visit.run()
        assert world.fetcher.asked == []


class TestChangedExclusions:
    """The gate's exclusions may be replaced while a visit is under way."""

    async def after(self, world: World, moment: str, *patterns: str) -> None:
        async def exclude(request: Request) -> None:
            if request.url == moment:
                world.gate.exclusions = Exclusions(patterns)

        world.fetcher.before_answer = exclude
        await world.visit()

    async def test_the_page_after_robots_txt_is_blocked(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2")
        await self.after(world, ROBOTS, "a.test")
        assert world.fetcher.asked == [ROBOTS]
        assert await world.states() == {f"{A}/1": "blocked", f"{A}/2": "blocked"}
        assert await world.reason(f"{A}/1") == "excluded"

    async def test_the_next_hop_is_not_taken(self, world: World) -> None:
        other = "http://www.a.test/"
        await world.open(f"{A}/", script={f"{A}/": redirect(other), other: page()})
        await self.after(world, f"{A}/", "=www.a.test")
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "redirected"}

    async def test_a_hop_whose_robots_txt_was_just_asked_is_blocked(self, world: World) -> None:
        other = "http://www.a.test/"
        await world.open(f"{A}/", script={f"{A}/": redirect(other), other: page()})
        await self.after(world, f"{other}robots.txt", "www.a.test")
        assert world.fetcher.asked == [ROBOTS, f"{A}/", f"{other}robots.txt"]
        assert await world.states() == {f"{A}/": "redirected", other: "blocked"}

    async def test_robots_txt_leads_there_no_more(self, world: World) -> None:
        other = "http://b.test/robots.txt"
        await world.open(f"{A}/", script={ROBOTS: redirect(other)})
        await self.after(world, ROBOTS, "b*.test")
        assert world.fetcher.asked == [ROBOTS]

    async def test_links_that_lead_there_are_not_taken(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page_with_links("/1", "http://b.test/")})
        await self.after(world, f"{A}/", "b.test")
        assert await world.states() == {f"{A}/": "done", f"{A}/1": "pending"}


def tagged(answer: Fetched, *tags: str) -> Fetched:
    """A page with X-Robots-Tag headers."""
    head = answer.response
    more = [("X-Robots-Tag", tag) for tag in tags]
    return replace(answer, response=replace(head, headers=[*head.headers, *more]))


def sitemap(root: str, *urls: str) -> Fetched:
    """A sitemap; paths are those of a.test."""
    full = [url if "://" in url else A + url for url in urls]
    entries = "".join(f"<x><loc>{url}</loc></x>" for url in full)
    return page(f"<?xml version='1.0'?><{root}>{entries}</{root}>", "application/xml")


def spooled_visits(world: World) -> list[LostVisit]:
    """What another process would find if this one were killed now."""
    paths = [path for _, path in spool_files(world.spool_folder)]
    return lost_visits(1, paths, DELAY)


def spooled(world: World) -> list[tuple[str, str, int]]:
    rows = [row for lost in spooled_visits(world) for row in lost.rows]
    return [(row.url, row.error, row.status) for row in rows]


class TestEnds:
    """A visit that is cut short."""

    async def test_after_the_deadline_nothing_is_asked(self, world: World) -> None:
        await world.open(f"{A}/")
        lease = await world.claim()
        assert lease is not None
        world.advance(VISIT_BUDGET - 0.1)
        journal, visit = await world.start(lease)
        await visit.run()
        assert world.fetcher.asked == [] and not journal.asked
        await world.write_down(journal)
        assert await world.states() == {f"{A}/": "pending"}

    async def test_a_visit_whose_time_is_up_asks_no_more(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect("/b")})

        async def slowly(request: Request) -> None:
            world.advance(VISIT_BUDGET / 2 - 0.2)

        world.fetcher.before_answer = slowly
        journal = await world.visit()
        assert world.fetcher.asked == [ROBOTS, f"{A}/"]
        assert world.fetcher.requests[1].timeout == pytest.approx(VISIT_BUDGET / 2 + 0.2)
        assert journal.asked
        assert await world.states() == {f"{A}/": "redirected", f"{A}/b": "pending"}

    async def test_the_delay_counts_from_the_end_of_the_last_request(self, world: World) -> None:
        await world.open(f"{A}/", f"{A}/2", script={f"{A}/": page()})

        async def slowly(request: Request) -> None:
            world.advance(5)

        world.fetcher.before_answer = slowly
        lease = await world.claim()
        assert lease is not None
        journal, visit = await world.start(lease)
        await visit.run()
        world.advance(30)
        await world.write_down(journal)
        assert await world.frontier.next_due() == DELAY - 30

    async def test_a_crawl_that_stops_asks_no_more(self, world: World) -> None:
        await world.open(f"{A}/")

        async def stop(request: Request) -> None:
            world.stopping = True

        world.fetcher.before_answer = stop
        journal = await world.visit()
        assert world.fetcher.asked == [ROBOTS]
        assert journal.asked and len(journal.origins(world.now())) == 1, "what was learned is kept"
        assert await world.states() == {f"{A}/": "pending"}
        assert await world.frontier.next_due() == DELAY

    async def test_a_crawl_that_has_stopped_asks_nothing(self, world: World) -> None:
        await world.open(f"{A}/")
        world.stopping = True
        journal = await world.visit()
        assert not journal.asked
        assert await world.frontier.next_due() == 0.0

    @pytest.mark.parametrize("during", ["robots.txt", ""])
    async def test_a_visit_that_is_cancelled_has_asked(self, world: World, during: str) -> None:
        await world.open(f"{A}/")
        started = asyncio.Event()

        async def hang(request: Request) -> None:
            if request.url == f"{A}/{during}":
                started.set()
                await asyncio.Event().wait()

        world.fetcher.before_answer = hang
        lease = await world.claim()
        assert lease is not None
        journal, visit = await world.start(lease)
        task = asyncio.ensure_future(visit.run())
        await started.wait()
        world.advance(20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert journal.asked and journal.finished_at == world.now()
        assert journal.requests[-1].error == "aborted"
        await world.write_down(journal)
        assert await world.states() == {f"{A}/": "pending"}
        assert await world.frontier.next_due() == DELAY

    async def test_a_fetcher_that_breaks_has_asked_too(self, world: World) -> None:
        await world.open(f"{A}/")

        async def break_down(request: Request) -> None:
            raise RuntimeError("broken")

        world.fetcher.before_answer = break_down
        lease = await world.claim()
        assert lease is not None
        journal, visit = await world.start(lease)
        with pytest.raises(RuntimeError):
            await visit.run()
        assert journal.asked
