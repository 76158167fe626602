"""Seeds are marked, and failed URLs are tried again, in every frontier."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rove.admin.exclude import current_user
from rove.frontier.contract import Catalog, Frontier
from rove.frontier.priority import RETRIED
from rove.frontier.queries import load_migrations
from rove.frontier.retries import KnownUrl
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Deferred, Lease, OriginRecord, Pace, RobotsStatus
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from rove.policy.retry_filter import RetryFilter
from tests.contract.harness import BUDGET, DELAY, TICK, Harness, url, visited
from tests.contract.test_exclusions import check

DONE, FAILED, PENDING, REDIRECTED = UrlState.DONE, UrlState.FAILED, UrlState.PENDING, UrlState.REDIRECTED
EVERYTHING = RetryFilter()


@pytest.fixture(autouse=True)
def small_slices(harness: Harness) -> None:
    harness.slice = 3


async def known(frontier: Frontier, *texts: str) -> list[KnownUrl]:
    keys = [(u.domain, u.fingerprint) for u in map(url, texts)]
    by_key = {found.key: found for found in await frontier.known_urls(keys)}
    return [by_key[key] for key in keys if key in by_key]


async def begin(catalog: Catalog, filter: RetryFilter = EVERYTHING) -> int:
    return await catalog.begin_retry(filter, who=current_user(), delay=DELAY)


async def claim_one(frontier: Frontier) -> Lease:
    (lease,) = await frontier.claim(10)
    return lease


async def troubled(harness: Harness, domain: NewUrl | None = None) -> list[str]:
    slices = harness.reader().troubled(None if domain is None else domain.domain)
    return [found.url async for part in slices for found in part]


async def seeds(harness: Harness) -> list[str]:
    return [found.url async for part in harness.reader().seeds() for found in part]


def deferred(lease: Lease, *, failing: bool = False, reason: str = "connect", attempts: int = 1) -> Sequence[Deferred]:
    fingerprint = lease.urls[0].fingerprint
    return [Deferred(fingerprint=fingerprint, seconds=900.0, attempts=attempts, failing=failing, reason=reason)]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_the_index_of_troubled_urls_covers_all_that_wait(backend: str) -> None:
    (_, schema), *_ = load_migrations(backend)
    assert f"WHERE state = 3 OR state = 0 AND priority >= {RETRIED};" in schema


# Seeds


async def test_seeds_are_listed_in_the_order_in_which_they_were_given(harness: Harness) -> None:
    frontier = await harness.open()
    first = [url(f"http://s{i}.test/") for i in range(8)]
    await frontier.add(first, as_seeds=True)
    await frontier.add([url("http://s0.test/link", 1), url("http://other.test/", 1)])
    await frontier.add([url("http://later.test/"), first[0]], as_seeds=True)
    assert await seeds(harness) == [u.url for u in first] + ["http://later.test/"]


async def test_a_known_url_becomes_a_seed_and_comes_first(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/near", 1), url("http://a.test/far", 5)])
    far = url("http://a.test/far")
    assert (await frontier.add([far], as_seeds=True)).unseen == 0
    assert await seeds(harness) == []
    assert await frontier.mark_seeds([(far.domain, far.fingerprint), (far.domain, 12345)]) == 1
    assert await frontier.mark_seeds([(far.domain, far.fingerprint)]) == 0
    assert await seeds(harness) == ["http://a.test/far"]
    lease = await claim_one(frontier)
    assert [(u.url, u.depth) for u in lease.urls] == [("http://a.test/far", 0), ("http://a.test/near", 1)]
    await check(harness, frontier)


async def test_a_url_knows_the_pages_of_its_domain_and_why_it_waits(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/"), url("http://a.test/2")], as_seeds=True)
    await frontier.settle([visited(await claim_one(frontier), DONE)])
    harness.advance(DELAY)
    lease = await claim_one(frontier)
    await frontier.settle([visited(lease, deferred=deferred(lease, reason="timeout-connect"))])
    first, second = await known(frontier, "http://a.test/", "http://a.test/2")
    assert (first.state, first.pages, first.is_troubled) == (DONE, 1, False)
    assert (second.state, second.reason, second.attempts, second.is_waiting) == (PENDING, "timeout-connect", 1, True)
    harness.advance(900)
    lease = await claim_one(frontier)
    await frontier.settle([visited(lease, requested=False, deferred=deferred(lease, reason=""))])
    (second,) = await known(frontier, "http://a.test/2")
    assert second.reason == "timeout-connect", "a deferral without a new attempt keeps the reason"


# Retries


async def test_failed_urls_become_pending_and_come_first(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/bad", 3), url("http://b.test/")])
    leases = await frontier.claim(10)
    await frontier.settle([visited(lease, FAILED, pace=Pace(failures=1)) for lease in leases])
    await frontier.add([url("http://a.test/new", 1)])
    assert sorted(await troubled(harness)) == ["http://a.test/bad", "http://b.test/"]
    assert await troubled(harness, url("http://b.test/")) == ["http://b.test/"]
    retry = await begin(harness.catalog(), RetryFilter(error="dns", domain=1, domain_name="a.test"))
    bad = await known(frontier, "http://a.test/bad")
    assert await frontier.retry(bad, retry) == 1
    assert await frontier.retry(bad, retry) == 0, "it may be repeated"
    await check(harness, frontier)
    counts = await frontier.counts()
    assert (counts.urls[FAILED], counts.urls_pending) == (1, 2)
    assert await troubled(harness) == ["http://b.test/"]
    harness.advance(DELAY)
    lease = await claim_one(frontier)
    assert [(u.url, u.attempts) for u in lease.urls] == [("http://a.test/bad", 0), ("http://a.test/new", 0)]
    (record,) = await harness.catalog().retries()
    assert (record.id, record.urls, record.who, record.delay) == (retry, 1, current_user(), DELAY)
    assert record.filter == RetryFilter(error="dns", domain=1, domain_name="a.test")
    assert record.at == harness.now() - round(DELAY * 1000)


async def test_waiting_urls_are_due_and_their_robots_txt_is_requested_again(harness: Harness) -> None:
    frontier = await harness.open()
    a = url("http://a.test/")
    await frontier.add([a])
    lease = await claim_one(frontier)
    origin = OriginRecord(
        domain=a.domain, origin="http://a.test", status=RobotsStatus.UNREACHABLE, failures=5, valid_for=86_000.0
    )
    kept = OriginRecord(domain=a.domain, origin="https://a.test", status=RobotsStatus.NONE, valid_for=500.0)
    await frontier.put_origins([origin, kept])
    pace = Pace(failures=FAILURES_BEFORE_LEAVING)
    await frontier.settle([visited(lease, deferred=deferred(lease, failing=True), pace=pace, pause=9_000.0)])
    assert await frontier.next_due() is None, "the crawl would end without it"
    harness.advance(10)
    assert await frontier.retry(await known(frontier, a.url), await begin(harness.catalog())) == 1
    await check(harness, frontier)
    due = await frontier.next_due()
    assert due == pytest.approx(DELAY, abs=2 * TICK), "the pause after failures ends; the delay counts from now"
    (again,) = await frontier.origins([(a.domain, "http://a.test")])
    assert (again.failures, again.valid_for) == (0, 0.0)
    (other,) = await frontier.origins([(a.domain, "https://a.test")])
    assert other.valid_for == 490.0
    harness.advance(DELAY - 0.1)
    assert await frontier.claim(1) == []
    harness.advance(0.2)
    lease = await claim_one(frontier)
    assert (lease.pace.failures, lease.urls[0].attempts) == (0, 0)


@pytest.mark.parametrize("pace", [Pace(), Pace(backoff=600.0)], ids=["retry-after", "backoff"])
async def test_no_pause_that_a_server_asked_for_is_shortened(harness: Harness, pace: Pace) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/")])
    await frontier.settle([visited(await claim_one(frontier), FAILED, pace=pace, pause=600.0)])
    await frontier.retry(await known(frontier, "http://a.test/"), await begin(harness.catalog()))
    due = await frontier.next_due()
    assert due == pytest.approx(600.0, abs=2 * TICK)
    (record,) = [await harness.reader().domain(url("http://a.test/").domain)]
    assert record is not None and record.pace == pace


async def test_a_backoff_outlasts_the_failures_after_it(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/")])
    pace = Pace(backoff=600.0, failures=4)
    await frontier.settle([visited(await claim_one(frontier), FAILED, pace=pace, pause=8_000.0)])
    await frontier.retry(await known(frontier, "http://a.test/"), await begin(harness.catalog()))
    due = await frontier.next_due()
    assert due == pytest.approx(600.0, abs=2 * TICK)


async def test_a_retry_during_a_visit_waits_for_its_end(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    await frontier.settle([visited(await claim_one(frontier), FAILED)])
    harness.advance(DELAY)
    lease = await claim_one(frontier)
    await frontier.retry(await known(frontier, "http://a.test/1"), await begin(harness.catalog()))
    assert await frontier.next_due() == BUDGET + DELAY, "the lease is out"
    await frontier.settle([visited(lease, DONE)])
    await check(harness, frontier)
    harness.advance(DELAY)
    assert [u.url for u in (await claim_one(frontier)).urls] == ["http://a.test/1"]


async def test_a_url_that_changed_since_is_left_alone(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://{name}.test/") for name in "abc"])
    leases = {lease.name: lease for lease in await frontier.claim(10)}
    await frontier.settle([visited(leases["a.test"], FAILED), visited(leases["b.test"], DONE)])
    failed, done, pending = await known(frontier, *[f"http://{name}.test/" for name in "abc"])
    retry = await begin(harness.catalog())
    assert await frontier.retry([failed], retry) == 1
    assert await frontier.retry([failed, pending], retry) == 0
    await check(harness, frontier)
    assert (await known(frontier, "http://b.test/")) == [done]


async def test_a_redirected_seed_can_be_tried_again(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/")], as_seeds=True)
    await frontier.settle([visited(await claim_one(frontier), REDIRECTED)])
    assert await frontier.retry(await known(frontier, "http://a.test/"), await begin(harness.catalog())) == 1
    counts = await frontier.counts()
    assert (counts.urls[REDIRECTED], counts.urls_pending) == (0, 1)
    await check(harness, frontier)


async def test_urls_of_an_excluded_domain_do_not_wake_it(harness: Harness) -> None:
    frontier = await harness.open()
    a = url("http://a.test/")
    await frontier.add([a])
    await frontier.settle([visited(await claim_one(frontier), FAILED)])
    await frontier.exclude({a.domain: "a.test"})
    await frontier.retry(await known(frontier, a.url), await begin(harness.catalog()))
    harness.advance(10 * DELAY)
    assert await frontier.claim(1) == []
    await check(harness, frontier)
