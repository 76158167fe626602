"""Maps the driver's errors: which mean that the server is lost for a while, and what to tell the user."""

from __future__ import annotations

import socket
from urllib.parse import unquote, urlsplit

import asyncpg

from rove.errors import RoveError, StaleDatabase, Unreachable, UsageError
from rove.frontier.dsn import redacted

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server closed an idle connection
    OSError,
)
"""Every error that talking to a server can raise."""
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
    asyncpg.TargetServerAttributeNotMatched,  # none of the hosts is the primary yet
    StaleDatabase,  # a former primary; the current one may come back
)
"""Errors after which work may be retried. TimeoutError and refused or reset connections are kinds of OSError."""


def is_lost(error: BaseException) -> bool:
    """Return whether work may be retried once the server is back."""
    return isinstance(error, _LOST)


def trouble_of(error: BaseException) -> str:
    """Return why the server cannot be used, for the user."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _database(url: str) -> str:
    try:
        return unquote(urlsplit(url).path.lstrip("/")) or "of that name"
    except ValueError:
        return "of that name"


def open_error(error: BaseException, url: str, schema: str) -> RoveError:
    """Return an error whose message says why a database cannot be used."""
    where = redacted(url)
    database = _database(url)
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return UsageError(f"there is no database {database!r} at {where}; create it with createdb")
    if isinstance(error, (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)):
        return UsageError(f"PostgreSQL at {where} refused the login: {error}")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return UsageError(
            f"the user of {where} may not create or use the schema {schema!r}: {error}; "
            f'its owner can allow it with GRANT CREATE ON DATABASE "{database}"'
        )
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return Unreachable(f"PostgreSQL at {where} has no free connection: {error}")
    if isinstance(error, socket.gaierror):
        return UsageError(f"the host of {where} is unknown: {error.strerror}")
    if isinstance(error, TimeoutError):
        return Unreachable(f"PostgreSQL at {where} does not answer")
    if isinstance(error, asyncpg.CannotConnectNowError):
        return Unreachable(f"PostgreSQL at {where} is not ready: {error}")
    if isinstance(error, OSError):
        return Unreachable(f"no PostgreSQL can be reached at {where}: {error.strerror or error}")
    if isinstance(error, (ValueError, asyncpg.ClientConfigurationError)):
        return UsageError(f"{where!r} is not the URL of a PostgreSQL database")
    return UsageError(f"the database at {where} cannot be used: {error}")
