"""The command line: from words to an order, and from exceptions to one sentence and an exit code."""

from __future__ import annotations

import click

from rove import __version__
from rove.cli.audit import audit
from rove.cli.complaints import explain, report
from rove.cli.crawl import crawl
from rove.cli.demo import demo
from rove.cli.exclusion import exclude, include, purge
from rove.cli.inspect import export, pages, show, status
from rove.cli.machines import join, move, nodes


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rove")
def rove() -> None:
    """A polite, fast, crash-proof broad web crawler."""


_COMMANDS = (
    *(crawl, status, pages, show, export),
    *(explain, audit, report, exclude, include, purge),
    *(join, nodes, move, demo),
)
for command in _COMMANDS:
    rove.add_command(command)
