"""Was the crawl polite? Its ledger, read once from the first request to the last, answers that.

The ledger comes domain by domain, visit by visit. What is held in memory is what the domain under way needs; nothing
is asked of the frontier but the ledger itself and the copies of robots.txt that it names. So what is audited is what
was done, not what the crawl believes of itself: pages are judged anew, delays are measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.contract import Exclusion, FrontierReader
from rove.inspect.audit_checks import (
    DelayCheck,
    ExclusionHistory,
    Repeats,
    VisitOrderCheck,
    VisitSoFar,
)
from rove.inspect.audit_findings import AuditReport, Check, Findings, Unverifiable
from rove.inspect.audit_robots import RobotsReplay, RobotsText
from rove.model.ledger import RequestKind, RequestRow, Settlement
from rove.model.outcomes import UNREACHABLE_FAILURES
from rove.urls.origin import origin_of


async def audit(reader: FrontierReader, exclusions: Sequence[Exclusion]) -> AuditReport:
    """Hold a whole ledger against the checks."""
    auditor = Auditor(exclusions, reader.robots_text)
    async for row in reader.ledger():
        await auditor.take(row)
    return auditor.report()


class Auditor:
    """Takes the requests of a ledger, one after the other, in its order."""

    def __init__(self, exclusions: Sequence[Exclusion], robots_text: RobotsText) -> None:
        self._findings = Findings()
        self._pauses = DelayCheck(self._findings)
        self._order = VisitOrderCheck(self._findings)
        self._exclusions = ExclusionHistory(self._findings, exclusions)
        self._repeats = Repeats(self._findings, self._exclusions)
        self._robots = RobotsReplay(self._findings, robots_text)
        self._visit: VisitSoFar | None = None
        self._requests = 0
        self._visits = 0
        self._domains = 0
        self._elsewhere = 0

    async def take(self, row: RequestRow) -> None:
        """The next request; only for a robots.txt that is not at hand does this wait."""
        self._requests += 1
        visit = self._placed(row)
        if row.error in UNREACHABLE_FAILURES:
            visit.note_unreachable(origin_of(row.url))
        if row.other_domain is not None:
            self._elsewhere += 1
        is_robots = row.kind is RequestKind.ROBOTS
        if not is_robots:
            self._repeats.take(row, visit)
        if visit.is_past:
            self._findings.unverifiable[Unverifiable.REQUEST_BEFORE_LEDGER] += 1
            return
        self._exclusions.take(row, visit.first)
        if is_robots:
            self._robots.take_robots(row, visit.first)
            return
        await self._robots.judge(row, visit.first)
        if row.other_domain is not None:
            what = "a page of another domain, which was not asked in its turn"
            self._findings.add(Check.DELAY, visit.first, what, row)

    def report(self) -> AuditReport:
        """What was found; the last request has been taken."""
        if self._visit is not None:
            self._end_visit(self._visit)
            self._visit = None
        found = self._findings
        return AuditReport(
            requests=self._requests,
            visits=self._visits,
            domains=self._domains,
            elsewhere=self._elsewhere,
            checked={check: found.checked[check] for check in Check},
            violations={check: found.violations[check] for check in Check},
            findings=tuple(found.kept),
            unverifiable={reason: found.unverifiable[reason] for reason in Unverifiable},
            smallest_margin=self._pauses.smallest,
        )

    def _placed(self, row: RequestRow) -> VisitSoFar:
        """The visit that a request belongs to, with it."""
        visit = self._visit
        if visit is None or row.visit != visit.first.visit or row.domain != visit.first.domain:
            return self._begin_visit(row)
        if not visit.is_past:
            self._order.take(row, visit.last, visit.first)
        visit.add(row)
        return visit

    def _begin_visit(self, row: RequestRow) -> VisitSoFar:
        ended = self._visit
        if ended is not None:
            self._end_visit(ended)
        if ended is None or row.domain != ended.first.domain:
            self._domains += 1
            self._pauses.begin_domain()
            self._repeats.begin_domain()
            self._robots.begin_domain()
        self._visits += 1
        is_past = row.process == 0 and not row.delay and row.settlement is Settlement.SETTLED
        visit = self._visit = VisitSoFar(row, row, row, row, is_past)
        self._pauses.begin_visit(visit)
        if is_past:
            self._robots.note_past()
        else:
            self._order.begin_visit(row)
        return visit

    def _end_visit(self, visit: VisitSoFar) -> None:
        self._pauses.end_visit(visit)
        if not visit.is_past:
            self._order.end_visit(visit)
