"""Chooses the lines of `rove export` and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field

from rove.inspect.open_crawl import Archive, StoredText
from rove.inspect.page_query import PageQuery
from rove.inspect.request_rows import export_json, is_stored
from rove.model.usage import Purpose, forbids
from rove.policy.exclusions import Exclusions

LOOKAHEAD = 10_000
"""Pages among which to look for examples of every column. More would delay the first line."""


@dataclass(slots=True)
class Export:
    """The pages of an export, and what was left out."""

    archive: Archive
    query: PageQuery
    everything: bool = False
    """With the requests that brought no page: redirects, failures, pages that were not stored or are purged."""
    limit: int | None = None
    purpose: Purpose | None = None
    """Leave out pages whose site states that it does not want them used for this."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Pages that other machines store, by machine."""
    excluded: int = 0
    """Pages of excluded domains."""
    unwanted: int = 0
    """Pages left out for their usage preference."""

    async def pages(self) -> AsyncIterator[StoredText]:
        """Iterate over the pages, newest first, after examples of every column."""
        async for stored in examples_first(self._limited()):
            yield stored

    async def _limited(self) -> AsyncIterator[StoredText]:
        left = self.limit
        if left == 0:
            return
        async for stored in self._chosen():
            yield stored
            if left is not None:
                left -= 1
                if not left:
                    return

    async def _chosen(self) -> AsyncIterator[StoredText]:
        excluded = Exclusions(await self.archive.catalog.exclusions())
        async for row in self.query.rows(self.archive.reader):
            if not (self.everything or is_stored(row)):
                continue
            if excluded.covers_url(row.url):
                self.excluded += 1
                continue
            if forbids(row.usage, self.purpose):
                self.unwanted += 1
                continue
            stored = await self.archive.text_of(row)
            if stored.node and is_stored(row):
                self.elsewhere[stored.node] += 1
            elif self.everything or stored.where is not None or row.raw is not None:
                yield stored


async def examples_first(pages: AsyncIterable[StoredText], *, lookahead: int = LOOKAHEAD) -> AsyncIterator[StoredText]:
    """Move the first page that has a value in a column to the front, for every column.

    Readers of JSON Lines guess the type of a column from the first lines. Where those hold only null, Hugging Face and
    polars fail at the first value, and DuckDB drops all values.
    """
    pages = aiter(pages)
    examples: list[StoredText] = []
    others: list[StoredText] = []
    seen: set[str] = set()
    async for page in pages:
        filled = {name for name, value in export_json(page, None).items() if value not in (None, [])}
        (others if filled <= seen else examples).append(page)
        seen |= filled
        if len(others) == lookahead:
            break
    for page in (*examples, *others):
        yield page
    async for page in pages:
        yield page
