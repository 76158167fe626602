"""Reads what sites say about the use of their pages, and combines it. Pure.

There is no standard yet. This reads what is proposed and in use: the IETF's Content-Usage (draft-ietf-aipref-attach),
Content-Signal, the TDM Reservation Protocol, RSL's License, and `noai`. A preference that is not stated is unknown, and
unknown means allowed. Of contradicting sources the one that says no wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rove.errors import UsageError
from rove.model.usage import FORBIDDING, Category, Purpose, Statement, Usage, UsageSource

MAX_HEADER = 4_000
"""Characters that are read of one value."""
LICENSE: Final = "license"
TDM_POLICY: Final = "tdm-policy"
TDM_RESERVATION: Final = "tdm-reservation"
TDM_NAMES: Final = frozenset({TDM_RESERVATION, TDM_POLICY})
"""The names of headers and meta elements of the TDM Reservation Protocol."""

_HEADERS: Final = frozenset({"content-usage", "content-signal", *TDM_NAMES})
_USAGE_KEYS: Final = {"train-ai": Category.TRAIN_AI, "search": Category.SEARCH}
_SIGNAL_KEYS: Final = {"ai-train": Category.TRAIN_AI, "search": Category.SEARCH, "ai-input": Category.AI_INPUT}
_ANSWERS: Final = {"y": "y", "yes": "y", "?1": "y", "n": "n", "no": "n", "?0": "n"}
_URL: Final = re.compile(r"https?://[!-~]{1,500}", re.IGNORECASE)


def parse_purpose(text: str) -> Purpose:
    """Parse a purpose; raise UsageError if there is no such purpose."""
    try:
        return Purpose(text.strip().lower())
    except ValueError:
        raise UsageError(f"{text!r} is not a purpose; choose one of {', '.join(Purpose)}") from None


def parse_use(text: str) -> Purpose:
    """Parse a purpose that preferences speak of; raise UsageError for any other."""
    purpose = parse_purpose(text)
    if purpose not in FORBIDDING:
        raise UsageError(f"sites state no preference about {purpose}; choose one of {', '.join(FORBIDDING)}")
    return purpose


def combine(statements: Iterable[Statement]) -> Usage:
    """Combine everything that is stated about one page. Of two URLs with one name the first one stays."""
    values: dict[str, str] = {}
    sources: dict[UsageSource, None] = {}
    for key, value, source in statements:
        sources[source] = None
        if value == "n" or key not in values:
            values[key] = value
    return Usage(tuple(f"{key}={values[key]}" for key in sorted(values)), tuple(sorted(sources)))


def header_statements(headers: Sequence[tuple[str, str]]) -> list[Statement]:
    """Return what the headers of a response state."""
    found: list[Statement] = []
    for name, value in headers:
        key = name.lower()
        if key not in _HEADERS:
            continue
        if key == "content-usage":
            found += content_usage(value, UsageSource.CONTENT_USAGE)
        elif key == "content-signal":
            found += content_signal(value, UsageSource.CONTENT_SIGNAL)
        else:
            found += tdm(key, value, UsageSource.TDM_HEADER)
    return found


def content_usage(text: str, source: UsageSource) -> list[Statement]:
    """Read the value of a Content-Usage header or rule: a dictionary of structured fields.

    >>> [(key.value, value) for key, value, _ in content_usage("train-ai=n, search=y", UsageSource.CONTENT_USAGE)]
    [('train-ai', 'n'), ('search', 'y')]
    """
    return [Statement(key, value, source) for key, value in _pairs(text, _USAGE_KEYS)]


def content_signal(text: str, source: UsageSource) -> list[Statement]:
    """Read the value of a Content-Signal line or header."""
    return [Statement(key, value, source) for key, value in _pairs(text, _SIGNAL_KEYS)]


def tdm(name: str, value: str, source: UsageSource) -> list[Statement]:
    """Read a header or meta element of the TDM Reservation Protocol; `name` is one of TDM_NAMES.

    Reserved rights to text and data mining include training.
    """
    if name == TDM_POLICY:
        return _url(TDM_POLICY, value, source)
    answer = {"1": "n", "0": "y"}.get(value.strip())
    return [] if answer is None else [Statement(Category.TRAIN_AI, answer, source)]


def noai(source: UsageSource, *, text: bool, images: bool) -> list[Statement]:
    """Return what the rules `noai` and `noimageai` for robots state."""
    stated = ((Category.TRAIN_AI, text), (Category.TRAIN_AI_IMAGES, images))
    return [Statement(category, "n", source) for category, is_stated in stated if is_stated]


def license_statement(url: str) -> list[Statement]:
    """Return what a License line of a robots.txt states: the URL of the terms, which rove does not read."""
    return _url(LICENSE, url, UsageSource.ROBOTS_LICENSE)


def _pairs(text: str, keys: dict[str, Category]) -> Iterator[tuple[Category, str]]:
    """Yield the categories that a list states, with `y` or `n`. Of one that is stated twice, the last one counts."""
    stated: dict[Category, str] = {}
    for part in text[:MAX_HEADER].lower().split(","):
        name, _, value = part.partition("=")
        category = keys.get(name.strip())
        answer = _ANSWERS.get(value.partition(";")[0].strip().strip('"'))
        if category is not None and answer is not None:
            stated[category] = answer
    yield from stated.items()


def _url(name: str, text: str, source: UsageSource) -> list[Statement]:
    found = _URL.match(text.strip())
    return [] if found is None else [Statement(name, found[0], source)]
