"""Named queries from .sql files: SQL stays SQL, and each statement has a name to measure and test it by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

_SECTION = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{([a-z_]+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class NumberedQuery:
    """A query whose parameters are $1, $2 …, and which name each stands for."""

    text: str
    parameters: tuple[str, ...]


def load_queries(backend: str) -> dict[str, str]:
    """Return the queries of a backend by name, without their comments."""
    parts = _SECTION.split(_folder(backend).joinpath("queries.sql").read_text("utf-8"))
    sections = list(zip(parts[1::3], parts[2::3], map(_uncommented, parts[3::3]), strict=True))
    fragments = {name: text for kind, name, text in sections if kind == "fragment"}
    return {
        name: _FRAGMENT.sub(lambda match: fragments[match[1]], text)
        for kind, name, text in sections
        if kind == "name"
    }


def load_numbered_queries(backend: str) -> dict[str, NumberedQuery]:
    """The same, with parameters by number instead of by name."""
    return {name: _numbered(text) for name, text in load_queries(backend).items()}


def load_migrations(backend: str) -> list[tuple[int, str]]:
    """The numbered migrations of a backend, in order."""
    folder = _folder(backend).joinpath("migrations")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return [(int(name[:4]), folder.joinpath(name).read_text("utf-8")) for name in files]


def _folder(backend: str) -> Traversable:
    return resources.files("rove.frontier").joinpath(backend)


def _uncommented(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")


def _numbered(text: str) -> NumberedQuery:
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    places = {name: f"${number}" for number, name in enumerate(names, start=1)}
    return NumberedQuery(_PARAMETER.sub(lambda found: places[found[1]], text), names)
