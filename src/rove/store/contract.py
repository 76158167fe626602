"""The contract between the crawl and its page store."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from rove.model.ledger import Content, Location
from rove.model.outcomes import Fetched


class Keep(enum.StrEnum):
    """Which parts of a page are stored."""

    TEXT = "text"
    RAW = "raw"
    BOTH = "both"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page to store."""

    url: str
    fetched_at: float
    """Seconds since the epoch."""
    text: bytes
    """UTF-8, as it is stored and hashed."""
    source: Fetched | None
    """The response that the text was extracted from; not needed if only texts are stored."""
    content_hash: int | None = None
    """Identifies the text among known ones. With None, the text is stored even if it is known."""
    languages: tuple[str, ...] = ()
    """The languages of the text, as codes of ISO 639-3."""


class Stored(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The locations of a page's records; None for parts that are not stored."""

    text: Location | None
    raw: Location | None
    is_copy: bool = False
    """The text had been stored before. `text` is the revisit record that refers to it."""
    sha1_64: int | None = None
    """The second hash of a text that later pages may refer to (see `Content`); None if they must not."""


class Store(Protocol):
    """Stores pages; append-only."""

    async def write(self, pages: Sequence[Page], known: Mapping[int, Content] | None = None) -> list[Stored]:
        """Store a batch of pages, in order. When this returns, they survive a power cut.

        `known` maps hashes to texts that are stored already. If the text of a page is known, or equals that of an
        earlier page, only a record that refers to it is written.
        """

    async def close(self) -> None:
        """Finish the open file."""
