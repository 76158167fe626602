"""The bounded set of known URLs: it may forget, but has no false positives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.crawl.seen import SeenSet, seen_key
from tests.unit.crawl.scripted import crawl_url


@settings(deadline=None)
@given(st.integers(0, 12), st.lists(st.lists(st.integers(0, 40)), max_size=12))
def test_it_has_no_false_positives_and_stays_within_its_limit(limit: int, batches: list[list[int]]) -> None:
    seen, told = SeenSet(limit), set[int]()
    for batch in batches:
        seen.update(batch)
        told.update(batch)
        assert {n for n in range(41) if n in seen} <= told
        assert len(seen) <= max(2, limit)


@pytest.mark.parametrize("limit", [2, 10, 100])
def test_the_newest_half_is_always_known(limit: int) -> None:
    seen = SeenSet(limit)
    for number in range(5 * limit):
        seen.update([number])
        newest = range(max(0, number + 1 - limit // 2), number + 1)
        assert all(n in seen for n in newest)
    assert len(seen) >= limit // 2


def test_nothing_is_forgotten_before_it_is_full() -> None:
    seen = SeenSet(1000)
    seen.update(range(1000))
    assert all(n in seen for n in range(1000))
    seen.update([1000])
    assert 0 not in seen and 1000 in seen


@given(st.integers(0, 12), st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)))
def test_unseen_agrees_with_contains(limit: int, told: list[int], looked_up: list[int]) -> None:
    seen = SeenSet(limit)
    seen.update(told)
    urls = [crawl_url(f"http://a.test/{number}") for number in told]
    seen.update([seen_key(url.domain, url.fingerprint) for url in urls])
    links = [crawl_url(f"http://a.test/{number}") for number in looked_up]
    unseen = [link for link in links if seen_key(link.domain, link.fingerprint) not in seen]
    assert seen.unseen_links(links, ()) == unseen
    assert seen.unseen([link.new_url(depth=1) for link in links]) == [link.new_url(depth=1) for link in unseen]


def test_a_url_that_only_others_named_is_new_to_its_own_domain() -> None:
    link = crawl_url("http://a.test/")
    own, foreign = link.new_url(depth=1), link.new_url(depth=1, is_foreign=True)
    seen = SeenSet()
    seen.note([foreign], refused=())
    assert seen.unseen([own, foreign]) == [own]
    assert seen.unseen_links([link], (link.domain,)) == [link]
    assert seen.unseen_links([link], ()) == []
    seen.note([own], refused=())
    assert seen.unseen([own, foreign]) == []
    assert seen.unseen_links([link], (link.domain,)) == seen.unseen_links([link], ()) == []


def test_refused_urls_are_not_noted() -> None:
    urls = [crawl_url(f"http://a.test/{n}").new_url(depth=1, is_foreign=n > 1) for n in range(4)]
    seen = SeenSet()
    seen.note(urls, refused={(url.domain, url.fingerprint) for url in (urls[1], urls[3])})
    assert seen.unseen(urls) == [urls[1], urls[3]]


def test_a_url_does_not_make_one_of_another_domain_known() -> None:
    ours = crawl_url("http://a.test/")
    theirs = crawl_url("http://b.test/")._replace(fingerprint=ours.fingerprint)
    seen = SeenSet()
    seen.update([seen_key(theirs.domain, theirs.fingerprint)])
    assert seen.unseen_links([theirs, ours], ()) == [ours]


@given(st.lists(st.tuples(*[st.integers(-(1 << 63), (1 << 63) - 1)] * 2), max_size=50))
def test_every_pair_has_a_key_of_its_own(pairs: list[tuple[int, int]]) -> None:
    assert len({seen_key(*pair) for pair in pairs}) == len(set(pairs))


def test_a_new_set_knows_nothing() -> None:
    assert 0 not in SeenSet() and len(SeenSet()) == 0


def test_a_new_era_of_the_frontier_forgets_everything() -> None:
    seen = SeenSet(limit=10)
    seen.update([1, 2])
    seen.enter_era(0)
    assert len(seen) == 2
    seen.enter_era(1)
    assert len(seen) == 0
    seen.update([3])
    seen.enter_era(1)
    assert 3 in seen
