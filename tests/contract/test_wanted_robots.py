"""Robots.txt files that other domains wait for, in every frontier."""

from __future__ import annotations

import asyncio

from rove.frontier.contract import Frontier
from rove.frontier.records import MAX_WANTED_ROBOTS
from rove.model.urls import NewUrl, NotAccepted, UrlState
from rove.model.visits import Lease, OriginRecord, RobotsStatus
from tests.contract.harness import DELAY, Harness, url, visited
from tests.urls import FORM, canonical

READ, FAILED, BLOCKED = UrlState.READ, UrlState.FAILED, UrlState.BLOCKED


def wanted(origin: str) -> NewUrl:
    """Return the URL that asks for the robots.txt of an origin."""
    parsed = canonical(f"{origin}/robots.txt")
    assert parsed is not None
    return parsed.new_url(depth=0)._replace(fingerprint=FORM.robots_fingerprint(parsed.origin))


B = wanted("http://b.test")


async def the_lease(frontier: Frontier) -> Lease:
    (lease,) = await frontier.claim(5)
    return lease


async def check_pending(harness: Harness) -> None:
    assert all(counter == counted for counter, counted in (await harness.counted_pending()).values())


async def test_a_wanted_robots_txt_makes_its_domain_due(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.want_robots([B])
    lease = await the_lease(frontier)
    (pending,) = lease.urls
    assert (lease.name, pending.url, pending.is_robots) == ("b.test", "http://b.test/robots.txt", True)
    assert await frontier.settle([visited(lease, READ)]) == 1
    assert await frontier.next_due() is None
    counts = await frontier.counts()
    assert (counts.urls[READ], counts.urls_pending, counts.domains["idle"]) == (1, 0, 1)
    await check_pending(harness)


async def test_it_does_not_come_before_the_delay_has_passed(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://b.test/")])
    await frontier.settle([visited(await the_lease(frontier), UrlState.DONE)])
    await frontier.want_robots([B])
    assert await frontier.claim(5) == []
    harness.advance(DELAY)
    assert (await the_lease(frontier)).urls[0].is_robots


async def test_it_comes_before_the_pages_of_its_domain(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://b.test/{i}") for i in range(5)])
    await frontier.want_robots([B])
    lease = await the_lease(frontier)
    assert [pending.is_robots for pending in lease.urls] == [True, False]
    more = await frontier.more(lease, lease.urls[0], 10)
    assert len(more) == 5 and not any(pending.is_robots for pending in more)


async def test_it_is_not_the_page_of_the_same_url(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://b.test/robots.txt", 1)])
    await frontier.want_robots([B])
    lease = await the_lease(frontier)
    assert [pending.is_robots for pending in lease.urls] == [True, False]


async def test_any_number_of_origins_may_want_it(harness: Harness) -> None:
    frontier, other = await harness.open(), await harness.open()
    await asyncio.gather(*(side.want_robots([B, B]) for side in (frontier, other) for _ in range(10)))
    assert (await frontier.counts()).urls_pending == 1
    await check_pending(harness)


async def test_it_is_pending_again_when_it_is_wanted_again(harness: Harness) -> None:
    frontier = await harness.open()
    for state in (READ, FAILED, BLOCKED, READ):
        await frontier.want_robots([B])
        lease = await the_lease(frontier)
        assert lease.urls[0].attempts == 0
        await frontier.settle([visited(lease, state, requested=False)])
        counts = await frontier.counts()
        assert {one: number for one, number in counts.urls.items() if number} == {state: 1}
        assert sum(counts.blocked.values()) == (state is BLOCKED)
        await check_pending(harness)


async def test_while_it_is_leased_it_is_not_wanted_again(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.want_robots([B])
    lease = await the_lease(frontier)
    await frontier.want_robots([B])
    await frontier.settle([visited(lease, READ)])
    harness.advance(DELAY)
    assert await frontier.claim(5) == []


async def test_a_domain_has_only_some_of_them_pending(harness: Harness) -> None:
    """Wildcard names give a domain any number of origins; others must not be able to fill its queue with them."""
    frontier = await harness.open()
    for i in range(0, 30, 3):
        await frontier.want_robots([wanted(f"http://h{i + k}.b.test") for k in range(3)])
    counts = await frontier.counts()
    assert counts.urls_pending == MAX_WANTED_ROBOTS
    assert counts.not_accepted == {"budget": 30 - MAX_WANTED_ROBOTS}
    await frontier.want_robots([wanted("http://h0.b.test"), wanted("http://c.test")])
    counts = await frontier.counts()
    assert counts.urls_pending == MAX_WANTED_ROBOTS + 1
    assert counts.not_accepted == {"budget": 30 - MAX_WANTED_ROBOTS}, "a pending one is not counted again"
    lease = next(lease for lease in await frontier.claim(5) if lease.name == "b.test")
    await frontier.settle([visited(lease, READ, requested=False)])
    await frontier.want_robots([wanted("http://h29.b.test")])
    assert (await frontier.counts()).urls_pending == MAX_WANTED_ROBOTS + 1
    await check_pending(harness)


async def test_its_domain_is_not_a_domain_of_the_seeds(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.want_robots([B])
    link = url("http://b.test/page", 1)
    added = await frontier.add([link], refuse_new_domains=NotAccepted.OUT_OF_SCOPE)
    assert added.unseen == 0 and (await frontier.counts()).not_accepted == {"out-of-scope": 1}
    record = await harness.reader().domain(B.domain)
    assert record is not None and not record.has_urls
    await frontier.add([url("http://b.test/seed")])
    assert (await frontier.add([link], refuse_new_domains=NotAccepted.OUT_OF_SCOPE)).unseen == 1
    record = await harness.reader().domain(B.domain)
    assert record is not None and record.has_urls


async def test_an_exclusion_blocks_it(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.want_robots([B])
    assert await frontier.exclude({B.domain: "b.test"}) == 1
    assert await frontier.claim(5) == []
    await check_pending(harness)


async def test_nothing_is_wanted(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.want_robots([])
    assert (await frontier.counts()).urls_pending == 0


async def test_a_record_keeps_what_it_waits_for(harness: Harness) -> None:
    frontier = await harness.open()
    record = OriginRecord(
        domain=7,
        origin="http://a.test",
        status=RobotsStatus.UNREACHABLE,
        valid_for=10.0,
        hops=3,
        waits_for="http://b.test/robots.txt",
    )
    await frontier.put_origins([record])
    assert await frontier.origins([(7, "http://a.test")]) == [record]
    await frontier.put_origins([record.replace(hops=0, waits_for="")])
    assert (await frontier.origins([(7, "http://a.test")]))[0].waits_for == ""
