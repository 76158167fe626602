"""URLs that only other domains name come after a domain's own, in its visits and in its queue."""

from __future__ import annotations

import pytest

from rove.frontier.capacity import FOREIGN_URLS_READ
from rove.frontier.contract import Frontier
from rove.frontier.priority import LEASES_PER_FOREIGN_TURN
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Deferred, Lease
from rove.policy import budget
from rove.policy.languages import OTHER_LANGUAGE
from tests.contract.harness import DELAY, Harness, url, visited

DONE = UrlState.DONE
ROOM = 8
HORIZON = DELAY * ROOM / budget.MULTIPLE


@pytest.fixture(autouse=True)
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FEWEST_VISITS", 1)


def own(numbers: range, depth: int = 1) -> list[NewUrl]:
    return [url(f"http://a.test/own/{number}", depth=depth) for number in numbers]


def foreign(numbers: range, depth: int = 1, **more: object) -> list[NewUrl]:
    return [url(f"http://a.test/junk/{number}", depth=depth, is_foreign=True, **more) for number in numbers]


async def leased(frontier: Frontier) -> Lease:
    (lease,) = await frontier.claim(1)
    return lease


async def visit_all(harness: Harness, frontier: Frontier) -> list[str]:
    """Visit the domain until nothing is pending; return the paths in the order of the visits."""
    paths = []
    while leases := await frontier.claim(1):
        paths.append(leases[0].urls[0].url.removeprefix("http://a.test"))
        await frontier.settle([visited(leases[0], DONE)])
        harness.advance(DELAY)
    return paths


async def test_links_of_pages_in_other_languages_come_after_all_depths_of_their_kind(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add(foreign(range(1), penalty=OTHER_LANGUAGE))
    await frontier.add(foreign(range(1, 2), depth=9))
    await frontier.add([link._replace(penalty=OTHER_LANGUAGE) for link in own(range(2))])
    await frontier.add(own(range(2, 3), depth=900))
    visits = await visit_all(harness, frontier)
    assert visits == ["/own/2", "/own/0", "/own/1", "/junk/1", "/junk/0"]


async def pending(harness: Harness) -> int:
    (counted,) = (await harness.counted_pending()).values()
    assert counted[0] == counted[1]
    return counted[1]


async def known(frontier: Frontier, urls: list[NewUrl]) -> int:
    return len(await frontier.states([(u.domain, u.fingerprint) for u in urls]))


async def test_they_get_one_visit_of_sixteen_while_the_domain_has_urls_of_its_own(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add(foreign(range(40)))
    await frontier.add(own(range(40), depth=5))
    visits = await visit_all(harness, frontier)
    assert len(visits) == 80
    own_visits = [path.startswith("/own") for path in visits]
    turns = [number for number, is_own in enumerate(own_visits[:42], start=1) if not is_own]
    assert turns == [LEASES_PER_FOREIGN_TURN, 2 * LEASES_PER_FOREIGN_TURN]
    assert all(own_visits[number] for number in range(42) if number + 1 not in turns)
    assert not any(own_visits[42:])


async def test_they_are_visited_at_full_pace_if_nothing_else_is_pending(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add(foreign(range(3), depth=2))
    await frontier.add(foreign(range(5, 8), depth=1))
    assert await visit_all(harness, frontier) == [f"/junk/{number}" for number in (5, 6, 7, 0, 1, 2)]


async def test_a_retry_of_the_domain_comes_before_them(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([*own(range(1), depth=0), *foreign(range(5))])
    lease = await leased(frontier)
    (seed, _) = lease.urls
    later = Deferred(fingerprint=seed.fingerprint, seconds=DELAY * 2, attempts=1, failing=False)
    await frontier.settle([visited(lease, deferred=[later])])
    harness.advance(DELAY)
    lease = await leased(frontier)
    assert [u.url for u in lease.urls] == [f"http://a.test/junk/{n}" for n in (0, 1)], "the retry is not due yet"
    await frontier.settle([visited(lease, DONE)])
    harness.advance(DELAY)
    assert (await leased(frontier)).urls[0].url == "http://a.test/own/0"


async def test_more_urls_go_on_with_them(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([*foreign(range(3)), *own(range(3), depth=2)])
    lease = await leased(frontier)
    more = await frontier.more(lease, lease.urls[-1], 10)
    paths = [u.url.removeprefix("http://a.test/") for u in (*lease.urls, *more)]
    assert paths == ["own/0", "own/1", "own/2", "junk/0", "junk/1", "junk/2"]


async def test_they_use_free_room_and_make_way_for_the_domains_own(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    junk, pages = foreign(range(20)), own(range(6), depth=9)
    assert (await frontier.add(junk)).unseen == ROOM
    added = await frontier.add(pages)
    assert added.unseen == len(pages)
    assert (await known(frontier, pages), await known(frontier, junk)) == (6, 2)
    assert await pending(harness) == ROOM
    counts = await frontier.counts()
    assert (counts.not_accepted["budget"], counts.evicted) == (12 + 6, 6)
    assert (await frontier.add(foreign(range(30, 40)))).unseen == 0
    assert await pending(harness) == ROOM


async def test_no_more_are_deleted_than_were_added(harness: Harness) -> None:
    frontier = await harness.open(horizon=2 * HORIZON)
    junk = foreign(range(2 * ROOM))
    await frontier.add(junk)
    shorter = await harness.open(horizon=HORIZON)
    assert (await shorter.add(own(range(3)))).unseen == 3
    assert await pending(harness) == 2 * ROOM
    assert await shorter.excess() == await shorter.drop_excess() == ROOM
    assert await known(shorter, own(range(3))) == 3


async def test_a_foreign_sitemap_is_trimmed_and_the_domains_own_is_not(harness: Harness) -> None:
    frontier = await harness.open(horizon=HORIZON)
    maps = foreign(range(20), sitemap_of="b.test")
    mine = [url(f"http://a.test/{n}.xml", sitemap_of="a.test") for n in range(3)]
    await frontier.add(maps)
    await frontier.add([*mine, *own(range(ROOM - 3))])
    assert (await known(frontier, maps), await known(frontier, mine)) == (0, 3)
    assert (await frontier.add(foreign(range(50, 60), sitemap_of="b.test"))).unseen == 0
    assert await pending(harness) == ROOM


async def test_a_url_that_its_own_domain_names_later_becomes_its_own(harness: Harness) -> None:
    frontier = await harness.open()
    junk = foreign(range(4), depth=3, hops=5, sitemap_of="b.test")
    await frontier.add(junk)
    named = junk[2]._replace(is_foreign=False, depth=1, hops=0, sitemap_of="")
    deeper = junk[3]._replace(is_foreign=False, depth=7, sitemap_of="a.test")
    added = await frontier.add([named, deeper, deeper._replace(depth=6), junk[0], *own(range(1), depth=2)])
    assert (added.unseen, added.refused) == (1, frozenset())
    lease = await leased(frontier)
    first, second, third, *rest = [*lease.urls, *await frontier.more(lease, lease.urls[-1], 9)]
    assert (first.url, first.depth, first.hops, first.sitemap_of) == (named.url, 1, 0, "")
    assert second.url == "http://a.test/own/0"
    assert (third.url, third.depth, third.sitemap_of) == (deeper.url, 3, "a.test"), "the shorter way counts"
    assert [(u.url, u.depth, u.hops) for u in rest] == [(u.url, 3, 5) for u in junk[:2]]


async def test_a_url_is_found_among_more_foreign_ones_than_an_add_reads(harness: Harness) -> None:
    frontier = await harness.open()
    junk = foreign(range(FOREIGN_URLS_READ + 10))
    await frontier.add(junk)
    await frontier.add([junk[-1]._replace(is_foreign=False, depth=9)])
    assert (await leased(frontier)).urls[0].url == junk[-1].url


async def test_settled_and_waiting_urls_stay_as_they_are(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add(foreign(range(3)))
    lease = await leased(frontier)
    later = Deferred(fingerprint=lease.urls[1].fingerprint, seconds=DELAY, attempts=1, failing=False)
    await frontier.settle([visited(lease, DONE, deferred=[later])])
    named = [u._replace(is_foreign=False) for u in foreign(range(2))]
    assert (await frontier.add(named)).unseen == 0
    states = await frontier.states([(u.domain, u.fingerprint) for u in named])
    assert list(states.values()) == [DONE, UrlState.PENDING]
    harness.advance(DELAY)
    (waiting, *_) = (await leased(frontier)).urls
    assert (waiting.url, waiting.attempts) == (named[1].url, 1)


async def test_of_equal_urls_in_one_add_the_domains_own_counts(harness: Harness) -> None:
    frontier = await harness.open()
    junk = foreign(range(2))
    added = await frontier.add([*junk, junk[1]._replace(is_foreign=False, depth=4)])
    assert added.unseen == 2
    assert (await leased(frontier)).urls[0].url == junk[1].url


async def test_a_seed_is_never_foreign(harness: Harness) -> None:
    frontier = await harness.open()
    junk = foreign(range(3))
    await frontier.add(junk)
    assert await frontier.mark_seeds([(junk[2].domain, junk[2].fingerprint)]) == 1
    assert (await leased(frontier)).urls[0].url == junk[2].url
