"""Rules that change while URLs wait: in every frontier, in slices, from where a killed process stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rove.admin.apply_rules import RulesApplier
from rove.config import Settings
from rove.frontier.contract import Frontier
from rove.model.urls import UrlState
from rove.policy.rules import Rules
from tests.contract.harness import Harness, url, visited

TAG = 'path ~ "/tag/"'
PENDING, BLOCKED, DONE = UrlState.PENDING, UrlState.BLOCKED, UrlState.DONE
TEXTS = [
    f"http://{host}.test/{path}"
    for host in "abcdefg"
    for path in (*(f"tag/{i}" for i in range(6)), "one", "two", "three")
]


@pytest.fixture(autouse=True)
def small_slices(harness: Harness) -> None:
    """Settle URLs in slices of four."""
    harness.slice = 4


def settings(**rules: Any) -> Settings:
    return Settings(email="me@crawler.test", **rules).with_numbers()


def applier(harness: Harness, frontier: Frontier, rules: Rules, said: list[str] | None = None) -> RulesApplier:
    return RulesApplier(
        frontier, harness.catalog(), rules, say=(said if said is not None else []).append, domains_per_slice=3
    )


async def states(frontier: Frontier) -> dict[str, UrlState]:
    urls = {text: url(text) for text in TEXTS}
    by_key = await frontier.states([(u.domain, u.fingerprint) for u in urls.values()])
    return {text: by_key[u.domain, u.fingerprint] for text, u in urls.items()}


async def blocked(frontier: Frontier) -> set[str]:
    return {text for text, state in (await states(frontier)).items() if state is BLOCKED}


async def check(harness: Harness, frontier: Frontier) -> None:
    """Check the counters against the rows."""
    pending = await harness.counted_pending()
    assert all(counter == counted for counter, counted in pending.values()), pending
    counts = await frontier.counts()
    found = await states(frontier)
    assert counts.urls_pending == sum(counted for _, counted in pending.values())
    assert counts.urls[BLOCKED] == sum(state is BLOCKED for state in found.values()) == sum(counts.blocked.values())


async def opened(harness: Harness) -> Frontier:
    frontier = await harness.open()
    await frontier.add([url(text, depth=index % 3) for index, text in enumerate(TEXTS)])
    return frontier


async def test_urls_leave_the_queue_with_a_rule_and_come_back_without_it(harness: Harness) -> None:
    frontier, said = await opened(harness), list[str]()
    first = settings(reject=(TAG,))
    tags = {text for text in TEXTS if "/tag/" in text}
    assert await applier(harness, frontier, first.rules).begins()
    await applier(harness, frontier, first.rules, said).apply()
    assert said == ["the rules have changed: 42 pending URLs blocked, 0 pending again"]
    assert await blocked(frontier) == tags
    await check(harness, frontier)
    assert (await frontier.counts()).blocked == {f"rejected by rule 1: {TAG}": 42}
    assert not await applier(harness, frontier, first.rules).begins()
    # Another rule: some are rejected by both, some come back, others go.
    second = replace(first, reject=('path in ("/tag/1", "/one")',), accept=("same_host", "depth < 2")).with_numbers()
    await applier(harness, frontier, second.rules, said).apply()
    assert said[1:] == ["the rules have changed: 7 pending URLs blocked, 35 pending again"]
    assert await blocked(frontier) == {text for text in TEXTS if text.endswith(("/tag/1", "/one"))}
    await check(harness, frontier)
    # No rule at all.
    assert await applier(harness, frontier, settings().rules).begins()
    await applier(harness, frontier, settings().rules, said).apply()
    assert said[2:] == ["the rules have changed: 0 pending URLs blocked, 14 pending again"]
    assert await blocked(frontier) == set()
    await check(harness, frontier)
    assert not await applier(harness, frontier, settings().rules).begins()


async def test_a_new_crawl_without_rules_has_nothing_to_do(harness: Harness) -> None:
    frontier = await opened(harness)
    assert not await applier(harness, frontier, settings(store_if=("seed",)).rules).begins()


@pytest.mark.parametrize("finished", [2, 5])
async def test_a_killed_process_is_followed_by_one_that_goes_on(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, finished: int
) -> None:
    frontier = await opened(harness)
    rules = settings(reject=(TAG,)).rules
    judged: list[int] = []
    rejudge = frontier.rejudge

    async def counted(domain: int, judge: Any) -> int:
        if len(judged) == finished:
            raise KeyboardInterrupt
        judged.append(domain)
        return await rejudge(domain, judge)

    monkeypatch.setattr(frontier, "rejudge", counted)
    with pytest.raises(KeyboardInterrupt):
        await applier(harness, frontier, rules).apply()
    await check(harness, frontier)
    monkeypatch.undo()
    resumed = await harness.open()
    said: list[str] = []
    assert await applier(harness, resumed, rules).begins()
    judged.clear()
    progress = await applier(harness, resumed, rules, said).apply()
    assert len(await blocked(resumed)) == 42
    # What was blocked in a slice that was not finished is not counted twice.
    assert progress.blocked == 42 - 2 * 6 and progress.after is None
    await check(harness, resumed)


async def test_other_blocked_urls_sitemaps_and_leases_are_left_alone(harness: Harness) -> None:
    frontier = await harness.open()
    urls = [url(f"http://a.test/tag/{i}") for i in range(3)]
    sitemap = url("http://a.test/tag/map.xml")._replace(sitemap_of="a.test")
    await frontier.add([*urls, sitemap])
    await frontier.want_robots([url("http://a.test/tag/robots.txt")])
    (lease,) = await frontier.claim(1)
    await frontier.withdraw(urls[0].domain, BLOCKED, "excluded", lambda text: text.endswith("/0"))
    rules = settings(reject=(TAG,)).rules
    await applier(harness, frontier, rules).apply()
    counts = await frontier.counts()
    assert counts.blocked == {"excluded": 1, f"rejected by rule 1: {TAG}": 2}
    assert counts.urls_pending == 2, "the sitemap and the robots.txt"
    assert await frontier.settle([visited(lease, requested=False)]) == 1
    await applier(harness, frontier, settings().rules).apply()
    assert (await frontier.counts()).blocked == {"excluded": 1}
