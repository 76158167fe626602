"""A seed file in the catalog."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSource:
    """A seed file and how far it has been loaded."""

    id: int
    path: str
    """Relative to the data directory."""
    name: str
    """The name that the user gave."""
    offset: int = 0
    lines: int = 0
    good: int = 0
    bad: int = 0
    unseen: int = 0
    """Seeds that were new to the crawl."""
    retried: int = 0
    """Seeds that had failed and are tried again because they were given again."""
    refused: int = 0
    """Seeds that may not enter the frontier, because they are excluded."""
    finished: bool = False
    is_here: bool = True
    """The copy of the file is in this data directory."""
    is_abandoned: bool = False
    """The copy of the file is on a node that no longer takes part."""
