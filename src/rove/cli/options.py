"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rove.config import DEFAULT_MAX_MEMORY, DEFAULT_MIN_FREE_DISK, parse_size
from rove.frontier.backends import DEFAULT_CRAWL_NAME
from rove.humanize import size_text

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
MOST_PROCESSES = 256
processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1, max=MOST_PROCESSES),
    metavar="N",
    help="crawling processes on this machine [default: one a core, on SQLite at most 3]",
)
max_memory_option = click.option(
    "--max-memory",
    metavar="SIZE",
    help="memory of each crawling process, as 512MiB or 2GiB; at it, fetches wait "
    f"[default: {size_text(DEFAULT_MAX_MEMORY)}]",
)
min_free_disk_option = click.option(
    "--min-free-disk",
    metavar="SIZE",
    help="with less free on the disk of the data directory the crawl pauses; 0: never "
    f"[default: {size_text(DEFAULT_MIN_FREE_DISK)}]",
)
log_level_option = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="what goes into the log files of the data directory",
)


def sizes_given(**given: str | None) -> dict[str, int]:
    """The sizes among options of a command that were given, in bytes."""
    return {name: parse_size(text) for name, text in given.items() if text is not None}
