"""A database is accepted, updated or refused by its version and fingerprint."""

from __future__ import annotations

import pytest

from rove.errors import UsageError
from rove.frontier.schema import Schema

SCHEMA = Schema([(1, "CREATE TABLE a (b);"), (2, "CREATE TABLE c (d);")])


def test_an_empty_database_needs_all_migrations() -> None:
    assert SCHEMA.missing("x", 0, None, migrate=True) == SCHEMA.migrations
    with pytest.raises(UsageError, match="there is no crawl in x"):
        SCHEMA.missing("x", 0, None, migrate=False)


def test_an_older_database_needs_the_rest() -> None:
    first = SCHEMA.fingerprint(1)
    assert SCHEMA.missing("x", 1, first, migrate=True) == [SCHEMA.migrations[1]]
    with pytest.raises(UsageError, match="x is from an older rove; resume the crawl once"):
        SCHEMA.missing("x", 1, first, migrate=False)


def test_the_newest_database_needs_nothing() -> None:
    assert SCHEMA.missing("x", 2, SCHEMA.fingerprint(2), migrate=False) == []


def test_a_newer_database_is_refused() -> None:
    with pytest.raises(UsageError, match=r"newer rove \(schema 3, this one knows 2\)"):
        SCHEMA.missing("x", 3, "any", migrate=True)


@pytest.mark.parametrize(("version", "fingerprint"), [(1, None), (2, None), (5, None), (2, "any")])
def test_the_database_of_a_development_version_is_refused(version: int, fingerprint: str | None) -> None:
    with pytest.raises(UsageError, match="development version of rove with another schema"):
        SCHEMA.missing("x", version, fingerprint, migrate=True)


def test_comments_and_layout_do_not_change_the_fingerprint() -> None:
    same = Schema([(1, "-- Why.\nCREATE  TABLE a\n  (b); -- what"), (2, "CREATE TABLE c (d);")])
    assert same.fingerprint(2) == SCHEMA.fingerprint(2)
    other = Schema([(1, "CREATE TABLE a (bb);"), (2, "CREATE TABLE c (d);")])
    assert other.fingerprint(2) != SCHEMA.fingerprint(2)
    assert SCHEMA.fingerprint(1) != SCHEMA.fingerprint(2)
