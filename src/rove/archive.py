"""A crawl to look into, running or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rove.backends import backend_for
from rove.datadir import DataDir
from rove.errors import UsageError
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


@asynccontextmanager
async def opened(data_dir: Path) -> AsyncIterator[Archive]:
    """The crawl of a data directory."""
    data = DataDir(data_dir)
    backend = backend_for(data, data.remote(), read_only=True)
    try:
        if not await backend.exists():
            raise UsageError(f"{backend.place} holds no crawl")
        await backend.open()
        if await backend.catalog.settings() is None:
            raise UsageError(f"{backend.place} holds no crawl")
        yield Archive(
            data=data,
            place=backend.place,
            reader=backend.reader,
            catalog=backend.catalog,
            pages=WarcReader(data.warc),
        )
    finally:
        await backend.close()
