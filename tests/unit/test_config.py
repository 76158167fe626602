"""Settings are checked and stored, and new limits count from the state of the crawl."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.config import Limits, Settings, settings_from_json, with_limits
from rove.errors import UsageError
from rove.frontier.backends import policy_of
from rove.policy.budget import DomainBudget
from rove.policy.constants import DEFAULT_DELAY
from rove.policy.scope import SeedScope

GOOD = Settings(email="me@crawler.test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_memory": (256 << 20) - 1}, "at least 256.0 MiB"),
        ({"min_free_disk": -1}, "--min-free-disk"),
        ({"max_page_size": 1023}, "--max-page-size of 1023 B"),
        ({"warc_size": (1 << 20) - 1}, "--warc-size of"),
        ({"warc_size": 2_000_000_001}, "--warc-size of 1.9 GiB is not between 1.0 MiB and 1.9 GiB"),
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
        concurrency=st.just("auto") | st.integers(1, 10**6),
        max_depth=st.none() | st.integers(0, 1000),
        scope=st.sampled_from(SeedScope),
        accept=st.lists(st.text()).map(tuple),
        numbered_rules=st.lists(st.text()).map(tuple),
        connect_to=st.lists(st.text()).map(tuple),
        store=st.sampled_from(["text", "raw", "both"]),
        file_types=st.sampled_from(["skip", "visit"]),
        skip_extensions=st.lists(st.text()).map(tuple),
        horizon=st.none() | st.floats(0.1, 1e9),
        longest_plan=st.floats(0, 1e9),
        limits=LIMITS,
    )
)
def test_settings_are_stored_and_read(settings: Settings) -> None:
    assert settings_from_json(settings.to_json()) == settings


def test_a_setting_that_is_not_stored_has_its_default() -> None:
    assert settings_from_json('{"email": "me@crawler.test"}') == GOOD


DAYS_30 = 30 * 86_400.0


@pytest.mark.parametrize(
    ("horizon", "max_duration", "longest", "expected"),
    [
        (None, None, 0.0, DAYS_30),
        (None, 60.0, 0.0, 60.0),
        (5.0, 60.0, 0.0, 5.0),
        (90.0, None, 0.0, 90.0),
        (None, 60.0, 3_600.0, 3_600.0),
        (None, None, 3_600.0, DAYS_30),
        (None, 2 * DAYS_30, DAYS_30, 2 * DAYS_30),
        (None, 10.0, DAYS_30, DAYS_30),
        (7.0, 10.0, DAYS_30, 7.0),
    ],
)
def test_how_long_a_crawl_is_expected_to_run(
    horizon: float | None, max_duration: float | None, longest: float, expected: float
) -> None:
    limits = Limits(max_duration=max_duration, max_pages_per_domain=7)
    settings = replace(GOOD, horizon=horizon, longest_plan=longest, limits=limits)
    assert settings.planned_seconds == expected
    assert settings.with_plan().longest_plan == expected
    assert settings.with_plan().planned_seconds == expected
    budget = DomainBudget(horizon=expected, delay=settings.delay, max_pages=7)
    assert policy_of(settings).domain_budget == budget


def test_the_plan_grows_by_itself_and_shrinks_only_by_a_horizon() -> None:
    """What a crawl goes through when it is resumed again and again, and its plan after each start."""
    settings, plans = GOOD, []
    steps: list[dict[str, Any]] = [
        {"limits": Limits(max_duration=60.0)},
        {"limits": Limits(max_duration=10.0)},
        {"limits": Limits()},
        {"limits": Limits(max_duration=10.0)},
        {"horizon": 5.0},
        {"limits": Limits(max_duration=90.0)},
        {"horizon": None},
        {"limits": Limits(max_duration=2 * DAYS_30)},
        {"limits": Limits()},
    ]
    for changes in steps:
        settings = replace(settings, **changes).with_plan()
        plans.append(settings.planned_seconds)
    assert plans == [60.0, 60.0, DAYS_30, DAYS_30, 5.0, 5.0, 90.0, 2 * DAYS_30, 2 * DAYS_30]


OLD = Limits(max_pages=100, max_duration=60.0, max_pages_per_domain=5, pages_before=10, seconds_before=20.0, epoch=3)


@pytest.mark.parametrize(
    ("given_limits", "expected"),
    [
        ({}, OLD),
        ({"max_pages": 7}, replace(OLD, max_pages=7, pages_before=1000)),
        ({"max_pages": 100}, replace(OLD, pages_before=1000)),
        ({"max_duration": 9.0}, replace(OLD, max_duration=9.0, seconds_before=2000.0)),
        ({"max_pages_per_domain": 8}, replace(OLD, max_pages_per_domain=8, epoch=4)),
        ({"max_pages_per_domain": 5}, OLD),
        ({"max_pages": None}, replace(OLD, max_pages=None, pages_before=0)),
        ({"max_duration": None}, replace(OLD, max_duration=None, seconds_before=0.0)),
        ({"max_pages_per_domain": None}, replace(OLD, max_pages_per_domain=None, epoch=4)),
        (
            {"max_pages": 1, "max_duration": 2.0, "max_pages_per_domain": 3},
            Limits(
                max_pages=1, max_duration=2.0, max_pages_per_domain=3, pages_before=1000, seconds_before=2000.0, epoch=4
            ),
        ),
    ],
)
def test_new_limits_count_from_the_state_of_the_crawl(given_limits: dict[str, Any], expected: Limits) -> None:
    assert with_limits(OLD, given_limits, pages=1000, seconds=2000.0) == expected


@pytest.mark.parametrize(
    ("pages", "seconds", "ended"),
    [
        (0, 0.0, {}),
        (109, 78.9, {}),
        (110, 0.0, {"max_pages": None, "pages_before": 0}),
        (500, 0.0, {"max_pages": None, "pages_before": 0}),
        (0, 79.0, {"max_duration": None, "seconds_before": 0.0}),
        (0, 80.0, {"max_duration": None, "seconds_before": 0.0}),
        (0, 99.0, {"max_duration": None, "seconds_before": 0.0}),
        (110, 80.0, {"max_pages": None, "pages_before": 0, "max_duration": None, "seconds_before": 0.0}),
    ],
)
def test_a_limit_ends_with_the_run_that_reaches_it(pages: int, seconds: float, ended: dict[str, Any]) -> None:
    """Of a limit that was not reached, the rest still counts."""
    assert OLD.without_reached(pages=pages, seconds=seconds) == replace(OLD, **ended)


def test_a_long_time_limit_counts_as_reached_a_little_earlier() -> None:
    """Its end was measured by the clock of one machine, and its parts by that of the database."""
    limits = Limits(max_duration=100_000.0)
    assert limits.without_reached(pages=0, seconds=99_900.0).max_duration is None
    assert limits.without_reached(pages=0, seconds=99_800.0) == limits


def test_without_limits_nothing_is_reached() -> None:
    limits = Limits(max_pages_per_domain=3, epoch=1)
    assert limits.without_reached(pages=10**9, seconds=1e9) == limits
    assert (limits.page_limit, limits.pages_left(5), limits.seconds_left(5.0)) == (None, None, None)


def test_what_is_left_of_a_limit() -> None:
    assert (OLD.page_limit, OLD.pages_left(30), OLD.seconds_left(25.0)) == (110, 80, 55.0)


def test_a_value_from_a_file_is_refused_with_the_file() -> None:
    settings = replace(GOOD, delay=1.0)
    with pytest.raises(UsageError, match=r"^/etc/rove\.toml: a --delay of 1 s is below"):
        settings.checked({"delay": "/etc/rove.toml"})
    with pytest.raises(UsageError, match=r"^a --delay of 1 s is below"):
        settings.checked({"email": "/etc/rove.toml"})


def test_damaged_settings_are_named() -> None:
    with pytest.raises(UsageError, match="settings of this crawl are damaged"):
        settings_from_json("{}")
