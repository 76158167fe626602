"""Reads the report for a webmaster: every request to a site, the robots.txt that was read, whether delays were kept.

A site may have received a million requests. The ledger is therefore read twice, once for the totals and once for the
requests, and never held in memory. report_text.py and report_html.py print the report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from statistics import median

from rove.config import Settings
from rove.frontier.contract import FrontierReader
from rove.frontier.records import DomainRecord, Exclusion
from rove.inspect.audit_checks import DRIFT, ROUNDING_MS
from rove.inspect.lookup import Site, domain_of_site
from rove.inspect.report_chart import Timeline
from rove.inspect.request_rows import is_stored, outcome_text
from rove.model.ledger import DelaySource, RequestRow, Settlement
from rove.policy.exclusions import Exclusions, domain_around

MOST_COPIES = 100
"""The newest copies of robots.txt are listed; a site of many hosts may have had any number."""
MOST_GAPS = 65_536
"""The median of up to this many gaps is exact; of more, it is that of every second, fourth ... gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteVisit:
    """The requests of one visit, and the gap before it."""

    number: int
    rows: Sequence[RequestRow]
    gap: float | None
    """Seconds since the end of the previous visit; None for the first visit."""
    due: float | None
    """Seconds that the gap had to last; None for the first visit, and if the ledger does not say."""
    due_from: DelaySource

    @property
    def started(self) -> float:
        """Wall-clock seconds of the first request."""
        return self.rows[0].started

    @property
    def is_kept(self) -> bool | None:
        """Whether the delay was kept, within the accuracy of the clocks; None if that is unknown."""
        if self.gap is None or self.due is None:
            return None
        return self.gap >= self.due * (1 - DRIFT) - ROUNDING_MS / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsCopy:
    """A robots.txt that was read, once or several times with the same text."""

    url: str
    """The URL that served it."""
    name: str
    """The name of its text."""
    first: float
    """Wall-clock seconds of the first reading."""
    last: float
    times: int


class GapSample:
    """Finds the shortest and the median of any number of gaps, in seconds, in bounded memory."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._shortest = math.inf
        self._sample: list[float] = []
        self._seen = 0
        self._step = 1

    def __len__(self) -> int:
        return len(self._sample)

    def add(self, gap: float) -> None:
        self._shortest = min(self._shortest, gap)
        if self._seen % self._step == 0:
            self._sample.append(gap)
            if len(self._sample) > self._max_size:
                self._sample = self._sample[::2]
                self._step *= 2
        self._seen += 1

    @property
    def shortest(self) -> float | None:
        """The shortest gap; None if there is none."""
        return self._shortest if self._sample else None

    @property
    def median(self) -> float | None:
        """The median of the sample; None if there is no gap."""
        return median(self._sample) if self._sample else None


class Totals:
    """Adds up the requests to a site while the ledger is read."""

    def __init__(self, max_gaps: int = MOST_GAPS) -> None:
        self.requests = 0
        self.visits = self.pages = self.bytes = 0
        self.kept = self.broken = 0
        """Visits that kept the delay, and visits that did not."""
        self.first: float | None = None
        """Wall-clock seconds of the first request; None if there was none."""
        self.last: float | None = None
        self.outcomes: Counter[str] = Counter()
        self.gaps = GapSample(max_gaps)
        self.timeline = Timeline()
        self.copies_left_out = 0
        self._copies: dict[tuple[str, str], RobotsCopy] = {}
        """In the order of their last readings."""

    @property
    def copies(self) -> list[RobotsCopy]:
        """The newest copies of robots.txt, in the order of their first readings."""
        return sorted(self._copies.values(), key=lambda copy: copy.first)

    def add_visit(self, visit: SiteVisit) -> None:
        self.visits += 1
        self.requests += len(visit.rows)
        if visit.gap is not None:
            self.gaps.add(visit.gap)
            self.kept += visit.is_kept is True
            self.broken += visit.is_kept is False
        self.timeline.note(visit.started)
        for row in visit.rows:
            self._add_copy(row)
            self._add_request(row)

    def _add_request(self, row: RequestRow) -> None:
        self.pages += is_stored(row)
        self.bytes += row.size
        self.outcomes[outcome_text(row)] += 1
        self.first = row.started if self.first is None else min(self.first, row.started)
        self.last = row.started if self.last is None else max(self.last, row.started)

    def _add_copy(self, row: RequestRow) -> None:
        if not row.robots:
            return
        key = (row.url, row.robots)
        known = self._copies.pop(key, None)
        self._copies[key] = RobotsCopy(
            url=row.url,
            name=row.robots,
            first=row.started if known is None else known.first,
            last=row.started,
            times=1 if known is None else known.times + 1,
        )
        if len(self._copies) > MOST_COPIES:
            del self._copies[next(iter(self._copies))]
            self.copies_left_out += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReport:
    """Everything but the requests themselves."""

    site: Site
    made: float
    """Wall-clock seconds of the report."""
    settings: Settings
    domain: DomainRecord | None
    exclusions: Sequence[Exclusion]
    """All exclusions of the site or of its hosts, lifted ones included."""
    totals: Totals

    @property
    def is_excluded(self) -> bool:
        """Whether the whole site is excluded at present."""
        in_force = Exclusions(exclusion.pattern for exclusion in self.exclusions if exclusion.lifted_at is None)
        return in_force.covers_all_of(self.site.name) or (self.domain is not None and self.domain.is_excluded)


async def read_report(
    reader: FrontierReader,
    site: Site,
    *,
    settings: Settings,
    exclusions: Sequence[Exclusion],
    now: float,
    max_gaps: int = MOST_GAPS,
) -> SiteReport:
    """Read the totals of all requests to a site; `now` is wall-clock seconds, `max_gaps` bounds the memory."""
    totals = Totals(max_gaps)
    async for visit in _grouped(reader.visits(site.id)):
        totals.add_visit(visit)
    return SiteReport(
        site=site,
        made=now,
        settings=settings,
        domain=await domain_of_site(reader, site),
        exclusions=[exclusion for exclusion in exclusions if _touches(exclusion.pattern, site)],
        totals=totals,
    )


def visits_in(reader: FrontierReader, report: SiteReport) -> AsyncIterator[SiteVisit]:
    """Yield the visits that the totals of a report cover, oldest first, and no newer ones of a running crawl."""
    return _grouped(_first(reader.visits(report.site.id), report.totals.requests))


async def _first(rows: AsyncIterator[RequestRow], count: int) -> AsyncIterator[RequestRow]:
    async for row in rows:
        if count == 0:
            return
        yield row
        count -= 1


async def _grouped(rows: AsyncIterator[RequestRow]) -> AsyncIterator[SiteVisit]:
    """Group requests by visit."""
    before: Sequence[RequestRow] = ()
    group: list[RequestRow] = []
    async for row in rows:
        if group and group[0].visit != row.visit:
            yield _visit(group, before)
            # Of overlapping visits, the gap is measured from the one that ended last.
            before = group if _end(group) >= _end(before) else before
            group = []
        group.append(row)
    if group:
        yield _visit(group, before)


def _end(rows: Sequence[RequestRow]) -> int:
    return max((row.ended for row in rows), default=0)


def _visit(rows: Sequence[RequestRow], before: Sequence[RequestRow]) -> SiteVisit:
    longest = max(before, key=lambda row: row.delay, default=None)
    due = None if longest is None else longest.delay
    if longest is not None and not due and longest.settlement is Settlement.LOST:
        due = None  # the process was killed before it recorded the delay
    return SiteVisit(
        number=rows[0].visit,
        rows=tuple(rows),
        gap=(rows[0].began - _end(before)) / 1000 if before else None,
        due=due,
        due_from=DelaySource.DELAY if longest is None else longest.delay_from,
    )


def _touches(pattern: str, site: Site) -> bool:
    """Whether an exclusion covers a site or some of its hosts."""
    return Exclusions([pattern]).covers_all_of(site.name) or domain_around(pattern) == site.name
