"""A report on a site as one HTML file that needs nothing else: to be sent to whoever asks, and to be printed.

What comes from the web (URLs, targets of redirects, robots.txt) is hostile: it is escaped, never a link, and the page
forbids itself to load or run anything.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.humanize import counted
from rove.inspect.report import SiteVisit, WebmasterReport, elsewhere_in, visits_in
from rove.inspect.report_text import (
    ELSEWHERE,
    copies_left_out,
    copy_title,
    due_text,
    gap_text,
    in_short,
    opt_out,
    request_notes,
    robots_shown,
    who_asks,
)
from rove.inspect.requests import one_line, outcome_text, utc_text
from rove.inspect.timeline import as_svg
from rove.model.ledger import RequestRow

MOST_ROWS = 10_000
"""Requests that are listed, the newest: a browser can show so many."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5c636b; --line: #d5d9de; --paper: #fff;
  --shade: #f3f5f7; --mark: #2f6fb3; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e9; --soft: #9aa3ad; --line: #3a4048; --paper: #16181b; --shade: #20242a;
    --mark: #6ea8e0; --bad: #f2867e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 46rem; }
.soft { color: var(--soft); }
.bad { color: var(--bad); font-weight: 600; }
code, pre, .url, .number { font-family: ui-monospace, monospace; font-size: .86em; }
pre { margin: .4rem 0; padding: .6rem .8rem; background: var(--shade); border-radius: 4px; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 30rem; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2rem .6rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
.facts th { width: 9rem; font-weight: 600; white-space: nowrap; }
.facts td, .url { overflow-wrap: anywhere; }
.facts th, .facts td { border-bottom: 0; }
.requests thead th { font-weight: 600; color: var(--soft); }
.requests tbody th { padding-top: .8rem; font-weight: 600; border-bottom: 1px solid var(--line); }
.requests tbody th span { font-weight: 400; }
.number { text-align: right; white-space: nowrap; }
.time, .kind, .outcome { white-space: nowrap; }
.url { min-width: 14rem; }
svg { display: block; width: 100%; height: auto; margin: .75rem 0; }
svg rect { fill: var(--mark); }
svg .axis { stroke: var(--line); }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --shade: #fff; --mark: #333;
    --bad: #000; }
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  pre { border: 1px solid var(--line); max-height: none; }
  h2, h3 { break-after: avoid; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
}
"""
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""
_COLUMNS = (
    '<thead><tr><th scope="col">Time</th><th scope="col">Kind</th><th scope="col">Answer</th>'
    '<th scope="col" class="number">Bytes</th><th scope="col">Address asked</th>'
    '<th scope="col">URL</th></tr></thead>\n'
)


async def write_html(report: WebmasterReport, reader: FrontierReader, path: Path) -> None:
    """Write the file, whole or not at all."""
    with _replaced(_target(path)) as file:
        async for part in html_parts(report, reader):
            file.write(part)


def _target(path: Path) -> Path:
    """The file that is meant: where a link leads, which stays; not a device, nor anything else that is no file."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise UsageError(f"cannot write {path}: it is no ordinary file")
    return target


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """A new file that takes the place of the old one when it is complete."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        try:
            with new.open("x", encoding="utf-8", errors="backslashreplace") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


async def html_parts(report: WebmasterReport, reader: FrontierReader) -> AsyncIterator[str]:
    """The file, piece by piece, as it is read."""
    title = f"Requests of rove to {report.site.name}"
    yield _HEAD.format(title=escape(title), style=_STYLE)
    yield f'<header>\n<h1>{escape(title)}</h1>\n<p class="soft">As of {utc_text(report.made)}. '
    yield "All times are UTC.</p>\n</header>\n<main>\n"
    yield _facts("Who asks", _linked(report))
    yield _facts("In short", [(name, _marked(value)) for name, value in in_short(report)])
    if report.totals.spans is not None:
        yield _section("Visits over time", as_svg(report.totals.spans))
    yield _opt_out(report)
    async for part in _copies(report, reader):
        yield part
    async for part in _visits(report, reader):
        yield part
    async for part in _elsewhere(report, reader):
        yield part
    yield "</main>\n</body>\n</html>\n"


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>\n"


def _facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Names, and values that are HTML already."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{value}</td></tr>\n' for name, value in facts
    )
    return _section(title, f'<table class="facts">\n<tbody>\n{rows}</tbody>\n</table>')


def _linked(report: WebmasterReport) -> Iterator[tuple[str, str]]:
    """Who asks, with links to what the person who runs the crawl has given."""
    settings = report.settings
    targets = {"contact": f"mailto:{quote(settings.email, safe='@')}", "about": settings.info_url}
    for name, value in who_asks(report):
        target = targets.get(name)
        text = escape(value)
        yield name, text if target is None else f'<a href="{escape(target)}">{text}</a>'


def _marked(text: str) -> str:
    """A sentence, in which it stands out that a delay was not kept."""
    return escape(text).replace("NOT KEPT", '<strong class="bad">not kept</strong>')


def _opt_out(report: WebmasterReport) -> str:
    parts = []
    for text, robots in opt_out(report):
        parts.append(f"<p>{escape(text)}</p>")
        if robots:
            parts.append(f"<pre>{escape(robots)}</pre>")
    return _section("How to opt out", "\n".join(parts))


async def _copies(report: WebmasterReport, reader: FrontierReader) -> AsyncIterator[str]:
    """Each robots.txt that was read; the same text once."""
    if not report.totals.copies:
        return
    yield "<section>\n<h2>robots.txt, as it was read</h2>\n"
    shown: dict[int, str] = {}
    for copy in report.totals.copies:
        yield f"<h3>{escape(copy_title(copy))}</h3>\n"
        if copy.hash in shown:
            yield f'<p class="soft">The same text as that of {escape(shown[copy.hash])}.</p>\n'
            continue
        shown[copy.hash] = copy.url
        text, note = await robots_shown(copy, reader)
        if text:
            yield f"<pre>\n{escape(text)}</pre>\n"
        if note:
            yield f'<p class="soft">({escape(note)})</p>\n'
    if report.totals.copies_left_out:
        yield f"<p>{escape(copies_left_out(report))}</p>\n"
    yield "</section>\n"


async def _visits(report: WebmasterReport, reader: FrontierReader) -> AsyncIterator[str]:
    """The newest visits with their requests."""
    rows = report.totals.rows
    if not rows:
        return
    yield "<section>\n<h2>Requests, by visit</h2>\n"
    if rows > MOST_ROWS:
        yield f"<p>{_left_out(rows)}</p>\n"
    yield f'<table class="requests">\n{_COLUMNS}'
    left = rows
    async for visit in visits_in(reader, report):
        if left <= MOST_ROWS:
            yield _visit(visit)
        left -= len(visit.rows)
    yield "</table>\n</section>\n"


async def _elsewhere(report: WebmasterReport, reader: FrontierReader) -> AsyncIterator[str]:
    """The newest requests of visits to other sites."""
    left = report.totals.elsewhere
    if not left:
        return
    yield f"<section>\n<h2>Requests on behalf of other sites</h2>\n<p>{escape(ELSEWHERE)}</p>\n"
    if left > MOST_ROWS:
        yield f"<p>{_left_out(left)}</p>\n"
    yield f'<table class="requests">\n{_COLUMNS}<tbody>\n'
    async for row in elsewhere_in(reader, report):
        if left <= MOST_ROWS:
            yield _row(row, is_here=True)
        left -= 1
    yield "</tbody>\n</table>\n</section>\n"


def _left_out(rows: int) -> str:
    return (
        f"These are the last {MOST_ROWS:,} of {counted(rows, 'request')}; "
        "<code>rove report --json</code> has all of them."
    )


def _visit(visit: SiteVisit) -> str:
    """A visit as a group of rows under one heading."""
    how = (
        "the first"
        if visit.gap is None
        else f"{escape(gap_text(visit.gap))} ({_marked(due_text(visit))})"
    )
    rows = "".join(_row(row, is_here=row.other_domain is None) for row in visit.rows)
    return (
        f'<tbody>\n<tr><th scope="rowgroup" colspan="6">Visit {visit.number} <span>{how}</span>'
        f"</th></tr>\n{rows}</tbody>\n"
    )


def _row(row: RequestRow, *, is_here: bool) -> str:
    notes = request_notes(row)
    if not is_here:
        notes.append("another site was asked")
    more = "".join(f'<br><span class="soft">{escape(note)}</span>' for note in notes)
    time = utc_text(row.started).removesuffix(" UTC")
    return (
        f'<tr><td class="time">{time}</td><td class="kind">{escape(row.kind.value)}</td>'
        f'<td class="outcome">{escape(one_line(outcome_text(row)))}</td><td class="number">{row.size:,}</td>'
        f'<td class="number">{escape(one_line(row.address))}</td>'
        f'<td class="url">{escape(one_line(row.url))}{more}</td></tr>\n'
    )
