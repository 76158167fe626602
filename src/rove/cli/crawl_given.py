"""The crawl that a command reads or changes: that of a data directory, or one in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from rove.admin.maintenance import CrawlNamed
from rove.cli.options import POSTGRESQL, crawl_name_option, data_dir_option, option
from rove.cli.output import print_note
from rove.inspect.open_crawl import Archive, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlGiven:
    """The options that say which crawl to read."""

    data_dir: Path
    frontier: str | None
    crawl_name: str | None

    def opened(self, on_news: Callable[[str], None] | None = None) -> AbstractAsyncContextManager[Archive]:
        """Open the crawl for reading. `on_news` is told what the user should know; by default standard error is."""
        return opened(self.data_dir, frontier=self.frontier, crawl_name=self.crawl_name, on_news=on_news or _warn)


def _crawl_options(
    make: Callable[..., Any], *, data_dir_help: str, frontier_help: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare --data-dir, --frontier and --crawl-name; the command gets what `make` makes of them as `crawl`."""
    declare_data_dir = data_dir_option(data_dir_help)
    declare_frontier = option("--frontier", group=POSTGRESQL, metavar="POSTGRESQL_URL", help=frontier_help)

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*, data_dir: Path, frontier: str | None, crawl_name: str | None, **others: Any) -> Any:
            return command(crawl=make(data_dir=data_dir, frontier=frontier, crawl_name=crawl_name), **others)

        return declare_data_dir(declare_frontier(crawl_name_option(run)))

    return declare


crawl_to_read = _crawl_options(
    CrawlGiven,
    data_dir_help="The crawl to look at.",
    frontier_help="Look at a crawl in this database, from any machine, without joining it.",
)
crawl_to_change = _crawl_options(
    CrawlNamed,
    data_dir_help="The crawl, running or not.",
    frontier_help="A crawl in this database, from any machine, without joining it.",
)


def _warn(sentence: str) -> None:
    print_note(f"rove: {sentence}")
