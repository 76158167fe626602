"""What an audit of the ledger comes to: the checks, what breaks them, and what could not be checked."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rove.model.ledger import DelaySource, RequestKind, RequestRow
from rove.urls.canonical import canonical

MAX_KEPT = 1_000
"""Violations of one kind that are kept with their evidence; the others are counted."""


class Check(enum.StrEnum):
    """What is held against the ledger."""

    DELAY = "delay"
    """A domain is left alone between two visits for as long as the earlier one says."""
    ROBOTS = "robots"
    """Nothing is fetched that the robots.txt in force forbids."""
    PAGE_BEFORE_ROBOTS = "page-before-robots"
    """An origin's robots.txt is asked before anything else of it, and anew every day."""
    EXCLUDED = "excluded"
    """Nothing is asked of what is excluded."""
    TWICE = "twice"
    """No page is asked for again without a reason."""
    ORDER = "order"
    """A visit is a few requests, one after the other."""


class Unverifiable(enum.StrEnum):
    """What the ledger does not tell."""

    REQUEST_BEFORE_LEDGER = "requests-before-ledger"
    """Requests of a version that noted neither the crawl's clock nor the delay: held only against `twice`."""
    GAP_BEFORE_LEDGER = "gaps-before-ledger"
    """Gaps that begin or end with a visit of that version."""
    ROBOTS_BEFORE_LEDGER = "robots-before-ledger"
    """Pages whose robots.txt was asked for by that version, if it was."""
    NO_COPY = "robots-copy-missing"
    """Pages whose robots.txt was read, but no copy of it is kept."""
    NO_DELAY = "delay-unknown"
    """Gaps after a visit that was lost with its process before its delay was noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A request that a finding is about."""

    visit: int
    seq: int
    kind: RequestKind
    url: str
    began: int
    """Milliseconds of the crawl's clock."""
    ended: int
    started: float | None
    """Wall-clock seconds at its beginning; None where only the crawl's clock was remembered."""
    status: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A place where the crawl was not polite."""

    check: Check
    domain: str
    """The name of the domain that was visited."""
    what: str
    """One sentence."""
    requests: Sequence[Evidence]
    """Those concerned, the earlier first."""
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """Two visits to a domain, and how long it was left alone in between."""

    domain: str
    earlier: Evidence
    """The request that ended last."""
    later: Evidence
    """The first one after that."""
    gap: float
    """Seconds from the end of the one to the beginning of the other; below 0 if they overlap."""
    delay: float
    """Seconds that it should have been at least."""
    delay_from: DelaySource

    @property
    def margin(self) -> float:
        """Seconds by which the gap was longer than it had to be."""
        return self.gap - self.delay


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit found."""

    requests: int
    visits: int
    domains: int
    elsewhere: int
    """Requests to another domain, where a robots.txt led: they do not wait for that domain's turn."""
    checked: Mapping[Check, int]
    """Gaps between visits, or requests, that were held against a check."""
    violations: Mapping[Check, int]
    findings: Sequence[Finding]
    """The first of each kind, MAX_KEPT at the most."""
    unverifiable: Mapping[Unverifiable, int]
    smallest_margin: Margin | None

    @property
    def total(self) -> int:
        """All violations."""
        return sum(self.violations.values())


class Findings:
    """Collects what the checks find; its size does not depend on the ledger's."""

    def __init__(self) -> None:
        self.checked: Counter[Check] = Counter()
        self.violations: Counter[Check] = Counter()
        self.unverifiable: Counter[Unverifiable] = Counter()
        self.kept: list[Finding] = []

    def add(
        self,
        check: Check,
        visited: RequestRow,
        what: str,
        *requests: RequestRow | Evidence,
        **numbers: float | int | str,
    ) -> None:
        """Note a violation; `visited` is any request to the domain that was visited."""
        self.violations[check] += 1
        if self.violations[check] <= MAX_KEPT:
            self.kept.append(
                Finding(
                    check=check,
                    domain=domain_name(visited.url),
                    what=what,
                    requests=tuple(evidence(request) for request in requests),
                    numbers=numbers,
                )
            )


def evidence(request: RequestRow | Evidence) -> Evidence:
    """What is shown of a request."""
    if isinstance(request, Evidence):
        return request
    return Evidence(
        visit=request.visit,
        seq=request.seq,
        kind=request.kind,
        url=request.url,
        began=request.began,
        ended=request.ended,
        started=request.started,
        status=request.status,
        error=request.error,
    )


def domain_name(url: str) -> str:
    """The registrable domain of a URL in the ledger."""
    found = canonical(url)
    return url if found is None else found.domain_name
