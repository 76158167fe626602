"""The result of an audit: the checks, their violations, and what could not be checked."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rove.inspect.request_rows import DELAY_REASONS
from rove.model.ledger import DelaySource, RequestRow
from rove.urls.canonical import plain_url

MAX_FINDINGS = 1_000
"""Violations of each check that are reported with their evidence; further ones are only counted."""


class Check(enum.StrEnum):
    """The rules that every request in the ledger is checked against."""

    DELAY = "delay"
    """Between two visits a domain is left alone for as long as the earlier visit requires."""
    ROBOTS = "robots"
    """No page is requested that the robots.txt in force forbids."""
    PAGE_BEFORE_ROBOTS = "page-before-robots"
    """An origin's robots.txt is requested before its pages, and again every day."""
    EXCLUDED = "excluded"
    """No excluded host is requested."""
    USAGE = "usage"
    """No page is kept for training whose site does not want that."""
    TWICE = "twice"
    """No page is requested again without a reason."""
    ORDER = "order"
    """The requests of a visit are few and follow each other."""


class Unverifiable(enum.StrEnum):
    """Why something could not be checked."""

    NO_COPY = "robots-copy-missing"
    """Pages whose robots.txt was read but not stored."""
    OTHER_COPY = "robots-copy-differs"
    """Pages whose robots.txt is stored with another text than the one that was read."""
    NO_DELAY = "delay-unknown"
    """Gaps after a visit that was lost with its process before its delay was recorded."""
    LOST_REQUEST = "robots-request-lost"
    """Pages whose robots.txt was requested shortly before the database lost its last transactions."""
    DAMAGED = "damaged"
    """Requests whose row in the ledger does not hold a URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A violation with its evidence."""

    check: Check
    domain: str
    """The name of the domain that was visited."""
    what: str
    """One sentence."""
    requests: Sequence[RequestRow]
    """The requests concerned, oldest first; `started` is 0 where only the crawl's clock was remembered."""
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The gap between two visits to a domain."""

    domain: str
    earlier: RequestRow
    """The last request before the gap."""
    later: RequestRow
    """The first request after the gap."""
    gap: float
    """Seconds from the end of one to the beginning of the other; negative if they overlap."""
    delay: float
    """Seconds that the gap had to last."""
    delay_from: DelaySource

    @property
    def margin(self) -> float:
        """Seconds by which the gap was longer than the delay."""
        return self.gap - self.delay

    @property
    def delay_text(self) -> str:
        """The delay and its reason, as a clause."""
        return f"the delay was {self.delay:.3f} s, {DELAY_REASONS[self.delay_from]}"


@dataclass(slots=True)
class AuditReport:
    """The result of an audit, to which every check adds. Its size is bounded, however long the ledger is."""

    requests: int = 0
    visits: int = 0
    domains: int = 0
    checked: Counter[Check] = field(default_factory=Counter)
    """Number of requests, or gaps between visits, that were checked."""
    violations: Counter[Check] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    """The first violations of each check, at most MAX_FINDINGS of each."""
    unverifiable: Counter[Unverifiable] = field(default_factory=Counter)
    smallest_margin: Margin | None = None

    @property
    def total(self) -> int:
        """Number of all violations."""
        return self.violations.total()

    def add(
        self, check: Check, visited: RequestRow, what: str, *requests: RequestRow, **numbers: float | int | str
    ) -> None:
        """Add a violation; `visited` is any request of the visit to the domain concerned."""
        self.violations[check] += 1
        if self.violations[check] <= MAX_FINDINGS:
            self.findings.append(
                Finding(check=check, domain=domain_name(visited.url), what=what, requests=requests, numbers=numbers)
            )


def domain_name(url: str) -> str:
    """Return the registrable domain of a URL in the ledger."""
    parsed = plain_url(url)
    return url if parsed is None else parsed.domain_name
