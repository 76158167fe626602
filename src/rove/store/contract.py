"""What the crawl asks of a page store."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rove.model import Fetched, Location


class Keep(enum.StrEnum):
    """What is stored of a page."""

    TEXT = "text"
    RAW = "raw"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page to be stored."""

    url: str
    fetched_at: float
    """Wall-clock seconds since the epoch."""
    text: str
    source: Fetched | None
    """The answer that the text was taken from; not needed where only texts are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where the records of a page went; None for what was not asked to be kept."""

    text: Location | None
    raw: Location | None


class Store(Protocol):
    """An append-only home for pages."""

    async def write(self, pages: Sequence[Page]) -> list[Stored]:
        """Store a group of pages, in order; when this returns they survive a power cut."""

    async def close(self) -> None:
        """Finish the open file."""
