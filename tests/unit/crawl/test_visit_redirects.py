"""Visits that are redirected, and bare domains that are tried with https and http."""

from __future__ import annotations

import itertools

import pytest

from rove.model.outcomes import UNREACHABLE_FAILURES, FailureKind, Outcome
from rove.policy.constants import DEFAULT_REDIRECT_HOPS, MAX_REDIRECT_CHAIN, MAX_REQUESTS_PER_VISIT
from tests.unit.crawl.scripted import (
    DELAY,
    NOTHING_ALLOWED,
    NOTHING_PRIVATE,
    ROBOTS,
    A,
    World,
    bare_domain,
    failed,
    new_url,
    page,
    page_with_links,
    redirect,
    refused,
    wrong_type,
)


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
        chain = ["/robots.txt", *(f"/r{i}" for i in range(7))]
        world.fetcher.script |= {f"{other}{path}": redirect(to) for path, to in itertools.pairwise(chain)}
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
        assert await world.next_due() == pytest.approx(2 * DELAY)

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
        world.advance(DELAY + 0.001)
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
        assert await world.next_due() is None

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
        while await world.next_due() is not None:
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
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "done", "http://a.test/b": "pending"}
        assert await world.reason(self.HTTPS) == self.HTTP

    async def test_a_host_that_is_silent_over_https_gets_less_time_over_http(self, world: World) -> None:
        script = {url: failed(FailureKind.TIMEOUT_CONNECT) for url in (self.HTTPS_ROBOTS, self.HTTP_ROBOTS)}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert [request.is_brief for request in world.fetcher.requests] == [False, True]
        await world.visit_next()
        assert [request.is_brief for request in world.fetcher.requests[2:]] == [False, False], "it may only be slow"

    async def test_http_gets_all_its_time_if_https_is_refused(self, world: World) -> None:
        script = {self.HTTPS_ROBOTS: failed(FailureKind.CONNECT), self.HTTP: page()}
        await world.open(bare_domain("a.test"), script=script)
        await world.visit()
        assert not any(request.is_brief for request in world.fetcher.requests)

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
        "outcome",
        [
            refused(404),
            refused(500),
            wrong_type(),
            failed(FailureKind.TIMEOUT_FIRST_BYTE),
            failed(FailureKind.TIMEOUT_TOTAL),
            failed(FailureKind.ENCODING),
        ],
    )
    async def test_http_is_not_tried_if_the_https_server_responds_or_stalls(
        self, world: World, outcome: Outcome
    ) -> None:
        await world.open(bare_domain("a.test"), script={self.HTTPS: outcome})
        await world.visit()
        assert world.fetcher.requested == [self.HTTPS_ROBOTS, self.HTTPS]
        assert list(await world.states()) == [self.HTTPS]

    @pytest.mark.parametrize(
        "outcome", [refused(503), failed(FailureKind.DNS_NOT_FOUND), failed(FailureKind.TIMEOUT_TOTAL)]
    )
    async def test_http_is_not_tried_if_robots_txt_fails_otherwise(self, world: World, outcome: Outcome) -> None:
        await world.open(bare_domain("a.test"), script={self.HTTPS_ROBOTS: outcome})
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
        while await world.next_due() is not None:
            await world.visit_next()
            visits += 1
        assert visits == 3
        assert await world.states() == {self.HTTPS: "pending"}

    @pytest.mark.parametrize(
        ("outcome", "state", "reason"),
        [
            (refused(404), "failed", "status 404"),
            (wrong_type(), "failed", "type image/png"),
            (failed(FailureKind.ENCODING), "failed", "encoding"),
            (page('<meta name=robots content="noindex">'), "blocked", "noindex"),
            (redirect("http://b.test/"), "redirected", "http://b.test/"),
        ],
    )
    async def test_the_http_url_has_the_outcome(self, world: World, outcome: Outcome, state: str, reason: str) -> None:
        script = {self.HTTPS_ROBOTS: failed(), self.HTTP: outcome}
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
        assert await world.states() == {self.HTTPS: "redirected", self.HTTP: "redirected", other: "done"}

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
            if await world.next_due() is None:
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
        while await world.next_due() is not None:
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
        outcomes = [failed(FailureKind.RESET), page()]
        await world.open(bare_domain("a.test"), script={self.HTTPS: outcomes, **script})
        await world.visit()
        while await world.next_due() is not None:
            await world.visit_next()
        assert (await world.states())[self.HTTPS] == "done"
