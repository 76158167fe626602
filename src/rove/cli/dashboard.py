"""`rove dashboard`: look at a crawl in a browser."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import click
import uvloop

from rove.admin.maintenance import CrawlNamed
from rove.app.dashboard_process import OF_CRAWL
from rove.app.log_file import start_logging
from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import DEFAULT_LISTEN, Command, option
from rove.cli.output import flush, print_json, print_line, print_note, printing
from rove.cli.types import Parsed
from rove.datadir import DataDir
from rove.frontier.dsn import redacted
from rove.inspect.open_crawl import opened
from rove.notation.harmless import one_line
from rove.observe.dashboard.access import Access, new_token
from rove.observe.dashboard.links import links, own_names
from rove.observe.dashboard.server import serve, stop_at_signals
from rove.observe.listening import ListenAddress, parse_listen

NICENESS = 10
"""The crawl comes first, if both want the CPU."""


@click.command(cls=Command, short_help="Look at a crawl in a browser.")
@crawl_to_read
@option(
    "--listen",
    type=Parsed("address", parse_listen),
    default=DEFAULT_LISTEN,
    metavar="[ADDRESS:]PORT",
    help="Where the browser finds it. Another machine needs the token to read, too.",
)
@option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name of this machine under which a browser may reach the page; repeatable.",
)
@click.option(OF_CRAWL, "of_crawl", is_flag=True, hidden=True, help="A crawl has started it, and ends it.")
def dashboard(crawl: CrawlGiven, listen: ListenAddress, names: tuple[str, ...], of_crawl: bool) -> None:
    """Show a crawl that is running, paused or finished as a page in the browser, until Ctrl-C.

    Reading needs no token on this machine. Actions (exclude, include, retry, pause, stop) need the token that is
    printed.
    """
    named = CrawlNamed(data_dir=crawl.data_dir, frontier=crawl.frontier, crawl_name=crawl.crawl_name)
    if of_crawl:
        os.nice(NICENESS)
        start_logging(DataDir(crawl.data_dir).log_of("dashboard"), "info")
    else:
        logging.getLogger("rove").addHandler(_ErrorNotes(logging.ERROR))
    with printing():
        uvloop.run(_serve(named, listen, names, of_crawl=of_crawl))


async def _serve(crawl: CrawlNamed, listen: ListenAddress, names: tuple[str, ...], *, of_crawl: bool) -> None:
    async with opened(crawl.data_dir, frontier=crawl.frontier, crawl_name=crawl.crawl_name):
        pass  # a crawl that cannot be read is an error now, and not a page that stays empty
    with listen.listening() as listener:
        address = ListenAddress(*listener.getsockname()[:2])
        token, until = new_token(), asyncio.Event()
        known_as = own_names(address, names)
        shown = links(address, token, known_as)
        stop_at_signals(until)
        if of_crawl:
            print_json(shown)
            _stop_when_closed(sys.stdin.fileno(), until)
        else:
            print_line(f"dashboard of {_name(crawl)}: {shown.page}")
            print_line(f"with the token, to exclude, retry, pause or stop: {shown.with_token}")
            print_line("Ctrl-C ends it; the crawl goes on")
        flush()
        access = Access(address, token=token, names=known_as)
        await serve(crawl, listener, access, name=_name(crawl), until=until)


class _ErrorNotes(logging.Handler):
    """Shows errors on the terminal, with their tracebacks: without a crawl there is no log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one error."""
        for line in self.format(record).splitlines():
            print_note(line)


def _stop_when_closed(stdin: int, until: asyncio.Event) -> None:
    """Set the event when the crawl closes standard input, or when it is gone."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(stdin)
        until.set()

    loop.add_reader(stdin, stop)


def _name(crawl: CrawlNamed) -> str:
    return one_line(str(crawl.data_dir) if crawl.frontier is None else redacted(crawl.frontier))
