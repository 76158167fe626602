"""URLs are settled without a visit and reopened, in every frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from rove.admin import apply_exclusions
from rove.frontier.contract import Frontier
from rove.frontier.postgres.bulk_settle import PostgresUrlSlices
from rove.frontier.records import Exclusion
from rove.frontier.sqlite.bulk_settle import SqliteUrlSlices
from rove.model.urls import UrlState
from rove.model.visits import Deferred, Lease, Pace
from rove.policy.exclusions import Exclusions, parse_pattern
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from tests.contract.harness import BUDGET, DELAY, Harness, first_urls, url, visited
from tests.urls import FORM, canonical

DONE, BLOCKED, FAILED, PENDING = (UrlState.DONE, UrlState.BLOCKED, UrlState.FAILED, UrlState.PENDING)
A = url("http://a.test/")


@pytest.fixture(autouse=True)
def small_slices(harness: Harness) -> None:
    harness.slice = 4


block_covered = partial(apply_exclusions.block_covered, domains_per_slice=3)
reopen_covered = partial(apply_exclusions.reopen_covered, domains_per_slice=3)


def everything(_: str) -> bool:
    return True


async def add(frontier: Frontier, *texts: str) -> None:
    assert (await frontier.add([url(text) for text in texts])).unseen == len(texts)


async def check(harness: Harness, frontier: Frontier) -> None:
    """Check all counters against the rows."""
    pending = await harness.counted_pending()
    assert all(counter == counted for counter, counted in pending.values()), pending
    counts = await frontier.counts()
    assert counts.urls_pending == sum(counted for _, counted in pending.values())
    records = [await harness.reader().domain(domain) for domain in pending]
    known = [record for record in records if record is not None]
    others = [record for record in known if not record.is_excluded]
    assert counts.domains["excluded"] == len(known) - len(others)
    assert counts.domains["idle"] == sum(not r.pending or r.is_capped for r in others)
    assert sum(counts.domains.values()) == len(pending)


async def states(frontier: Frontier, texts: Sequence[str]) -> dict[str, UrlState]:
    urls = {text: url(text) for text in texts}
    by_key = await frontier.states([(u.domain, u.fingerprint) for u in urls.values()])
    return {text: by_key[u.domain, u.fingerprint] for text, u in urls.items()}


# Whole domains


async def test_the_pending_urls_of_an_excluded_domain_are_blocked(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(11)], "http://b.test/")
    never = url("http://never.test/").domain
    assert await frontier.exclude({A.domain: "a.test", never: "never.test"}) == 11
    await check(harness, frontier)
    counts = await frontier.counts()
    assert (counts.urls[BLOCKED], counts.urls_pending) == (11, 1)
    assert counts.domains["excluded"] == 2
    assert await frontier.exclude({A.domain: "a.test"}) == 0
    record = await harness.reader().url(A.domain, url("http://a.test/7").fingerprint)
    assert record is not None and (record.state, record.reason) == (BLOCKED, "excluded")
    await check(harness, frontier)


async def test_urls_added_to_an_excluded_domain_wait_and_are_taken_by_the_next_round(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, "http://a.test/0")
    await frontier.exclude({A.domain: "a.test"})
    await add(frontier, *[f"http://a.test/late/{i}" for i in range(5)])
    await check(harness, frontier)
    assert await frontier.next_due() is None
    assert await frontier.claim(1) == []
    assert await frontier.exclude({A.domain: "a.test"}) == 5
    await check(harness, frontier)


async def test_an_included_domain_goes_on(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(9)], "http://b.test/")
    await frontier.exclude({A.domain: "a.test"})
    await add(frontier, "http://a.test/late")
    await frontier.include([A.domain, url("http://b.test/").domain, 5])
    await check(harness, frontier)
    assert await frontier.reopen(A.domain, everything) == 9
    await check(harness, frontier)
    assert await frontier.reopen(A.domain, everything) == 0
    assert {lease.name for lease in await frontier.claim(5)} == {"a.test", "b.test"}
    await frontier.include([A.domain])
    await check(harness, frontier)


async def test_reopened_urls_keep_their_order(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/{i}", depth=i % 3) for i in range(12)])
    before = [u.url for u in await _in_order(harness, frontier)]
    await frontier.exclude({A.domain: "a.test"})
    await frontier.include([A.domain])
    await frontier.reopen(A.domain, everything)
    assert [u.url for u in await _in_order(harness, frontier)] == before
    assert len(before) == 12


async def _in_order(harness: Harness, frontier: Frontier) -> list[Any]:
    (lease,) = await frontier.claim(1)
    pending = await first_urls(frontier, lease, 100)
    await frontier.settle([visited(lease, requested=False)])
    return pending


async def test_an_included_domain_keeps_its_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(3)])
    (lease,) = await frontier.claim(1)
    pace = Pace(backoff=400.0, failures=1)
    await frontier.settle([visited(lease, DONE, pause=500.0, pace=pace)])
    await frontier.exclude({A.domain: "a.test"})
    harness.advance(100)
    await frontier.include([A.domain])
    await frontier.reopen(A.domain, everything)
    assert await frontier.next_due() == pytest.approx(400.0)
    harness.advance(399.99)
    assert await frontier.claim(1) == []
    harness.advance(0.01)
    (lease,) = await frontier.claim(1)
    assert lease.pace == pace


async def test_a_domain_that_was_leased_when_it_was_excluded_keeps_its_time_until_the_visit_is_over(
    harness: Harness,
) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(3)])
    (lease,) = await frontier.claim(1)
    assert await frontier.exclude({A.domain: "a.test"}) == 3
    await frontier.include([A.domain])
    assert await frontier.reopen(A.domain, everything) == 3
    await check(harness, frontier)
    assert await frontier.recover([frontier.process]) == 0
    harness.advance(DELAY + 1.0)
    assert await frontier.claim(1) == [], "the visit may still be under way"
    late = visited(lease, DONE, since_finish=1.0, pause=100.0)
    assert await frontier.settle([late]) == 0
    assert await frontier.settle([late]) == 0
    harness.advance(98.99)
    assert await frontier.claim(1) == []
    harness.advance(0.01)
    assert len(await frontier.claim(1)) == 1
    await check(harness, frontier)


async def test_an_included_domain_that_does_not_answer_is_not_waited_for(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(3)])
    (lease,) = await frontier.claim(1)
    pace = Pace(failures=FAILURES_BEFORE_LEAVING)
    await frontier.settle([visited(lease, FAILED, pace=pace)])
    await frontier.exclude({A.domain: "a.test"})
    await frontier.include([A.domain])
    await frontier.reopen(A.domain, everything)
    assert await frontier.next_due() is None


async def test_a_deferred_url_that_is_overdue_when_it_comes_back_is_claimed(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, "http://a.test/1", "http://b.test/1")
    (lease,) = [lease for lease in await frontier.claim(2) if lease.name == "a.test"]
    later = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=90, attempts=1, failing=False)
    await frontier.settle([visited(lease, deferred=[later])])
    await frontier.exclude({A.domain: "a.test"})
    harness.advance(1000)
    assert [lease.name for lease in await frontier.claim(1)] == ["b.test"]
    assert await frontier.claim(1) == []
    await frontier.include([A.domain])
    await frontier.reopen(A.domain, everything)
    assert [lease.name for lease in await frontier.claim(1)] == ["a.test"]


async def test_a_deferred_url_is_put_back_to_where_it_waited(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, "http://a.test/1")
    (lease,) = await frontier.claim(1)
    later = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=900, attempts=1, failing=False)
    await frontier.settle([visited(lease, deferred=[later])])
    assert await frontier.exclude({A.domain: "a.test"}) == 1
    await frontier.include([A.domain])
    await frontier.reopen(A.domain, everything)
    assert await frontier.next_due() == pytest.approx(900.0)
    harness.advance(900)
    (lease,) = await frontier.claim(1)
    assert lease.urls[0].attempts == 1


async def test_a_capped_domain_that_is_excluded_counts_once(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=1)
    await add(frontier, *[f"http://a.test/{i}" for i in range(3)], "http://b.test/")
    for lease in await frontier.claim(2):
        await frontier.settle([visited(lease, DONE)])
    await check(harness, frontier)
    assert await frontier.exclude({A.domain: "a.test"}) == 2
    await check(harness, frontier)
    await frontier.include([A.domain])
    await frontier.reopen(A.domain, everything)
    await check(harness, frontier)
    harness.advance(DELAY)
    assert await frontier.claim(5) == [], "the cap holds"


# Some URLs of a domain


async def test_only_matching_urls_are_withdrawn(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://{h}a.test/{i}" for i in range(9) for h in ("", "www.")])
    left = await frontier.withdraw(A.domain, FAILED, "given up", lambda text: "www" in text)
    assert left == 9
    await check(harness, frontier)
    counts = await frontier.counts()
    assert (counts.urls[FAILED], counts.urls[BLOCKED]) == (9, 0)
    (lease,) = await frontier.claim(1)
    pending = await first_urls(frontier, lease, 100)
    assert [u.url for u in pending] == [f"http://a.test/{i}" for i in range(9)]
    record = await harness.reader().url(A.domain, url("http://www.a.test/1").fingerprint)
    assert record is not None and (record.reason, record.visit) == ("given up", None)


async def test_a_domain_without_pending_urls_is_idle(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(8)])
    assert await frontier.withdraw(A.domain, FAILED, "", everything) == 8
    assert await frontier.withdraw(A.domain, FAILED, "", everything) == 0
    assert await frontier.withdraw(5, FAILED, "", everything) == 0
    await check(harness, frontier)
    assert await frontier.next_due() is None
    await add(frontier, "http://a.test/new")
    await check(harness, frontier)
    assert len(await frontier.claim(1)) == 1


async def test_leased_urls_may_be_withdrawn(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(6)])
    (lease,) = await frontier.claim(1)
    head = lease.urls[0].url
    assert await frontier.withdraw(A.domain, BLOCKED, "excluded", lambda text: text == head) == 1
    assert await frontier.claim(1) == [], "the lease stands"
    assert await frontier.settle([visited(lease, DONE, DONE)]) == 1
    await check(harness, frontier)
    counts = await frontier.counts()
    assert (counts.urls[DONE], counts.urls[BLOCKED], counts.urls_pending) == (1, 1, 4)
    assert await frontier.next_due() == pytest.approx(DELAY)


async def test_all_that_a_leased_domain_has_may_be_withdrawn(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(6)])
    (lease,) = await frontier.claim(1)
    assert await frontier.withdraw(A.domain, FAILED, "", everything) == 6
    assert await frontier.reopen(A.domain, everything) == 0, "they were not excluded"
    assert await frontier.settle([visited(lease, DONE)]) == 1
    await check(harness, frontier)
    assert await frontier.next_due() is None
    await add(frontier, "http://a.test/new")
    assert await frontier.next_due() == pytest.approx(DELAY)


async def test_a_lease_stays_valid_while_its_urls_are_withdrawn_and_reopened(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(6)])
    (lease,) = await frontier.claim(1)
    await frontier.withdraw(A.domain, BLOCKED, "excluded", everything)
    await frontier.reopen(A.domain, everything)
    harness.advance(BUDGET + DELAY - 1)
    assert await frontier.claim(1) == []
    assert await frontier.settle([visited(lease, DONE)]) == 1
    await check(harness, frontier)


async def test_a_lease_is_waited_for_while_urls_are_withdrawn(harness: Harness) -> None:
    """The domain has failed several visits in a row, and is leased."""
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(6)])
    (lease,) = await frontier.claim(1)
    pace = Pace(failures=FAILURES_BEFORE_LEAVING)
    await frontier.settle([visited(lease, FAILED, pace=pace)])
    harness.advance(DELAY)
    await frontier.claim(1)
    assert await frontier.next_due() == pytest.approx(BUDGET + DELAY)
    await frontier.withdraw(A.domain, BLOCKED, "excluded", lambda text: text.endswith("5"))
    await frontier.reopen(A.domain, everything)
    await add(frontier, "http://a.test/new")
    assert await frontier.next_due() == pytest.approx(BUDGET + DELAY)


async def test_only_matching_urls_are_reopened(harness: Harness) -> None:
    frontier = await harness.open()
    texts = [f"http://{h}a.test/{i}" for i in range(7) for h in ("", "www.")]
    await add(frontier, *texts)
    (lease,) = await frontier.claim(1)
    looked_at = lease.replace(urls=await first_urls(frontier, lease, 3))
    await frontier.settle([visited(looked_at, DONE, BLOCKED, FAILED)])
    before = await states(frontier, texts)
    assert await frontier.withdraw(A.domain, BLOCKED, "excluded", everything) == 11
    opened = await frontier.reopen(A.domain, lambda text: "www" in text)
    after = await states(frontier, texts)
    for text in texts:
        is_back = before[text] is not PENDING or "www" in text
        assert after[text] is (before[text] if is_back else BLOCKED), text
    assert opened == sum("www" in t and before[t] is PENDING for t in texts)
    await check(harness, frontier)


@pytest.mark.parametrize("kills", [1, 2, 3])
async def test_killed_between_slices(harness: Harness, monkeypatch: pytest.MonkeyPatch, kills: int) -> None:
    """Finished slices stay finished, and the next start does the rest."""
    frontier = await harness.open()
    await add(frontier, *[f"http://a.test/{i}" for i in range(14)])
    with monkeypatch.context() as patch:
        _kill_after(patch, "settle", kills)
        with pytest.raises(_Killed):
            await frontier.exclude({A.domain: "a.test"})
    assert (await frontier.counts()).urls_pending == 14 - 4 * kills
    await check(harness, frontier)
    assert await frontier.claim(1) == [], "it is excluded all the same"
    resumed = await harness.open()
    assert await resumed.exclude({A.domain: "a.test"}) == 14 - 4 * kills
    await check(harness, resumed)
    await resumed.include([A.domain])
    with monkeypatch.context() as patch:
        _kill_after(patch, "reopen", kills)
        with pytest.raises(_Killed):
            await resumed.reopen(A.domain, everything)
    await check(harness, resumed)
    frontier = await harness.open()
    assert await frontier.reopen(A.domain, everything) == 14 - 4 * kills
    await check(harness, frontier)


class _Killed(Exception):
    pass


def _kill_after(patch: pytest.MonkeyPatch, name: str, times: int) -> None:
    """Let only this many slices be settled or reopened."""
    for slices in (SqliteUrlSlices, PostgresUrlSlices):
        patch.setattr(slices, name, _killed_after(getattr(slices, name), times))


def _killed_after(work: Callable[..., Awaitable[int]], times: int) -> Callable[..., Any]:
    done = 0

    async def killed(*arguments: Any) -> int:
        nonlocal done
        if done == times:
            raise _Killed
        done += 1
        return await work(*arguments)

    return killed


async def test_adds_claims_and_settles_in_between(harness: Harness) -> None:
    """All run at once. In any order the counters are right, and a last round leaves nothing."""
    frontier = await harness.open(delay=0.0)
    await add(frontier, *[f"http://a.test/{i}" for i in range(30)])

    async def adding() -> None:
        for i in range(30):
            await frontier.add([url(f"http://a.test/new/{i}", depth=i % 3)])

    async def visiting() -> None:
        for _ in range(30):
            for lease in await frontier.claim(1):
                await frontier.settle([visited(lease, DONE)])

    async def withdrawing() -> None:
        for i in range(10):
            matching = _ends_with(str(i % 3))
            await frontier.withdraw(A.domain, BLOCKED, "excluded", matching)
            await frontier.reopen(A.domain, matching)

    async def excluding() -> None:
        for _ in range(5):
            await frontier.exclude({A.domain: "a.test"})
            await frontier.include([A.domain])
            await frontier.reopen(A.domain, everything)

    await asyncio.gather(adding(), visiting(), withdrawing(), excluding(), adding())
    await check(harness, frontier)
    await frontier.exclude({A.domain: "a.test"})
    await check(harness, frontier)
    counts = await frontier.counts()
    assert counts.urls_pending == 0 and counts.urls[DONE] + counts.urls[BLOCKED] == 60


def _ends_with(text: str) -> Callable[[str], bool]:
    return lambda url: url.endswith(text)


async def test_names_of_domains_in_slices(harness: Harness) -> None:
    frontier = await harness.open()
    names = {f"d{i}.test" for i in range(7)}
    await add(frontier, *[f"http://{name}/" for name in names])
    domains: list[tuple[int, str]] = []
    last = -(1 << 63)
    while rows := await frontier.domain_names(last, 3):
        domains += rows
        last = rows[-1][0]
    assert domains == sorted((url(f"http://{name}/").domain, name) for name in names)


# Patterns


WEB = [
    "http://a.test/1",
    "http://www.a.test/1",
    "http://shop.a.test/1",
    "http://deep.shop.a.test/1",
    "http://shop2.a.test/1",
    "http://b.test/1",
    "http://x-ads.test/1",
    "http://y-ads.test/1",
    "http://one.co.uk/1",
    "http://two.co.uk/1",
    "http://www.two.co.uk/1",
    "http://three.uk/1",
    "http://192.0.2.7/1",
]


async def offered(frontier: Frontier, leases: list[Lease]) -> set[str]:
    """Return all URLs that could be visited with these leases."""
    return {u.url for lease in leases for u in await first_urls(frontier, lease, 9)}


def hosts(*patterns: str) -> set[str]:
    covered = Exclusions(patterns)
    web = {text: canonical(text) for text in WEB}
    return {text for text, parsed in web.items() if parsed and covered.covers(parsed.host)}


@pytest.mark.parametrize(
    ("written", "covered"),
    [
        (["a.test"], 5),
        (["*.a.test"], 5),
        (["shop.a.test"], 2),
        (["=shop.a.test"], 1),
        (["=a.test"], 1),
        (["shop*.a.test"], 3),
        (["*-ads.*"], 2),
        (["*-ads.test"], 2),
        (["co.uk"], 3),
        (["uk"], 4),
        (["test"], 8),
        (["192.0.2.7"], 1),
        (["a.test", "=b.test", "shop.a.test", "uk"], 10),
        (["nobody.test"], 0),
        ([], 0),
    ],
)
async def test_covered_urls_are_blocked_and_reopened(harness: Harness, written: list[str], covered: int) -> None:
    frontier = await harness.open()
    await add(frontier, *WEB)
    patterns = [parse_pattern(text) for text in written]
    expected = hosts(*patterns)
    assert len(expected) == covered
    assert await block_covered(frontier, patterns, FORM) == covered
    assert await block_covered(frontier, patterns, FORM) == 0
    after = await states(frontier, WEB)
    assert {text for text in WEB if after[text] is BLOCKED} == expected
    await check(harness, frontier)
    leases = await frontier.claim(50)
    assert await offered(frontier, leases) == set(WEB) - expected
    await frontier.settle([visited(lease, requested=False) for lease in leases])
    assert await reopen_covered(frontier, patterns, Exclusions(), FORM) == covered
    assert await reopen_covered(frontier, patterns, Exclusions(), FORM) == 0
    assert set((await states(frontier, WEB)).values()) == {PENDING}
    await check(harness, frontier)
    leases = await frontier.claim(50)
    assert len(leases) == len({url(text).domain for text in WEB})


@pytest.mark.parametrize(
    ("lifted", "still"),
    [
        (["a.test"], ["shop.a.test"]),
        (["shop.a.test"], ["a.test"]),
        (["shop.a.test"], ["=shop.a.test"]),
        (["a.test"], ["=a.test"]),
        (["test"], ["=b.test", "=www.a.test"]),
        (["=shop.a.test"], ["shop*.a.test"]),
        (["a.test"], ["*-ads.*", "=www.a.test"]),
        (["uk"], ["co.uk"]),
        (["co.uk"], ["two.co.uk"]),
        (["two.co.uk"], ["uk"]),
        (["co.uk"], ["=www.two.co.uk"]),
        (["test"], ["a.test", "*-ads.test"]),
        (["*-ads.*"], ["x-ads.test"]),
        (["a.test", "uk"], ["test"]),
    ],
)
async def test_urls_that_another_exclusion_covers_stay_blocked(
    harness: Harness, lifted: list[str], still: list[str]
) -> None:
    frontier = await harness.open()
    await add(frontier, *WEB)
    patterns, others = [[parse_pattern(t) for t in texts] for texts in (lifted, still)]
    both, left = hosts(*patterns, *others), hosts(*others)
    assert await block_covered(frontier, [*patterns, *others], FORM) == len(both)
    opened = await reopen_covered(frontier, patterns, Exclusions(others), FORM)
    assert opened == len(both) - len(left)
    after = await states(frontier, WEB)
    assert {text for text in WEB if after[text] is BLOCKED} == left
    await check(harness, frontier)
    leases = await frontier.claim(50)
    assert await offered(frontier, leases) == set(WEB) - left
    assert await reopen_covered(frontier, others, Exclusions(), FORM) == len(left)
    assert set((await states(frontier, WEB)).values()) == {PENDING}


async def test_a_visited_domain_that_is_excluded_and_included_keeps_its_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await add(frontier, *[f"http://www.a.test/{i}" for i in range(3)])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE)])
    for pattern in ("a.test", "www.a.test", "test", "w*.a.test"):
        assert await block_covered(frontier, [pattern], FORM) == 2
        assert await frontier.next_due() is None
        assert await reopen_covered(frontier, [pattern], Exclusions(), FORM) == 2
        assert await frontier.next_due() == pytest.approx(DELAY)
    harness.advance(DELAY - 0.01)
    assert await frontier.claim(1) == []


# The history of exclusions


async def test_exclusions_have_a_history(harness: Harness) -> None:
    await harness.open()
    catalog = harness.catalog()
    assert await catalog.exclusion_history() == []
    assert await catalog.exclusions_revision() == 0
    at = harness.now()
    assert sorted(await catalog.add_exclusions(["b.test", "a.test", "b.test"], who="ann", reason="mail")) == [
        "a.test",
        "b.test",
    ]
    assert await catalog.exclusions() == ["a.test", "b.test"]
    harness.advance(5)
    assert await catalog.lift_exclusions(["a.test", "c.test", "a.test"], who="bob") == ["a.test"]
    assert await catalog.exclusions() == ["b.test"]
    harness.advance(5)
    assert await catalog.add_exclusions(["a.test", "b.test"], who="cid", reason="again") == ["a.test"]
    history = await catalog.exclusion_history()
    first, second, third = (
        next(e for e in history if e.pattern == "a.test"),
        next(e for e in history if e.pattern == "b.test"),
        history[-1],
    )
    assert len(history) == 3
    assert _said(first) == ("a.test", at, "ann", "mail", at + 5000, "bob")
    assert _said(second) == ("b.test", at, "ann", "mail", None, "")
    assert _said(third) == ("a.test", at + 10_000, "cid", "again", None, "")
    assert 0 < second.wall <= first.wall <= first.lifted_wall <= third.wall
    assert third.lifted_wall == 0.0


def _said(e: Exclusion) -> tuple[Any, ...]:
    return (e.pattern, e.at, e.who, e.reason, e.lifted_at, e.lifted_by)


async def test_the_revision_rises_when_something_has_changed(harness: Harness) -> None:
    await harness.open()
    catalog = harness.catalog()
    revisions = [await catalog.exclusions_revision()]
    for change in (
        catalog.add_exclusions(["a.test"], who="", reason=""),
        catalog.lift_exclusions(["a.test"], who=""),
        catalog.add_exclusions(["a.test"], who="", reason=""),
    ):
        await change
        revisions.append(await catalog.exclusions_revision())
    assert revisions == sorted(set(revisions))
    for change in (
        catalog.add_exclusions(["a.test"], who="x", reason="y"),
        catalog.add_exclusions([], who="", reason=""),
        catalog.lift_exclusions(["b.test"], who=""),
        catalog.lift_exclusions([], who=""),
    ):
        assert await change == []
        assert await catalog.exclusions_revision() == revisions[-1]
