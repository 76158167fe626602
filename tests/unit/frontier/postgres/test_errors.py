"""Crawl names are checked, passwords are hidden, and driver errors are mapped."""

from __future__ import annotations

import socket

import asyncpg
import pytest

from rove.errors import Unreachable, UsageError
from rove.frontier.dsn import checked_name, redacted
from rove.frontier.postgres.errors import is_lost, open_error

URL = "postgresql://rove:s3cret@db.test:5432/crawls"


@pytest.mark.parametrize("name", ["rove", "a", "_", "_x", "crawl_2026", "x9", "pgx", "pg", "a_public", "a" * 63])
def test_a_good_name_is_returned_as_it_is(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 64,
        "9lives",
        "Rove",
        "my-crawl",
        "my crawl",
        "a.b",
        'a"; DROP SCHEMA public; --',
        "a\n",
        "\na",
        "ä",
        "a٣",  # a digit, but not an ASCII one
        "pg_",
        "pg_catalog",
        "public",
        "information_schema",
    ],
)
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid name") as caught:
        checked_name(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, "postgresql://rove:***@db.test:5432/crawls"),
        ("postgres://rove:@db.test/x", "postgres://rove:***@db.test/x"),
        ("postgresql://rove:a:s3cret@db.test/x", "postgresql://rove:***@db.test/x"),
        ("postgresql://rove:a%40s3cret@[::1]:5432/x", "postgresql://rove:***@[::1]:5432/x"),
    ],
)
def test_stars_are_shown_in_place_of_a_password(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db.test/crawls",
        "postgresql://db.test:5432/crawls",
        "postgresql://rove@db.test:5432/crawls",
        "postgres://rove@db.test",
        "postgresql://[::1]:5432/crawls",
        "postgresql://one:5432,two:5433/crawls",
        "postgresql:///crawls",
        "nonsense",
        "",
    ],
)
def test_a_url_without_a_password_is_shown_as_it_is(url: str) -> None:
    assert redacted(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://:s3cret@db.test/x",
        "postgresql://rove:a@s3cret@db.test/x",
        "postgresql://rove:s3cret@b@db.test/x",
        "postgresql://rove:a/s3cret@db.test/x",
        "postgresql://rove:s3cret/b@db.test/x",
        "postgresql://rove:a#s3cret@db.test/x",
        "postgresql://rove:a?s3cret@db.test/x",
        "postgresql://rove:a s3cret@db.test/x",
        "postgresql://rove:s3cret\nb@db.test/x",
        "postgresql://rove:a&password=b&s3cret@db.test/x",
        "postgresql://me@corp.test:s3cret@db.test/x",
        "postgresql:///x?password=s3cret&user=a",
        "postgresql://db.test/x?user=a&password=s3cret",
        "postgresql://db.test/x?sslpassword=s3cret",
        "postgresql://db.test:5432/x?password=a@s3cret",
        "postgresql://db.test/x?password=a s3cret",
        "postgresql://rove:a@db.test/x?password=s3cret",
        "mysql://rove:s3cret@db.test/x",
        " postgresql://rove:s3cret@db.test/x",
        "host=db.test password=s3cret user=a",
        "host=db.test password='a s3cret' user=a",
        "rove:s3cret@db.test/x",
    ],
)
def test_a_password_is_not_shown_however_it_is_written(url: str) -> None:
    assert "s3cret" not in redacted(url)


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ConnectionRefusedError(), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (socket.gaierror(), True),
        (asyncpg.AdminShutdownError("x"), True),
        (asyncpg.CrashShutdownError("x"), True),
        (asyncpg.CannotConnectNowError("x"), True),
        (asyncpg.TooManyConnectionsError("x"), True),
        (asyncpg.ConnectionDoesNotExistError("x"), True),
        (asyncpg.InterfaceError("x"), True),
        (asyncpg.DivisionByZeroError("x"), False),
        (asyncpg.UniqueViolationError("x"), False),
        (asyncpg.InvalidPasswordError("x"), False),
        (asyncpg.DeadlockDetectedError("x"), False),
        (ValueError(), False),
    ],
)
def test_which_errors_mean_that_the_server_is_away(error: Exception, lost: bool) -> None:
    assert is_lost(error) is lost


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (asyncpg.InvalidCatalogNameError("x"), UsageError, "there is no database 'crawls'"),
        (asyncpg.InvalidPasswordError("x"), UsageError, "refused the login"),
        (asyncpg.InsufficientPrivilegeError("x"), UsageError, "the schema 'mine'"),
        (asyncpg.TooManyConnectionsError("x"), Unreachable, "no free connection"),
        (asyncpg.CannotConnectNowError("starting up"), Unreachable, "is not ready: starting up"),
        (socket.gaierror(-2, "unknown"), UsageError, "is unknown: unknown"),
        (TimeoutError(), Unreachable, "does not answer"),
        (ConnectionRefusedError(111, "refused"), Unreachable, "can be reached at .*: refused"),
        (ValueError("port"), UsageError, "is not the URL of a PostgreSQL"),
        (asyncpg.DivisionByZeroError("zero"), UsageError, "cannot be used: zero"),
    ],
)
def test_a_database_that_cannot_be_used_is_a_sentence(error: Exception, kind: type[UsageError], words: str) -> None:
    """Errors that may end by themselves are told from those that the user has to fix."""
    shown = open_error(error, URL, "mine")
    assert type(shown) is kind
    with pytest.raises(kind, match=words):
        raise shown
    assert "s3cret" not in str(shown) and "db.test" in str(shown)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("postgresql://h/my%20db", "'my db'"),
        ("postgresql://h", "'of that name'"),
        ("postgresql://[::1/x", "'of that name'"),
    ],
)
def test_the_message_names_the_database_if_it_is_known(url: str, named: str) -> None:
    shown = open_error(asyncpg.InvalidCatalogNameError("x"), url, "mine")
    assert str(shown).startswith(f"there is no database {named} at ")
