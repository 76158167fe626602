"""Prints a site report as text for people and as JSON Lines for programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from textwrap import wrap
from typing import Any

from rove.frontier.contract import FrontierReader
from rove.inspect import report_parts
from rove.inspect.explain_text import exclusion_json
from rove.inspect.report import RobotsCopy, SiteReport, SiteVisit, visits_in
from rove.inspect.request_rows import outcome_text, request_json
from rove.model.ledger import RequestRow
from rove.model.text_hash import robots_name
from rove.notation.harmless import one_line
from rove.notation.humanize import iso_time, utc_text
from rove.policy.identity import user_agent


async def text_lines(report: SiteReport, reader: FrontierReader) -> AsyncIterator[str]:
    """Yield what `report` prints for people, as it is read."""
    for line in _head(report):
        yield line
    if report.totals.copies:
        yield ""
        yield report_parts.COPIES_TITLE
        async for copy in report_parts.shown_copies(report, reader):
            yield f"  {copy.title}"
            for line in copy.text.splitlines():
                yield f"      {line}".rstrip()
            if copy.note:
                yield f"      ({copy.note})"
        if note := report_parts.copies_left_out(report):
            yield f"  {note}"
    if report.totals.requests:
        yield ""
        yield report_parts.VISITS_TITLE
        async for visit in visits_in(reader, report):
            yield f"  visit {visit.number}, {utc_text(visit.started)}, {report_parts.gap_text(visit)}"
            for row in visit.rows:
                yield _request_line(row)


def _head(report: SiteReport) -> Iterator[str]:
    yield f"{report_parts.title(report)}, as of {utc_text(report.made)}"
    for name, facts in report_parts.sections(report):
        yield ""
        yield name
        yield from (f"  {name:<14}{value}" for name, value in facts)
    yield ""
    yield report_parts.OPT_OUT_TITLE
    for text, robots in report_parts.opt_out(report):
        yield from _wrapped(text)
        yield from (f"      {line}" for line in robots.splitlines())


def _wrapped(text: str) -> list[str]:
    return wrap(text, 100, initial_indent="  ", subsequent_indent="  ")


def _request_line(row: RequestRow) -> str:
    address = one_line(row.address) or "-"
    what = f"{row.kind.value:<7}  {one_line(outcome_text(row)):<18}  {row.size:>9,} B"
    parts = [utc_text(row.started), what, f"{address:<15}", one_line(row.url), *report_parts.request_notes(row)]
    return "      " + "  ".join(parts)


async def json_records(report: SiteReport, reader: FrontierReader) -> AsyncIterator[dict[str, Any]]:
    """Yield the objects that `report --json` prints: the report, each robots.txt, each visit and its requests."""
    yield _report_json(report)
    for copy in report.totals.copies:
        yield _copy_json(copy, await reader.robots_text(copy.name))
    async for visit in visits_in(reader, report):
        yield _visit_json(visit)
        for row in visit.rows:
            yield {"record": "request", **request_json(row)}


def _report_json(report: SiteReport) -> dict[str, Any]:
    totals, settings = report.totals, report.settings
    return {
        "record": "report",
        "domain": report.site.name,
        "made": iso_time(report.made),
        "contact": settings.email,
        "user_agent": user_agent(settings.email, settings.info_url),
        "info_url": settings.info_url,
        "purpose": settings.purpose,
        "excluded": report.is_excluded,
        "exclusions": [exclusion_json(exclusion) for exclusion in report.exclusions],
        "requests": totals.requests,
        "visits": totals.visits,
        "pages_stored": totals.pages,
        "bytes": totals.bytes,
        "first": None if totals.first is None else iso_time(totals.first),
        "last": None if totals.last is None else iso_time(totals.last),
        "answers": dict(totals.outcomes.most_common()),
        "gaps": {
            "smallest_s": totals.gaps.shortest,
            "median_s": totals.gaps.median,
            "kept": totals.kept,
            "not_kept": totals.broken,
        },
        "pending": report.domain.pending if report.domain else 0,
        "robots_copies": len(totals.copies),
        "robots_copies_left_out": totals.copies_left_out,
    }


def _copy_json(copy: RobotsCopy, body: bytes | None) -> dict[str, Any]:
    return {
        "record": "robots",
        "url": copy.url,
        "content_hash": copy.name,
        "first": iso_time(copy.first),
        "last": iso_time(copy.last),
        "times": copy.times,
        "text": None if body is None or robots_name(body) != copy.name else body.decode("utf-8", "replace"),
    }


def _visit_json(visit: SiteVisit) -> dict[str, Any]:
    return {
        "record": "visit",
        "visit": visit.number,
        "started": iso_time(visit.started),
        "gap_s": visit.gap,
        "delay_s": visit.due,
        "delay_from": None if visit.due is None else visit.due_from.value,
        "kept": visit.is_kept,
    }
