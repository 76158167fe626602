"""A report on a site as text for people, and as JSON Lines for programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from textwrap import wrap
from typing import Any

from rove.frontier.contract import FrontierReader
from rove.humanize import counted, hash_text, size_text
from rove.inspect.explain_text import exclusion_json, exclusion_text
from rove.inspect.pages import iso_time
from rove.inspect.report import (
    MOST_COPIES,
    RobotsCopy,
    SiteVisit,
    WebmasterReport,
    elsewhere_in,
    visits_in,
)
from rove.inspect.requests import (
    DELAY_REASONS,
    fate_text,
    one_line,
    outcome_text,
    precise,
    request_json,
    utc_text,
    whole_text,
)
from rove.model.ledger import RequestRow
from rove.policy.constants import user_agent
from rove.policy.robots import PRODUCT_TOKEN

MOST_ROBOTS_TEXT = 20_000
"""Characters that are shown of one robots.txt; --json has all of it."""
_WIDTH = 100
KEEP_OFF = f"User-agent: {PRODUCT_TOKEN}\nDisallow: /"
SLOW_DOWN = f"User-agent: {PRODUCT_TOKEN}\nCrawl-delay: 600"
ELSEWHERE = (
    "The robots.txt of another site redirects to this one, and was asked for here on a visit to that site "
    "(RFC 9309, section 2.3.1.2)."
)


async def text_lines(report: WebmasterReport, reader: FrontierReader) -> AsyncIterator[str]:
    """What `report` prints for people, as it is read."""
    for line in _head(report):
        yield line
    if report.totals.copies:
        yield ""
        yield "robots.txt, as it was read"
        shown: dict[int, str] = {}
        for copy in report.totals.copies:
            async for line in _copy_lines(copy, reader, shown):
                yield line
        if report.totals.copies_left_out:
            yield f"  {copies_left_out(report)}"
    if report.totals.rows:
        yield ""
        yield "Requests, by visit"
        async for visit in visits_in(reader, report):
            yield f"  visit {visit.number}, {visit_text(visit)}"
            for row in visit.rows:
                yield _request_line(row, is_here=row.other_domain is None)
    if report.totals.elsewhere:
        yield ""
        yield "Requests on behalf of other sites"
        for line in wrap(ELSEWHERE, _WIDTH, initial_indent="  ", subsequent_indent="  "):
            yield line
        async for row in elsewhere_in(reader, report):
            yield _request_line(row, is_here=True)


def _head(report: WebmasterReport) -> Iterator[str]:
    yield f"Requests of rove to {report.site.name}, as of {utc_text(report.made)}"
    for title, facts in (("Who asks", who_asks(report)), ("In short", in_short(report))):
        yield ""
        yield title
        for name, value in facts:
            yield f"  {name:<14}{value}"
    yield ""
    yield "How to opt out"
    for text, robots in opt_out(report):
        yield from wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
        yield from (f"      {line}" for line in robots.splitlines())


def who_asks(report: WebmasterReport) -> list[tuple[str, str]]:
    """Who runs the crawl, as names and values."""
    settings = report.settings
    facts = [
        ("contact", settings.email),
        ("User-Agent", user_agent(settings.email, settings.info_url)),
    ]
    return [*facts, ("about", settings.info_url)] if settings.info_url else facts


def in_short(report: WebmasterReport) -> list[tuple[str, str]]:
    """The sums, as names and values."""
    totals = report.totals
    facts = [
        ("still to come", still_to_come(report)),
        ("excluded", excluded_text(report)),
    ]
    facts += [("exclusion", exclusion_text(exclusion)) for exclusion in report.exclusions]
    if totals.first is None or totals.last is None:
        return [("requests", "no request was ever made"), *facts]
    requests = f"{counted(totals.requests, 'request')} in {counted(totals.visits, 'visit')}"
    if totals.elsewhere:
        requests += f", and {totals.elsewhere:,} for the robots.txt of other sites"
    answers = ", ".join(f"{name} ({count:,})" for name, count in totals.outcomes.items())
    return [
        ("requests", requests),
        ("first", utc_text(totals.first)),
        ("last", utc_text(totals.last)),
        ("received", size_text(totals.bytes)),
        ("pages stored", f"{totals.pages:,}"),
        ("answers", one_line(answers)),
        ("delays", delays_text(report)),
        *facts,
    ]


def excluded_text(report: WebmasterReport) -> str:
    """Whether the site is asked any more."""
    if report.is_excluded:
        return "yes: the site is not asked any more"
    if any(exclusion.lifted_at is None for exclusion in report.exclusions):
        return "in part: the hosts below are not asked any more"
    return "no"


def delays_text(report: WebmasterReport) -> str:
    """The gaps between visits, and whether they were as long as they had to be."""
    totals = report.totals
    if totals.shortest is None or totals.middle is None:
        return "there was one visit" if totals.visits else "there was no visit"
    judged = totals.kept + totals.broken
    gaps = (
        f"at least {precise(totals.shortest)} between two visits, {precise(totals.middle)} in the median"
        if totals.shortest >= 0
        else f"visits overlapped; {precise(totals.middle)} between two in the median"
    )
    if totals.broken:
        return f"{gaps}; the delay was NOT KEPT {counted(totals.broken, 'time')} of {judged:,}"
    return f"{gaps}; the delay was kept each time" if judged else gaps


def still_to_come(report: WebmasterReport) -> str:
    """What the crawl has in mind for the site."""
    domain = report.domain
    if domain is None or report.is_excluded or not domain.pending:
        return "nothing"
    return f"{counted(domain.pending, 'URL')}, at most one page a visit"


def visit_text(visit: SiteVisit) -> str:
    """When a visit was, and how long after the one before."""
    when = utc_text(visit.started)
    if visit.gap is None:
        return f"{when}, the first"
    return f"{when}, {gap_text(visit.gap)} ({due_text(visit)})"


def gap_text(gap: float) -> str:
    """How long after the one before a visit began."""
    if gap < 0:
        return f"{precise(-gap)} before the end of the one before"
    return f"{precise(gap)} after the one before"


def due_text(visit: SiteVisit) -> str:
    """How long it had to be, why, and whether it was."""
    if visit.due is None:
        return "the delay is not on record"
    kept = "kept" if visit.is_kept else "NOT KEPT"
    return f"delay {precise(visit.due)}, {DELAY_REASONS[visit.due_from]}: {kept}"


def request_notes(row: RequestRow) -> list[str]:
    """What else is to be said of a request."""
    notes = [f"to {one_line(row.target)}"] if row.target else []
    if row.settlement:
        notes.append(fate_text(row))
    return notes


def opt_out(report: WebmasterReport) -> list[tuple[str, str]]:
    """How a webmaster keeps rove off, each with lines for robots.txt."""
    site, email = report.site.name, report.settings.email
    robots = (
        "A copy of robots.txt is used for a day at the most. A Crawl-delay of more than a day keeps rove off as well. "
        "A group for rove stands in the place of the one for all agents (*)."
    )
    mail = (
        f"Or write to {email}: whoever runs the crawl then excludes {site} with all its hosts "
        f"(rove exclude {site})."
    )
    return [
        ("To keep rove off a host, put this into its robots.txt:", KEEP_OFF),
        ("To be asked less often (here: at most every ten minutes):", SLOW_DOWN),
        (robots, ""),
        (mail, ""),
    ]


def copies_left_out(report: WebmasterReport) -> str:
    """What is said where there were too many copies of robots.txt to list."""
    return (
        f"{report.totals.copies_left_out:,} older copies are left out: these are the last {MOST_COPIES}; "
        "--json has the hash of each with its request."
    )


def copy_title(copy: RobotsCopy) -> str:
    """When a robots.txt was read."""
    url, first = one_line(copy.url), utc_text(copy.first)
    if copy.times == 1:
        return f"{url}, read {first}"
    return f"{url}, read {copy.times:,} times from {first} to {utc_text(copy.last)}"


async def robots_shown(copy: RobotsCopy, reader: FrontierReader) -> tuple[str, str]:
    """The text of a robots.txt as far as it is shown, and what is to be said of it."""
    body = await reader.robots_text(copy.hash)
    if body is None:
        return "", "its text was not kept"
    text = whole_text(body)
    if not text.strip():
        return "", "it is empty"
    if len(text) > MOST_ROBOTS_TEXT:
        return text[
            :MOST_ROBOTS_TEXT
        ], f"the first {MOST_ROBOTS_TEXT:,} of {len(text):,} characters"
    return text, ""


async def _copy_lines(
    copy: RobotsCopy, reader: FrontierReader, shown: dict[int, str]
) -> AsyncIterator[str]:
    yield f"  {copy_title(copy)}"
    if copy.hash in shown:
        yield f"      (the same text as that of {shown[copy.hash]})"
        return
    shown[copy.hash] = one_line(copy.url)
    text, note = await robots_shown(copy, reader)
    for line in text.splitlines():
        yield f"      {line}".rstrip()
    if note:
        yield f"      ({note})"


def _request_line(row: RequestRow, *, is_here: bool) -> str:
    address = one_line(row.address) or "-"
    if not is_here:
        address += " (another site)"
    what = f"{row.kind.value:<7}  {one_line(outcome_text(row)):<18}  {row.size:>9,} B"
    parts = [utc_text(row.started), what, f"{address:<15}", one_line(row.url), *request_notes(row)]
    return "      " + "  ".join(parts)


async def json_records(
    report: WebmasterReport, reader: FrontierReader
) -> AsyncIterator[dict[str, Any]]:
    """What `report --json` prints, an object a line: the report, each robots.txt, each visit with its requests."""
    yield _report_json(report)
    for copy in report.totals.copies:
        body = await reader.robots_text(copy.hash)
        yield {
            "record": "robots",
            "url": copy.url,
            "content_hash": hash_text(copy.hash),
            "first": iso_time(copy.first),
            "last": iso_time(copy.last),
            "times": copy.times,
            "text": None if body is None else body.decode("utf-8", "replace"),
        }
    async for visit in visits_in(reader, report):
        yield {
            "record": "visit",
            "visit": visit.number,
            "started": iso_time(visit.started),
            "gap_s": visit.gap,
            "delay_s": visit.due,
            "delay_from": None if visit.due is None else visit.due_from.value,
            "kept": visit.is_kept,
        }
        for row in visit.rows:
            is_here = row.other_domain is None
            yield {"record": "request", **request_json(row), "asked_here": is_here}
    async for row in elsewhere_in(reader, report):
        yield {"record": "request-for-another-site", **request_json(row)}


def _report_json(report: WebmasterReport) -> dict[str, Any]:
    totals, settings = report.totals, report.settings
    return {
        "record": "report",
        "domain": report.site.name,
        "made": iso_time(report.made),
        "contact": settings.email,
        "user_agent": user_agent(settings.email, settings.info_url),
        "info_url": settings.info_url,
        "excluded": report.is_excluded,
        "exclusions": [exclusion_json(exclusion) for exclusion in report.exclusions],
        "requests": totals.requests,
        "requests_for_other_sites": totals.elsewhere,
        "visits": totals.visits,
        "pages_stored": totals.pages,
        "bytes": totals.bytes,
        "first": None if totals.first is None else iso_time(totals.first),
        "last": None if totals.last is None else iso_time(totals.last),
        "answers": dict(totals.outcomes),
        "gaps": {
            "smallest_s": totals.shortest,
            "median_s": totals.middle,
            "kept": totals.kept,
            "not_kept": totals.broken,
        },
        "pending": report.domain.pending if report.domain else 0,
        "robots_copies": len(totals.copies),
        "robots_copies_left_out": totals.copies_left_out,
    }
