"""The checks of an audit that need only the requests of one domain: delays, order, repeats, exclusions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rove.frontier.records import Exclusion
from rove.inspect.audit_findings import AuditReport, Check, Margin, Unverifiable, domain_name
from rove.inspect.audit_retries import AskedRetries
from rove.model.ledger import DelaySource, RequestRow, Settlement
from rove.model.outcomes import TEMPORARY_FAILURES, UNREACHABLE_FAILURES, FailureKind
from rove.model.reasons import is_status_error
from rove.notation.humanize import seconds_text
from rove.policy.constants import MAX_REQUESTS_PER_VISIT
from rove.policy.exclusions import Exclusions
from rove.policy.retry import is_temporary_status
from rove.urls.canonical import parse_base, plain_url
from rove.urls.origin import host_and_port, origin_of

ROUNDING_MS = 5
"""Tolerance for times, which are recorded in whole milliseconds and computed from two clocks."""
DRIFT = 0.001
"""Tolerated relative drift between two clocks during a delay; quartz drifts by at most a tenth of this."""
NOTICE_MS = 5_000
"""Time within which all processes of a crawl learn of an exclusion."""
_STORED = 1 << 63
"""The bit of a packed request that says that its page is stored."""


@dataclass(slots=True)
class VisitSoFar:
    """The current visit, as far as its requests have been read."""

    first: RequestRow
    last: RequestRow
    latest: RequestRow
    """The request that ended last."""
    longest: RequestRow
    """The request with the longest delay; all should have the same."""
    requests: int = 1
    unreachable: Collection[str] = ()
    """Origins that could not be reached in this visit."""

    def add(self, row: RequestRow) -> None:
        self.last = row
        self.requests += 1
        if row.ended > self.latest.ended:
            self.latest = row
        if row.delay > self.longest.delay:
            self.longest = row


class _RequiredDelay(NamedTuple):
    """How long a domain has to be left alone, and why."""

    seconds: float
    source: DelaySource


class DelayCheck:
    """Was every domain left alone for long enough, from the end of one visit to the beginning of the next?"""

    def __init__(self, report: AuditReport, retries: AskedRetries) -> None:
        self._report = report
        self._retries = retries
        self._before: VisitSoFar | None = None
        self._smallest: tuple[float, VisitSoFar, RequestRow, _RequiredDelay] | None = None

    def begin_domain(self) -> None:
        """Expect the first visit to another domain."""
        self._before = None

    def begin_visit(self, visit: VisitSoFar) -> None:
        """Compare the beginning of a visit with the end of the previous one."""
        before = self._before
        if before is None:
            return
        required = self._delay_after(before, visit.first)
        delay_ms = round(required.seconds * 1000)
        if not delay_ms and before.latest.settlement is Settlement.LOST:
            self._report.unverifiable[Unverifiable.NO_DELAY] += 1
            return
        self._report.checked[Check.DELAY] += 1
        gap = visit.first.began - before.latest.ended
        if self._smallest is None or gap - delay_ms < self._smallest[0]:
            self._smallest = gap - delay_ms, before, visit.first, required
        if gap < delay_ms - ROUNDING_MS - delay_ms * DRIFT:
            self._add_violation(_margin(before, visit.first, required), before, visit)

    def _delay_after(self, before: VisitSoFar, later: RequestRow) -> _RequiredDelay:
        """Return how long the domain had to be left alone between two visits.

        A retry that the operator asked for ends the pause after failed visits. The operator's delay remains.
        """
        recorded = _RequiredDelay(before.longest.delay, before.longest.delay_from)
        if recorded.source is not DelaySource.FAILURES:
            return recorded
        retries = self._retries.between(later.domain, before.latest.began, later.began)
        return min([recorded, *(_RequiredDelay(retry.delay, DelaySource.DELAY) for retry in retries)])

    def end_visit(self, visit: VisitSoFar) -> None:
        """Remember the visit; of overlapping visits, the one that ended last counts."""
        if self._before is None or visit.latest.ended >= self._before.latest.ended:
            self._before = visit

    @property
    def smallest_margin(self) -> Margin | None:
        """The gap that kept its delay by the least, or broke it by the most."""
        return None if self._smallest is None else _margin(*self._smallest[1:])

    def _add_violation(self, margin: Margin, before: VisitSoFar, visit: VisitSoFar) -> None:
        how = (
            f"began {margin.gap:.3f} s after the end of visit {before.first.visit}"
            if margin.gap >= 0
            else f"began {-margin.gap:.3f} s before visit {before.first.visit} had ended"
        )
        self._report.add(
            Check.DELAY,
            visit.first,
            f"visit {visit.first.visit} {how}; {margin.delay_text}",
            before.latest,
            visit.first,
            gap_s=margin.gap,
            delay_s=margin.delay,
            delay_from=margin.delay_from.value,
            margin_s=round(margin.margin, 3),
        )


def _margin(before: VisitSoFar, later: RequestRow, required: _RequiredDelay) -> Margin:
    return Margin(
        domain=domain_name(later.url),
        earlier=before.latest,
        later=later,
        gap=(later.began - before.latest.ended) / 1000,
        delay=required.seconds,
        delay_from=required.source,
    )


def check_order(report: AuditReport, row: RequestRow, before: RequestRow | None, first: RequestRow) -> None:
    """Check that the requests of a visit are complete and follow each other.

    `before` is the previous request of the visit, None for the first.
    """
    report.checked[Check.ORDER] += 1
    if row.seq != (0 if before is None else before.seq + 1) and row.settlement is not Settlement.LOST:
        if before is None:
            report.add(Check.ORDER, first, f"the visit begins with request {row.seq}", row)
        else:
            report.add(Check.ORDER, first, f"request {row.seq} follows request {before.seq}", before, row)
    if row.ended < row.began:
        what = f"it ended {(row.began - row.ended) / 1000:.3f} s before it began"
        report.add(Check.ORDER, first, what, row)
    if before is not None and row.began < before.ended - ROUNDING_MS:
        early = (before.ended - row.began) / 1000
        what = f"began {early:.3f} s before the previous request had ended"
        report.add(Check.ORDER, first, what, before, row, overlap_s=early)


def check_length(report: AuditReport, visit: VisitSoFar) -> None:
    """Check that a complete visit does not have too many requests."""
    if visit.requests > MAX_REQUESTS_PER_VISIT:
        what = f"a visit of {visit.requests:,} requests; {MAX_REQUESTS_PER_VISIT} are allowed"
        report.add(Check.ORDER, visit.first, what, visit.first, visit.last, requests=visit.requests)


class RepeatCheck:
    """Was a page or a sitemap requested again without a reason?

    `may_be_repeated` lists the reasons. There are two more. Its host was excluded in between: a request that was in
    flight at that moment does not count, and its URL is pending again when the exclusion is lifted. Or the operator
    asked for a retry in between, and the earlier request brought no page that is stored.

    For each URL of the current domain that must not be repeated, the check keeps the fingerprint and the position of
    its last request, packed into one number. At 120 bytes a page this is the most memory that an audit needs.
    """

    def __init__(self, report: AuditReport, exclusions: ExclusionCheck, retries: AskedRetries) -> None:
        self._report = report
        self._exclusions = exclusions
        self._retries = retries
        self._final: dict[int, int] = {}

    def begin_domain(self) -> None:
        """Forget the pages of the previous domain."""
        if self._final:
            self._final = {}

    def take(self, row: RequestRow, visit: VisitSoFar) -> None:
        """Check a request for a page or a sitemap."""
        self._report.checked[Check.TWICE] += 1
        earlier = self._final.get(row.fingerprint)
        if earlier is not None:
            before = _unpacked(earlier, row)
            if not self._is_excused(earlier, before, row):
                self._add_violation(before, row, visit)
        if not may_be_repeated(row, visit.unreachable):
            self._final[row.fingerprint] = _packed(row)
        elif earlier is not None:
            del self._final[row.fingerprint]

    def _is_excused(self, packed: int, before: RequestRow, row: RequestRow) -> bool:
        if self._exclusions.held_between(row.url, before.began, row.began):
            return True
        return not packed & _STORED and bool(self._retries.between(row.domain, before.began, row.began))

    def _add_violation(self, earlier: RequestRow, row: RequestRow, visit: VisitSoFar) -> None:
        apart = (row.began - earlier.began) / 1000
        what = (
            f"requested again {seconds_text(apart)} after request {earlier.seq} of visit {earlier.visit}, "
            "whose outcome gave no reason to"
        )
        self._report.add(Check.TWICE, visit.first, what, earlier, row, apart_s=apart)


def may_be_repeated(row: RequestRow, unreachable: Collection[str]) -> bool:
    """Whether the outcome of a request is a reason to request the same URL again.

    `unreachable` are the origins that could not be reached in the same visit. The reasons:

    - The visit was lost with its process or settled too late, so its results do not count.
    - The request was cut short or failed temporarily (timeouts, resets, DNS errors, 5xx, 408, 425, 429).
    - The request was for `https://host/` and https does not work there. For a seed that is only a domain, https is a
      guess, which rove repeats if http does not answer either.
    - The request was for `http://host/` instead of such a guess and redirected to the https that cannot be reached.
      rove repeats the guess later, and then this request too.
    """
    if row.settlement is not Settlement.SETTLED:
        return True
    if row.error:
        return _failed_temporarily(row.error, row.status) or (
            row.error in UNREACHABLE_FAILURES and _is_front_page(row.url, "https://")
        )
    if not unreachable or not row.target or not _is_front_page(row.url, "http://"):
        return False
    target = plain_url(row.target, parse_base(row.url))
    return (
        target is not None
        # The crawl may drop ignored parameters of the query.
        and target.text.partition("?")[0] == "https" + row.url.removeprefix("http")
        and target.origin in unreachable
    )


def _is_front_page(url: str, scheme: str) -> bool:
    return url.startswith(scheme) and url.find("/", len(scheme)) == len(url) - 1


def _failed_temporarily(error: str, status: int) -> bool:
    if is_status_error(error):
        return is_temporary_status(status)
    return error == FailureKind.ABORTED or error in TEMPORARY_FAILURES


def _packed(row: RequestRow) -> int:
    is_stored = row.text is not None or row.raw is not None
    return row.visit << 64 | is_stored << 63 | (row.seq & 0x7FFF) << 48 | row.began & 0xFFFF_FFFF_FFFF


def _unpacked(number: int, again: RequestRow) -> RequestRow:
    """Return as much of the earlier request as was remembered; `again` is for the same URL."""
    began = number & 0xFFFF_FFFF_FFFF
    return RequestRow(
        visit=number >> 64,
        seq=number >> 48 & 0x7FFF,
        domain=again.domain,
        kind=again.kind,
        url=again.url,
        fingerprint=again.fingerprint,
        started=0.0,
        began=began,
        ended=began,
    )


class ExclusionCheck:
    """Was any request made to a host that was excluded at the time?"""

    def __init__(self, report: AuditReport, exclusions: Sequence[Exclusion]) -> None:
        self._report = report
        self._any = Exclusions(exclusion.pattern for exclusion in exclusions)
        # A file may add thousands at once; those that held during the same time are matched together.
        spans: dict[tuple[int, int | None], dict[str, Exclusion]] = {}
        for exclusion in exclusions:
            span = spans.setdefault((exclusion.at, exclusion.lifted_at), {})
            span[exclusion.pattern] = exclusion
        self._spans = [(Exclusions(span), span) for span in spans.values()]
        self._of_origin = lru_cache(maxsize=4_096)(self._covering)

    def take(self, row: RequestRow, visited: RequestRow) -> None:
        """Check a request to any domain."""
        self._report.checked[Check.EXCLUDED] += 1
        if not self._spans:
            return
        for exclusion in self._of_origin(origin_of(row.url)):
            if _held(exclusion, row.began):
                self._add_violation(exclusion, row, visited)
                return

    def held_between(self, url: str, since: int, until: int) -> bool:
        """Whether the host of a URL was excluded at any time between two moments."""
        return any(
            exclusion.at <= until and (exclusion.lifted_at is None or exclusion.lifted_at >= since)
            for exclusion in (self._of_origin(origin_of(url)) if self._spans else ())
        )

    def _covering(self, origin: str) -> Sequence[Exclusion]:
        """Return the exclusions of an origin's host, one for each period in which one held."""
        host, _ = host_and_port(origin)
        if not self._any.covers(host):
            return ()
        matches = ((span, covered.covering(host)) for covered, span in self._spans)
        return [span[pattern] for span, pattern in matches if pattern is not None]

    def _add_violation(self, exclusion: Exclusion, row: RequestRow, visited: RequestRow) -> None:
        since = (row.began - exclusion.at) / 1000
        when = f"{seconds_text(since)} before" if exclusion.at else "before the first request"
        numbers: dict[str, int | str] = {"pattern": exclusion.pattern, "excluded_at_ms": exclusion.at}
        if exclusion.lifted_at is not None:
            numbers["lifted_at_ms"] = exclusion.lifted_at
        self._report.add(Check.EXCLUDED, visited, f"{exclusion.pattern} had been excluded {when}", row, **numbers)


def _held(exclusion: Exclusion, began: int) -> bool:
    """Whether an exclusion was in force, and known to all processes, when a request began."""
    is_known = exclusion.at == 0 or began > exclusion.at + NOTICE_MS
    return is_known and (exclusion.lifted_at is None or began < exclusion.lifted_at)
