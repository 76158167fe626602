from __future__ import annotations

from rove.frontier.fresh_first import SKIPPED, FreshFirst


def test_every_second_claim_is_a_turn() -> None:
    start = FreshFirst()
    turns = []
    for _ in range(6):
        turns.append(start.takes_turn())
        if turns[-1]:
            start.found(1)
    assert turns == [False, True, False, True, False, True]


def test_without_fresh_domains_there_are_few_turns() -> None:
    start = FreshFirst()
    turns = []
    for _ in range(2 + SKIPPED + 1):
        turns.append(start.takes_turn())
        if turns[-1]:
            start.found(0)
    assert turns == [False, True, *[False] * SKIPPED, True]
