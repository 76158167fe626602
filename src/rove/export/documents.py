"""Pages as documents: with their text and what the crawl knows about them, as lines of JSON or rows of a table.

FIELDS is the one list of the columns of a table. To add a fact that the crawl learns of a page, add it to FIELDS and to
`document_json`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rove.errors import RoveError
from rove.export.parquet import Column, Type
from rove.inspect.open_crawl import Archive, StoredText
from rove.inspect.request_rows import page_with_records
from rove.notation.humanize import hash_text
from rove.urls.domain import domain_of
from rove.urls.origin import host_and_port, origin_of

BATCH = 200
"""Pages whose facts are looked up at a time."""
COUNTS_CACHED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page with its text."""

    stored: StoredText
    text: str | None
    copies: int
    """How many other pages have the same text."""
    depth: int | None
    """Links between a seed and the page; None if the crawl does not know."""

    @property
    def id(self) -> str:
        """Return a name that no other page has, also in another crawl."""
        row = self.stored.row
        return f"<{uuid.uuid5(uuid.NAMESPACE_URL, f'{row.url} {row.started:.3f}').urn}>"

    @property
    def date(self) -> str:
        """When it was requested, to the second, as in its WARC record."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.stored.row.started))

    @property
    def domain(self) -> str:
        """The registrable domain of its URL."""
        return domain_of(host_and_port(origin_of(self.stored.row.url))[0])

    @property
    def language(self) -> str | None:
        """The commonest language of its text, as a code of ISO 639-3."""
        languages = self.stored.row.languages
        return languages[0].code if languages else None

    @property
    def language_score(self) -> float | None:
        """The share of the text in that language."""
        languages = self.stored.row.languages
        return languages[0].percent / 100 if languages else None

    @property
    def usage(self) -> str | None:
        """What the site states about the use of the page."""
        return " ".join(self.stored.row.usage) or None

    @property
    def file(self) -> str | None:
        """The WARC file that holds its text."""
        return None if self.stored.where is None else self.stored.where.file


class Field(NamedTuple):
    """A column of a table of documents, and where its value comes from."""

    column: Column
    value: Callable[[Document, str], Any]
    """Takes the document and the name of the crawl."""


def _unknown(document: Document, dump: str) -> None:
    """Return the value of a column that the format has and the crawl does not know."""


FIELDS = (
    Field(Column("text"), lambda document, dump: document.text),
    Field(Column("id"), lambda document, dump: document.id),
    Field(Column("dump"), lambda document, dump: dump),
    Field(Column("url"), lambda document, dump: document.stored.row.url),
    Field(Column("date"), lambda document, dump: document.date),
    Field(Column("file_path"), lambda document, dump: document.file),
    Field(Column("language"), lambda document, dump: document.language),
    Field(Column("language_score", Type.FLOAT), lambda document, dump: document.language_score),
    Field(Column("token_count", Type.INT64), _unknown),
    Field(Column("title"), lambda document, dump: document.stored.row.title or None),
    Field(Column("domain"), lambda document, dump: document.domain),
    Field(Column("status", Type.INT32), lambda document, dump: document.stored.row.status),
    Field(Column("copies", Type.INT64), lambda document, dump: document.copies),
    Field(Column("depth", Type.INT32), lambda document, dump: document.depth),
    Field(Column("usage"), lambda document, dump: document.usage),
    Field(Column("simhash"), lambda document, dump: hash_text(document.stored.row.simhash)),
)
"""The first nine columns are those of FineWeb."""
COLUMNS = tuple(each.column for each in FIELDS)


def document_row(document: Document, dump: str) -> tuple[Any, ...]:
    """Return the values of a document in the order of COLUMNS."""
    return tuple(each.value(document, dump) for each in FIELDS)


def document_json(document: Document) -> dict[str, Any]:
    """Return the line of a document: the same keys for every document, so that the lines are a table."""
    return {
        **page_with_records(document.stored),
        "id": document.id,
        "date": document.date,
        "domain": document.domain,
        "depth": document.depth,
        "copies": document.copies,
        "text": document.text,
    }


@dataclass(slots=True)
class DocumentReader:
    """Makes documents of the pages of a crawl."""

    archive: Archive
    on_unreadable: Callable[[str], None]
    """Called with a sentence for each page whose text cannot be read."""
    unreadable: int = 0
    _copies: dict[int, int] = field(default_factory=dict)

    async def documents(self, pages: AsyncIterable[StoredText]) -> AsyncIterator[Document]:
        """Iterate over the documents of pages, in the same order."""
        batch: list[StoredText] = []
        async for page in pages:
            batch.append(page)
            if len(batch) == BATCH:
                async for document in self._of(batch):
                    yield document
                batch = []
        async for document in self._of(batch):
            yield document

    async def _of(self, batch: list[StoredText]) -> AsyncIterator[Document]:
        depths = await self.archive.reader.depths([(page.row.domain, page.row.fingerprint) for page in batch])
        counts = await self._counts({h for page in batch if (h := page.row.content_hash) is not None})
        for page in batch:
            try:
                text = self.archive.read(page)
            except RoveError as error:
                self.unreadable += 1
                self.on_unreadable(f"{page.row.url}: {error}")
                continue
            row = page.row
            copies = 0 if row.content_hash is None or page.where is None else counts.get(row.content_hash, 0)
            yield Document(stored=page, text=text, copies=copies, depth=depths.get((row.domain, row.fingerprint)))

    async def _counts(self, hashes: set[int]) -> dict[int, int]:
        """Return how many pages repeat these texts. Texts that many pages have are asked for only once."""
        if len(self._copies) + len(hashes) > COUNTS_CACHED:
            self._copies.clear()
        self._copies |= await self.archive.reader.copy_counts(hashes - self._copies.keys())
        return self._copies
