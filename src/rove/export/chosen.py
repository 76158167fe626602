"""Chooses the pages of an export and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field

from rove.inspect.open_crawl import Archive, StoredText
from rove.inspect.page_query import PageQuery
from rove.inspect.request_rows import is_stored, page_with_records
from rove.model.ledger import RequestRow
from rove.model.request_counts import is_listed_with_pages
from rove.model.usage import Purpose, forbids
from rove.policy.exclusions import Exclusions

LOOKAHEAD = 10_000
"""Pages among which to look for examples of every column. More would delay the first line."""


@dataclass(frozen=True, slots=True)
class Span:
    """The visits of one call of an export that continues where the last one ended."""

    after: int
    """The last visit of the call before; 0 for the first call."""
    last: int
    """The last visit of this call. No visit up to it is still under way."""


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
    span: Span | None = None
    """With these visits only, oldest first; else the pages come newest first."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Pages that other machines store, by machine."""
    excluded: int = 0
    """Pages of excluded domains."""
    unwanted: int = 0
    """Pages left out for their usage preference."""

    async def pages(self) -> AsyncIterator[StoredText]:
        """Iterate over the pages."""
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
        async for row in self._rows():
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

    async def _rows(self) -> AsyncIterator[RequestRow]:
        if self.span is None:
            async for row in self.query.rows(self.archive.reader):
                yield row
            return
        domain = None if self.query.site is None else self.query.site.id
        async for row in self.archive.reader.visits_after(self.span.after, domain=domain):
            if row.visit > self.span.last:
                return
            if is_listed_with_pages(row) and self.query.takes(row):
                yield row


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
        filled = {name for name, value in page_with_records(page).items() if value not in (None, [])}
        (others if filled <= seen else examples).append(page)
        seen |= filled
        if len(others) == lookahead:
            break
    for page in (*examples, *others):
        yield page
    async for page in pages:
        yield page
