"""What the crawl asks of a page store."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from rove.model.ledger import Content, Location
from rove.model.outcomes import Fetched


class Keep(enum.StrEnum):
    """What is stored of a page."""

    TEXT = "text"
    RAW = "raw"
    BOTH = "both"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page to be stored."""

    url: str
    fetched_at: float
    """Wall-clock seconds since the epoch."""
    text: bytes
    """In UTF-8, as it is stored: there it is hashed, and half as long in memory as many a string."""
    source: Fetched | None
    """The answer that the text was taken from; not needed where only texts are kept."""
    content_hash: int | None = None
    """By which its text may be known; None: it is stored whatever is known."""


class Stored(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the records of a page went; None for what was not asked to be kept."""

    text: Location | None
    raw: Location | None
    is_copy: bool = False
    """The text was stored before: `text` is the record that says where."""
    checked: int | None = None
    """The second hash of a text that others may refer to, see `Content`; None where none should."""


class Store(Protocol):
    """An append-only home for pages."""

    async def write(
        self, pages: Sequence[Page], known: Mapping[int, Content] | None = None
    ) -> list[Stored]:
        """Store a group of pages, in order; when this returns they survive a power cut.

        `known`: texts that are stored already, by their hash. A page with one of them, or with that of a page before
        it, leaves a record that refers to it.
        """

    async def close(self) -> None:
        """Finish the open file."""
