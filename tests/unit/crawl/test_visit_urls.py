"""What visits do with the URLs that they find: removed parameters, traps, and URLs that are not accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.inspect.lookup import url_known
from rove.model.outcomes import FailureKind
from rove.parse.reader import PageReader
from rove.urls.ignored_params import ignored_params_with
from tests.unit.crawl.scripted import World, bare_domain, failed, new_url, page, page_with_links, redirect, robots

A = "http://a.test"
DROPS = ignored_params_with(("mark",))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.reader = PageReader(drop_params=("mark",))
    yield made
    made.close()


async def test_links_enter_the_frontier_without_ignored_parameters(world: World) -> None:
    links = page_with_links("/x?utm_source=a", "/x?utm_source=b", "/y;jsessionid=1?id=2&mark=3", "/?gclid=4")
    await world.open(f"{A}/", script={f"{A}/": links})
    await world.visit()
    assert await world.states() == {f"{A}/": "done", f"{A}/x": "pending", f"{A}/y?id=2": "pending"}


async def test_ignored_parameters_are_removed_from_redirects(world: World) -> None:
    script = {f"{A}/": redirect("/x?utm_source=a"), f"{A}/x": page()}
    await world.open(f"{A}/", script=script)
    await world.visit()
    assert world.fetcher.pages_requested == [f"{A}/", f"{A}/x"]
    assert await world.states() == {f"{A}/": "redirected", f"{A}/x": "done"}


@pytest.mark.parametrize("location", ["/x;jsessionid=1", "/x?utm_source=a", "?mark=2"])
async def test_a_redirect_that_only_adds_an_ignored_parameter_keeps_it(world: World, location: str) -> None:
    led_to = f"{A}/x{location.removeprefix('/x')}"
    links = page_with_links("/y;jsessionid=1", "/x")
    await world.open(f"{A}/x", script={f"{A}/x": redirect(location), led_to: links})
    await world.visit()
    assert await world.states() == {f"{A}/x": "redirected", led_to: "done", f"{A}/y": "pending"}
    reader = world.harness.reader()
    assert (await url_known(reader, led_to, DROPS)).text == led_to
    assert (await url_known(reader, f"{A}/x?mark=other", DROPS)).text == f"{A}/x"


async def test_a_new_session_for_each_answer_is_a_loop(world: World) -> None:
    script = {f"{A}/x": redirect("/x;jsessionid=1"), f"{A}/x;jsessionid=1": redirect("/x;jsessionid=2")}
    await world.open(f"{A}/x", script=script)
    await world.visit()
    assert world.fetcher.pages_requested == list(script)
    assert await world.states() == {f"{A}/x": "redirected", f"{A}/x;jsessionid=1": "failed"}
    assert await world.reason(f"{A}/x;jsessionid=1") == "redirect loop"


async def test_a_redirect_back_to_https_is_recognized_without_ignored_parameters(world: World) -> None:
    script = {
        "https://a.test/robots.txt": failed(FailureKind.CONNECT),
        f"{A}/": redirect("https://a.test/?utm_source=http"),
    }
    await world.open(bare_domain("a.test"), script=script)
    await world.visit()
    assert await world.states() == {"https://a.test/": "pending"}


async def test_ignored_parameters_are_removed_from_sitemaps(world: World) -> None:
    world.sitemaps = True
    script = {
        f"{A}/robots.txt": robots("Sitemap: /map.xml?mark=1\n".replace("/map", f"{A}/map")),
        f"{A}/": page(),
        f"{A}/map.xml": page(f"<urlset><url><loc>{A}/y?utm_x=1</loc></url></urlset>"),
    }
    await world.open(f"{A}/", script=script)
    await world.visit()
    await world.visit_next()
    assert await world.states() == {f"{A}/": "done", f"{A}/map.xml": "read", f"{A}/y": "pending"}


async def test_a_url_that_looks_like_a_trap_waits_or_is_not_accepted(world: World) -> None:
    links = page_with_links("/b?sort=price&order=up", "/a", "/a/b/a/b/a/b", "/calendar/2999/01")
    await world.open(new_url(f"{A}/", depth=2), script={f"{A}/": links})
    await world.visit()
    rows = await world.rows("SELECT url, depth, priority FROM url WHERE state = 0 ORDER BY priority")
    assert rows == [(f"{A}/a", 3, 3), (f"{A}/b?sort=price&order=up", 3, 6)]
    assert (await world.frontier.counts()).not_accepted == {"trap": 2}


async def test_a_seed_is_never_a_trap(world: World) -> None:
    seed = f"{A}/a/b/a/b/a/b"
    await world.open(seed, script={seed: page()})
    await world.visit()
    assert await world.states() == {seed: "done"}


async def test_a_redirect_into_a_trap_is_not_followed(world: World) -> None:
    await world.open(f"{A}/", script={f"{A}/": redirect("/x/x/x/x/x")})
    await world.visit()
    assert world.fetcher.pages_requested == [f"{A}/"]
    assert await world.states() == {f"{A}/": "redirected"}
    assert (await world.frontier.counts()).not_accepted == {"trap": 1}
