"""Exclusions during a crawl, and domains that the crawl gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rove.crawl.shutdown import Ending
from rove.fetch.contract import Request
from rove.model.urls import UrlState
from rove.policy.exclusions import Exclusions
from tests.unit.crawl.scripted import ScriptedFetcher, World, failed, page, page_with_links, redirect, refused
from tests.unit.crawl.workspace import Workspace, front_pages


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
        """The host of the request in flight counts, not the one that the visit began with."""
        other = "http://x.h0.test/r"
        workspace.fetcher = ScriptedFetcher({"http://h0.test/robots.txt": redirect(other)})
        await workspace.open("http://h0.test/", delay=1000.0)
        crawl = workspace.crawl(delay=1000.0, store=workspace.store())

        async def exclude(request: Request) -> None:
            if request.url.text == other:
                workspace.exclusions.put_nowait(["x.h0.test"])
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
    """A domain that has not responded for a long time."""

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
        """Its lease has run out, and the domain has responded to another process since."""
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
