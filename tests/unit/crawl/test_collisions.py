"""A site whose domain has the id of another, produced on purpose: the other is visited as if it did not exist."""

from __future__ import annotations

import pytest

from rove.urls.canonical import CrawlUrl, UrlForm
from rove.urls.keyed_hash import keyed_hash
from tests.contract.harness import DELAY
from tests.unit.crawl.scripted import World, page, page_with_links, redirect, robots
from tests.urls import KEY

A, VICTIM, FORGED = "http://a.test", "http://victim.test", "http://forged.test"
SILENCE = robots("User-agent: *\nCrawl-delay: 100000\n")

_number = keyed_hash(KEY.secret)


def number(data: bytes) -> int:
    """Give the forged domain the id of the victim."""
    return _number(b"victim.test" if data == b"forged.test" else data)


@pytest.fixture
def world(world: World) -> World:
    world.form = UrlForm(KEY, hash=number)
    return world


def in_form(world: World, text: str) -> CrawlUrl:
    url = world.form.canonical(text)
    assert url is not None
    return url


async def test_the_victim_is_visited_with_its_own_delay(world: World) -> None:
    assert in_form(world, f"{FORGED}/").domain == in_form(world, f"{VICTIM}/").domain
    script = {f"{A}/": page_with_links(f"{FORGED}/", f"{VICTIM}/2"), f"{FORGED}/robots.txt": SILENCE}
    script |= {f"{VICTIM}/{i}": page() for i in (1, 2)}
    await world.open(f"{VICTIM}/1", f"{A}/", script=script)
    waits = []
    for _ in range(3):
        waited, _ = await world.visit_next()
        waits.append(waited)
    assert world.fetcher.pages_requested == [f"{VICTIM}/1", f"{A}/", f"{VICTIM}/2"]
    assert waits == [0.0, 0.0, DELAY]
    assert await world.states() == {f"{VICTIM}/1": "done", f"{VICTIM}/2": "done", f"{A}/": "done"}
    assert (await world.counters())["not_accepted.collision"] == 1
    assert not [url for url in world.fetcher.requested if url.startswith(FORGED)]


async def test_a_redirect_to_the_forged_site_is_not_followed_in_a_visit_of_the_victim(world: World) -> None:
    await world.open(f"{VICTIM}/", script={f"{VICTIM}/": redirect(f"{FORGED}/")})
    await world.visit()
    assert world.fetcher.pages_requested == [f"{VICTIM}/"]
    assert await world.states() == {f"{VICTIM}/": "redirected"}
