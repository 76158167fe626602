"""No site can fill another's queue: a victim's own pages are visited as if nobody had named others."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rove.frontier.priority import LEASES_PER_FOREIGN_TURN
from tests.acceptance.command import crawl_options, started, wait_for, write_lines
from tests.acceptance.results import check_books, frontier_rows
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.zoo.foreign_links import Flood, ForeignLinks, flooding, is_own

DELAY = 0.1
HORIZON = 6.0
ROOM = 240
PAGES = 25
scenario = Scenarios()


def crawl_until_all_own_pages_are_seen(folder: Path, flood: Flood, *options: object) -> None:
    """Crawl one victim beside a flood; most visits go to the victim's own pages, and its queue stays bounded."""
    attack = ForeignLinks(flood=flood, pages=PAGES)
    data, host = folder / "data", attack.names[0]
    seeds = write_lines(folder / "seeds.txt", *attack.seeds)
    with flooding(attack) as web:

        def own() -> list[int]:
            """Return which of the pages that the victim answered for were its own, by their place."""
            asked = [request.path for request in web.requests_to(host) if request.path != "/robots.txt"]
            return [place for place, path in enumerate(asked) if is_own(path)]

        command = ["crawl", seeds, *crawl_options(data, delay=DELAY), *web.reach, "--horizon", f"{HORIZON:g}s"]
        with started(*command, *options) as crawling:
            wait_for(lambda: len(own()) == PAGES)
            crawling.send_signal(signal.SIGINT)
            crawling.communicate(timeout=60)
        others = own()[-1] + 1 - PAGES
        assert others <= 1 + PAGES // (LEASES_PER_FOREIGN_TURN - 1)
    check_books(data, web.urls)
    pending = f"SELECT pending FROM domain WHERE name = '{host}'"
    ((waiting,),) = frontier_rows(data, pending)
    assert 0 < waiting <= ROOM, "the flood may use the room that is free, and no more"


@scenario
def links_of_one_page(tmp_path: Path) -> None:
    """Two thousand links of one page are behind the pages that the victim names itself, however deep those are."""
    crawl_until_all_own_pages_are_seen(tmp_path, Flood.LINKS)


@scenario
def sitemap_lines_of_many_hosts(tmp_path: Path) -> None:
    """A sitemap that only other sites name is an ordinary link."""
    crawl_until_all_own_pages_are_seen(tmp_path, Flood.SITEMAPS, "--sitemaps")


@pytest.mark.parametrize("scenario", scenario.names)
def test_foreign_links(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
