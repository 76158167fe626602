"""URLs that may be tried again, and the retries that a person asked for."""

from __future__ import annotations

from dataclasses import dataclass

from rove.model.urls import UrlState
from rove.policy.retry_filter import RetryFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownUrl:
    """What became of a URL, as far as a list of many needs it."""

    domain: int
    fingerprint: int
    url: str
    state: UrlState
    reason: str
    """For a pending URL: why its last attempt failed."""
    attempts: int
    assume_https: bool
    seed: int | None
    """Its place in the order in which seeds were given; None if it is not a seed."""
    is_waiting: bool
    """It is pending and waits for a retry."""
    pages: int
    """Pages of its domain that are stored."""

    @property
    def key(self) -> tuple[int, int]:
        """What identifies it in the frontier."""
        return self.domain, self.fingerprint

    @property
    def is_troubled(self) -> bool:
        """Whether it failed, or has failed so far and waits for a retry."""
        return self.state is UrlState.FAILED or self.is_waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A retry that a person asked for."""

    id: int
    at: int
    """Milliseconds of the crawl's clock, before any URL became pending."""
    ended: int
    """Milliseconds of the crawl's clock, when the last URL became pending."""
    wall: float
    """Wall-clock seconds since the epoch, for people."""
    who: str
    urls: int
    """URLs that became pending or due."""
    delay: float
    """The operator's delay at that time, in seconds."""
    filter: RetryFilter
