"""The checks of an audit that need no more than the requests of one domain: delays, order, repeats, exclusions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rove.frontier.contract import Exclusion
from rove.humanize import seconds_text
from rove.inspect.audit_findings import (
    Check,
    Evidence,
    Findings,
    Margin,
    Unverifiable,
    domain_name,
    evidence,
)
from rove.model.ledger import DelaySource, RequestRow, Settlement
from rove.model.outcomes import (
    UNREACHABLE_FAILURES,
    Failed,
    FailureKind,
    Refused,
    Response,
)
from rove.model.reasons import is_status_error
from rove.policy.constants import MAX_REQUESTS_PER_VISIT
from rove.policy.exclusions import Exclusions
from rove.policy.retry import is_temporary
from rove.urls.canonical import canonical, parse_base
from rove.urls.origin import host_of, origin_of

ROUNDING_MS = 5
"""Times are noted in whole milliseconds, and computed from two clocks: so much is not meant."""
DRIFT = 0.001
"""Part of a delay by which two clocks may differ at its end: quartz drifts by a tenth of this at most."""
NOTICE_MS = 5_000
"""Time in which all processes of a crawl learn that something is excluded."""
_FAILURES = frozenset(kind.value for kind in FailureKind)


@dataclass(slots=True)
class VisitSoFar:
    """What is kept of the visit under way."""

    first: RequestRow
    last: RequestRow
    latest: RequestRow
    """The request that ended last."""
    longest: RequestRow
    """The one that carries the longest delay; they should all carry the same."""
    is_past: bool
    """Made by a version that kept no ledger."""
    requests: int = 1
    unreachable: Collection[str] = ()
    """Origins that were not reached in this visit."""

    def add(self, row: RequestRow) -> None:
        """One more request."""
        self.last = row
        self.requests += 1
        if row.ended > self.latest.ended:
            self.latest = row
        if row.delay > self.longest.delay:
            self.longest = row

    def note_unreachable(self, origin: str) -> None:
        """Nothing was to be had there."""
        self.unreachable = {*self.unreachable, origin}


class DelayCheck:
    """Was every domain left alone for long enough? From the end of a visit to the beginning of the next."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._before: VisitSoFar | None = None
        self._smallest: tuple[float, VisitSoFar, RequestRow] | None = None

    def begin_domain(self) -> None:
        """The next visit is the first."""
        self._before = None

    def begin_visit(self, visit: VisitSoFar) -> None:
        """Hold its beginning against the end of the one before."""
        before = self._before
        if before is None:
            return
        if before.is_past or visit.is_past:
            self._findings.unverifiable[Unverifiable.GAP_BEFORE_LEDGER] += 1
            return
        delay_ms = round(before.longest.delay * 1000)
        if not delay_ms and before.latest.settlement is Settlement.LOST:
            self._findings.unverifiable[Unverifiable.NO_DELAY] += 1
            return
        self._findings.checked[Check.DELAY] += 1
        gap = visit.first.began - before.latest.ended
        if self._smallest is None or gap - delay_ms < self._smallest[0]:
            self._smallest = gap - delay_ms, before, visit.first
        if gap < delay_ms - ROUNDING_MS - delay_ms * DRIFT:
            self._report(_margin(before, visit.first), before, visit)

    def end_visit(self, visit: VisitSoFar) -> None:
        """Of visits that overlap, the one counts that ended last."""
        if self._before is None or visit.latest.ended >= self._before.latest.ended:
            self._before = visit

    @property
    def smallest(self) -> Margin | None:
        """Where a delay was kept most closely, or broken most."""
        return None if self._smallest is None else _margin(*self._smallest[1:])

    def _report(self, found: Margin, before: VisitSoFar, visit: VisitSoFar) -> None:
        how = (
            f"began {found.gap:.3f} s after the end of visit {before.first.visit}"
            if found.gap >= 0
            else f"began {-found.gap:.3f} s before visit {before.first.visit} had ended"
        )
        self._findings.add(
            Check.DELAY,
            visit.first,
            f"visit {visit.first.visit} {how}; the delay in force ({found.delay_from}) was {found.delay:.3f} s",
            before.latest,
            visit.first,
            gap_s=found.gap,
            delay_s=found.delay,
            delay_from=found.delay_from.value,
            margin_s=round(found.margin, 3),
        )


def _margin(before: VisitSoFar, later: RequestRow) -> Margin:
    return Margin(
        domain=domain_name(later.url),
        earlier=evidence(before.latest),
        later=evidence(later),
        gap=(later.began - before.latest.ended) / 1000,
        delay=before.longest.delay,
        delay_from=DelaySource(before.longest.delay_from),
    )


class VisitOrderCheck:
    """Is a visit what it should be? Requests one after the other, not too many, and none that is missing."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def begin_visit(self, row: RequestRow) -> None:
        """The first request of a visit."""
        self._findings.checked[Check.ORDER] += 1
        if row.seq != 0 and row.settlement is not Settlement.LOST:
            self._add(row, f"the visit begins with request {row.seq}", row)
        if row.ended < row.began:
            self._ends_early(row, row)

    def take(self, row: RequestRow, before: RequestRow, first: RequestRow) -> None:
        """A further request."""
        self._findings.checked[Check.ORDER] += 1
        if row.seq != before.seq + 1 and row.settlement is not Settlement.LOST:
            self._add(first, f"request {row.seq} follows request {before.seq}", before, row)
        if row.ended < row.began:
            self._ends_early(first, row)
        if row.began < before.ended - ROUNDING_MS:
            early = (before.ended - row.began) / 1000
            what = f"begun {early:.3f} s before the request before it had ended"
            self._findings.add(Check.ORDER, first, what, before, row, overlap_s=early)

    def end_visit(self, visit: VisitSoFar) -> None:
        """All requests of the visit are known."""
        if visit.requests > MAX_REQUESTS_PER_VISIT:
            what = f"a visit of {visit.requests:,} requests; {MAX_REQUESTS_PER_VISIT} are allowed"
            self._findings.add(
                Check.ORDER, visit.first, what, visit.first, visit.last, requests=visit.requests
            )

    def _ends_early(self, first: RequestRow, row: RequestRow) -> None:
        self._add(first, f"it ended {(row.began - row.ended) / 1000:.3f} s before it began", row)

    def _add(self, first: RequestRow, what: str, *rows: RequestRow) -> None:
        self._findings.add(Check.ORDER, first, what, *rows)


class Repeats:
    """Was a page or a sitemap asked for twice? There are reasons to (`may_be_repeated`).

    One more: its host was excluded in between. What was being fetched just then does not count, and is pending again
    when the exclusion is lifted.

    Of each URL whose last request gives no reason, the fingerprint is kept while its domain is under way, with where
    that request is, as one number: some 120 bytes a page, the most that an audit ever holds.
    """

    def __init__(self, findings: Findings, exclusions: ExclusionHistory) -> None:
        self._findings = findings
        self._exclusions = exclusions
        self._final: dict[int, int] = {}

    def begin_domain(self) -> None:
        """Nothing has been asked for yet."""
        if self._final:
            self._final = {}

    def take(self, row: RequestRow, visit: VisitSoFar) -> None:
        """A request for a page or a sitemap."""
        self._findings.checked[Check.TWICE] += 1
        earlier = self._final.get(row.fingerprint)
        if earlier is not None:
            before = _unpacked(earlier, row)
            if not self._exclusions.held_between(row.url, before.began, row.began):
                self._report(before, row, visit)
        if not may_be_repeated(row, visit.unreachable):
            self._final[row.fingerprint] = _packed(row)
        elif earlier is not None:
            del self._final[row.fingerprint]

    def _report(self, earlier: Evidence, row: RequestRow, visit: VisitSoFar) -> None:
        apart = (row.began - earlier.began) / 1000
        self._findings.add(
            Check.TWICE,
            visit.first,
            f"asked for again, {seconds_text(apart)} after request {earlier.seq} of visit {earlier.visit},"
            " whose outcome gave no reason to",
            earlier,
            row,
            apart_s=apart,
        )


def may_be_repeated(row: RequestRow, unreachable: Collection[str]) -> bool:
    """Whether the outcome of a request is a reason to ask for the same URL again.

    `unreachable`: the origins that could not be reached in the same visit. The reasons:

    - the visit was lost with its process, or came too late: what it found does not count;
    - the request was cut short, or failed for a time (`retry.is_temporary`: time-outs, resets, DNS trouble, 5xx,
      408, 425, 429);
    - it was for `https://host/`, and https could not be spoken: for a bare domain of the seeds https is a guess that
      is made again, if http does not answer either;
    - it was for `http://host/` in the place of such a guess, and led back to the https that cannot be reached: the
      guess is made again later, and so is what stands in for it.
    """
    if row.settlement is not Settlement.SETTLED:
        return True
    if row.error:
        return _failed_for_a_time(row.error, row.status) or (
            row.error in UNREACHABLE_FAILURES and _is_front_page(row.url, "https://")
        )
    if not unreachable or not row.target or not _is_front_page(row.url, "http://"):
        return False
    target = canonical(row.target, parse_base(row.url))
    return (
        target is not None
        # The crawl may leave what is in a query out.
        and target.text.partition("?")[0] == "https" + row.url.removeprefix("http")
        and target.origin in unreachable
    )


def _is_front_page(url: str, scheme: str) -> bool:
    return url.startswith(scheme) and url.find("/", len(scheme)) == len(url) - 1


@lru_cache(maxsize=1_024)
def _failed_for_a_time(error: str, status: int) -> bool:
    """Whether the crawl tries again what is noted like this in the ledger."""
    if is_status_error(error):
        response = Response(url="", status=status, status_line="", headers=(), address="")
        return is_temporary(Refused(response=response))
    if error == FailureKind.ABORTED:
        return True
    return error in _FAILURES and is_temporary(Failed(kind=FailureKind(error), detail=""))


def _packed(row: RequestRow) -> int:
    return row.visit << 64 | (row.seq & 0xFFFF) << 48 | row.began & 0xFFFF_FFFF_FFFF


def _unpacked(number: int, again: RequestRow) -> Evidence:
    began = number & 0xFFFF_FFFF_FFFF
    return Evidence(
        visit=number >> 64,
        seq=number >> 48 & 0xFFFF,
        kind=again.kind,
        url=again.url,
        began=began,
        ended=began,
        started=None,
    )


class ExclusionHistory:
    """Was anything asked of what was excluded at the time?"""

    def __init__(self, findings: Findings, exclusions: Sequence[Exclusion]) -> None:
        self._findings = findings
        self._any = Exclusions(exclusion.pattern for exclusion in exclusions)
        # Thousands come at once, from a file: those that held for the same time are looked through in one go.
        spans: dict[tuple[int, int | None], dict[str, Exclusion]] = {}
        for exclusion in exclusions:
            span = spans.setdefault((exclusion.at, exclusion.lifted_at), {})
            span[exclusion.pattern] = exclusion
        self._spans = [(Exclusions(span), span) for span in spans.values()]
        self._of_origin = lru_cache(maxsize=4_096)(self._covering)

    def take(self, row: RequestRow, visited: RequestRow) -> None:
        """Any request, to whatever domain it went."""
        self._findings.checked[Check.EXCLUDED] += 1
        if not self._spans:
            return
        for exclusion in self._of_origin(origin_of(row.url)):
            if _held(exclusion, row.began):
                self._report(exclusion, row, visited)
                return

    def held_between(self, url: str, since: int, until: int) -> bool:
        """Whether a URL's host was excluded at some time between two."""
        return any(
            exclusion.at <= until and (exclusion.lifted_at is None or exclusion.lifted_at >= since)
            for exclusion in (self._of_origin(origin_of(url)) if self._spans else ())
        )

    def _covering(self, origin: str) -> Sequence[Exclusion]:
        """All exclusions that there ever were of an origin's host, one for each time that they held."""
        host = host_of(origin)
        if not self._any.covers(host):
            return ()
        found = ((span, covered.covering(host)) for covered, span in self._spans)
        return [span[pattern] for span, pattern in found if pattern is not None]

    def _report(self, exclusion: Exclusion, row: RequestRow, visited: RequestRow) -> None:
        since = (row.began - exclusion.at) / 1000
        when = f"{seconds_text(since)} before" if exclusion.at else "before anything was asked"
        self._findings.add(
            Check.EXCLUDED,
            visited,
            f"{exclusion.pattern} had been excluded {when}",
            row,
            pattern=exclusion.pattern,
            excluded_at_ms=exclusion.at,
            **({"lifted_at_ms": exclusion.lifted_at} if exclusion.lifted_at is not None else {}),
        )


def _held(exclusion: Exclusion, began: int) -> bool:
    """Whether an exclusion was in force, and could be known of, when a request was begun."""
    known_of = exclusion.at == 0 or began > exclusion.at + NOTICE_MS
    return known_of and (exclusion.lifted_at is None or began < exclusion.lifted_at)
