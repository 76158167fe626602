"""What an audit found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from rove.humanize import counted
from rove.inspect.audit_findings import AuditReport, Check, Evidence, Finding, Margin, Unverifiable
from rove.inspect.pages import iso_time
from rove.inspect.requests import one_line

MAX_SHOWN = 20
"""Violations of one kind that are shown to people."""

_CHECKED = {
    Check.DELAY: ("gap between visits", "gaps between visits"),
    Check.ROBOTS: ("page judged anew", "pages judged anew"),
    Check.PAGE_BEFORE_ROBOTS: ("page", "pages"),
    Check.EXCLUDED: ("request", "requests"),
    Check.TWICE: ("page", "pages"),
    Check.ORDER: ("request", "requests"),
}
_UNVERIFIABLE = {
    Unverifiable.REQUEST_BEFORE_LEDGER: "from before the ledger: held against 'twice' only",
    Unverifiable.GAP_BEFORE_LEDGER: "between visits, one of which was before the ledger",
    Unverifiable.ROBOTS_BEFORE_LEDGER: "whose robots.txt was asked for before the ledger, if at all",
    Unverifiable.NO_COPY: "whose robots.txt was read, but no copy of it is kept",
    Unverifiable.NO_DELAY: "after a visit that was lost before its delay was noted",
}
_UNVERIFIABLE_UNIT = {
    Unverifiable.REQUEST_BEFORE_LEDGER: ("request", "requests"),
    Unverifiable.GAP_BEFORE_LEDGER: ("gap", "gaps"),
    Unverifiable.ROBOTS_BEFORE_LEDGER: ("page", "pages"),
    Unverifiable.NO_COPY: ("page", "pages"),
    Unverifiable.NO_DELAY: ("gap", "gaps"),
}


def as_json(report: AuditReport) -> dict[str, Any]:
    """The object that `audit --json` prints."""
    return {
        "polite": report.total == 0,
        "requests": report.requests,
        "visits": report.visits,
        "domains": report.domains,
        "requests_elsewhere": report.elsewhere,
        "violations_total": report.total,
        "checks": {
            check.value: {
                "checked": report.checked[check],
                "violations": report.violations[check],
            }
            for check in Check
        },
        "unverifiable": {reason.value: report.unverifiable[reason] for reason in Unverifiable},
        "smallest_margin": None
        if report.smallest_margin is None
        else _margin_json(report.smallest_margin),
        "violations": [_finding_json(finding) for finding in report.findings],
    }


def as_lines(report: AuditReport) -> Iterator[str]:
    """What `audit` prints for people; the first line is the verdict."""
    yield (
        f"{counted(report.total, 'violation', none='no')} in {counted(report.requests, 'request')} "
        f"of {counted(report.visits, 'visit')} to {counted(report.domains, 'domain')}"
    )
    for check in Check:
        checked = counted(report.checked[check], *_CHECKED[check])
        yield f"{check:<20}{checked}: {counted(report.violations[check], 'violation', none='no')}"
    if report.smallest_margin is not None:
        yield from _margin_lines(report.smallest_margin)
    if report.elsewhere:
        where = "to another domain, where a robots.txt led"
        yield f"{'out of turn':<20}{counted(report.elsewhere, 'request')} {where}"
    for reason in Unverifiable:
        if report.unverifiable[reason]:
            number = counted(report.unverifiable[reason], *_UNVERIFIABLE_UNIT[reason])
            yield f"{'not verifiable':<20}{number} {_UNVERIFIABLE[reason]}"
    for check in Check:
        yield from _violation_lines(report, check)


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


def _margin_lines(found: Margin) -> Iterator[str]:
    yield (
        f"{'smallest margin':<20}{found.margin:.3f} s: {found.domain} was left alone for {found.gap:.3f} s; "
        f"the delay in force ({found.delay_from}) was {found.delay:.3f} s"
    )
    for name, at, request in (
        ("ended", found.earlier.ended, found.earlier),
        ("began", found.later.began, found.later),
    ):
        yield f"{'':<20}visit {request.visit} {name} {_moment(request, at)}"


def _request_line(request: Evidence) -> str:
    seconds = f" for {(request.ended - request.began) / 1000:.3f} s" if request.started else ""
    parts = (
        f"visit {request.visit}, request {request.seq}",
        request.kind.value,
        f"{_moment(request, request.began)}{seconds}",
        request.error or (str(request.status) if request.status else ""),
        one_line(request.url),
    )
    return "  ".join(part for part in parts if part)


def _moment(request: Evidence, at: int) -> str:
    """A time of the crawl's clock as the wall clock had it."""
    if request.started is None:
        return f"at {at:,} ms of the crawl's clock"
    wall = datetime.fromtimestamp(request.started + (at - request.began) / 1000, UTC)
    return f"{wall:%Y-%m-%d %H:%M:%S}.{wall.microsecond // 1000:03d} UTC"


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check.value,
        "domain": finding.domain,
        "what": finding.what,
        **finding.numbers,
        "requests": [_request_json(request) for request in finding.requests],
    }


def _margin_json(found: Margin) -> dict[str, Any]:
    return {
        "domain": found.domain,
        "margin_s": round(found.margin, 3),
        "gap_s": round(found.gap, 3),
        "delay_s": found.delay,
        "delay_from": found.delay_from.value,
        "requests": [_request_json(found.earlier), _request_json(found.later)],
    }


def _request_json(request: Evidence) -> dict[str, Any]:
    return {
        "visit": request.visit,
        "seq": request.seq,
        "kind": request.kind.value,
        "url": request.url,
        "began_ms": request.began,
        "ended_ms": request.ended,
        "time": None if request.started is None else iso_time(request.started),
        "status": request.status,
        "error": request.error or None,
    }
