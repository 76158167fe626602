"""Settings are checked and stored, and new limits count from the state of the crawl."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.config import Limits, Settings, parse_duration, parse_size, settings_from_json, with_limits
from rove.errors import UsageError
from rove.frontier.backends import policy_of
from rove.policy.budget import DomainBudget
from rove.policy.constants import DEFAULT_DELAY

GOOD = Settings(email="me@crawler.test")


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
    ],
)
def test_a_duration(text: str, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "s", "h", "0", "0s", "0.0h", "-5", "-5m", "+5", "5x", "5min", "5 minutes"),
        *("1h30m", "1e3", "nan", "inf", ".5", "5.", "1,5", "5ss", "5 m s", "٣x", "٣d", "--max"),
        "9" * 400 + "d",
    ],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration(text)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_memory": (256 << 20) - 1}, "at least 256.0 MiB"),
        ({"min_free_disk": -1}, "--min-free-disk"),
        ({"max_page_size": 1023}, "--max-page-size of 1023 B"),
        ({"max_page_size": (64 << 20) + 1}, "--max-page-size"),
        ({"max_page_size": 60 << 20}, "too little for pages of up to 60.0 MiB"),
        ({"email": ""}, "not an e-mail address"),
        ({"email": "me"}, "not an e-mail address"),
        ({"email": "me@crawler.test\n"}, "not an e-mail address"),
        ({"email": "you@example.org"}, "you@example.org is the address of an example"),
        ({"email": "me@mail.Example.COM"}, "give your own with --email"),
        ({"delay": -1.0}, "--delay"),
        ({"delay": -1.0, "allow_short_delay": True}, "--delay"),
        ({"delay": 69.9}, "--allow-short-delay"),
        ({"delay": 0.0}, "--allow-short-delay"),
        ({"timeout": 0.9}, "--timeout"),
        ({"timeout": 180.1}, "--timeout"),
        ({"timeout": float("nan")}, "--timeout"),
        ({"concurrency": 0}, "--concurrency"),
        ({"concurrency": -3}, "--concurrency"),
        ({"info_url": ""}, "--info-url"),
        ({"info_url": "example.org"}, "--info-url"),
        ({"info_url": "ftp://example.org"}, "--info-url"),
        ({"info_url": "https://example.org/ x"}, "--info-url"),
        ({"info_url": "https://example.org/)"}, "--info-url"),
        ({"info_url": "https://example.org/;x"}, "--info-url"),
        ({"info_url": "https://ü.example/"}, "--info-url"),
        ({"info_url": "https://example.org/" + 500 * "x"}, "--info-url"),
        ({"info_url": "https://example.org/\r\nX: y"}, "--info-url"),
        ({"drop_params": ("a b",)}, "--drop-param"),
        ({"drop_params": ("*",)}, "--drop-param"),
    ],
)
def test_values_that_are_not_allowed_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        replace(GOOD, **changes).checked()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("delay", [math.nan, math.inf])
def test_a_delay_that_is_not_a_number_is_refused(delay: float) -> None:
    with pytest.raises(UsageError, match="--delay"):
        replace(GOOD, delay=delay, allow_short_delay=True).checked()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"delay": DEFAULT_DELAY},
        {"delay": 3600.0},
        {"delay": 0.0, "allow_short_delay": True},
        {"delay": 2.0, "allow_short_delay": True},
        {"concurrency": 1},
        {"max_page_size": 1 << 10},
        {"max_page_size": 60 << 20, "max_memory": 2 << 30},
        {"info_url": "https://example.org/bot?x=1"},
        {"info_url": "http://example.org"},
        {"drop_params": ("a", "x_*")},
    ],
)
def test_allowed_values_pass(changes: dict[str, Any]) -> None:
    changed = replace(GOOD, **changes)
    assert changed.checked() is changed


def test_the_defaults_are_polite() -> None:
    assert GOOD.delay == 70.0
    assert not GOOD.allow_short_delay and not GOOD.allow_private_addresses
    assert GOOD.max_page_size == 5 * 1024 * 1024


LIMITS = st.builds(
    Limits,
    max_pages=st.none() | st.integers(1, 10**9),
    max_duration=st.none() | st.floats(0.1, 1e9),
    max_pages_per_domain=st.none() | st.integers(1, 10**6),
    pages_before=st.integers(0, 10**9),
    seconds_before=st.floats(0, 1e9),
    epoch=st.integers(0, 1000),
)


@settings(deadline=None)
@given(
    st.builds(
        Settings,
        email=st.text(),
        info_url=st.none() | st.text(),
        delay=st.floats(0, 1e6),
        concurrency=st.integers(1, 10**6),
        max_depth=st.none() | st.integers(0, 1000),
        seeds_only=st.booleans(),
        connect_to=st.lists(st.text()).map(tuple),
        store=st.sampled_from(["text", "raw", "both"]),
        horizon=st.none() | st.floats(0.1, 1e9),
        limits=LIMITS,
    )
)
def test_settings_are_stored_and_read(settings: Settings) -> None:
    assert settings_from_json(settings.to_json()) == settings


def test_a_setting_that_is_not_stored_has_its_default() -> None:
    assert settings_from_json('{"email": "me@crawler.test"}') == GOOD


@pytest.mark.parametrize(
    ("horizon", "max_duration", "expected"),
    [(None, None, 30 * 86_400.0), (None, 60.0, 60.0), (5.0, 60.0, 5.0), (90.0, None, 90.0)],
)
def test_how_long_a_crawl_is_expected_to_run(
    horizon: float | None, max_duration: float | None, expected: float
) -> None:
    settings = replace(GOOD, horizon=horizon, limits=Limits(max_duration=max_duration, max_pages_per_domain=7))
    assert settings.planned_seconds == expected
    budget = DomainBudget(horizon=expected, delay=settings.delay, max_pages=7)
    assert policy_of(settings).domain_budget == budget


OLD = Limits(max_pages=100, max_duration=60.0, max_pages_per_domain=5, pages_before=10, seconds_before=20.0, epoch=3)


@pytest.mark.parametrize(
    ("given_limits", "expected"),
    [
        ({}, OLD),
        ({"max_pages": 7}, replace(OLD, max_pages=7, pages_before=1000)),
        ({"max_pages": 100}, replace(OLD, pages_before=1000)),
        ({"max_duration": 9.0}, replace(OLD, max_duration=9.0, seconds_before=2000.0)),
        ({"max_pages_per_domain": 8}, replace(OLD, max_pages_per_domain=8, epoch=4)),
        ({"max_pages_per_domain": 5}, replace(OLD, epoch=4)),
        (
            {"max_pages": 1, "max_duration": 2.0, "max_pages_per_domain": 3},
            Limits(
                max_pages=1, max_duration=2.0, max_pages_per_domain=3, pages_before=1000, seconds_before=2000.0, epoch=4
            ),
        ),
    ],
)
def test_new_limits_count_from_the_state_of_the_crawl(given_limits: dict[str, Any], expected: Limits) -> None:
    new: dict[str, Any] = dict.fromkeys(("max_pages", "max_duration", "max_pages_per_domain"))
    assert with_limits(OLD, **new | given_limits, pages=1000, seconds=2000.0) == expected


def test_damaged_settings_are_named() -> None:
    with pytest.raises(UsageError, match="settings of this crawl are damaged"):
        settings_from_json("{}")
