"""Queries and migrations are loaded from their files."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from rove.frontier import queries
from rove.frontier.queries import NumberedQuery, load_migrations, load_numbered_queries, load_queries
from rove.frontier.rows.requests import REQUEST_COLUMNS

SOURCES = Path(queries.__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Load files from a temporary folder instead of the package."""
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    (tmp_path / "some").mkdir()
    return tmp_path


def test_queries_come_by_name_without_comments(folder: Path) -> None:
    (folder / "some" / "queries.sql").write_text(
        "-- A file.\n\n-- name: first\n-- Why: a reason.\nSELECT 1\n  -- indented; too\nFROM x;\n\n"
        "-- name: second\nSELECT '--'; \n"
    )
    assert load_queries("some") == {"first": "SELECT 1\nFROM x", "second": "SELECT '--'"}


def test_fragments_are_expanded_and_may_include_others(folder: Path) -> None:
    (folder / "some" / "queries.sql").write_text(
        "-- name: first\nSELECT {both} FROM x WHERE y = {b};\n"
        "-- fragment: both\n-- A comment.\na, {b}\n\n-- fragment: b\nb + :n\n"
        "-- name: second\nSELECT '{}', {request_columns};\n"
    )
    assert load_queries("some") == {
        "first": "SELECT a, b + :n FROM x WHERE y = b + :n",
        "second": f"SELECT '{{}}', {', '.join(REQUEST_COLUMNS)}",
    }


def test_an_unknown_fragment_is_an_error(folder: Path) -> None:
    (folder / "some" / "queries.sql").write_text("-- name: first\nSELECT {missing};\n")
    with pytest.raises(KeyError, match="missing"):
        load_queries("some")


def test_migrations_come_in_the_order_of_their_numbers(folder: Path) -> None:
    place = folder / "some" / "migrations"
    place.mkdir()
    for name in ("0010_later.sql", "0002_second.sql", "0001_first.sql", "readme.md"):
        (place / name).write_text(name)
    assert load_migrations("some") == [(1, "0001_first.sql"), (2, "0002_second.sql"), (10, "0010_later.sql")]


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _ in load_migrations("sqlite")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_query_that_is_asked_for_exists_and_every_one_is_asked_for() -> None:
    files = [*SOURCES.glob("sqlite/*.py"), *SOURCES.glob("*.py")]
    text = "".join(path.read_text() for path in files)
    known = set(load_queries("sqlite"))
    asked = set(re.findall(r"""\.(?:execute|batch|insert|fetch)\(\s*"([a-z]\w*)""", text))
    assert asked and asked <= known
    assert {name for name in known if f'"{name}"' not in text} == set()


def test_no_query_has_a_name_twice() -> None:
    names = re.findall(r"^-- name: (\w+)$", (SOURCES / "sqlite" / "queries.sql").read_text(), re.MULTILINE)
    assert len(names) == len(set(names)) == len(load_queries("sqlite"))


def numbered(folder: Path, text: str) -> NumberedQuery:
    (folder / "some" / "queries.sql").write_text(f"-- name: only\n{text};\n")
    return load_numbered_queries("some")["only"]


def test_parameters_are_numbered_in_the_order_in_which_they_first_come(folder: Path) -> None:
    query = numbered(folder, "SELECT :later, (:first_one) FROM x WHERE y=:a AND z>=:b")
    assert query.text == "SELECT $1, ($2) FROM x WHERE y=$3 AND z>=$4"
    assert query.parameters == ("later", "first_one", "a", "b")


def test_a_name_used_twice_gets_one_number(folder: Path) -> None:
    query = numbered(folder, "SELECT :a + :b + :a - :ab")
    assert query == NumberedQuery("SELECT $1 + $2 + $1 - $3", ("a", "b", "ab"))


def test_casts_are_left_alone(folder: Path) -> None:
    query = numbered(folder, "SELECT :ids::bigint[], x::text, '{}'::jsonb, (:n)::integer")
    assert query.text == "SELECT $1::bigint[], x::text, '{}'::jsonb, ($2)::integer"
    assert query.parameters == ("ids", "n")


def test_slices_and_times_are_left_alone(folder: Path) -> None:
    query = numbered(folder, "SELECT a[1:n], '12:30', b[x:y]")
    assert query == NumberedQuery("SELECT a[1:n], '12:30', b[x:y]", ())


def test_parameters_in_comments_do_not_count(folder: Path) -> None:
    query = numbered(folder, "-- Why: :nothing\nSELECT :a\n  -- :nor this\n+ :b")
    assert query == NumberedQuery("SELECT $1\n+ $2", ("a", "b"))


def test_numbered_queries_have_the_names_of_the_others(folder: Path) -> None:
    (folder / "some" / "queries.sql").write_text("-- name: a\nSELECT :x;\n-- name: b\nSELECT :y;\n")
    assert load_numbered_queries("some") == {
        "a": NumberedQuery("SELECT $1", ("x",)),
        "b": NumberedQuery("SELECT $1", ("y",)),
    }


def test_the_queries_of_postgresql_are_numbered_without_gaps() -> None:
    queries_of_postgres = load_numbered_queries("postgres")
    for name, query in queries_of_postgres.items():
        numbers = {int(number) for number in re.findall(r"\$(\d+)", query.text)}
        assert numbers == set(range(1, len(query.parameters) + 1)), name
        assert not re.search(r"(?<!:):(?!:)[a-z]", query.text), f"{name} has a name left"
    assert any(query.parameters for query in queries_of_postgres.values())


def test_every_query_to_postgresql_exists_and_is_asked_for() -> None:
    files = [*SOURCES.glob("postgres/*.py"), *SOURCES.glob("move/*.py"), *SOURCES.glob("*.py")]
    text = "".join(path.read_text() for path in files)
    known = set(load_queries("postgres"))
    asked = set(re.findall(r"""\.(?:fetch|value|batch)\(\s*"([a-z]\w*)""", text))
    assert asked and asked <= known
    assert {name for name in known if f'"{name}"' not in text} == set()


def test_no_query_to_postgresql_has_a_name_twice() -> None:
    names = re.findall(r"^-- name: (\w+)$", (SOURCES / "postgres" / "queries.sql").read_text(), re.MULTILINE)
    assert len(names) == len(set(names)) == len(load_queries("postgres"))


def test_migrations_of_postgresql_are_numbered_without_gaps() -> None:
    numbers = [number for number, _ in load_migrations("postgres")]
    assert numbers and numbers == list(range(1, len(numbers) + 1))
