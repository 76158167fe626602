"""Two domains with one id, in every frontier: the second is not taken, and the first is not harmed."""

from __future__ import annotations

from rove.model.urls import NewUrl, UrlState
from tests.contract.harness import DELAY, Harness, url, visited
from tests.contract.test_wanted_robots import check_pending, wanted

DONE = UrlState.DONE
VICTIM = url("http://victim.test/")


def forged(new: NewUrl) -> NewUrl:
    """Give the domain of a URL the id of the victim."""
    return new._replace(domain=VICTIM.domain)


FORGED = [forged(url(f"http://forged.test/{i}", 1)) for i in range(3)]
OTHER = url("http://other.test/", 1)


async def test_links_to_it_are_counted_and_not_taken(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([VICTIM])
    added = await frontier.add([FORGED[0], OTHER, *FORGED[1:], url("http://victim.test/x", 1)])
    assert added.unseen == 2
    assert added.refused == {(new.domain, new.fingerprint) for new in FORGED}
    counts = await frontier.counts()
    assert counts.not_accepted == {"collision": 3}
    assert (counts.urls_pending, sum(counts.domains.values())) == (3, 2)
    await check_pending(harness)


async def test_the_domain_that_was_first_keeps_its_queue_and_its_delay(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([VICTIM])
    (lease,) = await frontier.claim(5)
    await frontier.add(FORGED)
    await frontier.settle([visited(lease, DONE)])
    harness.advance(DELAY - 1)
    await frontier.add([*FORGED, url("http://victim.test/x", 1)])
    assert await frontier.claim(5) == [], "nothing wakes it before its delay has passed"
    harness.advance(1.001)
    (lease,) = await frontier.claim(5)
    assert (lease.name, [pending.url for pending in lease.urls]) == ("victim.test", ["http://victim.test/x"])
    await check_pending(harness)


async def test_of_two_in_one_batch_the_first_is_taken(harness: Harness) -> None:
    frontier = await harness.open()
    added = await frontier.add([VICTIM, *FORGED, OTHER], as_seeds=True)
    assert added.unseen == 2
    assert (await frontier.counts()).not_accepted == {"collision": 3}
    assert {lease.name for lease in await frontier.claim(5)} == {"victim.test", "other.test"}


async def test_a_batch_of_nothing_else_adds_nothing(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([VICTIM])
    for times in (1, 2):
        assert (await frontier.add(FORGED)).unseen == 0
        assert (await frontier.counts()).not_accepted == {"collision": 3 * times}
    await check_pending(harness)


async def test_its_robots_txt_is_not_wanted(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([VICTIM])
    await frontier.want_robots([forged(wanted("http://forged.test")), wanted("http://other.test")])
    leases = {lease.name: [pending.is_robots for pending in lease.urls] for lease in await frontier.claim(5)}
    assert leases == {"victim.test": [False], "other.test": [True]}
    assert (await frontier.counts()).not_accepted == {"collision": 1}
    await check_pending(harness)
