"""What a webmaster who asks gets to know: every request to a site, what its robots.txt said, which delays were kept.

A site may have been asked a million times: the ledger is read twice, once for the sums and once for the requests, and
neither time is it held in memory. report_text.py and report_html.py tell what is found here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rove.config import Settings
from rove.errors import UsageError
from rove.frontier.contract import DomainRecord, Exclusion, FrontierReader
from rove.inspect.audit_checks import DRIFT, ROUNDING_MS
from rove.inspect.requests import is_stored, outcome_text
from rove.inspect.timeline import Spans, Timeline
from rove.model.ledger import (
    DelaySource,
    RequestKind,
    RequestRow,
    Settlement,
)
from rove.policy.exclusions import Exclusions, domain_around
from rove.urls.domain import domain_of
from rove.urls.seed import parse_seed

MOST_COPIES = 100
"""Copies of robots.txt that are listed, the newest; a site of many hosts may have had any number."""
MOST_GAPS = 65_536
"""Up to so many gaps between visits their median is exact; of more it is that of every second, fourth ... of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A registrable domain with all its hosts."""

    name: str
    id: int


def site_given(text: str) -> Site:
    """The site that a person means by a domain, a host or a URL."""
    found = parse_seed(text)
    if found is None:
        raise UsageError(f"{text!r} is not a domain")
    name, id = domain_of(found[0].host)
    return Site(name=name, id=id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteVisit:
    """The requests of one visit, and how long after the one before they came."""

    number: int
    rows: Sequence[RequestRow]
    gap: float | None
    """Seconds from the end of the visit before to its beginning, None for the first."""
    due: float | None
    """Seconds that were to pass in between; None for the first, and where the ledger does not say."""
    due_from: DelaySource

    @property
    def started(self) -> float:
        """Wall-clock seconds."""
        return self.rows[0].started

    @property
    def is_kept(self) -> bool | None:
        """Whether the delay was kept, to the accuracy of the clocks; None where that cannot be told."""
        if self.gap is None or self.due is None:
            return None
        return self.gap >= self.due * (1 - DRIFT) - ROUNDING_MS / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsCopy:
    """A robots.txt as it was read."""

    url: str
    """What gave it."""
    hash: int
    first: float
    """Wall-clock seconds when it was first read."""
    last: float
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What all requests to a site come to."""

    rows: int = 0
    """Requests of the visits to it, wherever they went."""
    requests: int = 0
    """Those of them that went to the site itself."""
    visits: int = 0
    pages: int = 0
    bytes: int = 0
    first: float | None = None
    """Wall-clock seconds of the first request, None if there was none."""
    last: float | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    elsewhere: int = 0
    """Requests to the site in visits to others, whose robots.txt leads there."""
    shortest: float | None = None
    """The smallest gap between two visits in seconds, None if there were fewer than two."""
    middle: float | None = None
    kept: int = 0
    """Visits after the first that kept the delay."""
    broken: int = 0
    """Those that did not."""
    spans: Spans | None = None
    copies: Sequence[RobotsCopy] = ()
    copies_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebmasterReport:
    """All but the requests themselves."""

    site: Site
    made: float
    """Wall-clock seconds."""
    settings: Settings
    domain: DomainRecord | None
    exclusions: Sequence[Exclusion]
    """All that there ever were of the site or of hosts in it."""
    totals: Totals

    @property
    def is_excluded(self) -> bool:
        """Whether the whole site is excluded now."""
        return any(
            exclusion.lifted_at is None and _covers_all(exclusion.pattern, self.site)
            for exclusion in self.exclusions
        ) or (self.domain is not None and self.domain.is_excluded)

    @property
    def was_asked(self) -> bool:
        """Whether any request was ever made."""
        return self.totals.requests + self.totals.elsewhere > 0


async def read_report(
    reader: FrontierReader,
    site: Site,
    *,
    settings: Settings,
    exclusions: Sequence[Exclusion],
    now: float,
) -> WebmasterReport:
    """The sums over all requests to a site; `now` is wall-clock seconds."""
    sums = _Sums()
    async for visit in _grouped(reader.visits(site.id)):
        sums.note_visit(visit)
    async for row in reader.elsewhere(site.id):
        sums.note_elsewhere(row)
    return WebmasterReport(
        site=site,
        made=now,
        settings=settings,
        domain=await reader.domain(site.id),
        exclusions=[exclusion for exclusion in exclusions if _touches(exclusion.pattern, site)],
        totals=sums.totals(),
    )


async def visits_in(reader: FrontierReader, report: WebmasterReport) -> AsyncIterator[SiteVisit]:
    """The visits that the sums of a report are about, oldest first; a crawl may have gone on since."""
    async for visit in _grouped(_first(reader.visits(report.site.id), report.totals.rows)):
        yield visit


async def elsewhere_in(
    reader: FrontierReader, report: WebmasterReport
) -> AsyncIterator[RequestRow]:
    """The requests to the site in visits to others, likewise."""
    async for row in _first(reader.elsewhere(report.site.id), report.totals.elsewhere):
        yield row


async def _first(rows: AsyncIterator[RequestRow], count: int) -> AsyncIterator[RequestRow]:
    left = count
    async for row in rows:
        if left == 0:
            return
        yield row
        left -= 1


async def _grouped(rows: AsyncIterator[RequestRow]) -> AsyncIterator[SiteVisit]:
    """Requests by visit; a visit has a handful of them."""
    before: Sequence[RequestRow] = ()
    group: list[RequestRow] = []
    async for row in rows:
        if group and group[0].visit != row.visit:
            yield _visit(group, before)
            # Of visits that overlap, the one counts that ended last.
            before = group if _end(group) >= _end(before) else before
            group = []
        group.append(row)
    if group:
        yield _visit(group, before)


def _end(rows: Sequence[RequestRow]) -> int:
    return max((row.ended for row in rows), default=0)


def _visit(rows: Sequence[RequestRow], before: Sequence[RequestRow]) -> SiteVisit:
    longest = max(before, key=lambda row: row.delay, default=None)
    return SiteVisit(
        number=rows[0].visit,
        rows=tuple(rows),
        gap=(rows[0].began - _end(before)) / 1000 if before else None,
        due=None if longest is None or _has_no_delay(longest) else longest.delay,
        due_from=DelaySource.DELAY if longest is None else longest.delay_from,
    )


def _has_no_delay(row: RequestRow) -> bool:
    """Whether no delay is on record: requests from before there was a ledger, and of a process that was killed."""
    return not row.delay and (row.process == 0 or row.settlement is Settlement.LOST)


class _Sums:
    """What is added up over the first reading."""

    def __init__(self) -> None:
        self._rows = self._requests = self._visits = self._pages = self._bytes = 0
        self._elsewhere = self._kept = self._broken = self._left_out = 0
        self._first: float | None = None
        self._last: float | None = None
        self._outcomes: Counter[str] = Counter()
        self._gaps = _Gaps()
        self._timeline = Timeline()
        self._copies: dict[tuple[str, int], RobotsCopy] = {}
        """The one that was read last is the last."""

    def note_visit(self, visit: SiteVisit) -> None:
        """Add a visit."""
        self._visits += 1
        self._rows += len(visit.rows)
        if visit.gap is not None:
            self._gaps.note(visit.gap)
            self._kept += visit.is_kept is True
            self._broken += visit.is_kept is False
        self._timeline.note(visit.started)
        for row in visit.rows:
            self._note_copy(row)
            if row.other_domain is None:
                self._requests += 1
                self._note_request(row)

    def note_elsewhere(self, row: RequestRow) -> None:
        """Add a request of a visit to another site."""
        self._elsewhere += 1
        self._note_copy(row)
        self._note_request(row)

    def _note_request(self, row: RequestRow) -> None:
        self._pages += is_stored(row)
        self._bytes += row.size
        self._outcomes[outcome_text(row)] += 1
        self._first = row.started if self._first is None else min(self._first, row.started)
        self._last = row.started if self._last is None else max(self._last, row.started)

    def _note_copy(self, row: RequestRow) -> None:
        if row.kind is not RequestKind.ROBOTS or row.content_hash is None:
            return
        key = (row.url, row.content_hash)
        known = self._copies.pop(key, None)
        self._copies[key] = RobotsCopy(
            url=row.url,
            hash=row.content_hash,
            first=row.started if known is None else known.first,
            last=row.started,
            times=1 if known is None else known.times + 1,
        )
        if len(self._copies) > MOST_COPIES:
            del self._copies[next(iter(self._copies))]
            self._left_out += 1

    def totals(self) -> Totals:
        """What it came to."""
        return Totals(
            rows=self._rows,
            requests=self._requests,
            visits=self._visits,
            pages=self._pages,
            bytes=self._bytes,
            first=self._first,
            last=self._last,
            outcomes=dict(self._outcomes.most_common()),
            elsewhere=self._elsewhere,
            shortest=self._gaps.shortest,
            middle=self._gaps.middle,
            kept=self._kept,
            broken=self._broken,
            spans=self._timeline.spans(),
            copies=sorted(self._copies.values(), key=lambda copy: copy.first),
            copies_left_out=self._left_out,
        )


class _Gaps:
    """The smallest and the middle one of any number of gaps."""

    def __init__(self) -> None:
        self._smallest = math.inf
        self._kept: list[float] = []
        self._seen = 0
        self._step = 1

    def note(self, gap: float) -> None:
        """Add one."""
        self._smallest = min(self._smallest, gap)
        if self._seen % self._step == 0:
            self._kept.append(gap)
            if len(self._kept) > MOST_GAPS:
                self._kept = self._kept[::2]
                self._step *= 2
        self._seen += 1

    @property
    def shortest(self) -> float | None:
        return self._smallest if self._kept else None

    @property
    def middle(self) -> float | None:
        return median(self._kept) if self._kept else None


def _covers_all(pattern: str, site: Site) -> bool:
    """Whether an exclusion is about a site with all its hosts."""
    return not pattern.startswith("=") and Exclusions([pattern]).covers(site.name)


def _touches(pattern: str, site: Site) -> bool:
    """Whether an exclusion is about a site, or about some hosts in it."""
    return _covers_all(pattern, site) or domain_around(pattern) == site.id
