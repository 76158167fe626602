"""A crawl to look into, running or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rove.config import Settings, settings_from_json
from rove.datadir import DataDir
from rove.frontier.backends import opened_backend
from rove.frontier.contract import Catalog, FrontierReader
from rove.model.ledger import Content, Location, RequestRow
from rove.store.reader import WarcReader

CONTENTS_REMEMBERED = 10_000
"""Texts that several pages have: the copies of one often come together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """Where the text of a page is."""

    row: RequestRow
    content: Content | None
    """Of a copy: the text that it is one of; None if that was deleted."""

    @property
    def place(self) -> str:
        """The machine and data directory that has it; '' is this one."""
        return self.row.node if self.content is None else self.content.node

    @property
    def where(self) -> Location | None:
        """The record that holds it, None if there is none (any more)."""
        if self.content is not None:
            return self.content.where
        return None if self.row.is_copy else self.row.text

    @property
    def copy_of(self) -> str:
        """The page whose record holds it, '' where that is its own."""
        if self.content is None or self.content.url == self.row.url:
            return ""
        return self.content.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What there is of a crawl."""

    data: DataDir
    place: str
    reader: FrontierReader
    catalog: Catalog
    pages: WarcReader
    _contents: dict[int, Content] = field(default_factory=dict)

    async def text_of(self, row: RequestRow) -> StoredText:
        """Where the text of a stored page is: its own record, or that of a page which had the same before."""
        if not row.is_copy or row.content_hash is None:
            return StoredText(row=row, content=None)
        if row.content_hash not in self._contents:
            if len(self._contents) >= CONTENTS_REMEMBERED:
                self._contents.clear()
            self._contents.update(await self.reader.contents([row.content_hash]))
        return StoredText(row=row, content=self._contents.get(row.content_hash))

    def read(self, text: StoredText) -> str | None:
        """A text that is on this machine, None where none was kept; StoreError if it cannot be read."""
        if text.content is not None:
            return self.pages.read_content(text.content)
        if text.where is None:
            return None
        return self.pages.read_text(text.where, expect_url=text.row.url)

    async def settings(self) -> Settings:
        """How the crawl was started."""
        kept = await self.catalog.settings()
        assert kept is not None, "a crawl that can be opened has settings"
        return settings_from_json(kept)


@asynccontextmanager
async def opened(data_dir: Path) -> AsyncIterator[Archive]:
    """The crawl of a data directory."""
    data = DataDir(data_dir)
    async with opened_backend(data, read_only=True) as backend:
        yield Archive(
            data=data,
            place=backend.location,
            reader=backend.reader,
            catalog=backend.catalog,
            pages=WarcReader(data.warc),
        )
