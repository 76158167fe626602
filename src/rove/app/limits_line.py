"""Says in one line which limits are in force at the start of a run, and where each comes from."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from rove.config import Limits, Settings
from rove.notation.humanize import size_text
from rove.notation.quantities import duration_text
from rove.policy.rules import RuleKind

GIVEN = "given now"
REMEMBERED = "remembered"
DEFAULT = "default"


def _size(count: int) -> str:
    return size_text(count).replace(" ", "").replace(".0", "")


def _texts(values: tuple[str, ...]) -> str:
    return " ".join(values)


def _rules(values: tuple[str, ...]) -> str:
    return " ".join(map(shlex.quote, values))


LIMITS: dict[str, Callable[[Any], str]] = {
    "max_pages": str,
    "max_duration": duration_text,
    "max_pages_per_domain": str,
    "max_depth": str,
    "delay": duration_text,
    "max_links": str,
    "redirect_hops": str,
    "timeout": duration_text,
    "max_page_size": _size,
    "max_parsed_size": _size,
    "horizon": duration_text,
    "concurrency": str,
    "max_memory": _size,
    "min_free_disk": _size,
}
"""The options that are always shown while they limit the crawl, and how to format each."""
OTHERS: dict[str, Callable[[Any], str]] = {
    "scope": str,
    "purpose": str,
    "languages": ",".join,
    "info_url": str,
    "store": str,
    "warc_size": _size,
    "per_ip": str,
    "per_ip_rate": "{:g}".format,
    "connect_to": _texts,
    "dns_servers": _texts,
    "file_types": str,
    "skip_extensions": _texts,
    **{kind.setting: _rules for kind in RuleKind},
    "drop_params": _texts,
}
"""The options that are shown unless they have their default. A flag is shown if it is on, or given."""
_NAMES = {"dns_servers": "--dns-server", "drop_params": "--drop-param", "skip_extensions": "--skip-extension"}


def option_name(field: str) -> str:
    """Return the option that sets a field.

    >>> option_name("max_pages")
    '--max-pages'
    """
    return _NAMES.get(field, "--" + field.replace("_", "-"))


def limits_line(settings: Settings, given: Mapping[str, str], *, pages: int, seconds: float) -> str:
    """Return the line. `given` says where each field was given; `pages` and `seconds` are those of earlier runs."""
    groups: dict[str, list[str]] = {}
    for source, text in sorted(_options(settings, given, pages, seconds), key=lambda item: _rank(item[0])):
        groups.setdefault(source, []).append(text)
    return "limits " + "; ".join(f"{source}: {', '.join(texts)}" for source, texts in groups.items())


def _rank(source: str) -> int:
    """Return the place of a source in the line: the one that wins comes first."""
    return {GIVEN: 0, REMEMBERED: 2, DEFAULT: 3}.get(source, 1)


def _options(settings: Settings, given: Mapping[str, str], pages: int, seconds: float) -> Iterator[tuple[str, str]]:
    """Iterate over the options in force: where each comes from, and its text."""
    defaults = {field.name: field.default for kind in (Settings, Limits) for field in fields(kind)}
    flags = [name for name, default in defaults.items() if isinstance(default, bool)]
    for name in (*LIMITS, *flags, *OTHERS):
        default = defaults[name]
        value = _value(settings, name)
        source = given.get(name) or (DEFAULT if value == default else REMEMBERED)
        if name in flags:
            if value or name in given:
                yield source, option_name(name) if value else "--no-" + option_name(name)[2:]
            continue
        if name == "horizon" and value is None:
            value = settings.planned_seconds
            source = given.get(name) or _source_of_plan(settings, given)
        if name in LIMITS and value is not None:
            left = _left(settings.limits, name, pages, seconds) if source is REMEMBERED else ""
            yield source, f"{option_name(name)} {LIMITS[name](value)}{left}"
        elif name in LIMITS:
            if name in given:
                yield source, f"{option_name(name)} none"
        elif source is not DEFAULT:
            yield source, f"{option_name(name)} {OTHERS[name](value) if value else 'none'}"


def _value(settings: Settings, name: str) -> Any:
    return getattr(settings if hasattr(settings, name) else settings.limits, name)


def _source_of_plan(settings: Settings, given: Mapping[str, str]) -> str:
    """Return where the horizon comes from if none was given: the time limit, an earlier run, or the default."""
    if settings.planned_seconds == settings.limits.max_duration:
        return given.get("max_duration", REMEMBERED)
    implied = max(settings.limits.max_duration or 0, Settings(email="").planned_seconds)
    return DEFAULT if settings.planned_seconds == implied else REMEMBERED


def _left(limits: Limits, name: str, pages: int, seconds: float) -> str:
    pages_left, seconds_left = limits.pages_left(pages), limits.seconds_left(seconds)
    if name == "max_pages" and pages_left is not None:
        return f" ({max(0, pages_left):,} left)"
    if name == "max_duration" and seconds_left is not None:
        return f" ({duration_text(max(0, round(seconds_left)))} left)"
    return ""
