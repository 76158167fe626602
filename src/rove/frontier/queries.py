"""Loads named queries from .sql files, so that each statement has a name to measure and test it by.

A file has two kinds of sections, each with comments of its own:

    -- fragment: now          text that queries and other fragments include as {now}
    -- name: lock_domains     a query

The rows package contributes fragments too: {request_columns} and the like follow its one list of columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from rove.frontier.rows.requests import REQUEST_FRAGMENTS

_SECTION = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{([a-z_]+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class NumberedQuery:
    """A query with parameters $1, $2 …, and the name of each."""

    text: str
    parameters: tuple[str, ...]


def load_queries(backend: str) -> dict[str, str]:
    """Return the queries of a backend by name, with their fragments and without comments."""
    parts = _SECTION.split(_folder(backend).joinpath("queries.sql").read_text("utf-8"))
    sections = list(zip(parts[1::3], parts[2::3], map(_uncommented, parts[3::3]), strict=True))
    fragments = {**REQUEST_FRAGMENTS, **{name: text for kind, name, text in sections if kind == "fragment"}}
    return {name: _expanded(text, fragments) for kind, name, text in sections if kind == "name"}


def load_numbered_queries(backend: str) -> dict[str, NumberedQuery]:
    """Return the queries of a backend with numbered instead of named parameters."""
    return {name: _numbered(text) for name, text in load_queries(backend).items()}


def load_migrations(backend: str) -> list[tuple[int, str]]:
    """Return the numbered migrations of a backend, in order."""
    folder = _folder(backend).joinpath("migrations")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return [(int(name[:4]), folder.joinpath(name).read_text("utf-8")) for name in files]


def _folder(backend: str) -> Traversable:
    return resources.files("rove.frontier").joinpath(backend)


def _uncommented(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")


def _expanded(text: str, fragments: Mapping[str, str]) -> str:
    """Replace {names} by fragments, which may include others."""
    while _FRAGMENT.search(text):
        text = _FRAGMENT.sub(lambda match: fragments[match[1]], text)
    return text


def _numbered(text: str) -> NumberedQuery:
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {name: f"${number}" for number, name in enumerate(names, start=1)}
    return NumberedQuery(_PARAMETER.sub(lambda match: numbers[match[1]], text), names)
