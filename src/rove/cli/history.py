"""`rove history`: the figures of a crawl over time, running or not."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, json_option, moment, option
from rove.cli.output import print_json, print_line, print_lines, print_note, reading
from rove.cli.types import POSITIVE_DURATION
from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.inspect.table import table_lines
from rove.model.samples import Sample, together
from rove.notation.humanize import iso_time, utc_text
from rove.observe.columns import DEFAULT_COLUMNS, check_columns, columns_for
from rove.observe.figures import FIGURES, in_table_order, names_in
from rove.observe.grid import SHORTEST_STEP, grid_of

SHOWN_SECONDS = 6 * 3600.0
"""The time before the latest sample that is shown if no other is given."""
MOST_ROWS = 40
"""Rows of a table whose step was not given, about."""
ALL_COLUMNS = ("*",)
MOST_TABLE_ROWS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What part of the history is asked for."""

    since: float
    until: float
    step: float
    machine: str | None

    async def rows(self, reader: FrontierReader) -> AsyncIterator[Sample]:
        """Iterate over the samples, those of several machines added together."""
        slices = reader.samples(since=self.since, until=self.until, step=self.step, node=self.machine)
        async for samples in slices:
            yield together(samples)


@click.command(cls=Command, short_help="Show the figures of a crawl over time.")
@crawl_to_read
@option(
    "--since",
    type=moment,
    metavar="TIME",
    help="Only what was after that, such as 12h (ago), 2026-11-18 or 2026-11-18T01:39Z.",
    default_text="the last 6 hours; with --csv or --json all",
)
@option("--until", type=moment, metavar="TIME", help="Only what was before that.")
@option(
    "--step",
    type=POSITIVE_DURATION,
    metavar="TIME",
    help="Time that a row stands for.",
    default_text=f"such that a table has at most about {MOST_ROWS} rows; with --csv or --json 10s",
)
@option(
    "--columns",
    metavar="LIST",
    help="Figures to show, such as 'pages/s,errors.*,claim:p95'; --figures lists them.",
    default_text="the most important ones; with --csv or --json all",
)
@option(
    "--machine", metavar="NAME", help="Only this machine, given by a part of its name.", default_text="all, added up"
)
@option("--figures", is_flag=True, help="List all figures, with units and explanations, and do nothing else.")
@option("--csv", "as_csv", is_flag=True, help="Print CSV, with times that DuckDB and pandas recognise.")
@json_option
@reading
async def history(
    crawl: CrawlGiven,
    since: float | None,
    until: float | None,
    step: float | None,
    columns: str | None,
    machine: str | None,
    figures: bool,
    as_csv: bool,
    json: bool,
) -> None:
    """Show what a crawl did over time: a row for each interval, the latest last.

    NAME/s is a count per second, NAME:p95 a part of a histogram (count, mean, p50, p95, p99, max), and a star stands
    for anything. The beginning of several names, such as 'errors', is their sum.
    """
    if figures:
        print_lines(_figure_lines())
        return
    if as_csv and json:
        raise UsageError("--csv and --json exclude each other")
    texts = None if columns is None else [text.strip() for text in columns.split(",") if text.strip()]
    check_columns(texts or ())
    async with crawl.opened() as archive:
        reader = archive.reader
        latest = await reader.latest_samples()
        if not latest:
            print_note("rove: this crawl has no history yet; a running crawl adds to it every 10 s")
            return
        node = None if machine is None else _machine_named(machine, [sample.node for sample in latest])
        is_table = not (as_csv or json)
        end = min(until if until is not None else math.inf, max(sample.ended for sample in latest) / 1000)
        if since is None:
            since = end - SHOWN_SECONDS if is_table else -math.inf
        if step is None:
            step = grid_of(since, max(since, end), most=MOST_ROWS).step if is_table else SHORTEST_STEP
        asked = _Asked(since=since, until=end, step=step, machine=node)
        if json:
            await _print_json(reader, asked, texts)
        elif as_csv:
            await _print_csv(reader, asked, texts or ALL_COLUMNS)
        else:
            await _print_table(reader, asked, texts or DEFAULT_COLUMNS)


async def _print_table(reader: FrontierReader, asked: _Asked, texts: Sequence[str]) -> None:
    columns = columns_for(texts, await _names(reader, asked, texts))
    rows = []
    async for sample in asked.rows(reader):
        rows.append([utc_text(sample.ended / 1000), *(column.text(sample) for column in columns)])
        if len(rows) > MOST_TABLE_ROWS:
            raise UsageError(
                f"a table of more than {MOST_TABLE_ROWS:,} rows is too long; choose a longer --step, or --csv"
            )
    titles = [column.title for column in columns]
    if rows:
        print_lines(table_lines(["until", *titles], rows, right=titles))
    else:
        print_note("rove: there are no samples of this time")


async def _print_csv(reader: FrontierReader, asked: _Asked, texts: Sequence[str]) -> None:
    columns = columns_for(texts, await _names(reader, asked, texts))
    _print_csv_row(["ended", "seconds", "machine", *(column.title for column in columns)])
    async for sample in asked.rows(reader):
        values = (column.value(sample) for column in columns)
        _print_csv_row([iso_time(sample.ended / 1000), _number(sample.seconds), sample.node, *map(_number, values)])


def _print_csv_row(values: Sequence[object]) -> None:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    print_line(line.getvalue())


async def _print_json(reader: FrontierReader, asked: _Asked, texts: Sequence[str] | None) -> None:
    async for sample in asked.rows(reader):
        columns = columns_for(texts or ALL_COLUMNS, names_in([sample]))
        values = {column.title: _number(column.value(sample)) for column in columns}
        print_json(
            {
                "ended": iso_time(sample.ended / 1000),
                "seconds": _number(sample.seconds),
                "machine": sample.node or None,
                **values,
            }
        )


async def _names(reader: FrontierReader, asked: _Asked, texts: Sequence[str]) -> list[str]:
    """Return the names of all figures of the rows, if a column has a star. This reads the rows once more."""
    names: dict[str, None] = {}
    if any("*" in text for text in texts):
        async for sample in asked.rows(reader):
            names.update(dict.fromkeys((*sample.figures, *sample.histograms)))
    return in_table_order(names)


def _machine_named(text: str, nodes: Sequence[str]) -> str:
    """Return the machine whose name is or contains a text."""
    matching = [node for node in nodes if node == text] or [node for node in nodes if text in node]
    if len(matching) == 1:
        return matching[0]
    problem = "several machines have" if matching else "no machine has"
    raise UsageError(f"{problem} {text!r} in their name; the machines are: {', '.join(sorted(nodes))}")


def _figure_lines() -> Iterator[str]:
    rows = [[figure.pattern, figure.unit, figure.over_time, figure.help] for figure in FIGURES]
    return table_lines(["figure", "unit", "over time", "meaning"], rows)


def _number(value: float | None) -> float | None:
    """Return a number without digits that mean nothing."""
    if value is None:
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")
