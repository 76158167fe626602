"""Opens a crawl, running or not, for a command that changes what is in its frontier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rove.config import Settings, settings_from_json
from rove.datadir import DataDir
from rove.frontier.backends import form_of, opened_backend, policy_of, remote_for_move
from rove.frontier.contract import Backend, Frontier
from rove.inspect.nodes import runs_elsewhere
from rove.urls.canonical import UrlForm


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlNamed:
    """The options that say which crawl a command is about."""

    data_dir: Path
    frontier: str | None = None
    """A PostgreSQL URL; None: the crawl of the data directory."""
    crawl_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """A crawl that is open for a change."""

    data: DataDir | None
    """The data directory; None if the crawl was named by its database alone."""
    backend: Backend
    frontier: Frontier
    """It can be maintained but not claimed from."""
    settings: Settings
    form: UrlForm

    async def is_running(self) -> bool:
        """Whether the crawl is running on any machine."""
        is_here = self.data is not None and self.data.in_use()
        return is_here or runs_elsewhere(await self.backend.reader.participants())


@asynccontextmanager
async def maintained(crawl: CrawlNamed) -> AsyncIterator[Maintained]:
    """Open a crawl. With a PostgreSQL URL, no data directory is needed, and none joins the crawl."""
    data = DataDir(crawl.data_dir)
    remote = None if crawl.frontier is None else remote_for_move(data, crawl.frontier, crawl.crawl_name)
    async with opened_backend(data, remote=remote, read_only=remote is not None) as backend:
        saved = await backend.catalog.settings()
        assert saved is not None, "a crawl that was opened has settings"
        settings = settings_from_json(saved)
        yield Maintained(
            data=data if remote is None else None,
            backend=backend,
            frontier=await backend.begin(policy_of(settings), None),
            settings=settings,
            form=await form_of(backend.catalog, settings),
        )
