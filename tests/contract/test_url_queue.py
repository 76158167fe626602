"""The queue tells beforehand what a crawl will request, and when."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.priority import LEASES_PER_FOREIGN_TURN
from rove.frontier.records import LostVisit, Suspect
from rove.frontier.url_queue import QueueClass, QueuedUrl, next_turn
from rove.model.urls import UrlState
from rove.model.visits import Deferred
from tests.contract.harness import DELAY, TICK, Harness, url, visited

DONE = UrlState.DONE
OWN, RETRIED, HELD, FOREIGN, SUSPECT = QueueClass


async def queued(harness: Harness, name: str = "", *, limit: int = 100) -> list[QueuedUrl]:
    domain = url(f"http://{name}/").domain if name else None
    return await harness.reader().queue(delay=DELAY, domain=domain, limit=limit)


def texts(urls: Sequence[QueuedUrl]) -> list[str]:
    return [each.url.removeprefix("http://") for each in urls]


async def crawl_on(harness: Harness, frontier: Frontier) -> list[tuple[str, float]]:
    """Visit all domains until nothing is pending; return each URL and the seconds until it was requested."""
    began = harness.now()
    requested = []
    while True:
        for lease in await frontier.claim(100):
            requested.append((lease.urls[0].url.removeprefix("http://"), (harness.now() - began) / 1000))
            await frontier.settle([visited(lease, DONE)])
        due = await frontier.next_due(failing_within=1e9)
        if due is None:
            return requested
        harness.advance(due)


async def test_the_queue_of_a_domain_is_what_a_crawl_then_requests(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://a.test/own/{number}", depth=number % 3) for number in range(30)])
    await frontier.add([url(f"http://a.test/foreign/{number}", depth=1, is_foreign=True) for number in range(7)])
    await frontier.want_robots([url("http://a.test/robots.txt")])
    (lease,) = await frontier.claim(1)
    assert texts(await queued(harness, "a.test", limit=1)) == ["a.test/robots.txt"]
    assert (await queued(harness, "a.test", limit=1))[0].is_leased
    later = await frontier.more(lease, lease.urls[-1], 12)
    deferred = [
        *[
            Deferred(fingerprint=each.fingerprint, seconds=400.0, attempts=1, failing=False, reason="status 503")
            for each in later[:4]
        ],
        *[Deferred(fingerprint=each.fingerprint, seconds=9.0, attempts=0, failing=True) for each in later[4:8]],
        Deferred(fingerprint=later[8].fingerprint, seconds=100_000.0, attempts=2, failing=False),
    ]
    await frontier.settle([visited(lease, DONE, deferred=deferred)])
    expected = await queued(harness, "a.test")
    assert len(expected) == 37 and {each.kind for each in expected} == {OWN, RETRIED, HELD, FOREIGN}
    assert texts(await queued(harness)) == texts(expected), "there is only this domain"
    assert texts(await queued(harness, limit=5)) == texts(expected)[:5]
    requested = await crawl_on(harness, frontier)
    assert [text for text, _ in requested] == texts(expected)
    assert [at for _, at in requested] == pytest.approx([each.due_in for each in expected], abs=1.0)


async def test_domains_take_turns_by_when_they_are_due(harness: Harness) -> None:
    frontier = await harness.open()
    for name, count in {"a": 3, "b": 1, "c": 2}.items():
        await frontier.add([url(f"http://{name}.test/{number}") for number in range(count)])
        harness.advance(20)
    order = ["a.test/0", "b.test/0", "c.test/0", "a.test/1", "c.test/1", "a.test/2"]
    assert texts(await queued(harness)) == order
    assert texts(await queued(harness, limit=4)) == order[:4]
    (lease,) = await frontier.claim(1)
    assert (lease.name, lease.urls[0].depth) == ("a.test", 0)
    now, *others = await queued(harness)
    assert (now.url, now.is_leased, now.due_in) == ("http://a.test/0", True, 0.0)
    assert texts(others)[:2] == ["b.test/0", "c.test/0"] and not any(each.is_leased for each in others)
    await frontier.settle([visited(lease, DONE)])
    rest = texts(await queued(harness))
    assert rest[:2] == order[1:3] and set(rest) == set(order[1:])
    assert await queued(harness, "unknown.test") == []


async def test_a_thousand_domains_that_are_due_at_once(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url(f"http://n{number}.test/{page}") for number in range(350) for page in range(2)])
    urls = await queued(harness, limit=700)
    assert len({each.domain for each in urls[:350]}) == 350 and len(set(texts(urls))) == 700
    assert texts(await queued(harness, limit=360)) == texts(urls)[:360]


async def test_a_suspect_is_tried_first(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/poison"), url("http://a.test/good", depth=1), url("http://b.test/")])
    (lease,) = await frontier.claim_among([url("http://a.test/").domain], 1)
    suspect = Suspect(fingerprint=lease.urls[0].fingerprint)
    await frontier.recover([frontier.process])
    await frontier.record_lost([LostVisit(domain=lease.domain, visit=lease.token, rows=(), suspect=suspect)])
    harness.advance(DELAY + TICK)
    for _ in range(2):
        urls = await queued(harness, "a.test")
        assert texts(urls) == ["a.test/poison", "a.test/good"] and urls[0].kind is SUSPECT
        assert urls[1].due_in == pytest.approx(DELAY, abs=0.1)
        assert sorted(texts(await queued(harness))) == ["a.test/good", "a.test/poison", "b.test/"]
        await frontier.reserve_suspects()


async def test_what_may_not_be_visited_has_no_time(harness: Harness) -> None:
    frontier = await harness.open(max_pages_per_domain=1)
    await frontier.add([url("http://a.test/0"), url("http://a.test/1")])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE)])
    (rest,) = await queued(harness, "a.test")
    assert (rest.url, rest.due_in) == ("http://a.test/1", None)
    assert await queued(harness) == []


def test_the_class_that_a_visit_takes() -> None:
    everything = {OWN: 5, RETRIED: 100, HELD: 50, FOREIGN: 3}
    assert next_turn(everything, at=0, lease=1) == (OWN, 0)
    assert next_turn(everything, at=0, lease=LEASES_PER_FOREIGN_TURN) == (FOREIGN, 0)
    assert next_turn({RETRIED: 100, HELD: 50, FOREIGN: 3}, at=99, lease=1) == (HELD, 99)
    assert next_turn({RETRIED: 100, HELD: 50, FOREIGN: 3}, at=49, lease=1) == (FOREIGN, 49)
    assert next_turn({RETRIED: 100, HELD: 50}, at=49, lease=1) == (RETRIED, 100), "the first in the index decides"
    assert next_turn({HELD: 50}, at=49, lease=1) == (HELD, 50)
    assert next_turn({OWN: 5, SUSPECT: 60}, at=60, lease=1) == (SUSPECT, 60)
    assert next_turn({OWN: 5, SUSPECT: 61}, at=60, lease=1) == (OWN, 60)
    assert next_turn({}, at=0, lease=1) is None
