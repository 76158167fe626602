"""The line about the limits in force and where they come from."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from rove.app.limits_line import LIMITS, OTHERS, limits_line, option_name
from rove.cli.crawl import crawl
from rove.config import Limits, Settings
from rove.policy.scope import SeedScope

FRESH = Settings(email="me@crawler.test")
NOW = "given now"


def line(settings: Settings, given: dict[str, str] | None = None, *, pages: int = 0, seconds: float = 0.0) -> str:
    return limits_line(settings.with_plan(), given or {}, pages=pages, seconds=seconds)


def part(text: str, source: str) -> str:
    """Return what the line says of one source."""
    found = re.search(rf"(?:^limits |; ){re.escape(source)}: ([^;]*)", text)
    return found[1] if found else ""


def test_a_new_crawl_shows_its_defaults() -> None:
    assert line(FRESH) == (
        "limits default: --delay 70s, --max-links 2000, --redirect-hops 3, --timeout 60s, --max-page-size 5MiB, "
        "--max-parsed-size 2MiB, --horizon 30d, --concurrency auto, --max-memory 1GiB, --min-free-disk 1GiB"
    )


@pytest.mark.parametrize(
    ("changes", "limits", "text"),
    [
        ({}, {"max_pages": 10}, "--max-pages 10"),
        ({}, {"max_pages_per_domain": 3}, "--max-pages-per-domain 3"),
        ({"max_depth": 0}, {}, "--max-depth 0"),
        ({"delay": 0.5}, {}, "--delay 0.5s"),
        ({"scope": SeedScope.HOST}, {}, "--scope host"),
        ({"sitemaps": True, "strict_tls": True}, {}, "--strict-tls, --sitemaps"),
        ({"info_url": "https://a.test/"}, {}, "--info-url https://a.test/"),
        ({"connect_to": ("a=1", "b=2")}, {}, "--connect-to a=1 b=2"),
        ({"dns_servers": ("9.9.9.9",)}, {}, "--dns-server 9.9.9.9"),
        ({"file_types": "visit", "skip_extensions": ("a", "b")}, {}, "--file-types visit, --skip-extension a b"),
        ({"accept": ('tld == "de"', "seed")}, {}, """--accept 'tld == "de"' seed"""),
        ({"store_if": ("text_length > 9",)}, {}, "--store-if 'text_length > 9'"),
        ({"horizon": 86_400.0}, {}, "--horizon 1d"),
        ({"max_page_size": 1536 << 10}, {}, "--max-page-size 1.5MiB"),
    ],
)
def test_what_is_given_and_what_is_remembered(changes: dict[str, Any], limits: dict[str, Any], text: str) -> None:
    settings = replace(FRESH, **changes, limits=Limits(**limits))
    assert part(line(settings, dict.fromkeys([*changes, *limits], NOW)), NOW) == text
    assert part(line(settings, dict.fromkeys([*changes, *limits], "my.toml")), "my.toml") == text
    remembered = part(line(settings), "remembered")
    assert re.sub(r" \(.* left\)", "", remembered) == text
    assert text not in part(line(settings), "default").split(", ")


def test_what_is_left_of_a_remembered_limit_is_shown() -> None:
    limits = Limits(max_pages=100, pages_before=1_000, max_duration=5_400.0, seconds_before=50.0)
    text = line(replace(FRESH, limits=limits), pages=1_030, seconds=100.0)
    assert "--max-pages 100 (70 left)" in part(text, "remembered")
    assert "--max-duration 1h30m (1h29m10s left)" in part(text, "remembered")
    given = line(replace(FRESH, limits=limits), {"max_pages": NOW, "max_duration": NOW}, pages=1_000, seconds=50.0)
    assert part(given, NOW) == "--max-pages 100, --max-duration 1h30m, --horizon 1h30m"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max_depth", None, "--max-depth none"),
        ("sitemaps", False, "--no-sitemaps"),
        ("scope", SeedScope.ANYWHERE, "--scope anywhere"),
        ("connect_to", (), "--connect-to none"),
        ("info_url", None, "--info-url none"),
        ("max_pages_per_domain", None, "--max-pages-per-domain none"),
        ("delay", 70.0, "--delay 70s"),
    ],
)
def test_what_is_lifted_now_is_shown(name: str, value: Any, text: str) -> None:
    settings = replace(FRESH, **{name: value}) if hasattr(FRESH, name) else FRESH
    assert part(line(settings, {name: NOW}), NOW) == text
    assert "none" not in line(settings) and "--no-" not in line(settings)


@pytest.mark.parametrize(
    ("settings", "given", "source"),
    [
        (FRESH, {}, "default"),
        (replace(FRESH, limits=Limits(max_duration=60.0)), {"max_duration": NOW}, NOW),
        (replace(FRESH, limits=Limits(max_duration=60.0)), {}, "remembered"),
        (replace(FRESH, longest_plan=60 * 86_400.0), {}, "remembered"),
        (replace(FRESH, longest_plan=600.0, limits=Limits(max_duration=60.0)), {"max_duration": NOW}, "remembered"),
        (replace(FRESH, horizon=5.0), {"horizon": NOW}, NOW),
    ],
)
def test_where_the_horizon_comes_from(settings: Settings, given: dict[str, str], source: str) -> None:
    assert "--horizon" in part(line(settings, given), source)
    assert line(settings, given).count("--horizon") == 1


def test_every_option_that_is_remembered_can_be_shown() -> None:
    flags = {field.name for field in fields(Settings) if isinstance(field.default, bool)}
    stored = {field.name for kind in (Settings, Limits) for field in fields(kind)}
    internal = {"email", "limits", "longest_plan", "numbered_rules", "pages_before", "seconds_before", "epoch"}
    assert {*LIMITS, *OTHERS, *flags} == stored - internal


def test_every_option_has_the_name_that_is_shown() -> None:
    options = {name for parameter in crawl.params for name in parameter.opts}
    flags = {field.name for field in fields(Settings) if isinstance(field.default, bool)}
    assert {option_name(name) for name in (*LIMITS, *OTHERS, *flags)} <= options
