"""Chooses the database of a crawl. No other module outside the backends names one."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from rove.config import Settings, settings_from_json
from rove.datadir import DataDir, Remote
from rove.errors import UsageError
from rove.frontier.contract import Backend, Catalog
from rove.frontier.dsn import checked_name
from rove.frontier.era_file import EraFile
from rove.frontier.records import Node, Policy
from rove.frontier.sqlite.backend import SqliteBackend
from rove.policy.constants import VISIT_BUDGET
from rove.urls.canonical import FormKey, UrlForm, form_with

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_CRAWL_NAME = "rove"


def remote_given(data: DataDir, url: str | None, crawl_name: str | None) -> Remote | None:
    """Return the crawl in PostgreSQL that the options or the data directory name; None for a crawl in SQLite."""
    known = data.remote()
    if url is None:
        if crawl_name is not None and known is None:
            raise UsageError("--crawl-name names a crawl in PostgreSQL; give --frontier too")
        if crawl_name is not None and known is not None and known.crawl_name != crawl_name:
            raise UsageError(f"{data.root} belongs to the crawl {known.crawl_name!r}")
        return known
    remote = remote_for_move(data, url, crawl_name)
    if known is None and data.frontier.exists():
        raise UsageError(
            f"{data.root} holds a crawl in SQLite; move it with 'rove move --to', or choose another --data-dir"
        )
    if known is not None and known.crawl_name != remote.crawl_name:
        raise UsageError(
            f"{data.root} belongs to the crawl {known.crawl_name!r}; choose another --data-dir for "
            f"{remote.crawl_name!r}"
        )
    return remote


def remote_to_read(data: DataDir, url: str | None, crawl_name: str | None) -> Remote | None:
    """Return the crawl in PostgreSQL to read; None for a crawl in SQLite.

    With a URL, the data directory need not belong to the crawl. Its key tells which pages are here. Without a key, all
    pages are elsewhere.
    """
    if url is None:
        return remote_given(data, None, crawl_name)
    known = None
    with suppress(UsageError):  # another user's file, which only he can read
        known = data.remote()
    if known is None:
        return replace(remote_named(url, crawl_name), node_key="")
    name = crawl_name or (known.crawl_name if known.url == url else None)
    return replace(remote_named(url, name), node_key=known.node_key)


def remote_for_move(data: DataDir, url: str, crawl_name: str | None) -> Remote:
    """Return the crawl in PostgreSQL to move to. A data directory that has a key there keeps it."""
    known = data.remote()
    remote = remote_named(url, crawl_name or (known.crawl_name if known else None))
    return remote if known is None else replace(remote, node_key=known.node_key)


def remote_named(url: str, crawl_name: str | None) -> Remote:
    """Return the crawl in PostgreSQL that options name."""
    if not url.startswith(SCHEMES):
        # The message does not repeat the text: it may hold a password.
        raise UsageError("the database must be given as a URL that begins with postgresql://")
    return Remote(url=url, crawl_name=checked_name(crawl_name or DEFAULT_CRAWL_NAME))


def backend_for(
    data: DataDir, remote: Remote | None, *, read_only: bool = False, on_news: Callable[[str], None] | None = None
) -> Backend:
    """Return the database of a crawl. `on_news` is told about outages and upgrades."""
    if remote is None:
        return SqliteBackend(
            data.frontier, read_only=read_only, in_use=data.in_use, on_news=on_news, era_file=EraFile(data.database)
        )
    from rove.frontier.postgres.backend import PostgresBackend  # its driver loads slowly

    return PostgresBackend(
        remote.url,
        remote.crawl_name,
        node_of(data, remote),
        register=not read_only,
        on_news=on_news,
        era_file=EraFile(data.database),
    )


@asynccontextmanager
async def opened_backend(
    data: DataDir,
    *,
    remote: Remote | None = None,
    read_only: bool = False,
    on_news: Callable[[str], None] | None = None,
) -> AsyncIterator[Backend]:
    """Open the database of an existing crawl, whether it is running or not.

    Without `remote`, it is the crawl that the data directory belongs to.
    """
    remote = remote or data.remote()
    backend = backend_for(data, remote, read_only=read_only, on_news=on_news)
    try:
        if not await backend.exists():
            advice = "give another --data-dir" if remote is None else "check --frontier and --crawl-name"
            raise UsageError(f"{backend.location} holds no crawl; {advice}, or start one with 'rove crawl'")
        await backend.open()
        if await backend.catalog.settings() is None:
            raise UsageError(f"{backend.location} holds no crawl")
        yield backend
    finally:
        await backend.close()


def node_of(data: DataDir, remote: Remote) -> Node:
    """Return the data directory as other machines see it."""
    path = os.fsencode(data.root.resolve()).decode(errors="replace")  # the name may not be UTF-8
    return Node(key=remote.node_key, host=socket.gethostname(), path=path)


def policy_of(settings: Settings) -> Policy:
    """Return the settings that the frontier needs."""
    return Policy(
        delay=settings.delay,
        budget=VISIT_BUDGET,
        page_limit=settings.limits.page_limit,
        max_pages_per_domain=settings.limits.max_pages_per_domain,
        limits_epoch=settings.limits.epoch,
        horizon=settings.planned_seconds,
    )


async def form_of(catalog: Catalog, settings: Settings) -> UrlForm:
    """Return the form of a crawl's URLs, with ids that are keyed with its secret."""
    return form_with(FormKey(secret=await catalog.secret(), drop_params=settings.drop_params))


async def saved_form(catalog: Catalog) -> UrlForm:
    """Return the form of the URLs of a crawl that was opened."""
    saved = await catalog.settings()
    assert saved is not None, "a crawl that was opened has settings"
    return await form_of(catalog, settings_from_json(saved))
