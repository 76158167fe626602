"""Numbers and times are formatted for people."""

from __future__ import annotations

import time

import pytest

from rove.notation.humanize import counted, hash_text, iso_time, seconds_text, size_text, utc_text


@pytest.mark.parametrize(("count", "expected"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1000, "1,000 pages")])
def test_counted_nouns(count: int, expected: str) -> None:
    assert counted(count, "page") == expected


@pytest.mark.parametrize("hash", [-(1 << 63), -1, 0, 1, (1 << 63) - 1])
def test_hashes_are_sixteen_digits(hash: int) -> None:
    text = hash_text(hash)
    assert text is not None and len(text) == 16
    assert int(text, 16) == hash % (1 << 64)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2, "1.0 MiB"),
        (5 * 1024**2 + 512 * 1024, "5.5 MiB"),
        (1024**3, "1.0 GiB"),
        (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_sizes(count: int, expected: str) -> None:
    assert size_text(count) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.0 s"),
        (0.04, "0.0 s"),
        (1.25, "1.2 s"),
        (59.9, "59.9 s"),
        (60, "1 min 00 s"),
        (61.4, "1 min 01 s"),
        (3599, "59 min 59 s"),
        (3599.7, "1 h 00 min"),
        (3600, "1 h 00 min"),
        (3700, "1 h 01 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (48 * 3600, "2 d 00 h"),
        (10 * 86_400 + 5 * 3600, "10 d 05 h"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    assert seconds_text(seconds) == expected


def test_a_duration_just_below_a_minute_is_not_sixty_seconds() -> None:
    assert seconds_text(59.97) == "1 min 00 s"


def test_times_do_not_depend_on_the_time_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert utc_text(1_700_000_000.5) == "2023-11-14 22:13:20Z"
        assert utc_text(1_700_000_000.5, milliseconds=True) == "2023-11-14 22:13:20.500Z"
        assert iso_time(1_700_000_000.5) == "2023-11-14T22:13:20.500Z"
    finally:
        monkeypatch.undo()
        time.tzset()
