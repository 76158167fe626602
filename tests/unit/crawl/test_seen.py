"""The bounded set of known URLs: it may forget, but has no false positives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.crawl.seen import SeenSet
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
    seen.update([url.fingerprint for url in urls])
    others = [crawl_url(f"http://a.test/{number}") for number in looked_up]
    assert seen.unseen(others) == [url for url in others if url.fingerprint not in seen]


def test_a_new_set_knows_nothing() -> None:
    assert 0 not in SeenSet() and len(SeenSet()) == 0
