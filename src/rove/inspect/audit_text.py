"""Prints the result of an audit, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from rove.inspect.audit_findings import AuditReport, Check, Finding, Margin, Unverifiable
from rove.model.ledger import RequestRow
from rove.notation.harmless import one_line
from rove.notation.humanize import counted, iso_time, utc_text

MAX_SHOWN = 20
"""Violations of each check that are shown to people."""

_CHECKED = {
    Check.DELAY: ("gap", " between visits"),
    Check.ROBOTS: ("page", " judged again"),
    Check.PAGE_BEFORE_ROBOTS: ("page", ""),
    Check.EXCLUDED: ("request", ""),
    Check.USAGE: ("page", " kept for training"),
    Check.TWICE: ("page", ""),
    Check.ORDER: ("request", ""),
}
"""What each check counts."""
_UNVERIFIABLE = {
    Unverifiable.NO_COPY: ("page", "whose robots.txt was read but not stored"),
    Unverifiable.OTHER_COPY: ("page", "whose stored robots.txt is not the one that was read: the database is damaged"),
    Unverifiable.NO_DELAY: ("gap", "after a visit that was lost before its delay was recorded"),
    Unverifiable.LOST_REQUEST: ("page", "whose robots.txt was requested before the database lost its last rows"),
    Unverifiable.DAMAGED: ("request", "whose row holds no URL: the database is damaged"),
}


def as_json(report: AuditReport) -> dict[str, Any]:
    """Return the object that `audit --json` prints."""
    return {
        "polite": report.total == 0,
        "requests": report.requests,
        "visits": report.visits,
        "domains": report.domains,
        "violations_total": report.total,
        "checks": {
            check.value: {"checked": report.checked[check], "violations": report.violations[check]} for check in Check
        },
        "unverifiable": {reason.value: report.unverifiable[reason] for reason in Unverifiable},
        "smallest_margin": None if report.smallest_margin is None else _margin_json(report.smallest_margin),
        "violations": [_finding_json(finding) for finding in report.findings],
    }


def as_lines(report: AuditReport) -> Iterator[str]:
    """Yield what `audit` prints for people; the first line is the verdict."""
    yield (
        f"{_violations(report.total)} in {counted(report.requests, 'request')} "
        f"of {counted(report.visits, 'visit')} to {counted(report.domains, 'domain')}"
    )
    for check in Check:
        if check is Check.USAGE and not report.checked[check]:
            continue  # the crawl is not for training
        unit, detail = _CHECKED[check]
        checked = counted(report.checked[check], unit) + detail
        yield f"{check:<20}{checked}: {_violations(report.violations[check])}"
    if report.smallest_margin is not None:
        yield from _margin_lines(report.smallest_margin)
    for reason in Unverifiable:
        if report.unverifiable[reason]:
            unit, why = _UNVERIFIABLE[reason]
            yield f"{'not verifiable':<20}{counted(report.unverifiable[reason], unit)} {why}"
    for check in Check:
        yield from _violation_lines(report, check)


def _violations(count: int) -> str:
    return counted(count, "violation") if count else "no violations"


def _violation_lines(report: AuditReport, check: Check) -> Iterator[str]:
    if not report.violations[check]:
        return
    yield ""
    yield f"{check}: {counted(report.violations[check], 'violation')}"
    for finding in islice((f for f in report.findings if f.check is check), MAX_SHOWN):
        yield f"  {finding.domain}: {one_line(finding.what)}"
        for request in finding.requests:
            yield f"    {_request_line(request)}"
    if report.violations[check] > MAX_SHOWN:
        yield f"  and {report.violations[check] - MAX_SHOWN:,} more"


def _margin_lines(margin: Margin) -> Iterator[str]:
    yield (
        f"{'smallest margin':<20}{margin.margin:.3f} s: {margin.domain} was left alone for {margin.gap:.3f} s; "
        f"{margin.delay_text}"
    )
    earlier, later = margin.earlier, margin.later
    yield f"{'':<20}visit {earlier.visit} ended {_moment(earlier, earlier.ended)}"
    yield f"{'':<20}visit {later.visit} began {_moment(later, later.began)}"


def _request_line(request: RequestRow) -> str:
    seconds = f" for {(request.ended - request.began) / 1000:.3f} s" if request.started else ""
    parts = (
        f"visit {request.visit}, request {request.seq}",
        request.kind.value,
        f"{_moment(request, request.began)}{seconds}",
        request.error or (str(request.status) if request.status else ""),
        one_line(request.url),
    )
    return "  ".join(part for part in parts if part)


def _moment(request: RequestRow, at: int) -> str:
    """Format a time of the crawl's clock as wall-clock time."""
    if not request.started:
        return f"at {at:,} ms of the crawl's clock"
    return utc_text(request.started + (at - request.began) / 1000, milliseconds=True)


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check.value,
        "domain": finding.domain,
        "what": finding.what,
        **finding.numbers,
        "requests": [_request_json(request) for request in finding.requests],
    }


def _margin_json(margin: Margin) -> dict[str, Any]:
    return {
        "domain": margin.domain,
        "margin_s": round(margin.margin, 3),
        "gap_s": round(margin.gap, 3),
        "delay_s": margin.delay,
        "delay_from": margin.delay_from.value,
        "requests": [_request_json(margin.earlier), _request_json(margin.later)],
    }


def _request_json(request: RequestRow) -> dict[str, Any]:
    return {
        "visit": request.visit,
        "seq": request.seq,
        "kind": request.kind.value,
        "url": request.url,
        "began_ms": request.began,
        "ended_ms": request.ended,
        "time": iso_time(request.started) if request.started else None,
        "status": request.status,
        "error": request.error or None,
    }
