"""What PostgreSQL's errors mean to a person, and which of them mean that the server is away for a while."""

from __future__ import annotations

import socket
from urllib.parse import unquote, urlsplit

import asyncpg

from rove.errors import RoveError, Unreachable, UsageError
from rove.frontier.dsn import redacted

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that the server ended while nobody was using it
    OSError,
)
"""All that can go wrong in talking to a server."""
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.QueryCanceledError,
    asyncpg.ReadOnlySQLTransactionError,  # a stand-by that has not taken over yet
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
"""TimeoutError and refused or reset connections are kinds of OSError."""


def is_lost(error: BaseException) -> bool:
    """Whether it may be tried again once the server is back."""
    return isinstance(error, _LOST)


def _database(url: str) -> str:
    try:
        return unquote(urlsplit(url).path.lstrip("/")) or "of that name"
    except ValueError:
        return "of that name"


def open_error(error: BaseException, url: str, schema: str) -> RoveError:
    """The sentence for a database that cannot be used."""
    place = redacted(url)
    database = _database(url)
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return UsageError(f"there is no database {database!r} at {place}; make it with createdb")
    if isinstance(
        error, (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)
    ):
        return UsageError(f"PostgreSQL at {place} does not let us in: {error}")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return UsageError(
            f"the user of {place} may not make or use the schema {schema!r}: {error}; its owner can allow it with "
            f'GRANT CREATE ON DATABASE "{database}"'
        )
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return Unreachable(f"PostgreSQL at {place} has no connection to spare: {error}")
    if isinstance(error, socket.gaierror):
        return UsageError(f"the host of {place} is not known: {error.strerror}")
    if isinstance(error, TimeoutError):
        return Unreachable(f"PostgreSQL at {place} does not answer")
    if isinstance(error, asyncpg.CannotConnectNowError):
        return Unreachable(f"PostgreSQL at {place} is not ready: {error}")
    if isinstance(error, OSError):
        return Unreachable(f"no PostgreSQL can be reached at {place}: {error.strerror or error}")
    if isinstance(error, (ValueError, asyncpg.ClientConfigurationError)):
        return UsageError(f"{place!r} is not the URL of a PostgreSQL")
    return UsageError(f"the database at {place} cannot be used: {error}")
