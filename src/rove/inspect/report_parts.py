"""The sentences of a site report, which the text and the HTML share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from rove.frontier.contract import FrontierReader
from rove.inspect.explain_text import exclusion_text
from rove.inspect.report import MOST_COPIES, RobotsCopy, SiteReport, SiteVisit
from rove.inspect.request_rows import DELAY_REASONS, settlement_text
from rove.model.ledger import RequestRow
from rove.model.text_hash import robots_name
from rove.model.usage import Purpose
from rove.notation.harmless import one_line, whole_text
from rove.notation.humanize import counted, precise, size_text, utc_text
from rove.policy.identity import user_agent
from rove.policy.robots_lines import PRODUCT_TOKEN

_PURPOSES = {
    Purpose.SEARCH: "search",
    Purpose.RESEARCH: "research",
    Purpose.ARCHIVE: "an archive",
    Purpose.TRAINING: "training of models; pages whose site states that it does not want this are not kept",
}
NOT_KEPT = "NOT KEPT"
VISITS_TITLE = "Requests, by visit"
COPIES_TITLE = "robots.txt, as it was read"
OPT_OUT_TITLE = "How to opt out"
_MOST_ROBOTS_TEXT = 20_000
"""Characters shown of one robots.txt; --json has all of it."""


def title(report: SiteReport) -> str:
    """Return the headline."""
    return f"Requests by rove to {report.site.name}"


def sections(report: SiteReport) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sections that are lists of names and values, by title."""
    return [("Who runs the crawl", _operator(report)), ("Summary", _summary(report))]


def _operator(report: SiteReport) -> list[tuple[str, str]]:
    settings = report.settings
    facts = [("contact", settings.email), ("User-Agent", user_agent(settings.email, settings.info_url))]
    if settings.info_url:
        facts.append(("about", settings.info_url))
    if settings.purpose is not None:
        facts.append(("purpose", _PURPOSES[settings.purpose]))
    return facts


def _summary(report: SiteReport) -> list[tuple[str, str]]:
    totals = report.totals
    facts = [("pending", _pending(report)), ("excluded", _excluded(report))]
    facts += [("exclusion", exclusion_text(exclusion)) for exclusion in report.exclusions]
    if totals.first is None or totals.last is None:
        return [("requests", "no request was ever made"), *facts]
    requests = f"{counted(totals.requests, 'request')} in {counted(totals.visits, 'visit')}"
    answers = ", ".join(f"{name} ({count:,})" for name, count in totals.outcomes.most_common())
    return [
        ("requests", requests),
        ("first", utc_text(totals.first)),
        ("last", utc_text(totals.last)),
        ("received", size_text(totals.bytes)),
        ("pages stored", f"{totals.pages:,}"),
        ("answers", one_line(answers)),
        ("delays", _delays(report)),
        *facts,
    ]


def _pending(report: SiteReport) -> str:
    domain = report.domain
    if domain is None or report.is_excluded or not domain.pending:
        return "nothing"
    return f"{counted(domain.pending, 'URL')}, at most one page per visit"


def _excluded(report: SiteReport) -> str:
    if report.is_excluded:
        return "yes: rove no longer visits this site"
    if any(exclusion.lifted_at is None for exclusion in report.exclusions):
        return "in part: rove no longer visits the hosts below"
    return "no"


def _delays(report: SiteReport) -> str:
    totals = report.totals
    shortest, median = totals.gaps.shortest, totals.gaps.median
    if shortest is None or median is None:
        return "there was one visit"
    gaps = (
        f"at least {precise(shortest)} between two visits, median {precise(median)}"
        if shortest >= 0
        else f"visits overlapped; median gap {precise(median)}"
    )
    judged = totals.kept + totals.broken
    if totals.broken:
        return f"{gaps}; the delay was {NOT_KEPT} {counted(totals.broken, 'time')} of {judged:,}"
    return f"{gaps}; the delay was kept every time" if judged else gaps


def opt_out(report: SiteReport) -> list[tuple[str, str]]:
    """Return the ways to keep rove away, each a text and lines for robots.txt."""
    site, email = report.site.name, report.settings.email
    group = f"User-agent: {PRODUCT_TOKEN}\n"
    notes = (
        "rove uses a copy of robots.txt for at most a day. A Crawl-delay of more than a day also keeps rove away. "
        "A group for rove replaces the group for all agents (*)."
    )
    mail = f"Or write to {email}. The operator can then exclude {site} with all its hosts (rove exclude {site})."
    return [
        ("To keep rove away from a host, put this into its robots.txt:", f"{group}Disallow: /"),
        ("To slow rove down, here to one visit every ten minutes:", f"{group}Crawl-delay: 600"),
        (notes, ""),
        (mail, ""),
    ]


class ShownCopy(NamedTuple):
    """A copy of a robots.txt as the report shows it."""

    title: str
    text: str
    note: str


async def shown_copies(report: SiteReport, reader: FrontierReader) -> AsyncIterator[ShownCopy]:
    """Yield the copies of robots.txt; a text that several have is shown once."""
    shown: dict[str, str] = {}
    for copy in report.totals.copies:
        if copy.name in shown:
            yield ShownCopy(_copy_title(copy), "", f"the same text as {shown[copy.name]}")
            continue
        shown[copy.name] = one_line(copy.url)
        yield ShownCopy(_copy_title(copy), *await _robots_text(copy, reader))


def _copy_title(copy: RobotsCopy) -> str:
    url, first = one_line(copy.url), utc_text(copy.first)
    if copy.times == 1:
        return f"{url}, read {first}"
    return f"{url}, read {copy.times:,} times from {first} to {utc_text(copy.last)}"


async def _robots_text(copy: RobotsCopy, reader: FrontierReader) -> tuple[str, str]:
    """Return the text of a robots.txt as far as it is shown, and a note about it."""
    body = await reader.robots_text(copy.name)
    if body is None:
        return "", "its text is not stored"
    if robots_name(body) != copy.name:
        return "", "the stored text is not the one that was read: the database is damaged"
    text = whole_text(body)
    if not text.strip():
        return "", "it is empty"
    if len(text) <= _MOST_ROBOTS_TEXT:
        return text, ""
    note = f"the first {_MOST_ROBOTS_TEXT:,} of {len(text):,} characters"
    return text[:_MOST_ROBOTS_TEXT], note


def copies_left_out(report: SiteReport) -> str:
    """Return a note about older copies of robots.txt; '' if all are listed."""
    if not report.totals.copies_left_out:
        return ""
    return (
        f"{counted(report.totals.copies_left_out, 'older copy', 'older copies')} left out; "
        f"these are the last {MOST_COPIES}. --json has the hash of each with its request."
    )


def gap_text(visit: SiteVisit) -> str:
    """Return how long after the previous visit a visit began, and whether that kept the delay."""
    if visit.gap is None:
        return "the first"
    gap = (
        f"{precise(visit.gap)} after the previous visit"
        if visit.gap >= 0
        else f"{precise(-visit.gap)} before the end of the previous visit"
    )
    if visit.due is None:
        return f"{gap} (the delay is not on record)"
    kept = "kept" if visit.is_kept else NOT_KEPT
    return f"{gap} (delay {precise(visit.due)}, {DELAY_REASONS[visit.due_from]}: {kept})"


def request_notes(row: RequestRow) -> list[str]:
    """Return the target of a redirect, and why the visit of a request did not count."""
    notes = [f"to {one_line(row.target)}"] if row.target else []
    return [*notes, settlement_text(row)] if row.settlement else notes
