"""How many strangers may be claimed, given those that are silent."""

from __future__ import annotations

import pytest

from rove.policy.silence import most_silent, room_for_strangers, updated_share


@pytest.mark.parametrize(("slots", "most"), [(500, 125), (4, 1), (3, 1), (1, 1), (0, 1)])
def test_a_quarter_of_the_slots_may_be_silent(slots: int, most: int) -> None:
    assert most_silent(slots) == most


def test_where_strangers_respond_all_slots_may_visit_them() -> None:
    assert room_for_strangers(500, silent=0, young=0, share=0.0, responding=0) >= 500
    assert room_for_strangers(500, silent=0, young=500, share=0.05, responding=0) >= 500


def test_where_no_stranger_responds_a_quarter_is_the_limit() -> None:
    assert room_for_strangers(500, silent=0, young=0, share=1.0, responding=0) == 125
    assert room_for_strangers(500, silent=100, young=20, share=1.0, responding=0) == 5
    assert room_for_strangers(500, silent=100, young=25, share=1.0, responding=0) == 0
    assert room_for_strangers(500, silent=124, young=0, share=1.0, responding=0) == 1


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_full_quarter_leaves_no_room(share: float) -> None:
    assert room_for_strangers(500, silent=125, young=0, share=share, responding=0) == 0
    assert room_for_strangers(500, silent=300, young=0, share=share, responding=0) == 0


def test_slots_are_reserved_for_domains_that_respond_and_are_due_soon() -> None:
    assert room_for_strangers(500, silent=0, young=0, share=0.0, responding=10_000) == 375
    assert room_for_strangers(500, silent=50, young=300, share=0.0, responding=10_000) == 25
    assert room_for_strangers(500, silent=50, young=400, share=0.0, responding=10_000) == 0
    assert room_for_strangers(500, silent=0, young=0, share=0.0, responding=20) == 480
    assert room_for_strangers(1, silent=0, young=0, share=0.0, responding=20) == 1, "the only slot serves all"


def test_visits_that_have_just_begun_count_by_the_share_that_was_silent_lately() -> None:
    assert room_for_strangers(500, silent=25, young=0, share=0.5, responding=0) == 200
    assert room_for_strangers(500, silent=25, young=150, share=0.5, responding=0) == 50


@pytest.mark.parametrize("slots", [1, 20, 500, 5_000])
def test_the_share_follows_what_happens(slots: int) -> None:
    share = 0.0
    for _ in range(max(slots, 20)):
        share = updated_share(share, slots, is_silent=True)
    assert 0.9 < share <= 1.0, "all slots together are enough to learn it"
    for _ in range(400):
        share = updated_share(share, slots, is_silent=False)
    assert 0.0 <= share < 0.01
