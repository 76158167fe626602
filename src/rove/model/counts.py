"""The numbers of a whole crawl, as its frontier counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rove.model.request_counts import RequestCounts
from rove.model.urls import UrlState


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers that status shows. They come from counters; URLs are never counted."""

    urls: Mapping[UrlState, int]
    domains: Mapping[str, int]
    """Domains by state: idle, waiting, ready, leased, excluded."""
    pages: int
    bytes: int
    request_counts: RequestCounts = field(default_factory=RequestCounts)
    not_accepted: Mapping[str, int] = field(default_factory=dict)
    """URLs that were found and not added to the frontier, by reason."""
    blocked: Mapping[str, int] = field(default_factory=dict)
    """Blocked URLs by reason."""
    leases: int = 0
    """Leases that have ended."""
    without_request: Mapping[str, int] = field(default_factory=dict)
    """Leases that ended without a request, by reason."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """How often something was cut, dropped or doubtful about a response, by name."""
    copies: int = 0
    """Pages whose text was stored before."""
    domains_answered: int = 0
    """Domains that have ever responded."""
    evicted: int = 0
    """URLs that were accepted and then deleted, because their domain had better ones or a shorter --horizon was given.
    They are counted under `not_accepted` too."""

    @property
    def requests(self) -> int:
        """All requests."""
        return self.request_counts.total

    @property
    def failures(self) -> Mapping[str, int]:
        """Failed requests by error."""
        return self.request_counts.errors

    @property
    def urls_pending(self) -> int:
        """The number of URLs that wait to be fetched."""
        return self.urls[UrlState.PENDING]
