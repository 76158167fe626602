"""Opens a crawl, running or not, for reading."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rove.config import Settings, settings_from_json
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import opened_backend, remote_to_read, saved_form
from rove.frontier.contract import Catalog, FrontierReader
from rove.inspect.nodes import runs_elsewhere
from rove.inspect.pauses import Scope
from rove.model.instructions import Instructions
from rove.model.ledger import Content, Location, RequestRow
from rove.store.reader import WarcReader
from rove.urls.canonical import UrlForm

CONTENTS_CACHED = 10_000
"""Texts shared by several pages; copies of one text often come together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """Where the text of a page is stored."""

    row: RequestRow
    content: Content | None
    """For a copy: the stored text; None if it was deleted."""

    @property
    def node(self) -> str:
        """The machine and data directory that store it; '' means this one."""
        return self.row.node if self.content is None else self.content.node

    @property
    def where(self) -> Location | None:
        """The record that holds it; None if there is none, or no longer."""
        if self.content is not None:
            return self.content.where
        return None if self.row.is_copy else self.row.text

    @property
    def copy_of(self) -> str:
        """The page whose record holds the text; '' if it is the page's own."""
        if self.content is None or self.content.url == self.row.url:
            return ""
        return self.content.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A crawl that is open for reading."""

    data: DataDir | None
    """The data directory, if it belongs to this crawl."""
    reader: FrontierReader
    catalog: Catalog
    pages: WarcReader
    cache_size: int = CONTENTS_CACHED
    _contents: dict[int, Content] = field(default_factory=dict)

    async def text_of(self, row: RequestRow) -> StoredText:
        """Return where the text of a page is stored: in its own record or in that of a page with the same text."""
        if not row.is_copy or row.content_hash is None:
            return StoredText(row=row, content=None)
        if row.content_hash not in self._contents:
            if len(self._contents) >= self.cache_size:
                self._contents.clear()
            self._contents.update(await self.reader.contents([row.content_hash]))
        return StoredText(row=row, content=self._contents.get(row.content_hash))

    def read(self, text: StoredText) -> str | None:
        """Read a text on this machine; None if it is not stored. Raise StoreError if it cannot be read."""
        if text.content is not None:
            return self.pages.read_content(text.content)
        if text.where is None:
            return None
        return self.pages.read_text(text.where, expect_url=text.row.url)

    @property
    def in_use(self) -> bool:
        """Whether the crawl is running on this machine, in this data directory."""
        return self.data is not None and self.data.in_use()

    async def is_running(self) -> bool:
        """Whether the crawl is running, here or on another machine."""
        return self.in_use or runs_elsewhere(await self.reader.participants())

    async def instructions(self) -> dict[Scope, Instructions]:
        """Return what the owner has told the crawl, here and on all machines."""
        here = Instructions() if self.data is None else self.data.instructions()
        return {Scope.HERE: here, Scope.EVERYWHERE: await self.catalog.instructions()}

    async def settings(self) -> Settings:
        """Return the settings that the crawl was started with."""
        saved = await self.catalog.settings()
        assert saved is not None, "a crawl that can be opened has settings"
        return settings_from_json(saved)

    async def form(self) -> UrlForm:
        """Return the form of the crawl's URLs, by which they are looked up."""
        return await saved_form(self.catalog)


@asynccontextmanager
async def opened(
    data_dir: Path,
    *,
    frontier: str | None = None,
    crawl_name: str | None = None,
    on_news: Callable[[str], None] | None = None,
) -> AsyncIterator[Archive]:
    """Open the crawl of a data directory, or the one at `frontier`, a PostgreSQL URL.

    `on_news` is called before a copy is made, which may take a while.
    """
    data = DataDir(data_dir)
    remote = remote_to_read(data, frontier, crawl_name)
    async with opened_backend(data, remote=remote, read_only=True, on_news=on_news) as backend:
        belongs = frontier is None or await _belongs(data, backend.catalog)
        yield Archive(
            data=data if belongs else None,
            reader=backend.reader,
            catalog=backend.catalog,
            pages=WarcReader(data.warc),
        )


async def _belongs(data: DataDir, catalog: Catalog) -> bool:
    """Whether a data directory takes part in a crawl."""
    try:
        known = data.remote()
    except UsageError:
        return False
    return known is not None and known.crawl != "" and known.crawl == await catalog.identity()
