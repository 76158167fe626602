"""Which of the links that are not taken are kept as examples."""

from __future__ import annotations

import random

from rove.crawl.skip_sample import SkipSample


def test_the_lowest_fingerprints_of_each_reason_are_kept() -> None:
    sample = SkipSample(most=10)
    numbers = [random.getrandbits(64) - (1 << 63) for _ in range(2_000)]
    kept = {reason: {n for n in numbers if sample.chooses(reason, n)} for reason in ("budget", "port")}
    for chosen in kept.values():
        assert set(sorted(numbers)[:10]) <= chosen, "those that the frontier keeps in the end"
        assert len(chosen) < 200, "hardly any link is kept later"


def test_a_link_is_kept_once() -> None:
    sample = SkipSample(most=2)
    assert [sample.chooses("budget", number) for number in (5, 5, 3, 5, 4, 4)] == [
        True,
        False,
        True,
        False,
        True,
        False,
    ]
    assert not sample.chooses("budget", 5) and sample.chooses("port", 5)
