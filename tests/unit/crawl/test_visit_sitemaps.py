"""Visits to sitemaps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from rove.frontier.priority import FOREIGN, RETRIED
from rove.model.ledger import RequestKind
from rove.model.outcomes import FailureKind, Fetched, Outcome
from rove.parse.sitemap import MAX_SITEMAP_BYTES, Listed
from tests.unit.crawl.scripted import NOTHING_PRIVATE, ROBOTS, A, World, new_url, page, redirect, refused, robots


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

    async def foreign(self, world: World) -> set[str]:
        """Return the pending URLs that only other domains name."""
        rows = await world.rows(f"SELECT url FROM url WHERE state = 0 AND priority BETWEEN {FOREIGN} AND {RETRIED - 1}")
        return {url for (url,) in rows}

    async def test_robots_txt_adds_them_to_the_frontier(self, world: World) -> None:
        lines = f"Sitemap: {self.MAP}\nUser-agent: *\nDisallow: /private\nSitemap: http://b.test/x.xml\nSitemap: http://b.test/page\n"
        await world.open(f"{A}/", script={ROBOTS: robots(lines), f"{A}/": page()})
        await world.visit()
        others = {"http://b.test/x.xml": (1, "a.test"), "http://b.test/page": (1, "")}
        assert await self.pending(world) == {self.MAP: (0, "a.test"), **others}
        assert await self.foreign(world) == others.keys()

    async def test_they_belong_to_the_host_whose_robots_txt_was_requested(self, world: World) -> None:
        other = "http://b.a.test/r"
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
        outcome = sitemap("urlset", "/1", "/2", "http://b.test/3", "/map.xml", "https://a.test/4")
        await world.open(new_url(self.MAP, sitemap_of="a.test"), script={self.MAP: outcome})
        record = await world.visit()
        assert [row.kind for row in record.requests] == [RequestKind.ROBOTS, RequestKind.SITEMAP]
        assert world.pages == []
        assert (await world.states())[self.MAP] == "read"
        assert await self.pending(world) == {f"{A}/1": (1, ""), f"{A}/2": (1, ""), "https://a.test/4": (1, "")}
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
        assert await self.foreign(world) == set(), "the robots.txt of a.test vouches for it"

    async def test_an_index_in_another_domain_may_name_sitemaps_but_these_name_no_others(self, world: World) -> None:
        index, child = "http://maps.test/index.xml", "http://maps.test/child.xml"
        await world.open(new_url(index, depth=1, sitemap_of="a.test", is_foreign=True))
        world.fetcher.script |= {
            index: sitemap("sitemapindex", child, f"{A}/own.xml"),
            child: sitemap("sitemapindex", "http://maps.test/grandchild.xml"),
            f"{A}/own.xml": sitemap("urlset"),
        }
        await world.visit()
        assert await self.pending(world) == {child: (2, "a.test"), f"{A}/own.xml": (2, "a.test")}
        assert await self.foreign(world) == set()
        while child in await self.pending(world):
            await world.visit_next()
        assert "http://maps.test/grandchild.xml" not in await world.states()

    async def test_a_redirect_to_another_domain_leads_to_a_foreign_sitemap(self, world: World) -> None:
        moved = "http://b.test/junk.xml"
        await world.open(new_url(self.MAP, sitemap_of="a.test"), script={self.MAP: redirect(moved)})
        await world.visit()
        assert await self.pending(world) == {moved: (1, "a.test")}
        assert await self.foreign(world) == {moved}

    async def test_a_page_that_others_named_first_is_read_as_a_sitemap_in_the_first_visit(self, world: World) -> None:
        named = new_url(self.MAP, depth=1, is_foreign=True)
        script = {ROBOTS: robots(f"Sitemap: {self.MAP}\n"), self.MAP: sitemap("urlset", "/1")}
        await world.open(named, script=script)
        record = await world.visit()
        assert [row.kind for row in record.requests] == [RequestKind.ROBOTS, RequestKind.SITEMAP]
        assert await world.states() == {self.MAP: "read", f"{A}/1": "pending"}

    async def test_a_page_that_others_named_is_read_as_the_sitemap_that_its_robots_txt_names(
        self, world: World
    ) -> None:
        named = new_url(self.MAP, depth=3, is_foreign=True)
        await world.open(f"{A}/", named, script={ROBOTS: robots(f"Sitemap: {self.MAP}\n"), f"{A}/": page()})
        await world.visit()
        assert await self.pending(world) == {self.MAP: (0, "a.test")}
        assert await self.foreign(world) == set()

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
        assert await world.states() == {self.MAP: "redirected", moved: "read", f"{A}/1": "pending"}

    @pytest.mark.parametrize(("outcome", "state"), [(refused(404), "failed"), (refused(500), "pending")])
    async def test_a_sitemap_fails_like_a_page(self, world: World, outcome: Outcome, state: str) -> None:
        await world.open(new_url(self.MAP, sitemap_of="a.test"), script={self.MAP: outcome})
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

        def read_for_ever(*_: object, **__: object) -> Iterator[Listed]:
            while True:
                reading.set()
                yield Listed()

        await world.open(new_url(self.MAP, sitemap_of="a.test"))
        world.fetcher.script[self.MAP] = sitemap("urlset", "/1")
        held = await world.claim()
        record, visit = world.start(held)
        monkeypatch.setattr("rove.crawl.visit.read_sitemap", read_for_ever)
        task = asyncio.ensure_future(visit.run())
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.undo()
        assert record.requests[-1].error == FailureKind.ABORTED
        await world.write(record)
        assert await world.states() == {self.MAP: "pending"}


def sitemap(root: str, *urls: str) -> Fetched:
    """Return a sitemap; paths are relative to a.test."""
    full = [url if "://" in url else A + url for url in urls]
    entries = "".join(f"<x><loc>{url}</loc></x>" for url in full)
    return page(f"<?xml version='1.0'?><{root}>{entries}</{root}>", "application/xml")
