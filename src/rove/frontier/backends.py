"""Which database a crawl is in: the only file that names a backend."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rove.config import Settings
from rove.datadir import DataDir, Remote
from rove.errors import UsageError
from rove.frontier.contract import Backend, Node, Policy
from rove.frontier.dsn import checked_name
from rove.frontier.sqlite.backend import SqliteBackend
from rove.policy.constants import VISIT_BUDGET

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_CRAWL_NAME = "rove"


def remote_given(data: DataDir, url: str | None, crawl_name: str | None) -> Remote | None:
    """The PostgreSQL that is meant: the one given, or the one that the data directory belongs to."""
    known = data.remote()
    if url is None:
        if crawl_name is not None and known is None:
            raise UsageError("--crawl-name names a crawl in a PostgreSQL: give --frontier as well")
        if crawl_name is not None and known is not None and known.crawl_name != crawl_name:
            raise UsageError(f"{data.root} belongs to the crawl {known.crawl_name!r}")
        return known
    if not url.startswith(SCHEMES):
        raise UsageError("what was given is not a postgresql:// URL")
    name = checked_name(crawl_name or (known.crawl_name if known else DEFAULT_CRAWL_NAME))
    if data.frontier.exists() and known is None:
        raise UsageError(
            f"{data.root} holds a crawl in SQLite; take it along with 'rove move --to', or choose another --data-dir"
        )
    if known is None:
        return Remote(url=url, crawl_name=name)
    if known.crawl_name != name:
        raise UsageError(
            f"{data.root} belongs to the crawl {known.crawl_name!r}; choose another --data-dir for {name!r}"
        )
    return Remote(url=url, crawl_name=name, machine=known.machine)


def remote_for_move(data: DataDir, url: str, crawl_name: str | None) -> Remote:
    """The PostgreSQL that a crawl is moved to; the same machine again where a move is gone on with."""
    if not url.startswith(SCHEMES):
        raise UsageError("what was given is not a postgresql:// URL")
    known = data.remote()
    name = checked_name(crawl_name or (known.crawl_name if known else DEFAULT_CRAWL_NAME))
    return Remote(url=url, crawl_name=name, **({"machine": known.machine} if known else {}))


def backend_for(
    data: DataDir,
    remote: Remote | None,
    *,
    read_only: bool = False,
    on_news: Callable[[str], None] | None = None,
) -> Backend:
    """The database of a crawl; `on_news` is told when it goes away and comes back, or is brought up to date."""
    if remote is None:
        return SqliteBackend(data.frontier, read_only=read_only, on_news=on_news)
    from rove.frontier.postgres.backend import PostgresBackend  # its driver takes a while to load

    return PostgresBackend(
        remote.url,
        remote.crawl_name,
        machine_of(data, remote),
        register=not read_only,
        on_news=on_news,
    )


@asynccontextmanager
async def opened_backend(data: DataDir, *, read_only: bool = False) -> AsyncIterator[Backend]:
    """The database of a crawl that is there, running or not."""
    backend = backend_for(data, data.remote(), read_only=read_only)
    try:
        if not await backend.exists():
            raise UsageError(f"{backend.location} holds no crawl")
        await backend.open()
        if await backend.catalog.settings() is None:
            raise UsageError(f"{backend.location} holds no crawl")
        yield backend
    finally:
        await backend.close()


def machine_of(data: DataDir, remote: Remote) -> Node:
    """The data directory as other machines know it."""
    return Node(key=remote.machine, host=socket.gethostname(), path=str(data.root.resolve()))


def policy_of(settings: Settings) -> Policy:
    """What the settings ask of the frontier."""
    return Policy(
        delay=settings.delay,
        budget=VISIT_BUDGET,
        max_pages_per_domain=settings.limits.max_pages_per_domain,
        limits_epoch=settings.limits.epoch,
        horizon=settings.planned_seconds,
    )
