"""`rove diagnose`: a report about the processes of a running crawl."""

from __future__ import annotations

from pathlib import Path

import click

from rove.admin.diagnose import diagnose as ask
from rove.cli.options import Command, data_dir_option, option
from rove.cli.output import print_line, reading
from rove.cli.types import Number
from rove.datadir import DataDir
from rove.errors import RoveError

REPORT_SECONDS = 20.0


@click.command(cls=Command, short_help="Let the processes report what fills them.")
@data_dir_option("The running crawl, on this machine.", file_okay=False)
@option(
    "--timeout",
    "patience",
    type=Number(0, min_open=True),
    default=REPORT_SECONDS,
    metavar="SECONDS",
    help="How long to wait for the reports.",
)
@reading
async def diagnose(data_dir: Path, patience: float) -> None:
    """Let every process of a running crawl on this machine write a report, and say where it is.

    A report tells what fills the process, which files it has open, what its tasks wait for, and where all threads are.
    It is written beside the log file of the process. The crawl goes on.
    """
    reports = await ask(DataDir(data_dir), patience=patience)
    for report in reports.written:
        print_line(f"{report.file}: {report.process}: {report.summary}")
    if reports.late:
        raise RoveError(
            f"no report within {patience:g} s from process {', '.join(map(str, reports.late))}; "
            "it is busy, or its disk is full: see its log"
        )
