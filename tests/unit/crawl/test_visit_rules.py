"""Visits under rules: what is requested, stored and followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rove.config import Settings
from rove.policy.rules import Rules
from tests.unit.crawl.scripted import World, page, redirect

A = "http://a.test"
LINKS = "<title>A page</title><p>Text.<a href=/b>b</a><a href=/tag/c>c</a>"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def rules(**given: Any) -> Rules:
    return Settings(email="me@crawler.test", **given).with_numbers().rules


async def test_rejected_links_are_counted_by_rule(world: World) -> None:
    await world.open(
        f"{A}/", script={f"{A}/": page(LINKS)}, rules=rules(accept=("same_host",), reject=('path ~ "/tag"',))
    )
    await world.visit()
    assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}
    assert (await world.frontier.counts()).not_accepted == {"rule-2": 1}


async def test_a_rejected_redirect_is_not_followed(world: World) -> None:
    script = {f"{A}/": redirect("/tag/1")}
    await world.open(f"{A}/", script=script, rules=rules(reject=('path ~ "/tag"',)))
    await world.visit()
    assert world.fetcher.pages_requested == [f"{A}/"]
    assert await world.states() == {f"{A}/": "redirected"}
    assert (await world.frontier.counts()).not_accepted == {"rule-1": 1}


async def test_a_pending_url_that_a_rule_rejects_is_blocked_without_a_request(world: World) -> None:
    await world.open(f"{A}/tag/1", f"{A}/b", script={f"{A}/b": page()}, rules=rules(reject=('path ~ "/tag"',)))
    await world.visit()
    assert world.fetcher.pages_requested == [f"{A}/b"]
    assert await world.states() == {f"{A}/tag/1": "blocked", f"{A}/b": "done"}
    reason = 'rejected by rule 1: path ~ "/tag"'
    assert await world.reason(f"{A}/tag/1") == reason
    assert (await world.frontier.counts()).blocked == {reason: 1}


async def test_a_page_that_is_not_stored_is_followed_all_the_same(world: World) -> None:
    await world.open(f"{A}/", script={f"{A}/": page(LINKS)}, rules=rules(store_if=("text_length > 100",)))
    record = await world.visit()
    assert world.pages == [] and record.requests[-1].title == ""
    assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending", f"{A}/tag/c": "pending"}
    assert await world.reason(f"{A}/") == "not stored by rule 1: store only if text_length > 100"
    assert (await world.frontier.counts()).pages == 0


async def test_the_links_of_a_page_that_is_not_followed_are_counted(world: World) -> None:
    await world.open(f"{A}/", script={f"{A}/": page(LINKS)}, rules=rules(follow_if=('title ~ "^Other"', "not seed")))
    record = await world.visit()
    assert len(world.pages) == 1 and record.links_found == 2
    assert await world.states() == {f"{A}/": "done"}
    assert (await world.frontier.counts()).not_accepted == {"rules-1-2": 2}


async def test_noindex_is_the_reason_before_any_rule(world: World) -> None:
    html = '<meta name="robots" content="noindex">'
    await world.open(f"{A}/", script={f"{A}/": page(html)}, rules=rules(store_if=("not seed",)))
    await world.visit()
    assert await world.reason(f"{A}/") == "noindex"


async def test_every_fact_of_a_page_has_its_value(world: World) -> None:
    facts = 'status == 200 and type == "text/html" and title == "A page" and text_length == 4 and depth == 0'
    await world.open(
        f"{A}/", script={f"{A}/": page("<title>A page</title><p>fünf")}, rules=rules(store_if=(f"not ({facts})",))
    )
    await world.visit()
    assert (await world.states())[f"{A}/"] == "blocked"


async def test_sitemaps_are_read_whatever_the_rules_say_and_their_urls_obey_them(world: World) -> None:
    world.sitemaps = True
    urls = f"<urlset><url><loc>{A}/docs/1</loc></url><url><loc>{A}/other</loc></url></urlset>"
    script = {f"{A}/docs/": page(), f"{A}/map.xml": page(urls, "text/xml")}
    await world.open(f"{A}/docs/", script=script, rules=rules(accept=('path startswith "/docs/"',)))
    await world.keep_origin(A, f"Sitemap: {A}/map.xml", valid_for=1e6)
    await world.visit()
    await world.visit_next()
    states = {f"{A}/docs/": "done", f"{A}/map.xml": "read", f"{A}/docs/1": "pending"}
    assert await world.states() == states
    assert (await world.frontier.counts()).not_accepted == {"rule-1": 1}
