"""The crawl that a command changes: that of a data directory, or one in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from rove.admin.maintenance import CrawlNamed
from rove.cli.options import POSTGRESQL, crawl_name_option, data_dir_option, option

_data_dir = data_dir_option("The crawl, running or not.")
_frontier = option(
    "--frontier",
    group=POSTGRESQL,
    metavar="POSTGRESQL_URL",
    help="A crawl in this database, from any machine, without joining it.",
)


def crawl_to_change(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --data-dir, --frontier and --crawl-name; the command gets them as `crawl`."""

    @wraps(command)
    def run(*, data_dir: Path, frontier: str | None, crawl_name: str | None, **others: Any) -> Any:
        return command(crawl=CrawlNamed(data_dir=data_dir, frontier=frontier, crawl_name=crawl_name), **others)

    return _data_dir(_frontier(crawl_name_option(run)))
