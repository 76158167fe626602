"""Lays the panel out for the width of the terminal: blocks side by side where they fit, elsewhere in one column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel as Frame
from rich.table import Table
from rich.text import Text

from rove.app.panel_view import View, errors_text
from rove.model.ledger import RequestKind
from rove.model.request_counts import KIND_NAMES
from rove.notation.humanize import seconds_text, size_text

TWO_BLOCKS = 74
"""From this width on, two blocks stand side by side."""
THREE_BLOCKS = 116
MANY_ERRORS = 12
FEW_ERRORS = 4

_Row = tuple[str, ...]


class Dashboard:
    """The panel of one moment."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        view = self._view
        now, domains = list(_now(view)), list(_domains(view))
        if view.is_whole_crawl:
            totals = _block(("", "so far"), [(name, of_crawl) for name, _, of_crawl in _totals(view)])
        else:
            totals = _block(("", "this run", "all runs"), list(_totals(view)))
        body: RenderableType
        if width >= THREE_BLOCKS:
            body = _side_by_side(totals, _block(("now", ""), now), _block(("domains", ""), domains))
        elif width >= TWO_BLOCKS:
            body = _side_by_side(totals, _block(("now", ""), [*now, ("domains", ""), *domains]))
        else:
            body = Group(totals, _block(("", ""), [*now, ("domains", ""), *domains]))
        title = f"rove, running for {seconds_text(view.seconds)}"
        below = _sentences(view, errors=FEW_ERRORS if width < THREE_BLOCKS else MANY_ERRORS)
        yield Frame(Group(below, body), title=title, title_align="left", expand=True)


def _totals(view: View) -> Iterator[tuple[str, str, str]]:
    run, crawl = view.counters, view.counts
    yield "pages stored", f"{run.pages:,}", f"{crawl.pages:,}"
    yield "received", size_text(run.bytes), size_text(crawl.bytes)
    ours, all_ = run.request_counts, crawl.request_counts
    for kind, name in KIND_NAMES.items():
        if all_.by_kind[kind] or kind is not RequestKind.SITEMAP:
            yield f"{name.removesuffix('.txt')} requests", f"{ours.by_kind[kind]:,}", f"{all_.by_kind[kind]:,}"
            yield "  failed", f"{ours.failed(kind):,}", f"{all_.failed(kind):,}"


def _now(view: View) -> Iterator[_Row]:
    yield "pages per second", f"{view.rate:.1f}"
    yield "  on average", f"{view.average:.1f}"
    yield "fetches in flight", view.in_flight
    yield "URLs to fetch", f"{view.counts.urls_pending:,}"


def _domains(view: View) -> Iterator[_Row]:
    domains = view.counts.domains
    yield "ready to visit", f"{domains['ready']:,}"
    yield "being visited", f"{domains['leased']:,}"
    yield "wait for their delay", f"{domains['waiting']:,}"
    yield "nothing to fetch", f"{domains['idle']:,}"
    if domains["excluded"]:
        yield "excluded", f"{domains['excluded']:,}"


def _sentences(view: View, *, errors: int) -> Table:
    """Return what needs more room than a number: the state, the speed, errors and limits."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1)
    for sentence in view.counters.troubles.values():
        table.add_row("attention", Text(sentence, style="bold"))
    table.add_row("state", Text(view.state, style="bold"))
    table.add_row("speed", "; ".join(filter(None, (view.speed, view.could_be_visited))))
    if view.limiting is not None:
        table.add_row("limited by", view.limiting.sentence)
    for kind, name in KIND_NAMES.items():
        of_kind = view.counters.request_counts.errors_by_kind[kind]
        if of_kind:
            table.add_row("errors", f"{name}: {errors_text(of_kind, errors)}")
    if view.counters.internal_errors:
        table.add_row("errors", f"internal: {view.counters.internal_errors:,}; see the log")
    table.add_row("left", view.left or "until all URLs are done")
    return table


def _block(header: Sequence[str], rows: Sequence[_Row]) -> Table:
    """Return a table of numbers. Its columns keep their width, so that no number is cut."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim")
    for column in range(1, len(header)):
        width = max(len(row[column]) for row in (header, *rows))
        table.add_column(justify="right", no_wrap=True, min_width=width)
    if any(header):
        table.add_row(*(Text(name, style="dim") for name in header))
    for row in rows:
        table.add_row(*row)
    return table


def _side_by_side(*blocks: Table) -> Table:
    table = Table.grid(padding=(0, 3), expand=True)
    for _ in blocks:
        table.add_column(no_wrap=True)
    table.add_row(*blocks)
    return table
