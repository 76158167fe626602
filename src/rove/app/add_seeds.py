"""`rove seeds add`: load more seeds into a crawl, running or not, from any machine of it.

The command loads the seeds itself, and a running crawl finds their domains due within a second. The copy of the file is
in the data directory and in the catalog, so that the crawl loads the rest if the command is killed. Without a data
directory the copy is temporary.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rove.admin.maintenance import CrawlNamed, maintained
from rove.app.process import gate_of
from rove.app.seed_copy import SeedInput, copied_seeds
from rove.app.seeds import Bookmarks, SeedLoader
from rove.datadir import DataDir
from rove.frontier.seed_source import SeedSource


async def add_seeds(crawl: CrawlNamed, seeds: SeedInput, *, say: Callable[[str], None]) -> bool:
    """Load seeds; return whether the crawl is running. `say` shows progress, and at the end what the file brought."""
    seeds.check("rove seeds add -")
    async with maintained(crawl) as opened:
        with _copied(opened.data, seeds, say) as (data, source):
            bookmarks: Bookmarks
            if opened.data is None:
                bookmarks = _Unlisted(source)
            else:
                bookmarks = opened.backend.catalog
                source = await opened.backend.catalog.add_seed_source(source)
            loader = SeedLoader(
                frontier=opened.frontier,
                catalog=opened.backend.catalog,
                gate=await gate_of(opened.backend.catalog, opened.settings),
                directory=data.root,
                delay=opened.settings.delay,
                form=opened.form,
                say=say,
                bookmarks=bookmarks,
            )
            await loader.load(source)
        return await opened.is_running()


@contextmanager
def _copied(data: DataDir | None, seeds: SeedInput, say: Callable[[str], None]) -> Iterator[tuple[DataDir, SeedSource]]:
    """Copy seeds into the data directory, or into a temporary one."""
    with tempfile.TemporaryDirectory(prefix="rove-seeds-") as temporary, seeds.opened() as file:
        place = data or DataDir(Path(temporary))
        yield place, copied_seeds(place, seeds, file, say=say)


class _Unlisted:
    """The bookmark of a temporary copy, which no other process can load."""

    def __init__(self, source: SeedSource) -> None:
        self._source = source

    async def seed_sources(self) -> list[SeedSource]:
        return [self._source]

    async def save_progress(self, source: SeedSource) -> None:
        self._source = source
