"""Examples of links that were not taken."""

from __future__ import annotations

import pytest

from rove.frontier import address_groups
from rove.frontier.postgres import settle as postgres_settle
from rove.frontier.sqlite import settle as sqlite_settle
from rove.model.skipped import SkippedLink
from rove.model.urls import NotAccepted, UrlState
from rove.policy import budget
from tests.contract.harness import BUDGET, DELAY, Harness, url, visited

DONE = UrlState.DONE


def link(number: int, reason: NotAccepted = NotAccepted.TRAP) -> SkippedLink:
    return SkippedLink(
        reason=reason, domain=number % 3, fingerprint=number - 5, url=f"http://a.test/{number}", page="http://b.test/"
    )


async def kept(harness: Harness) -> list[tuple[str, int]]:
    return [(each.reason, each.fingerprint) for each in await harness.reader().skipped()]


async def test_the_lowest_of_each_reason_are_kept(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite_settle, postgres_settle):
        monkeypatch.setattr(module, "SAMPLED", 4)
    frontier = await harness.open()
    await frontier.add([url("http://a.test/"), url("http://b.test/")])
    first, second = await frontier.claim(2)
    assert await harness.reader().skipped() == []
    links = [link(number) for number in (9, 0, 3, 3)] + [link(7, NotAccepted.BUDGET)]
    more = [link(number) for number in (8, 2, 1, 0)]
    visits = [visited(first, DONE).replace(skipped=links), visited(second, DONE).replace(skipped=more)]
    await frontier.settle(visits[:1])
    assert await kept(harness) == [("budget", 2), ("trap", -5), ("trap", -2), ("trap", 4)]
    await frontier.settle(visits)
    assert await kept(harness) == [("budget", 2), *[("trap", number) for number in (-5, -4, -3, -2)]]
    example = (await harness.reader().skipped())[0]
    assert (example.url, example.page, example.domain) == ("http://a.test/7", "http://b.test/", 1)
    assert example.at == pytest.approx(harness.now() / 1000)


async def test_a_visit_that_does_not_count_leaves_no_examples(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/")])
    (lease,) = await frontier.claim(1)
    harness.advance(BUDGET + DELAY + 1)
    (again,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE).replace(skipped=[link(1)])])
    assert await kept(harness) == []
    await frontier.settle([visited(again, DONE).replace(skipped=[link(2)])])
    assert len(await kept(harness)) == 1


async def test_examples_can_be_forgotten(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add([url("http://a.test/")])
    (lease,) = await frontier.claim(1)
    await frontier.settle([visited(lease, DONE).replace(skipped=[link(1), link(2)])])
    backend = await harness.backend()
    await backend.forget_skipped([])
    await backend.forget_skipped([link(1)])
    assert await kept(harness) == [("trap", -3)]


async def test_an_add_says_which_urls_it_did_not_take(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FEWEST_VISITS", 1)
    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(f"rove.frontier.{module}.add.MAX_ADDRESSES", 1)
    monkeypatch.setattr(address_groups, "MAX_ADDRESSES", 1)
    frontier = await harness.open(horizon=2 * DELAY / budget.MULTIPLE)
    await frontier.add([url("http://a.test/")])
    urls = [url(f"http://a.test/{number}", depth=number + 1) for number in range(5)]
    first = await frontier.add(urls)
    again = await frontier.add([url(f"http://a.test/{number}", depth=number + 1) for number in range(5, 8)])
    assert {reason for reason, _ in first.skipped} == {NotAccepted.BUDGET}
    assert len(first.skipped) == 5 - first.unseen and len(again.skipped) == 3
    new = await frontier.add([url("http://new.test/")], refuse_new_domains=NotAccepted.OUT_OF_SCOPE)
    assert [(reason, each.url) for reason, each in new.skipped] == [(NotAccepted.OUT_OF_SCOPE, "http://new.test/")]
    literals = await frontier.add([url(f"http://192.0.2.{number}/", depth=1) for number in range(1, 4)])
    assert [reason for reason, _ in literals.skipped] == [NotAccepted.ADDRESS_GROUP] * 2
    counted = (await frontier.counts()).not_accepted
    assert counted == {"budget": len(first.skipped) + 3, "out-of-scope": 1, "address-group": 2}
