"""The crawl that a reading command is about: that of a data directory, or one in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from rove.cli.options import POSTGRESQL, crawl_name_option, data_dir_option, option
from rove.cli.output import print_note
from rove.inspect.open_crawl import Archive, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlGiven:
    """The options that say which crawl to read."""

    data_dir: Path
    frontier: str | None
    crawl_name: str | None

    def opened(self) -> AbstractAsyncContextManager[Archive]:
        """Open the crawl for reading. What the user should know goes to standard error."""
        return opened(self.data_dir, frontier=self.frontier, crawl_name=self.crawl_name, on_news=_warn)


def crawl_to_read(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --data-dir, --frontier and --crawl-name; the command gets them as `crawl`."""

    @wraps(command)
    def run(*, data_dir: Path, frontier: str | None, crawl_name: str | None, **others: Any) -> Any:
        return command(crawl=CrawlGiven(data_dir=data_dir, frontier=frontier, crawl_name=crawl_name), **others)

    return _data_dir(_frontier(crawl_name_option(run)))


_data_dir = data_dir_option("The crawl to look at.")
_frontier = option(
    "--frontier",
    group=POSTGRESQL,
    metavar="POSTGRESQL_URL",
    help="Look at a crawl in this database, from any machine, without joining it.",
)


def _warn(sentence: str) -> None:
    print_note(f"rove: {sentence}")
