"""What the dashboard reads from a frontier by itself, on both databases."""

from __future__ import annotations

import pytest

from rove.admin.preview import Match, preview
from rove.model.samples import Sample
from rove.observe.dashboard.lately import read_lately
from rove.observe.dashboard.link_totals import LinkTotals
from tests.contract.harness import Harness, url
from tests.urls import FORM

NOON = 1_700_000_000_000 - 1_700_000_000_000 % 600_000


def sample(ended: int, **figures: float) -> Sample:
    """Return a sample of ten seconds; `__` stands for a dot."""
    return Sample(
        node="", ended=ended, seconds=10.0, figures={name.replace("__", "."): value for name, value in figures.items()}
    )


async def test_links_to_known_urls_are_added_up_once(harness: Harness) -> None:
    frontier, now = await harness.open(), NOON / 1000
    totals = LinkTotals(clock=lambda: now, step=60.0)
    assert await totals.known(harness.reader()) == 0
    await frontier.add_samples([sample(NOON + 10_000 * i, links__known=5) for i in range(1, 31)])
    for _ in range(2):
        now = NOON / 1000 + 305
        assert await totals.known(harness.reader()) == 150
    await frontier.add_samples([sample(NOON + 310_000, links__known=7), sample(NOON + 370_000, links__known=1)])
    now = NOON / 1000 + 371
    assert await totals.known(harness.reader()) == 158


async def test_a_long_history_is_added_up_in_parts(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add_samples([sample(NOON + 60_000 * i, links__known=1) for i in range(1, 6)])
    totals = LinkTotals(seconds=-1.0, clock=lambda: NOON / 1000 + 300, step=60.0)
    assert [await totals.known(harness.reader()) for _ in range(6)] == [None] * 5 + [5]


async def test_the_last_hour_is_told_from_samples(harness: Harness) -> None:
    frontier = await harness.open()
    lately = await read_lately(harness.reader(), now=NOON / 1000)
    assert lately == {"polite": {}, "figures": {}}
    figures = {"pages__stored": 30, "pages__copy": 10, "links__found": 100, "links__new": 25, "margin__smallest": 0.5}
    more = {"ceiling": 8.0, "ceiling__used": 0.5, "cpu__1": 5.0, "rss__1": 2.0**30, "margin__smallest": 0.25}
    await frontier.add_samples([sample(NOON - 30_000, **figures), sample(NOON - 20_000, **figures | more)])
    lately = await read_lately(harness.reader(), now=NOON / 1000)
    hour = lately["last_hour"]
    assert (hour["pages"], hour["seconds"], hour["pages_per_s"]) == (80, 20, 4)
    assert hour["links"] == {"found": 200, "new": 50}
    assert lately["polite"] == {"margin": 0.25, "ceiling": 8.0, "used": 0.5}
    (machine,) = lately["figures"].values()
    assert {"name": "CPU", "value": "0.50 cores"} in machine and {"name": "memory", "value": "1.0 GiB"} in machine
    later = await read_lately(harness.reader(), now=NOON / 1000 + 3_000)
    assert later["figures"] == {} and "used" not in later["polite"], "that is not now any more"


async def names(harness: Harness, *patterns: str) -> dict[str, tuple[int, bool]]:
    """Return the domains that a preview finds: pending URLs, and whether it covers all of the domain."""
    found = await preview(harness.reader(), patterns, FORM)
    return {match.name: (match.pending, match.is_whole) for match in found.matches}


async def test_a_preview_finds_what_an_exclusion_would_touch(harness: Harness) -> None:
    frontier = await harness.open()
    for name, pages in {"shop-one.test": 3, "shop-two.test": 2, "other.test": 1, "a.co.uk": 4}.items():
        await frontier.add([url(f"http://www.{name}/{page}") for page in range(pages)])
    assert await names(harness, "other.test", "unknown.test") == {"other.test": (1, True)}
    assert await names(harness, "=www.other.test") == {"other.test": (1, False)}
    assert await names(harness, "shop-*.test") == {"shop-one.test": (3, True), "shop-two.test": (2, True)}
    assert await names(harness, "co.uk") == {"a.co.uk": (4, True)}
    part = await preview(harness.reader(), ["*-one.*"], FORM)
    assert part.matches == [Match(name="shop-one.test", pending=3, is_whole=True)] and part.pending == 3
    assert part.hosts_are_unknown and not part.has_more


@pytest.mark.parametrize("most", [1, 2])
async def test_a_preview_of_many_domains_says_that_there_are_more(harness: Harness, most: int) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://host{number}.test/") for number in range(5)])
    found = await preview(harness.reader(), ["host*"], FORM, most=most)
    assert len(found.matches) == most and found.has_more
