"""The contract of claim, settle and add, for every frontier."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from rove.frontier.query_times import TimesReader
from rove.frontier.seed_source import SeedSource
from rove.model.urls import NotAccepted, UrlState
from rove.model.visits import Deferred, OriginRecord, RobotsStatus
from tests.contract.harness import BUDGET, DELAY, TICK, Harness, first_urls, page_row, url, visited

DONE = UrlState.DONE


async def test_a_claim_leases_due_domains_with_their_first_urls(harness: Harness) -> None:
    frontier = await harness.open()
    assert (await frontier.add([url(f"http://h{i}.test/") for i in range(5)])).unseen == 5
    leases = await frontier.claim(3)
    assert len({lease.domain for lease in leases}) == 3
    assert all(len(lease.urls) == 1 for lease in leases)
    assert len({lease.token for lease in leases}) == 3


async def test_the_longest_overdue_domain_comes_first(harness: Harness) -> None:
    frontier = await harness.open()
    for name in ("first", "second", "third"):
        await frontier.add([url(f"http://{name}.test/")])
        harness.advance(1)
    names = [lease.name for lease in await frontier.claim(2)]
    assert names == ["first.test", "second.test"]
    assert [lease.name for lease in await frontier.claim(2)] == ["third.test"]


async def test_within_a_domain_seeds_come_first_then_depth_then_first_come(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/deep", depth=2), url("http://a.test/link2", depth=1)])
    harness.advance(1)
    await frontier.add([url("http://a.test/link3", depth=1), url("http://a.test/seed", depth=0)])
    (lease,) = await frontier.claim(1)
    urls = await first_urls(frontier, lease, 5)
    paths = [pending.url.removeprefix("http://a.test") for pending in urls]
    assert paths == ["/seed", "/link2", "/link3", "/deep"]


async def test_one_batch_keeps_its_order(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/{i}", depth=1) for i in range(100)])
    (lease,) = await frontier.claim(1)
    urls = await first_urls(frontier, lease, 1000)
    paths = [pending.url.rpartition("/")[2] for pending in urls]
    assert paths == [str(i) for i in range(100)]


async def test_a_leased_domain_is_not_leased_again(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    assert len(await frontier.claim(10)) == 1
    assert await frontier.claim(10) == []
    await frontier.add([url("http://a.test/3")])
    assert await frontier.claim(10) == []


async def test_the_delay_counts_from_the_end_of_the_visit(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (lease,) = await frontier.claim(1)
    harness.advance(10)
    assert await frontier.settle([visited(lease, DONE, since_finish=4.0)]) == 1
    harness.advance(DELAY - 4 - 0.01)
    assert await frontier.claim(1) == []
    harness.advance(0.01)
    (again,) = await frontier.claim(1)
    assert [pending.url for pending in again.urls] == ["http://a.test/2"]


async def test_a_visit_that_asked_nothing_costs_no_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, UrlState.BLOCKED, requested=False)])
    assert len(await frontier.claim(1)) == 1


async def test_an_idle_domain_that_gets_a_url_keeps_its_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE)])
    assert await frontier.next_due() is None
    assert await harness.reader().next_due() is None
    harness.advance(DELAY / 2)
    await frontier.add([url("http://a.test/2")])
    assert await frontier.claim(1) == []
    assert await frontier.next_due() == pytest.approx(DELAY / 2)
    assert await harness.reader().next_due() == pytest.approx(DELAY / 2)
    harness.advance(DELAY / 2)
    assert len(await frontier.claim(1)) == 1


async def test_a_url_added_while_its_domain_is_leased_is_claimed_later(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    (lease,) = await frontier.claim(1)
    await frontier.add([url("http://a.test/2")])
    await frontier.settle([visited(lease, DONE)])
    harness.advance(DELAY)
    (again,) = await frontier.claim(1)
    assert [pending.url for pending in again.urls] == ["http://a.test/2"]


async def test_a_lost_lease_comes_back_after_budget_and_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    (lost,) = await frontier.claim(1)
    harness.advance(BUDGET + DELAY - 0.01)
    assert await frontier.claim(1) == []
    harness.advance(0.01)
    (again,) = await frontier.claim(1)
    assert again.urls == lost.urls and again.token != lost.token


async def test_a_late_settle_does_not_count(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (late,) = await frontier.claim(1)
    harness.advance(BUDGET + DELAY)
    (current,) = await frontier.claim(1)
    row = page_row(late, "http://a.test/1", size=100)
    assert await frontier.settle([visited(late, DONE, requests=[row])]) == 0
    counts = await frontier.counts()
    assert counts.urls[DONE] == 0 and counts.urls_pending == 2
    assert counts.requests == 1, "the request is recorded all the same"
    assert await frontier.claim(1) == [], "the newer lease stands"
    assert await frontier.settle([visited(current, DONE)]) == 1


async def test_a_settle_may_be_repeated(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (lease,) = await frontier.claim(1)
    row = page_row(lease, "http://a.test/1", size=100, error="status-404")
    visit = visited(lease, DONE, requests=[row])
    await frontier.settle([visit])
    before, due = await frontier.counts(), await frontier.next_due()
    assert due is not None
    harness.advance(5)
    await frontier.settle([visit])
    assert await frontier.counts() == before
    assert due is not None and await frontier.next_due() == pytest.approx(due - 5)


async def test_known_urls_are_not_added_again(harness: Harness) -> None:
    frontier = await harness.open()
    batch = [url("http://a.test/1"), url("http://a.test/1"), url("http://b.test/1")]
    assert (await frontier.add(batch)).unseen == 2
    assert (await frontier.add(batch)).unseen == 0
    (lease, _) = await frontier.claim(2)
    await frontier.settle([visited(lease, DONE)])
    assert (await frontier.add(batch)).unseen == 0
    assert (await frontier.counts()).urls_pending == 1


async def test_of_the_same_url_twice_in_a_batch_the_shallower_counts(harness: Harness) -> None:
    frontier = await harness.open()
    twice = [url("http://a.test/1", depth=3), url("http://a.test/1", depth=1)]
    assert (await frontier.add(twice)).unseen == 1
    (lease,) = await frontier.claim(1)
    assert lease.urls[0].depth == 1


async def test_an_add_of_nothing_is_nothing(harness: Harness) -> None:
    frontier = await harness.open()
    assert (await frontier.add([])).unseen == 0
    assert await frontier.settle([]) == 0
    assert await frontier.claim(0) == []


async def test_big_batches_are_taken(harness: Harness) -> None:
    frontier = await harness.open()
    assert (await frontier.add([url(f"http://h{i % 97}.test/{i}") for i in range(20_000)])).unseen == 20_000
    assert len(await frontier.claim(1000)) == 97


async def test_only_known_domains_keeps_to_the_seeds(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://seed.test/")])
    links = [url("http://seed.test/in", depth=1), url("http://other.test/out", depth=1)]
    assert (await frontier.add(links, refuse_new_domains=NotAccepted.OUT_OF_SCOPE)).unseen == 1
    counts = await frontier.counts()
    assert counts.not_accepted == {NotAccepted.OUT_OF_SCOPE: 1}
    assert sum(counts.domains.values()) == 1


async def test_a_deferred_url_goes_to_the_back_and_waits(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/{i}") for i in range(3)])
    (lease,) = await frontier.claim(1)
    later = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=500, attempts=1, failing=False)
    await frontier.settle([visited(lease, deferred=[later])])
    for expected in ("1", "2"):
        harness.advance(DELAY)
        (lease,) = await frontier.claim(1)
        assert lease.urls[0].url.endswith(expected)
        assert all(pending.attempts == 0 for pending in lease.urls), "it is not due yet"
        await frontier.settle([visited(lease, DONE)])
    harness.advance(DELAY)
    assert await frontier.claim(1) == []
    assert await frontier.next_due() == pytest.approx(500 - 3 * DELAY)
    harness.advance(500 - 3 * DELAY)
    (lease,) = await frontier.claim(1)
    assert (lease.urls[0].url, lease.urls[0].attempts) == ("http://a.test/0", 1)


async def test_a_new_url_draws_a_domain_forward_that_waits_for_a_retry(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    (lease,) = await frontier.claim(1)
    later = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=5000, attempts=1, failing=False)
    await frontier.settle([visited(lease, deferred=[later])])
    await frontier.add([url("http://a.test/2", depth=3)])
    assert await frontier.next_due() == pytest.approx(DELAY)
    harness.advance(DELAY)
    (lease,) = await frontier.claim(1)
    assert [pending.url for pending in lease.urls] == ["http://a.test/2"]


async def test_a_crawl_is_exhausted_when_only_failing_origins_are_left(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://b.test/1")])
    for lease in await frontier.claim(2):
        failing = lease.name == "a.test"
        wait = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=900, attempts=0, failing=failing)
        await frontier.settle([visited(lease, deferred=[wait])])
    assert await frontier.next_due() == pytest.approx(900), "b.test is worth waiting for"
    harness.advance(900)
    a, b = sorted(await frontier.claim(2), key=lambda lease: lease.name)
    assert a.urls[0].url == "http://a.test/1", "one that is due is tried again all the same"
    wait = Deferred(fingerprint=a.urls[0].fingerprint, seconds=900, attempts=0, failing=True)
    await frontier.settle([visited(a, deferred=[wait]), visited(b, DONE)])
    assert await frontier.next_due() is None
    assert (await frontier.counts()).urls_pending == 1


async def test_new_work_wakes_a_domain_with_a_failing_origin(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    (lease,) = await frontier.claim(1)
    wait = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=900, attempts=0, failing=True)
    await frontier.settle([visited(lease, deferred=[wait])])
    assert await frontier.next_due() is None
    await frontier.add([url("http://www.a.test/1")])
    assert await frontier.next_due() == pytest.approx(DELAY)


async def test_claims_that_are_never_settled_convict_nobody(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2", depth=1)])
    for _ in range(5):
        (lease,) = await frontier.claim(1)
        assert lease.urls[0].url == "http://a.test/1"
        harness.advance(BUDGET + DELAY)
    counts = await frontier.counts()
    assert counts.urls[UrlState.FAILED] == 0 and counts.urls_pending == 2


async def test_on_resume_leases_of_the_dead_are_cut_to_the_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://b.test/1")])
    a, _ = sorted(await frontier.claim(2), key=lambda lease: lease.name)
    crawl_delay = OriginRecord(
        domain=a.domain, origin="http://a.test", status=RobotsStatus.RULES, crawl_delay=2 * DELAY, valid_for=1000
    )
    await frontier.put_origins([crawl_delay])
    harness.advance(1)
    resumed = await harness.open()
    assert await resumed.recover() == 2
    harness.advance(DELAY)
    assert await resumed.claim(2) == []
    harness.advance(TICK)
    assert [lease.name for lease in await resumed.claim(2)] == ["b.test"]
    harness.advance(DELAY)
    assert [lease.name for lease in await resumed.claim(2)] == ["a.test"]
    assert await frontier.settle([visited(a, DONE)]) == 0


async def test_a_recovery_makes_no_lease_longer(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1")])
    await frontier.claim(1)
    harness.advance(BUDGET + DELAY - 5)
    await frontier.recover()
    harness.advance(5)
    assert len(await frontier.claim(1)) == 1


async def test_a_longer_crawl_delay_counts_for_the_visit_under_way(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (lease,) = await frontier.claim(1)
    record = OriginRecord(
        domain=lease.domain, origin="http://a.test", status=RobotsStatus.RULES, crawl_delay=300.0, valid_for=1000
    )
    await frontier.put_origins([record])
    harness.advance(BUDGET + 299.99)
    assert await frontier.claim(1) == [], "a lease lost now must not shorten the new delay"
    harness.advance(0.01)
    (lease,) = await frontier.claim(1)
    assert lease.crawl_delay == 300.0
    await frontier.settle([visited(lease, DONE)])
    harness.advance(299.99)
    assert await frontier.claim(1) == []
    harness.advance(0.01)
    assert len(await frontier.claim(1)) == 1


async def test_the_longest_crawl_delay_of_the_origins_counts(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/{i}") for i in range(5)])
    (lease,) = await frontier.claim(1)

    def record(origin: str, crawl_delay: float) -> OriginRecord:
        return OriginRecord(
            domain=lease.domain, origin=origin, status=RobotsStatus.RULES, crawl_delay=crawl_delay, valid_for=1000
        )

    await frontier.put_origins([record("http://a.test", 300), record("http://www.a.test", 200)])
    await frontier.put_origins([record("http://a.test", 100)])
    await frontier.settle([visited(lease, DONE)])
    assert await frontier.next_due() == pytest.approx(200)


async def test_origins_are_saved_and_expire(harness: Harness) -> None:
    frontier = await harness.open()
    record = OriginRecord(
        domain=7,
        origin="https://a.test",
        status=RobotsStatus.RULES,
        body=b"User-agent: *\nDisallow: /\n\xff\x00",
        crawl_delay=1.5,
        valid_for=100.0,
    )
    await frontier.put_origins([record])
    harness.advance(40)
    (saved,) = await frontier.origins([(7, "https://a.test"), (7, "http://a.test")])
    assert saved.body == record.body and saved.crawl_delay == 1.5
    assert saved.valid_for == pytest.approx(60)
    harness.advance(100)
    (saved,) = await frontier.origins([(7, "https://a.test")])
    assert saved.valid_for <= 0


async def test_an_excluded_domain_is_never_leased(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2"), url("http://b.test/1")])
    a, b = url("http://a.test/1"), url("http://c.test/")
    await frontier.exclude({a.domain: "a.test", b.domain: "c.test"})
    await frontier.exclude({a.domain: "a.test"})
    assert [lease.name for lease in await frontier.claim(5)] == ["b.test"]
    counts = await frontier.counts()
    assert counts.domains["excluded"] == 2
    assert counts.urls[UrlState.BLOCKED] == 2 and counts.urls_pending == 1
    await frontier.add([url("http://a.test/3")])
    harness.advance(1000)
    assert [lease.name for lease in await frontier.claim(5)] == ["b.test"]


async def test_excluding_a_leased_domain_ends_the_lease(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (lease,) = await frontier.claim(1)
    await frontier.exclude({lease.domain: lease.name})
    assert await frontier.settle([visited(lease, DONE)]) == 0
    harness.advance(10 * (BUDGET + DELAY))
    assert await frontier.claim(1) == []
    assert (await frontier.counts()).domains["leased"] == 0


async def test_pages_per_domain_are_capped_until_the_limit_is_given_anew(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=2, limits_epoch=1)
    await frontier.add([url(f"http://a.test/{i}") for i in range(6)])
    for _ in range(2):
        (lease,) = await frontier.claim(1)
        await frontier.settle([visited(lease, DONE)])
        harness.advance(DELAY)
    assert await frontier.claim(1) == [] and await frontier.next_due() is None
    await frontier.add([url("http://a.test/new")])
    assert await frontier.claim(1) == [], "a new URL does not lift the cap"
    counts = await frontier.counts()
    assert counts.domains["idle"] == 1 and counts.urls_pending == 5
    frontier = await harness.open(max_pages_per_domain=2, limits_epoch=1)
    assert await frontier.claim(1) == [], "the same limit goes on"
    frontier = await harness.open(max_pages_per_domain=2, limits_epoch=2)
    for _ in range(2):
        (lease,) = await frontier.claim(1)
        await frontier.settle([visited(lease, DONE)])
        harness.advance(DELAY)
    assert await frontier.claim(1) == []


async def test_a_failed_page_does_not_count_against_the_cap(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=1, limits_epoch=1)
    await frontier.add([url("http://a.test/1"), url("http://a.test/2")])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, UrlState.FAILED)])
    harness.advance(DELAY)
    assert len(await frontier.claim(1)) == 1


async def test_states_of_urls(harness: Harness) -> None:
    frontier = await harness.open()
    one, two, three = (url(f"http://a.test/{i}") for i in range(3))
    await frontier.add([one, two])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, UrlState.REDIRECTED)])
    keys = [(u.domain, u.fingerprint) for u in (one, two, three)]
    assert await frontier.states(keys) == {keys[0]: UrlState.REDIRECTED, keys[1]: UrlState.PENDING}


async def test_counts_by_state(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://h{i}.test/{j}") for i in range(4) for j in range(2)])
    done, failed, given_back, leased = await frontier.claim(4)
    rows = [page_row(done, done.urls[0].url, size=1000)]
    await frontier.settle(
        [
            visited(done, DONE, requests=rows),
            visited(failed, UrlState.FAILED, UrlState.REDIRECTED),
            visited(given_back, requested=False),
        ]
    )
    counts = await frontier.counts()
    assert counts.domains == {"idle": 1, "waiting": 1, "ready": 1, "leased": 1, "excluded": 0}
    assert counts.urls == {
        UrlState.PENDING: 5,
        UrlState.DONE: 1,
        UrlState.BLOCKED: 0,
        UrlState.FAILED: 1,
        UrlState.REDIRECTED: 1,
        UrlState.READ: 0,
    }
    assert (counts.pages, counts.bytes, counts.requests) == (1, 1000, 1)
    assert leased.urls


async def test_ten_thousand_forbidden_urls_do_not_cost_ten_thousand_delays(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/private/{i}") for i in range(10_000)])
    await frontier.add([url("http://a.test/public", depth=1)])
    leases = 0
    while True:
        (lease,) = await frontier.claim(1)
        leases += 1
        looked_at = await first_urls(frontier, lease, 1000)
        if any(pending.url.endswith("public") for pending in looked_at):
            break
        states = [UrlState.BLOCKED] * len(looked_at)
        await frontier.settle([visited(lease.replace(urls=looked_at), *states, requested=False)])
    assert leases <= 11


@pytest.mark.parametrize("seed", range(3))
async def test_fifty_claimers_share_a_hundred_domains(harness: Harness, seed: int) -> None:
    """No domain is leased twice at once, no URL is lost, and lost leases come back."""
    chance = random.Random(seed)
    frontier = await harness.open(delay=0.0, budget=30.0)
    everything = [url(f"http://h{i % 100}.test/{i}") for i in range(1000)]
    await frontier.add(everything)
    held: set[int] = set()
    idle = 0
    wake = asyncio.Event()
    suspected: set[int] = set()
    """Lose each lease only once, because the head URL fails after three losses in a row."""
    done: Counter[int] = Counter()
    lost = 0

    def wake_all() -> None:
        nonlocal wake
        wake.set()
        wake = asyncio.Event()

    async def claimer() -> None:
        nonlocal lost, idle
        while len(done) < len(everything):
            leases = await frontier.claim(chance.randint(1, 4))
            for lease in leases:
                assert lease.domain not in held, "leased twice at once"
                held.add(lease.domain)
            await asyncio.sleep(0)
            for lease in leases:
                held.discard(lease.domain)
                if chance.random() < 0.05 and lease.domain not in suspected:
                    suspected.add(lease.domain)
                    lost += 1
                    continue
                suspected.discard(lease.domain)
                done[lease.urls[0].fingerprint] += 1
                assert await frontier.settle([visited(lease, DONE)]) == 1
                wake_all()
            if not leases and len(done) < len(everything):
                idle += 1
                if idle == 50:
                    harness.advance(31.0)
                    wake_all()
                else:
                    await wake.wait()
                idle -= 1

    await asyncio.gather(*(claimer() for _ in range(50)))
    assert set(done) == {u.fingerprint for u in everything}
    assert set(done.values()) == {1}
    assert lost > 0
    counts = await frontier.counts()
    assert counts.urls[DONE] == 1000 and counts.urls_pending == 0


async def test_unstorable_characters_are_replaced(harness: Harness) -> None:
    """A title may contain NUL and lone surrogates, which not every database can store."""
    frontier = await harness.open()
    await frontier.add([url("http://a.test/")])
    (lease,) = await frontier.claim(1)
    row = page_row(lease, "http://a.test/", title="a\0b \ud800 \u00e9 \U0001f600", target="/\0")
    settled = visited(lease, DONE, requests=[row])
    assert await frontier.settle([settled]) == 1
    (saved,) = await harness.reader().requests(lease.token)
    assert saved.title == "a\ufffdb \ufffd \u00e9 \U0001f600"


async def test_names_and_reasons_that_are_not_utf_8_are_stored(harness: Harness) -> None:
    """Names of files and words of a command line may be in another encoding."""
    await harness.open()
    catalog = harness.catalog()
    name = "m\udcfcller"
    first, second = SeedSource(id=0, path="seeds/0", name=name), SeedSource(id=0, path="seeds/1", name=name)
    await catalog.save("{}", first)
    await catalog.add_seed_source(second)
    assert [source.name for source in await catalog.seed_sources()] == 2 * ["m\ufffdller"]
    await catalog.add_exclusions(["a.test"], who=name, reason=f"in {name}")
    await catalog.lift_exclusions(["a.test"], who=name)
    (exclusion,) = await catalog.exclusion_history()
    assert (exclusion.who, exclusion.reason, exclusion.lifted_by) == ("m\ufffdller", "in m\ufffdller", "m\ufffdller")


async def test_leases_that_end_without_a_request_are_counted_by_reason(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://h{i}.test/") for i in range(4)])
    asked, blocked, unused, put_off = await frontier.claim(4)
    later = Deferred(fingerprint=put_off.urls[0].fingerprint, seconds=9.0, attempts=0, failing=False)
    await frontier.settle(
        [
            visited(asked, DONE),
            visited(blocked, UrlState.BLOCKED, requested=False),
            visited(unused, requested=False),
            visited(put_off, requested=False, deferred=[later]),
        ]
    )
    counts = await frontier.counts()
    assert counts.leases == 4
    assert counts.without_request == {"blocked": 1, "given-back": 1, "deferred": 1}


async def test_the_times_of_queries_are_kept_by_name_and_taken_once(harness: Harness) -> None:
    frontier = await harness.open()
    frontier.query_times(TimesReader.LOG)
    await frontier.add([url("http://a.test/")])
    await frontier.claim(1)
    await frontier.claim(1)
    taken = frontier.query_times(TimesReader.LOG)
    claims = sum(times.count for name, times in taken.items() if name in ("lease", "lease_fresh"))
    assert claims >= 1 and all(times.longest > 0 for times in taken.values())
    assert frontier.query_times(TimesReader.LOG) == {}
