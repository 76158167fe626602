"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rove.backends import DEFAULT_CRAWL_NAME

DEFAULT_DATA_DIR = Path("rove-data")


F = TypeVar("F", bound=Callable[..., Any])


def data_dir_option(help: str, *, file_okay: bool = True) -> Callable[[F], F]:
    """--data-dir, with what it is for in this command."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=file_okay),
        default=DEFAULT_DATA_DIR,
        show_default=True,
        metavar="DIR",
        help=help,
    )


crawl_name_option = click.option(
    "--crawl-name",
    metavar="NAME",
    help=f"which crawl of that database; its schema has this name [default: {DEFAULT_CRAWL_NAME}]",
)
processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    help="crawling processes on this machine [default: one a core, on SQLite at most 3]",
)
log_level_option = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="what goes into the log files of the data directory",
)
