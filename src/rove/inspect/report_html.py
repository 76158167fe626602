"""Writes a site report as one self-contained HTML file, to be sent to a webmaster and to be printed.

Text from the web (URLs, redirect targets, robots.txt) may be hostile. It is escaped and never becomes a link, and the
page's Content-Security-Policy forbids it to load or run anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from rove.frontier.contract import FrontierReader
from rove.inspect import report_parts
from rove.inspect.report import SiteReport, SiteVisit, visits_in
from rove.inspect.report_chart import as_svg
from rove.inspect.request_rows import outcome_text
from rove.inspect.whole_file import whole_file
from rove.model.ledger import RequestRow
from rove.notation.harmless import one_line
from rove.notation.humanize import counted, utc_text

MOST_ROWS = 10_000
"""Each table lists the newest requests, at most this many, so that a browser can show it."""

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
"""
_COLUMNS = (
    '<thead><tr><th scope="col">Time</th><th scope="col">Kind</th><th scope="col">Answer</th>'
    '<th scope="col" class="number">Bytes</th><th scope="col">Address</th>'
    '<th scope="col">URL</th></tr></thead>\n'
)


async def write_html(report: SiteReport, reader: FrontierReader, path: Path) -> None:
    """Write the file, completely or not at all."""
    with whole_file(path) as file:
        async for part in html_parts(report, reader):
            file.write(part.encode("utf-8", "backslashreplace"))


async def html_parts(report: SiteReport, reader: FrontierReader, *, max_rows: int = MOST_ROWS) -> AsyncIterator[str]:
    """Yield the file piece by piece, as it is read; each table lists at most `max_rows` requests."""
    heading = escape(report_parts.title(report))
    style = resources.files("rove.inspect").joinpath("report.css").read_text("utf-8")
    yield _HEAD.format(title=heading, style=style)
    yield f'<header>\n<h1>{heading}</h1>\n<p class="soft">As of {utc_text(report.made)}. '
    yield "All times are UTC.</p>\n</header>\n<main>\n"
    for name, facts in report_parts.sections(report):
        yield _facts(name, facts, report)
    if report.totals.visits:
        yield _section("Visits over time", as_svg(report.totals.timeline))
    yield _opt_out(report)
    if report.totals.copies:
        yield f"<section>\n<h2>{report_parts.COPIES_TITLE}</h2>\n"
        async for part in _copies(report, reader):
            yield part
        yield "</section>\n"
    if report.totals.requests:
        yield _table_head(report_parts.VISITS_TITLE, report.totals.requests, max_rows)
        async for part in _visits(report, reader, max_rows):
            yield part
        yield "</table>\n</section>\n"
    yield "</main>\n</body>\n</html>\n"


def _section(name: str, content: str) -> str:
    return f"<section>\n<h2>{escape(name)}</h2>\n{content}\n</section>\n"


def _facts(section: str, facts: Iterable[tuple[str, str]], report: SiteReport) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{_value(name, value, report)}</td></tr>\n' for name, value in facts
    )
    return _section(section, f'<table class="facts">\n<tbody>\n{rows}</tbody>\n</table>')


def _value(name: str, value: str, report: SiteReport) -> str:
    """Escape a value; only the operator's own addresses become links."""
    settings = report.settings
    targets = {"contact": f"mailto:{quote(settings.email, safe='@')}", "about": settings.info_url}
    target = targets.get(name)
    if target is None:
        return _with_warning(value)
    return f'<a href="{escape(target)}">{escape(value)}</a>'


def _with_warning(text: str) -> str:
    """Escape a sentence and highlight that a delay was not kept."""
    return escape(text).replace(report_parts.NOT_KEPT, f'<strong class="bad">{report_parts.NOT_KEPT.lower()}</strong>')


def _opt_out(report: SiteReport) -> str:
    parts = []
    for text, robots in report_parts.opt_out(report):
        parts.append(f"<p>{escape(text)}</p>")
        if robots:
            parts.append(f"<pre>{escape(robots)}</pre>")
    return _section(report_parts.OPT_OUT_TITLE, "\n".join(parts))


async def _copies(report: SiteReport, reader: FrontierReader) -> AsyncIterator[str]:
    async for copy in report_parts.shown_copies(report, reader):
        yield f"<h3>{escape(copy.title)}</h3>\n"
        if copy.text:
            yield f"<pre>\n{escape(copy.text)}</pre>\n"
        if copy.note:
            yield f'<p class="soft">({escape(copy.note)})</p>\n'
    if note := report_parts.copies_left_out(report):
        yield f"<p>{escape(note)}</p>\n"


def _table_head(name: str, rows: int, max_rows: int) -> str:
    note = ""
    if rows > max_rows:
        note = (
            f"<p>These are the last {max_rows:,} of {counted(rows, 'request')}; "
            "<code>rove report --json</code> has all of them.</p>\n"
        )
    return f'<section>\n<h2>{name}</h2>\n{note}<table class="requests">\n{_COLUMNS}'


async def _visits(report: SiteReport, reader: FrontierReader, max_rows: int) -> AsyncIterator[str]:
    left = report.totals.requests
    async for visit in visits_in(reader, report):
        if left <= max_rows:
            yield _visit(visit)
        left -= len(visit.rows)


def _visit(visit: SiteVisit) -> str:
    """Return the rows of a visit under one heading."""
    rows = "".join(_row(row) for row in visit.rows)
    return (
        f'<tbody>\n<tr><th scope="rowgroup" colspan="6">Visit {visit.number} '
        f"<span>{_with_warning(report_parts.gap_text(visit))}</span></th></tr>\n{rows}</tbody>\n"
    )


def _row(row: RequestRow) -> str:
    notes = report_parts.request_notes(row)
    more = "".join(f'<br><span class="soft">{escape(note)}</span>' for note in notes)
    return (
        f'<tr><td class="time">{utc_text(row.started)}</td><td class="kind">{escape(row.kind.value)}</td>'
        f'<td class="outcome">{escape(one_line(outcome_text(row)))}</td><td class="number">{row.size:,}</td>'
        f'<td class="number">{escape(one_line(row.address))}</td>'
        f'<td class="url">{escape(one_line(row.url))}{more}</td></tr>\n'
    )
