"""`rove audit`: the proof that a crawl was polite, or where it was not."""

from __future__ import annotations

from pathlib import Path

import click

from rove.cli.options import data_dir_option
from rove.cli.output import print_json, run_reading
from rove.inspect.audit import audit as audit_ledger
from rove.inspect.audit_text import as_json, as_lines
from rove.inspect.open_crawl import opened


@click.command(short_help="prove that a crawl was polite")
@data_dir_option("the crawl to look at")
@click.option("--json", "json", is_flag=True, help="print JSON")
def audit(data_dir: Path, json: bool) -> None:
    """Hold every request that was ever made against the rules: delays, robots.txt, exclusions, nothing twice.

    Ends with code 1 if a rule was broken anywhere.
    """

    async def work() -> int:
        async with opened(data_dir) as archive:
            exclusions = await archive.catalog.exclusion_history()
            report = await audit_ledger(archive.reader, exclusions)
        if json:
            print_json(as_json(report))
        else:
            for line in as_lines(report):
                print(line)
        return report.total

    if run_reading(work()):
        raise click.exceptions.Exit(1)
