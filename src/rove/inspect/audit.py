"""Was the crawl polite? Reads the ledger once, from the first request to the last, and checks every request.

The auditor deliberately shares no code with the gate, the pacing and the visits that it audits, because a mistake
there would hide itself. It measures delays and judges pages again instead of trusting what the crawl recorded about
itself. It relies only on the parsers of robots.txt and of exclusion patterns and on the list of temporary failures,
which have tests of their own.

The ledger comes domain by domain and visit by visit, so only the current domain is in memory. Besides, the auditor
reads the copies of robots.txt that the ledger names, and the robots.txt requests of domains that others redirect to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rove.frontier.contract import FrontierReader
from rove.frontier.records import Exclusion
from rove.frontier.retries import Retry
from rove.inspect.audit_checks import DelayCheck, ExclusionCheck, RepeatCheck, VisitSoFar, check_length, check_order
from rove.inspect.audit_findings import AuditReport, Check, Unverifiable, domain_name
from rove.inspect.audit_retries import AskedRetries
from rove.inspect.audit_robots import RobotsReplay, RobotsText
from rove.inspect.audit_shared import Visits
from rove.inspect.audit_usage import check_usage
from rove.model.ledger import RequestKind, RequestRow
from rove.model.outcomes import UNREACHABLE_FAILURES
from rove.urls.canonical import UrlForm
from rove.urls.origin import is_plausible, origin_of


async def audit(
    reader: FrontierReader, exclusions: Sequence[Exclusion], form: UrlForm, retries: Sequence[Retry] = ()
) -> AuditReport:
    """Check a whole ledger. `form` is that of the crawl's URLs."""
    auditor = Auditor(exclusions, reader.robots_text, reader.visits, form, retries, await reader.losses())
    async for row in reader.ledger():
        await auditor.take(row)
    return auditor.report()


class Auditor:
    """Takes the requests of a ledger one by one, in the ledger's order."""

    def __init__(
        self,
        exclusions: Sequence[Exclusion],
        robots_text: RobotsText,
        visits: Visits,
        form: UrlForm,
        retries: Sequence[Retry] = (),
        losses: Sequence[int] = (),
    ) -> None:
        """`losses`: when the database came back without its last transactions."""
        self._report = AuditReport()
        asked_for = AskedRetries(retries)
        self._delays = DelayCheck(self._report, asked_for)
        self._exclusions = ExclusionCheck(self._report, exclusions)
        self._repeats = RepeatCheck(self._report, self._exclusions, asked_for)
        self._robots = RobotsReplay(self._report, robots_text, visits, form, losses)
        self._visit: VisitSoFar | None = None
        self._domain_name = ""

    async def take(self, row: RequestRow) -> None:
        """Check the next request; this waits only to read a robots.txt that is not cached."""
        self._report.requests += 1
        if not is_plausible(row.url):
            self._report.unverifiable[Unverifiable.DAMAGED] += 1
            return
        visit = self._visit_with(row)
        if row.error in UNREACHABLE_FAILURES:
            visit.unreachable = {*visit.unreachable, origin_of(row.url)}
        if _domain_of_origin(origin_of(row.url)) != self._domain_name:
            what = f"requested during a visit to {self._domain_name}, out of its own domain's turn"
            self._report.add(Check.DELAY, row, what, row)
        self._exclusions.take(row, visit.first)
        if row.kind is RequestKind.ROBOTS:
            self._robots.take_robots(row, visit.first)
            return
        self._repeats.take(row, visit)
        rules = await self._robots.judge(row, visit.first)
        check_usage(self._report, row, visit.first, rules)

    def report(self) -> AuditReport:
        """Return the result, after the last request."""
        if self._visit is not None:
            self._end_visit(self._visit)
            self._visit = None
        self._report.smallest_margin = self._delays.smallest_margin
        return self._report

    def _visit_with(self, row: RequestRow) -> VisitSoFar:
        """Add a request to its visit, which may be a new one, and return the visit."""
        visit = self._visit
        if visit is None or row.visit != visit.first.visit or row.domain != visit.first.domain:
            return self._begin_visit(row)
        check_order(self._report, row, visit.last, visit.first)
        visit.add(row)
        return visit

    def _begin_visit(self, row: RequestRow) -> VisitSoFar:
        ended = self._visit
        if ended is not None:
            self._end_visit(ended)
        if ended is None or row.domain != ended.first.domain:
            self._report.domains += 1
            self._domain_name = _domain_of_origin(origin_of(row.url))
            self._delays.begin_domain()
            self._repeats.begin_domain()
            self._robots.begin_domain()
        self._report.visits += 1
        visit = self._visit = VisitSoFar(row, row, row, row)
        self._delays.begin_visit(visit)
        check_order(self._report, row, None, row)
        return visit

    def _end_visit(self, visit: VisitSoFar) -> None:
        self._delays.end_visit(visit)
        check_length(self._report, visit)


@lru_cache(maxsize=4_096)
def _domain_of_origin(origin: str) -> str:
    return domain_name(f"{origin}/")
