"""Named queries and numbered migrations, as they are read from their files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rove.frontier import queries, sqlite_database
from rove.frontier.queries import load_migrations, load_queries

SOURCES = Path(sqlite_database.__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in the package's place."""
    monkeypatch.setattr(queries.resources, "files", lambda package: tmp_path)
    return tmp_path


def test_queries_come_by_name_without_comments(folder: Path) -> None:
    (folder / "some.sql").write_text(
        "-- A file.\n\n-- name: first\n-- Why: a reason.\nSELECT 1\n  -- indented; too\nFROM x;\n\n"
        "-- name: second\nSELECT '--'; \n"
    )
    assert load_queries("some.sql") == {"first": "SELECT 1\nFROM x", "second": "SELECT '--'"}


def test_migrations_come_in_the_order_of_their_numbers(folder: Path) -> None:
    place = folder / "migrations" / "some"
    place.mkdir(parents=True)
    for name in ("0010_later.sql", "0002_second.sql", "0001_first.sql", "readme.md"):
        (place / name).write_text(name)
    assert load_migrations("some") == [
        (1, "0001_first.sql"),
        (2, "0002_second.sql"),
        (10, "0010_later.sql"),
    ]


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _ in load_migrations("sqlite")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_query_that_is_asked_for_exists_and_every_one_is_asked_for() -> None:
    text = "".join(path.read_text() for path in SOURCES.glob("sqlite*.py"))
    known = set(load_queries("sqlite.sql"))
    asked = set(re.findall(r"""\.(?:execute|batch)\(\s*"([a-z]\w*)""", text))
    assert asked and asked <= known
    assert {name for name in known if f'"{name}"' not in text} == set()


def test_no_query_has_a_name_twice() -> None:
    names = re.findall(r"^-- name: (\w+)$", (SOURCES / "sqlite.sql").read_text(), re.MULTILINE)
    assert len(names) == len(set(names)) == len(load_queries("sqlite.sql"))
