"""The deadline of a transfer with pauses."""

from __future__ import annotations

from rove.fetch.pauses import Pauses


def test_without_a_pause_the_deadline_is_the_servers() -> None:
    pauses = Pauses(deadline=160.0, latest=250.0)
    assert (pauses.deadline, pauses.happened) == (160.0, False)


def test_a_pause_moves_the_deadline() -> None:
    pauses = Pauses(deadline=160.0, latest=250.0)
    pauses.begin(110.0)
    assert (pauses.is_on, pauses.deadline) == (True, 250.0)
    pauses.end(130.0)
    assert (pauses.is_on, pauses.deadline, pauses.seconds) == (False, 180.0, 20.0)


def test_no_pause_moves_the_latest_deadline() -> None:
    pauses = Pauses(deadline=160.0, latest=190.0)
    pauses.begin(110.0)
    pauses.end(170.0)
    assert pauses.deadline == 190.0


def test_a_pause_of_zero_seconds_counts() -> None:
    pauses = Pauses(deadline=160.0, latest=190.0)
    pauses.begin(110.0)
    pauses.end(110.0)
    assert pauses.happened and pauses.seconds == 0.0
    assert pauses.deadline == 160.0
