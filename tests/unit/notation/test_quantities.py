"""Sizes and durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.errors import UsageError
from rove.notation.quantities import duration_text, parse_duration, parse_positive_duration, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("30m", 1_800.0),
        ("24h", 86_400.0),
        ("2d", 172_800.0),
        ("1.5h", 5_400.0),
        ("0.5", 0.5),
        (" 90s ", 90.0),
        ("90 s", 90.0),
        ("10M", 600.0),
        ("1H", 3_600.0),
        ("1h30m", 5_400.0),
        ("1h 30m", 5_400.0),
        ("1 h 30 min", 5_400.0),
        ("5min", 300.0),
        ("2d 4h", 187_200.0),
        ("2d4h", 187_200.0),
        ("1d2h3m4.5s", 93_784.5),
        ("1d 1s", 86_401.0),
        ("0.5h 30s", 1_830.0),
        ("1H30M", 5_400.0),
        ("0h5m", 300.0),
    ],
)
def test_a_duration(text: str, expected: float) -> None:
    assert parse_duration(text) == parse_positive_duration(text) == expected


@pytest.mark.parametrize("text", ["0", "0s", "0.0h", "0d 0h"])
def test_zero_is_a_duration_unless_a_crawl_would_have_it(text: str) -> None:
    assert parse_duration(text) == 0.0
    with pytest.raises(UsageError, match="is not a duration"):
        parse_positive_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "s", "h", "-5", "-5m", "+5", "5x", "5 minutes", "1h30", "90 90", "30m1h", "5m5m", "1h,30m"),
        *("1e3", "nan", "inf", ".5", "5.", "1,5", "5ss", "5 m s", "٣x", "٣d", "--max", "none", "1:30", "min", "5mi"),
        "9" * 400 + "d",
    ],
)
def test_no_duration(text: str) -> None:
    for parse in (parse_duration, parse_positive_duration):
        with pytest.raises(UsageError, match="is not a duration"):
            parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.1, "0.1s"),
        (70.0, "70s"),
        (119.5, "119.5s"),
        (120.0, "2m"),
        (5_400.0, "1h30m"),
        (86_400.0, "1d"),
        (30 * 86_400.0, "30d"),
        (93_784.0, "1d2h3m4s"),
        (5_400.5, "5400.5s"),
    ],
)
def test_a_duration_is_shown_as_it_is_written(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.integers(0, 10**9) | st.decimals(0, 10**6, places=3).map(float))
def test_a_shown_duration_can_be_given_again(seconds: float) -> None:
    assert parse_duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("123456", 123_456),
        ("64k", 64 << 10),
        ("800M", 800 << 20),
        ("512MiB", 512 << 20),
        ("512 mib", 512 << 20),
        ("512MB", 512 << 20),
        ("2GiB", 2 << 30),
        ("1.5G", 3 << 29),
        (" 1T ", 1 << 40),
        ("10b", 10),
    ],
)
def test_a_size(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    "text", ["", " ", "M", "MiB", "-1", "+1M", "1e9", "1,5G", "5 apples", "5MM", "5iB", ".5G", "٣G", "9" * 400]
)
def test_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)
