from __future__ import annotations

from collections import Counter

import pytest

from rove.frontier.capacity import (
    FOREIGN_URLS_READ,
    MEMORY_SECONDS,
    FullDomains,
    Inserted,
    Raised,
    Trimmed,
    added,
    adopted_rows,
    count_trimmed,
    naming_domains,
)
from rove.frontier.priority import priority_of
from rove.model.urls import NewUrl, NotAccepted
from rove.policy.budget import DomainBudget

ROOM = 400


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def domains(time: Time) -> FullDomains:
    return FullDomains(DomainBudget(horizon=100.0, delay=1.0), time)


def new_url(fingerprint: int, depth: int, *, domain: int = 1, penalty: int = 0) -> NewUrl:
    return NewUrl(domain, "a.test", fingerprint, "http://a.test/", depth, penalty=penalty)


def test_only_domains_over_their_budget_are_returned(domains: FullDomains) -> None:
    raised = [
        *(Raised(1, ROOM, ROOM, 0, 0), Raised(2, ROOM + 3, ROOM, 0, 0)),
        *(Raised(3, ROOM, ROOM, 2_000, 0), Raised(4, ROOM, ROOM, 0, 500)),
    ]
    assert domains.excess(raised) == {2: 3, 3: ROOM // 2, 4: ROOM // 2}


@pytest.mark.parametrize(("added", "excess"), [(1, 1), (7, 7), (ROOM // 2, ROOM // 2), (ROOM, ROOM // 2)])
def test_an_add_never_makes_the_urls_of_a_domain_fewer(domains: FullDomains, added: int, excess: int) -> None:
    """The room has halved because of a Crawl-delay, but the URLs were accepted before."""
    assert domains.excess([Raised(1, ROOM, added, 2_000, 0)]) == {1: excess}


def test_beyond_the_budget_is_everything_that_has_no_room(domains: FullDomains) -> None:
    assert domains.beyond([(1, ROOM, 0, 0), (2, ROOM + 9, 0, 0), (3, ROOM, 2_000, 0)]) == {2: 9, 3: ROOM // 2}


def test_urls_that_had_been_pending_are_counted_as_evicted() -> None:
    changes: Counter[str] = Counter()
    count_trimmed([Trimmed(1, 2, 1, True), Trimmed(1, 3, 1, False), Trimmed(1, 4, 1, False)], changes)
    assert changes == {"urls.pending": -3, "not_accepted.budget": 3, "evicted": 2}


def test_urls_that_are_no_better_are_dropped_for_a_while(domains: FullDomains, time: Time) -> None:
    domains.note([Trimmed(1, 10, 5, True), Trimmed(1, 11, 3, False)])
    worse, better, elsewhere = new_url(20, 3), new_url(21, 2), new_url(22, 9, domain=2)
    assert domains.sift([worse, better, elsewhere], ()) == ([better, elsewhere], [worse])
    time.now = MEMORY_SECONDS
    assert domains.sift([worse], ()) == ([worse], [])


def test_a_penalty_makes_a_url_worse(domains: FullDomains) -> None:
    domains.note([Trimmed(1, 10, 5, True)])
    assert domains.sift([new_url(20, 2, penalty=3)], ())[1]


def test_seeds_sitemaps_and_exempt_urls_are_never_dropped(domains: FullDomains) -> None:
    domains.note([Trimmed(1, 10, 1, True)])
    urls = [new_url(20, 0, penalty=4), new_url(21, 1)._replace(sitemap_of="a.test"), new_url(22, 9)]
    assert domains.sift(urls, {(1, 22)}) == (urls, [])


def test_the_memory_is_bounded(time: Time) -> None:
    domains = FullDomains(DomainBudget(horizon=100.0, delay=1.0), time, memory_domains=2)
    for domain in (1, 2, 1, 3):
        domains.note([Trimmed(domain, 10, 1, True)])
    urls = [new_url(20, 1, domain=domain) for domain in (1, 2, 3)]
    assert domains.sift(urls, ())[0] == [urls[1]], "the oldest one is forgotten"


def test_a_url_that_is_deleted_at_once_does_not_count_as_new() -> None:
    trimmed = [Trimmed(1, 2, 1, True), Trimmed(1, 3, 1, False)]
    dropped, collided, stranger, outside = (new_url(number, 1) for number in (1, 6, 4, 8))
    inserted = Inserted(unseen=5, dropped=[stranger], trimmed=trimmed, made=[7], outside=[outside])
    urls = [new_url(2, 1), stranger, outside, new_url(9, 1)]
    result = added(inserted, urls, dropped=[dropped], collided=[collided], refuse_new_domains=NotAccepted.OUT_OF_SCOPE)
    assert result.skipped == [
        (NotAccepted.BUDGET, dropped),
        (NotAccepted.BUDGET, urls[0]),
        (NotAccepted.COLLISION, collided),
        (NotAccepted.ADDRESS_GROUP, stranger),
        (NotAccepted.OUT_OF_SCOPE, outside),
    ]
    assert result.unseen == 4
    assert result.not_accepted == {"budget": 2, "collision": 1, "address-group": 1, "out-of-scope": 1}
    assert result.evicted == 1
    assert result.made == {7}
    assert result.refused == {(1, 1), (1, 2), (1, 3), (1, 4), (1, 6)}


def test_foreign_urls_are_dropped_where_a_domain_is_full_of_its_own(domains: FullDomains) -> None:
    domains.note([Trimmed(1, 10, 4, True)])
    shallow, seed = new_url(20, 1)._replace(is_foreign=True), new_url(21, 0)
    sitemap = new_url(22, 1)._replace(is_foreign=True, sitemap_of="b.test")
    assert domains.sift([shallow, seed, sitemap, new_url(23, 3)], ()) == (
        [seed, new_url(23, 3)],
        [shallow, sitemap],
    )


def test_a_domain_full_of_foreign_urls_takes_its_own(domains: FullDomains) -> None:
    foreign = new_url(20, 2)._replace(is_foreign=True)
    domains.note([Trimmed(1, 10, priority_of(foreign), True)])
    assert domains.sift([foreign, new_url(21, 90)], ()) == ([new_url(21, 90)], [foreign])


def test_of_urls_that_a_domain_names_the_shallowest_is_adopted() -> None:
    urls = [
        new_url(20, 3),
        new_url(20, 2, penalty=4),
        new_url(21, 1, domain=2),
        new_url(22, 1)._replace(is_foreign=True),
    ]
    pending = [(1, 20), (1, 22), (2, 99)]
    assert adopted_rows(urls, pending) == [(1, 20, 6, 2, 0, "")]
    assert adopted_rows(urls, []) == []
    assert naming_domains(urls) == [1, 2]


def test_every_url_that_a_domain_names_is_looked_up_if_it_has_many_foreign_ones() -> None:
    urls = [new_url(20, 3), new_url(21, 1, domain=2)]
    pending = [(1, 1_000 + number) for number in range(FOREIGN_URLS_READ)]
    assert adopted_rows(urls, pending) == [(1, 20, 3, 3, 0, "")]
    assert adopted_rows(urls, pending[1:]) == []
