"""URLs that a process was reading when it died, for every frontier."""

from __future__ import annotations

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.priority import DEATHS_TO_CONVICT, SUSPECT_POLL, suspect_deaths
from rove.frontier.records import LostVisit, Suspect, Suspicion
from rove.frontier.retries import KnownUrl
from rove.model.reasons import SUSPECTED, FailReason
from rove.model.urls import UrlState
from rove.model.visits import Deferred, Lease
from rove.policy.retry_filter import RetryFilter
from tests.contract.harness import BUDGET, DELAY, TICK, Harness, url, visited

DONE = UrlState.DONE
POISON, GOOD = "http://a.test/poison", "http://a.test/good"


async def crash(frontier: Frontier, lease: Lease, *, is_evidence: bool = False) -> list[Suspicion]:
    """Let the process die while it reads the first URL of a lease, and recover it."""
    await frontier.recover([frontier.process])
    url = lease.urls[0]
    suspect = Suspect(fingerprint=url.fingerprint, deaths=suspect_deaths(url.priority) if is_evidence else None)
    return await frontier.record_lost([LostVisit(domain=lease.domain, visit=lease.token, rows=(), suspect=suspect)])


async def suspected(harness: Harness, *others: str) -> tuple[Frontier, Lease]:
    """Return a frontier in which POISON is a suspect, and the lost lease. The delay of its domain has passed."""
    frontier = await harness.open()
    await frontier.add([url(POISON), *(url(text, depth=1) for text in others)])
    (lease,) = await frontier.claim(1)
    assert await crash(frontier, lease) == [Suspicion(url=POISON, deaths=0, has_failed=False)]
    harness.advance(DELAY + TICK)
    return frontier, lease


async def try_alone(frontier: Frontier) -> Lease:
    (lease,) = await frontier.claim_suspect()
    assert [pending.url for pending in lease.urls] == [POISON]
    return lease


async def test_ordinary_claims_do_not_take_a_suspect(harness: Harness) -> None:
    frontier, _ = await suspected(harness, GOOD)
    (lease,) = await frontier.claim(5)
    assert [pending.url for pending in lease.urls] == [GOOD]
    assert await frontier.more(lease, lease.urls[0], 10) == []
    await frontier.settle([visited(lease, DONE)])
    harness.advance(DELAY)
    assert await frontier.claim(5) == [], "only the suspect is left"
    assert await frontier.next_due() == SUSPECT_POLL, "the crawl waits for it"
    await try_alone(frontier)


async def test_a_suspect_keeps_the_delay_of_its_domain(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(POISON)])
    (lease,) = await frontier.claim(1)
    await crash(frontier, lease)
    assert await frontier.claim_suspect() == []
    assert await frontier.reserve_suspects() == pytest.approx(DELAY + TICK)
    assert await frontier.next_due() == pytest.approx(DELAY + TICK)
    harness.advance(DELAY + TICK)
    lease = await try_alone(frontier)
    assert await frontier.claim_suspect() == [], "the domain is leased"
    harness.advance(BUDGET + DELAY)
    again = await try_alone(frontier)
    assert again.token != lease.token, "a lost lease comes back by itself"
    await frontier.settle([visited(again, DONE)])
    assert await frontier.next_due() is None
    assert await frontier.reserve_suspects() is None


async def test_a_suspect_that_survives_its_trial_is_an_ordinary_page(harness: Harness) -> None:
    frontier, _ = await suspected(harness)
    lease = await try_alone(frontier)
    assert await frontier.settle([visited(lease, DONE)]) == 1
    counts = await frontier.counts()
    assert counts.urls[DONE] == 1 and counts.urls_pending == 0
    assert await harness.counted_pending() == {lease.domain: (0, 0)}


async def test_deaths_in_a_trial_convict(harness: Harness) -> None:
    frontier, _ = await suspected(harness, GOOD)
    for death in range(1, DEATHS_TO_CONVICT + 1):
        lease = await try_alone(frontier)
        has_failed = death == DEATHS_TO_CONVICT
        suspicion = Suspicion(url=POISON, deaths=death, has_failed=has_failed)
        assert await crash(frontier, lease, is_evidence=True) == [suspicion]
        harness.advance(DELAY + TICK)
    record = await harness.reader().url(lease.domain, lease.urls[0].fingerprint)
    assert record is not None and (record.state, record.reason) == (UrlState.FAILED, FailReason.KILLS_PROCESS)
    counts = await frontier.counts()
    assert counts.urls[UrlState.FAILED] == 1 and counts.urls_pending == 1
    assert await frontier.claim_suspect() == []
    (lease,) = await frontier.claim(1)
    assert [pending.url for pending in lease.urls] == [GOOD]
    await frontier.settle([visited(lease, DONE)])
    assert await harness.counted_pending() == {lease.domain: (0, 0)}
    assert (await frontier.counts()).domains["idle"] == 1


async def test_a_convicted_page_that_is_the_last_leaves_the_domain_idle(harness: Harness) -> None:
    frontier, _ = await suspected(harness)
    for _ in range(DEATHS_TO_CONVICT):
        await crash(frontier, await try_alone(frontier), is_evidence=True)
        harness.advance(DELAY + TICK)
    assert await frontier.next_due() is None
    assert (await frontier.counts()).domains["idle"] == 1


async def test_a_death_counts_once_even_if_it_is_recorded_twice(harness: Harness) -> None:
    frontier, _ = await suspected(harness)
    lease = await try_alone(frontier)
    for _ in range(5):
        (suspicion,) = await crash(frontier, lease, is_evidence=True)
        assert (suspicion.deaths, suspicion.has_failed) == (1, False)


async def test_deaths_that_are_no_evidence_convict_nobody(harness: Harness) -> None:
    frontier, _ = await suspected(harness)
    for _ in range(DEATHS_TO_CONVICT + 3):
        (suspicion,) = await crash(frontier, await try_alone(frontier))
        assert (suspicion.deaths, suspicion.has_failed) == (0, False)
        harness.advance(DELAY + TICK)
    assert (await frontier.counts()).urls[UrlState.FAILED] == 0


async def test_a_page_that_is_settled_is_no_suspect(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(POISON)])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE)])
    assert await crash(frontier, lease) == []
    assert (await frontier.counts()).urls[DONE] == 1


@pytest.mark.parametrize("failing", [False, True])
async def test_a_suspect_that_is_deferred_stays_a_suspect(harness: Harness, failing: bool) -> None:
    """Also its evidence stays."""
    frontier, _ = await suspected(harness)
    await crash(frontier, await try_alone(frontier), is_evidence=True)
    harness.advance(DELAY + TICK)
    lease = await try_alone(frontier)
    wait = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=900, attempts=1, failing=failing, reason="reset")
    await frontier.settle([visited(lease, deferred=[wait])])
    assert await frontier.claim_suspect() == []
    assert await frontier.reserve_suspects() == pytest.approx(900)
    assert await frontier.next_due() == (None if failing else pytest.approx(900)), "like other deferred URLs"
    assert await frontier.next_due(failing_within=900) == pytest.approx(900)
    harness.advance(900)
    assert await frontier.claim(5) == []
    assert await frontier.next_due() == SUSPECT_POLL
    (suspicion,) = await crash(frontier, await try_alone(frontier), is_evidence=True)
    assert suspicion.has_failed


async def test_a_reserved_domain_waits_for_its_trial(harness: Harness) -> None:
    """Otherwise ordinary visits to a domain with many URLs could put off the trial for ever."""
    frontier, _ = await suspected(harness, GOOD)
    assert await frontier.reserve_suspects() == 0
    assert await frontier.claim(5) == []
    await frontier.settle([visited(await try_alone(frontier), DONE)])
    harness.advance(DELAY)
    (lease,) = await frontier.claim(5)
    assert [pending.url for pending in lease.urls] == [GOOD]


async def test_a_leased_domain_is_not_reserved(harness: Harness) -> None:
    frontier, _ = await suspected(harness, GOOD)
    (lease,) = await frontier.claim(5)
    assert await frontier.reserve_suspects() == pytest.approx(BUDGET + DELAY)
    assert await frontier.settle([visited(lease, DONE)]) == 1
    assert await frontier.reserve_suspects() == pytest.approx(DELAY)


async def test_only_one_suspect_is_leased_at_a_time(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/{number}") for number in range(3)])
    await frontier.add([url("http://b.test/")])
    for _ in range(4):
        for lease in await frontier.claim(5):
            await crash(frontier, lease)
        harness.advance(DELAY + TICK)
    leases = [lease for _ in range(4) for lease in await frontier.claim_suspect()]
    assert sorted(lease.name for lease in leases) == ["a.test", "b.test"]
    assert all(len(lease.urls) == 1 for lease in leases)


async def test_suspects_of_excluded_domains_are_not_tried(harness: Harness) -> None:
    frontier, lease = await suspected(harness)
    await frontier.exclude({lease.domain: lease.name})
    assert await frontier.claim_suspect() == []
    assert await frontier.reserve_suspects() is None
    assert (await frontier.counts()).urls[UrlState.BLOCKED] == 1


async def test_a_page_limit_counts_for_suspects_too(harness: Harness) -> None:
    frontier = await harness.open(page_limit=1)
    await frontier.add([url(POISON), url("http://b.test/")])
    (lease,) = await frontier.claim(1)
    await crash(frontier, lease)
    harness.advance(DELAY + TICK)
    (other,) = await frontier.claim(1) if lease.name == "a.test" else await frontier.claim_suspect()
    assert await frontier.claim_suspect() == [], "the page that is left is taken"
    await frontier.settle([visited(other, DONE)])


async def test_another_machine_tries_a_suspect(harness: Harness) -> None:
    await suspected(harness)
    another = await harness.open()
    await crash(another, await try_alone(another), is_evidence=True)
    harness.advance(DELAY + TICK)
    third = await harness.open()
    (suspicion,) = await crash(third, await try_alone(third), is_evidence=True)
    assert suspicion.has_failed, "the evidence is in the frontier"


async def test_a_retry_leaves_suspects_alone_and_forgets_the_evidence_against_a_failed_one(harness: Harness) -> None:
    frontier, lease = await suspected(harness)
    key = (lease.domain, lease.urls[0].fingerprint)

    async def retry() -> tuple[KnownUrl, int]:
        (known,) = await frontier.known_urls([key])
        number = await harness.catalog().begin_retry(RetryFilter(), who="me", delay=DELAY)
        return known, await frontier.retry([known], number)

    known, retried = await retry()
    assert (known.is_waiting, known.reason, retried) == (False, SUSPECTED, 0)
    for _ in range(DEATHS_TO_CONVICT):
        await crash(frontier, await try_alone(frontier), is_evidence=True)
        harness.advance(DELAY + TICK)
    assert (await retry())[1] == 1
    harness.advance(DELAY + TICK)
    (lease,) = await frontier.claim(1)
    assert suspect_deaths(lease.urls[0].priority) is None
    assert await crash(frontier, lease) == [Suspicion(url=POISON, deaths=0, has_failed=False)]
