"""Crawls whose store, frontier or visits fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import pytest

from rove.crawl.inflight_log import Note, inflight_files, lost_visits
from rove.crawl.shutdown import Ending
from rove.errors import DiskFull, FrontierError, RoveError, StoreError
from rove.fetch.contract import Request
from rove.model.visits import VisitResult
from rove.parse.html import Document, PageSource, read_html
from rove.urls.canonical import UrlForm
from tests.unit.crawl.scripted import ScriptedFetcher, page, page_with_links, redirect, robots
from tests.unit.crawl.workspace import Workspace, Wrapped, chain_of_hosts, front_pages


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
        assert workspace.fetcher.requested.count("http://h0.test/b") == 1

    async def test_an_internal_error_fails_the_url_that_the_visit_was_busy_with(self, workspace: Workspace) -> None:
        rules = robots("User-agent: *\nDisallow: /private")
        workspace.fetcher = ScriptedFetcher(
            {"http://h0.test/robots.txt": rules, "http://h0.test/": page()} | {"http://h0.test/private": page()}
        )

        async def break_down(request: Request) -> None:
            if request.url.text == "http://h0.test/":
                raise RuntimeError("broken")

        workspace.fetcher.before_answer = break_down
        await workspace.open("http://h0.test/private", "http://h0.test/")
        assert await workspace.run() is Ending.EXHAUSTED
        assert await workspace.states() == {"http://h0.test/private": "blocked", "http://h0.test/": "failed"}
        assert workspace.fetcher.requested.count("http://h0.test/") == 1

    async def test_a_panic_fails_its_page_and_no_other(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A parser in Rust panics with a BaseException, after the response has come."""
        urls = front_pages(3)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(urls, page()))

        class Panic(BaseException):
            pass

        def read(source: PageSource, form: UrlForm) -> Document:
            if source.url == urls[1]:
                raise Panic("index out of bounds")
            return read_html(source, form)

        monkeypatch.setattr("rove.crawl.visit.read_html", read)
        await workspace.open(*urls)
        assert await workspace.run() is Ending.EXHAUSTED
        assert await workspace.states() == dict.fromkeys(urls, "done") | {urls[1]: "failed"}
        assert workspace.progress.errors["internal"] == 1

    async def test_a_visit_that_broke_off_leaves_no_request_that_seems_to_count(self, workspace: Workspace) -> None:
        """Its page is requested again after a resume, so that its first request must not count."""
        workspace.fetcher = ScriptedFetcher({"http://h0.test/": page()})
        await workspace.open("http://h0.test/")
        inflight_log = workspace.inflight_log()
        note = inflight_log.note

        def full_after_the_page(line: Note) -> None:
            if line.row.url == "http://h0.test/" and line.row.status:
                raise DiskFull("no room")
            note(line)

        inflight_log.note = full_after_the_page  # type: ignore[method-assign, assignment]
        with pytest.raises(DiskFull, match="no room"):
            await workspace.run()
        assert await workspace.states() == {"http://h0.test/": "pending"}
        rows = await workspace.rows("SELECT url, settlement FROM request ORDER BY seq")
        assert rows == [("http://h0.test/robots.txt", ""), ("http://h0.test/", "lost")]
