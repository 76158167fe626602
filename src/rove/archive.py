"""A crawl to look into, running or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rove.backends import opened_backend
from rove.config import Settings, settings_from_json
from rove.datadir import DataDir
from rove.frontier.contract import Catalog, FrontierReader
from rove.store.reader import WarcReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What there is of a crawl."""

    data: DataDir
    place: str
    reader: FrontierReader
    catalog: Catalog
    pages: WarcReader

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
            place=backend.place,
            reader=backend.reader,
            catalog=backend.catalog,
            pages=WarcReader(data.warc),
        )
