"""What sites say about the use of their pages, and what a crawl is for."""

from __future__ import annotations

import enum
from typing import NamedTuple

from rove.model.struct import Record


class Purpose(enum.StrEnum):
    """The purpose of a crawl, as its owner states it."""

    SEARCH = "search"
    RESEARCH = "research"
    ARCHIVE = "archive"
    TRAINING = "training"


class Category(enum.StrEnum):
    """A use of a page that sites express a preference about."""

    TRAIN_AI = "train-ai"
    SEARCH = "search"
    AI_INPUT = "ai-input"
    """As input of a model that answers a question."""
    TRAIN_AI_IMAGES = "train-ai-images"
    """Of the page's images only."""


FORBIDDING = {Purpose.TRAINING: Category.TRAIN_AI, Purpose.SEARCH: Category.SEARCH}
"""The category whose `n` speaks against a purpose. No preference speaks of the other purposes."""


class UsageSource(enum.StrEnum):
    """Where a site states a preference."""

    CONTENT_USAGE = "content-usage"
    """The header Content-Usage."""
    ROBOTS_CONTENT_USAGE = "robots-content-usage"
    CONTENT_SIGNAL = "content-signal"
    """The header Content-Signal."""
    ROBOTS_CONTENT_SIGNAL = "robots-content-signal"
    TDM_HEADER = "tdm-header"
    TDM_META = "tdm-meta"
    ROBOTS_LICENSE = "robots-license"
    X_ROBOTS_TAG = "x-robots-tag"
    META_ROBOTS = "meta-robots"


class Statement(NamedTuple):
    """One thing that a site states."""

    key: str
    """A Category, or the name of a URL: `license` or `tdm-policy`."""
    value: str
    """`y` or `n`, or the URL."""
    source: UsageSource


class Usage(Record, frozen=True, gc=False):
    """What a site says about the use of one page."""

    values: tuple[str, ...] = ()
    """Such as `train-ai=n`, `search=y` and `license=https://...`, each key once."""
    sources: tuple[UsageSource, ...] = ()

    def forbids(self, purpose: Purpose | None) -> bool:
        """Whether a preference speaks against a purpose; one that is unknown does not."""
        return forbids(self.values, purpose)


def forbids(values: tuple[str, ...], purpose: Purpose | None) -> bool:
    """Whether one of these values of a Usage speaks against a purpose.

    >>> forbids(("train-ai=n", "search=y"), Purpose.TRAINING), forbids((), Purpose.TRAINING)
    (True, False)
    """
    category = None if purpose is None else FORBIDDING.get(purpose)
    return category is not None and f"{category}=n" in values
