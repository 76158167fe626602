"""What visits do with the URLs that they find: removed parameters, traps, and URLs that are not accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.crawl.seen import SeenSet
from rove.crawl.writer import new_links
from rove.frontier.priority import FOREIGN, RETRIED
from rove.inspect.lookup import url_known
from rove.model.outcomes import FailureKind
from rove.model.urls import NewUrl, UrlState
from tests.unit.crawl.scripted import World, bare_domain, failed, new_url, page, page_with_links, redirect, robots
from tests.urls import form_dropping

A = "http://a.test"
DROPS = form_dropping("mark")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.form = DROPS
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


async def test_a_link_to_a_file_without_text_costs_no_visit(world: World) -> None:
    links = page_with_links("/a.pdf", "/B.JPG?w=8", "/c.php", "/wiki/File:d.png", "http://b.test/e.zip")
    await world.open(f"{A}/", script={f"{A}/": links})
    await world.visit()
    assert await world.states() == {f"{A}/": "done", f"{A}/c.php": "pending", f"{A}/wiki/File:d.png": "pending"}
    assert (await world.frontier.counts()).not_accepted == {"file-type": 3}


async def test_a_seed_is_visited_whatever_its_extension(world: World) -> None:
    script = {f"{A}/a.jpg": redirect("/b.pdf"), f"{A}/b.pdf": redirect("http://b.test/c.zip")}
    await world.open(f"{A}/a.jpg", script=script)
    await world.visit()
    assert world.fetcher.pages_requested == list(script)
    states = {f"{A}/a.jpg": "redirected", f"{A}/b.pdf": "redirected", "http://b.test/c.zip": "pending"}
    assert await world.states() == states


@pytest.mark.parametrize("location", ["/a.pdf", "http://b.test/a.pdf"])
async def test_the_redirect_of_a_linked_page_to_a_file_is_not_followed(world: World, location: str) -> None:
    await world.open(new_url(f"{A}/x", depth=1), script={f"{A}/x": redirect(location)})
    await world.visit()
    assert world.fetcher.pages_requested == [f"{A}/x"]
    assert await world.states() == {f"{A}/x": "redirected"}
    assert (await world.frontier.counts()).not_accepted == {"file-type": 1}


async def test_a_sitemap_may_be_compressed_but_the_files_that_it_lists_are_not_taken(world: World) -> None:
    world.sitemaps = True
    index = f"<sitemapindex><sitemap><loc>{A}/list.gz</loc></sitemap></sitemapindex>"
    urls = "".join(f"<url><loc>{A}/{name}</loc></url>" for name in ("a.pdf", "b"))
    script = {
        f"{A}/robots.txt": robots(f"Sitemap: {A}/maps.gz\n"),
        f"{A}/": page(),
        f"{A}/maps.gz": page(index),
        f"{A}/list.gz": page(f"<urlset>{urls}</urlset>"),
    }
    await world.open(f"{A}/", script=script)
    await world.visit()
    await world.visit_next()
    await world.visit_next()
    states = {f"{A}/": "done", f"{A}/maps.gz": "read", f"{A}/list.gz": "read", f"{A}/b": "pending"}
    assert await world.states() == states
    assert (await world.frontier.counts()).not_accepted == {"file-type": 1}


async def foreign(world: World) -> set[str]:
    """Return the pending URLs that only other domains name."""
    rows = await world.rows(f"SELECT url FROM url WHERE state = 0 AND priority BETWEEN {FOREIGN} AND {RETRIED - 1}")
    return {url for (url,) in rows}


async def test_links_to_other_domains_are_foreign(world: World) -> None:
    links = page_with_links("/x", "http://www.a.test/y", "http://b.test/z")
    await world.open(f"{A}/", script={f"{A}/": links})
    await world.visit()
    assert await foreign(world) == {"http://b.test/z"}


@pytest.mark.parametrize(("depth", "expected"), [(0, set()), (1, {"http://b.test/z"})])
async def test_a_redirect_to_another_domain_is_foreign_unless_a_seed_leads_there(
    world: World, depth: int, expected: set[str]
) -> None:
    await world.open(new_url(f"{A}/x", depth=depth), script={f"{A}/x": redirect("http://b.test/z")})
    await world.visit()
    assert (await world.states())["http://b.test/z"] == "pending"
    assert await foreign(world) == expected


async def test_a_url_that_another_domain_named_becomes_its_own_when_a_page_of_its_domain_links_to_it(
    world: World,
) -> None:
    """The set of known URLs must not keep the second link from the frontier."""
    script = {f"{A}/": page_with_links("http://b.test/x", "http://b.test/y"), "http://b.test/": page_with_links("/x")}
    await world.open(f"{A}/", script=script)
    await world.visit()
    assert await foreign(world) == {"http://b.test/x", "http://b.test/y"}
    await world.frontier.add([new_url("http://b.test/")])
    while "http://b.test/" not in world.fetcher.pages_requested:
        await world.visit_next()
    assert await foreign(world) == {"http://b.test/y"}


async def test_equal_links_of_one_batch_are_foreign_only_if_all_are(world: World) -> None:
    deep, shallow = new_url("http://b.test/x", depth=4), new_url("http://b.test/x", depth=1, is_foreign=True)
    for first, second in ((deep, shallow), (shallow, deep)):
        links: dict[str, NewUrl] = {}
        await new_links([first, second], SeenSet(), links)
        assert list(links.values()) == [shallow._replace(is_foreign=False)]


async def test_a_foreign_url_that_comes_twice_in_one_visit_is_checked_once(world: World) -> None:
    """Where foreign URLs come first and are all forbidden, the visit goes on with the domain's own, then with all."""
    await world.open(new_url(f"{A}/private", depth=1, is_foreign=True), f"{A}/private/own")
    world.fetcher.script[f"{A}/robots.txt"] = robots("User-agent: *\nDisallow: /private\n")
    await world.rows("UPDATE domain SET leases = 15")
    record = await world.visit()
    assert [settled.state for settled in record.settled.values()] == [UrlState.BLOCKED] * 2
    assert await world.states() == {f"{A}/private": "blocked", f"{A}/private/own": "blocked"}
