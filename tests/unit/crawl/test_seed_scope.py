"""Crawls that keep to the hosts or directories of their seeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.crawl.seed_scope import REMEMBERED_SECONDS
from rove.policy.scope import SeedScope
from tests.unit.crawl.scripted import World, new_url, page, redirect

A, WWW, B = "http://a.test", "http://www.a.test", "http://b.test"
LINKS = page(
    "".join(
        f'<a href="{link}">go</a>'
        for link in (f"{A}/docs/x", f"{A}/blog/x", f"{WWW}/docs/y", f"{WWW}/z", f"{B}/docs/", f"{B}/", "http://c.test/")
    )
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


async def seeds(world: World, *texts: str) -> None:
    await world.open()
    await world.frontier.add([new_url(text) for text in texts], as_seeds=True)


@pytest.mark.parametrize(
    ("scope", "taken"),
    [
        (SeedScope.ANYWHERE, {f"{A}/docs/x", f"{A}/blog/x", f"{WWW}/docs/y", f"{WWW}/z", f"{B}/", "http://c.test/"}),
        (SeedScope.DOMAIN, {f"{A}/docs/x", f"{A}/blog/x", f"{WWW}/docs/y", f"{WWW}/z", f"{B}/"}),
        (SeedScope.HOST, {f"{A}/docs/x", f"{A}/blog/x", f"{B}/"}),
        (SeedScope.PATH, {f"{A}/docs/x"}),
    ],
)
async def test_links_are_followed_within_the_scope(world: World, scope: SeedScope, taken: set[str]) -> None:
    world.scope = scope
    await seeds(world, f"{A}/docs/", f"{B}/docs/")
    world.fetcher.script = {f"{A}/docs/": LINKS, f"{B}/docs/": page()}
    await world.visit()
    await world.visit()
    assert (await world.states()).keys() == taken | {f"{A}/docs/", f"{B}/docs/"}
    out = (await world.frontier.counts()).not_accepted.get("out-of-scope", 0)
    assert out == 6 - len(taken)


async def test_a_seed_that_redirects_to_another_host_is_crawled_there(world: World) -> None:
    world.scope = SeedScope.HOST
    await seeds(world, f"{A}/")
    world.fetcher.script = {f"{A}/": redirect(f"{WWW}/"), f"{WWW}/": LINKS}
    await world.visit()
    states = await world.states()
    assert states.keys() == {f"{A}/", f"{A}/docs/x", f"{A}/blog/x", f"{WWW}/", f"{WWW}/docs/y", f"{WWW}/z"}
    assert (states[f"{A}/"], states[f"{WWW}/"]) == ("redirected", "done")


async def test_redirects_out_of_the_scope_are_not_followed(world: World) -> None:
    world.scope = SeedScope.PATH
    await seeds(world, f"{A}/docs/")
    world.fetcher.script = {f"{A}/docs/": redirect("/login")}
    await world.visit()
    assert world.fetcher.pages_requested == [f"{A}/docs/"]
    assert await world.states() == {f"{A}/docs/": "redirected"}
    assert (await world.frontier.counts()).not_accepted == {"out-of-scope": 1}


async def test_a_link_that_redirects_to_another_host_is_not_followed_there(world: World) -> None:
    world.scope = SeedScope.HOST
    await seeds(world, f"{A}/")
    world.fetcher.script = {f"{A}/": page("<a href=/x>x</a>"), f"{A}/x": redirect(f"{WWW}/")}
    await world.visit()
    await world.visit_next()
    assert world.fetcher.pages_requested == [f"{A}/", f"{A}/x"]
    assert (await world.states())[f"{A}/x"] == "redirected"


async def test_seeds_that_are_added_later_widen_the_scope(world: World) -> None:
    world.scope = SeedScope.HOST
    await seeds(world, f"{A}/")
    world.fetcher.script = {
        f"{A}/": page(f"<a href={WWW}/1>x</a><a href=/2>x</a>"),
        f"{A}/2": page(f"<a href={WWW}/1>x</a>"),
    }
    await world.visit()
    assert f"{WWW}/1" not in await world.states()
    await world.frontier.add([new_url(f"{WWW}/")], as_seeds=True)
    world.advance(REMEMBERED_SECONDS)
    world.fetcher.script |= {f"{WWW}/": page()}
    await world.visit_next()
    await world.visit_next()
    assert f"{WWW}/1" in await world.states()


async def test_sitemaps_are_read_wherever_they_are_and_their_urls_must_be_in_scope(world: World) -> None:
    world.scope, world.sitemaps = SeedScope.PATH, True
    await seeds(world, f"{A}/docs/")
    urls = f"<urlset><url><loc>{A}/docs/1</loc></url><url><loc>{A}/other</loc></url></urlset>"
    world.fetcher.script = {f"{A}/docs/": page(), f"{A}/map.xml": page(urls, "text/xml")}
    await world.keep_origin(A, f"Sitemap: {A}/map.xml", valid_for=1e6)
    await world.visit()
    await world.visit_next()
    assert await world.states() == {f"{A}/docs/": "done", f"{A}/map.xml": "read", f"{A}/docs/1": "pending"}
