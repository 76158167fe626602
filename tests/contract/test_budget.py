"""A domain keeps only as many URLs as its budget allows, and keeps the best ones."""

from __future__ import annotations

import pytest

from rove.frontier.capacity import MEMORY_SECONDS
from rove.frontier.contract import Frontier
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Deferred, OriginRecord, Pace, RobotsStatus, Settled, VisitResult
from rove.policy import budget
from tests.contract.harness import DELAY, Harness, first_urls, url, visited

DONE = UrlState.DONE
ROOM = 8
HORIZON = DELAY * ROOM / budget.MULTIPLE


@pytest.fixture(autouse=True)
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FEWEST_VISITS", 1)


def links(numbers: range, depth: int = 1, name: str = "a.test") -> list[NewUrl]:
    return [url(f"http://{name}/{number}", depth=depth) for number in numbers]


async def pending(harness: Harness, frontier: Frontier, name: str = "a.test") -> int:
    """Return the number of pending URLs of a domain, and check all counters of pending URLs."""
    counted = await harness.counted_pending()
    assert all(counter == rows for counter, rows in counted.values())
    counts = await frontier.counts()
    assert counts.urls_pending == sum(rows for _, rows in counted.values())
    return counted[url(f"http://{name}/").domain][1]


async def refused(frontier: Frontier) -> int:
    return (await frontier.counts()).not_accepted.get("budget", 0)


async def known(frontier: Frontier, urls: list[NewUrl]) -> list[bool]:
    states = await frontier.states([(u.domain, u.fingerprint) for u in urls])
    return [(u.domain, u.fingerprint) in states for u in urls]


async def test_urls_that_do_not_fit_are_counted_and_deleted(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    urls = links(range(20))
    added = await frontier.add([*urls, *links(range(3), name="b.test")])
    assert added.unseen == ROOM + 3
    assert added.refused == {(u.domain, u.fingerprint) for u in urls[ROOM:]}
    assert await pending(harness, frontier) == ROOM
    assert await known(frontier, urls) == [True] * ROOM + [False] * 12
    assert await refused(frontier) == 12
    more = await frontier.add(links(range(30, 35)))
    assert (more.unseen, len(more.refused)) == (0, 5)
    assert await refused(frontier) == 17, "URLs that were dropped before the database are counted too"
    assert await pending(harness, frontier) == ROOM


async def test_a_shallower_url_pushes_out_a_deeper_one(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    deep, shallow = links(range(ROOM), depth=3), links(range(50, 53), depth=2)
    await frontier.add(deep)
    assert await refused(frontier) == 0
    added = await frontier.add(shallow)
    assert added.unseen == 3
    assert await known(frontier, [*deep, *shallow]) == [True] * 5 + [False] * 3 + [True] * 3
    assert added.refused == {(u.domain, u.fingerprint) for u in deep[5:]}
    assert (await frontier.counts()).evicted == 3
    again = await frontier.add([*links(range(60, 61), depth=1), *deep[5:]])
    assert again.unseen == 1
    assert again.refused == {(u.domain, u.fingerprint) for u in deep[4:]}
    assert await pending(harness, frontier) == ROOM
    assert await refused(frontier) == 3 + 4


async def test_the_oldest_of_a_class_stay(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    first, second = links(range(6)), links(range(10, 16))
    await frontier.add(first)
    await frontier.add(second)
    assert await known(frontier, first + second) == [True] * 8 + [False] * 4


async def test_seeds_and_sitemaps_are_always_kept(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    seeds = links(range(ROOM + 4), depth=0)
    sitemaps = [url(f"http://a.test/{i}.xml", depth=1, sitemap_of="a.test") for i in range(3)]
    assert (await frontier.add(seeds)).unseen == ROOM + 4
    page = links(range(90, 91))
    assert (await frontier.add([*sitemaps, *page])).unseen == 3
    assert await known(frontier, [*seeds, *sitemaps, *page]) == [True] * (ROOM + 7) + [False]
    assert (await frontier.add([*links(range(95, 96), depth=0), *page])).unseen == 1
    assert await refused(frontier) == 2


async def test_a_fetched_url_is_exempt_until_it_is_settled(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    await frontier.add(links(range(ROOM)))
    (target,) = links(range(70, 71))
    for _ in range(2):
        added = await frontier.add([target, *links(range(80, 84))], exempt={(target.domain, target.fingerprint)})
        assert (target.domain, target.fingerprint) not in added.refused
    assert await known(frontier, [target]) == [True]
    (lease,) = await frontier.claim(1)
    fetched = Settled(fingerprint=target.fingerprint, state=DONE)
    visit = VisitResult(lease=lease, requested=True, since_finish=0.0, settled=[fetched])
    await frontier.settle([visit])
    assert (await frontier.counts()).urls[DONE] == 1
    assert await pending(harness, frontier) == ROOM - 1


async def test_retries_are_never_trimmed_and_a_domain_with_only_retries_is_not_woken(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    seeds = links(range(ROOM), depth=0)
    await frontier.add(seeds)
    for _ in range(2):
        (lease,) = await frontier.claim(1)
        put_off = [
            Deferred(fingerprint=u.fingerprint, seconds=10_000.0, attempts=1, failing=False)
            for u in await first_urls(frontier, lease, ROOM // 2)
        ]
        await frontier.settle([visited(lease, deferred=put_off)])
        harness.advance(DELAY)
    assert (await frontier.add(links(range(90, 92)))).unseen == 0
    assert await frontier.claim(1) == []
    assert (await frontier.counts()).without_request == {}, "nothing was leased in vain"
    assert await known(frontier, seeds) == [True] * ROOM
    harness.advance(10_000.0)
    assert len(await frontier.claim(1)) == 1


async def test_visits_make_room_again(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    await frontier.add(links(range(20)))
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, *[DONE] * len(lease.urls))])
    harness.advance(MEMORY_SECONDS)
    added = await frontier.add(links(range(30, 40)))
    assert added.unseen == len(lease.urls)
    assert await pending(harness, frontier) == ROOM


async def test_a_longer_horizon_lets_more_in(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    urls = links(range(20))
    await frontier.add(urls)
    resumed = await harness.open(horizon=2 * HORIZON)
    assert (await resumed.add(urls)).unseen == ROOM
    assert await pending(harness, resumed) == 2 * ROOM


SMALLER = [{"horizon": HORIZON / 4}, {"horizon": HORIZON, "delay": 4 * DELAY}, {"max_pages_per_domain": 1}]


@pytest.mark.parametrize("options", SMALLER)
async def test_a_smaller_budget_deletes_nothing_that_was_accepted(harness: Harness, options: dict[str, float]) -> None:
    frontier = await harness.open(horizon=2 * HORIZON)
    urls = links(range(2 * ROOM), depth=2)
    await frontier.add(urls)
    resumed = await harness.open(**options)  # type: ignore[arg-type]
    assert (await resumed.add(links(range(50, 80), depth=2))).unseen == 0
    assert await known(resumed, urls) == [True] * (2 * ROOM)
    assert await refused(resumed) == 30, "what does not fit is counted"
    better = links(range(90, 93), depth=1)
    assert (await resumed.add(better)).unseen == 3
    assert await pending(harness, resumed) == 2 * ROOM, "better URLs take the places of as many worse ones"
    assert await known(resumed, better) == [True] * 3
    assert (await resumed.counts()).evicted == 3


async def test_the_excess_of_a_shorter_horizon_is_counted_and_dropped(harness: Harness) -> None:
    frontier = await harness.open(horizon=2 * HORIZON)
    seeds, deep = links(range(3), depth=0, name="b.test"), links(range(2 * ROOM), depth=2)
    await frontier.add([*deep, *seeds, *links(range(30, 30 + ROOM), name="b.test"), *links(range(5), name="c.test")])
    assert await frontier.excess() == 0
    assert await frontier.drop_excess() == 0
    shorter = await harness.open(horizon=HORIZON)
    assert await shorter.excess() == ROOM + 3
    assert await shorter.excess() == ROOM + 3, "counting changes nothing"
    assert await shorter.drop_excess() == ROOM + 3
    assert await known(shorter, deep) == [True] * ROOM + [False] * ROOM
    assert await known(shorter, seeds) == [True] * 3
    assert [await pending(harness, shorter, f"{name}.test") for name in "abc"] == [ROOM, ROOM, 5]
    assert await refused(shorter) == (await shorter.counts()).evicted == ROOM + 3
    assert await shorter.excess() == await shorter.drop_excess() == 0


async def test_the_excess_of_seeds_alone_is_nothing(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    await frontier.add(links(range(3 * ROOM), depth=0))
    assert await frontier.excess() == await frontier.drop_excess() == 0


async def test_many_domains_are_trimmed_in_slices(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    for backend in ("sqlite", "postgres"):
        monkeypatch.setattr(f"rove.frontier.{backend}.add.DOMAINS_PER_SLICE", 2)
    frontier = await harness.open(horizon=2 * HORIZON)
    await frontier.add([u for n in range(5) for u in links(range(ROOM + 2), name=f"d{n}.test")])
    shorter = await harness.open(horizon=HORIZON)
    assert await shorter.excess() == await shorter.drop_excess() == 10
    assert [await pending(harness, shorter, f"d{n}.test") for n in range(5)] == [ROOM] * 5


async def test_pages_per_domain_bound_it_too(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=2)
    await frontier.add(links(range(20)))
    assert await pending(harness, frontier) == 2 * budget.MULTIPLE


async def test_a_domain_that_wants_to_be_asked_seldom_or_repeats_itself_has_less_room(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    names = ("slow.test", "same.test")
    await frontier.add([u for name in names for u in links(range(ROOM), name=name)])
    leases = {lease.name: lease for lease in await frontier.claim(2)}
    record = OriginRecord(
        domain=leases["slow.test"].domain,
        origin="http://slow.test",
        status=RobotsStatus.RULES,
        crawl_delay=2 * DELAY,
        valid_for=1_000.0,
    )
    await frontier.put_origins([record])
    await frontier.settle([visited(leases["slow.test"]), visited(leases["same.test"], pace=Pace(repeats=0.5))])
    more = [u for name in names for u in links(range(90, 93), name=name)]
    assert (await frontier.add(more)).unseen == 0
    assert [await pending(harness, frontier, name) for name in names] == [ROOM] * 2, "what was accepted stays"
    assert await known(frontier, more) == [False] * 6
    assert await refused(frontier) == 6
    assert (await frontier.counts()).evicted == 0


async def test_a_lease_of_trimmed_urls_settles_the_rest(harness: Harness) -> None:
    frontier = await harness.open(horizon=DELAY / budget.MULTIPLE)
    deep = links(range(4), depth=3)
    await frontier.add(deep)
    (lease,) = await frontier.claim(1)
    lease = lease.replace(urls=await first_urls(frontier, lease, 4))
    await frontier.add(links(range(50, 53), depth=1))
    assert await known(frontier, deep) == [True, False, False, False]
    assert await frontier.settle([visited(lease, *[DONE] * 4)]) == 1
    assert await pending(harness, frontier) == 3
    assert (await frontier.counts()).urls[DONE] == 1
