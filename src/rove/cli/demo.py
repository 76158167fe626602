"""`rove demo`: crawl a small web that is served on this machine."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from rove.app.preparation import CrawlOptions
from rove.cli.options import Command, option, whole_number
from rove.cli.output import flush, print_line, printing
from rove.cli.run import run_crawl
from rove.cli.types import Number
from rove.datadir import DataDir
from rove.demo.web import SmallWeb
from rove.errors import RoveError, UsageError
from rove.notation.humanize import counted

HOSTS = 300
SEED = 1
SECONDS = 30.0
DELAY = 1.0
EMAIL = "demo@crawler.test"
KEPT = "rove-demo"
"""Where --keep keeps the crawl, if no directory is given."""


@click.command(cls=Command, short_help="Crawl a small web on this machine.")
@option("--hosts", **whole_number(1), default=HOSTS, help="Number of sites in the small web.")
@option("--seconds", type=Number(1), default=SECONDS, metavar="N", help="How long to crawl.")
@option(
    "--keep",
    is_flag=False,
    flag_value=KEPT,
    type=click.Path(path_type=Path),
    metavar="[DIR]",
    default_text="nothing is kept",
    help=f"Keep the crawl in DIR, or in '{KEPT}', to look at it afterwards.",
)
def demo(hosts: int, seconds: float, keep: Path | None) -> int:
    """Crawl some hundred small sites, served on this machine, for half a minute."""
    if keep is not None and DataDir(keep).holds_crawl:
        raise UsageError(f"{keep} holds a crawl already; delete it, or keep this one elsewhere: --keep DIR")
    with printing():
        print_line(introduction(hosts))
    with tempfile.TemporaryDirectory(prefix="rove-demo-") as folder:
        data = keep or Path(folder) / "data"
        with demo_crawl(data, hosts=hosts, seconds=seconds) as options:
            code = run_crawl(options, can_resume=False)
        if code == 0:
            with printing():
                _show_results(data)
                _advise(keep)
    return code


def introduction(hosts: int) -> str:
    """Return the line that the demo starts with."""
    return f"A small web of {counted(hosts, 'site')} on loopback; rove visits each at most every {DELAY:g} s."


@contextmanager
def demo_crawl(data: Path, *, hosts: int, seconds: float, delay: float = DELAY) -> Iterator[CrawlOptions]:
    """Serve the small web, and yield the options of a crawl of it."""
    with tempfile.TemporaryDirectory(prefix="rove-demo-") as folder, _served(hosts) as address:
        seeds = Path(folder) / "seeds.txt"
        seeds.write_text(SmallWeb(seed=SEED, hosts=hosts).seed_file())
        yield CrawlOptions(
            data_dir=data,
            seeds=str(seeds),
            settings={
                "email": EMAIL,
                "delay": delay,
                "allow_short_delay": True,
                "connect_to": (f"*.test={address}",),
                "allow_private_addresses": True,
            },
            limits={"max_duration": seconds},
        )


@contextmanager
def _served(hosts: int) -> Iterator[str]:
    """Serve the small web in a process of its own, and yield its address."""
    command = [sys.executable, "-P", "-m", "rove.demo.server", "--port", "0", "--hosts", str(hosts)]
    command += ["--seed", str(SEED), "--profile", "full", "--stop-at-eof"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as server:
        assert server.stdout is not None, "its output is piped"
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise RoveError("the small web did not start")
        try:
            yield line.removeprefix("listening on ").strip()
        finally:
            server.terminate()


def _show_results(data: Path) -> None:
    _heading("What was collected:")
    _rove("status", "--data-dir", str(data))
    _heading("The newest pages:")
    _rove("pages", "--status", "200", "--limit", "5", "--data-dir", str(data))
    _heading("Was the crawl polite? The audit checks every request:")
    _rove("audit", "--data-dir", str(data))


def _advise(keep: Path | None) -> None:
    """Print commands that can be pasted."""
    if keep is None:
        _heading("Nothing was kept. To look further, keep the crawl:")
        print_line(f"  {shlex.join([*_program(), 'demo', '--keep'])}")
        return
    where = ["--data-dir", str(keep)]
    listed = _rove("pages", "--json", "--status", "200", "--limit", "1", *where, stdout=subprocess.PIPE)
    commands = [["pages", "--limit", "50"], ["export"]]
    if listed:
        url = msgspec.json.decode(listed.splitlines()[0])["url"]
        commands += [["show", url], ["explain", url], ["report", url]]
    _heading("Look further (the small web has stopped, the pages are still there):")
    for words in commands:
        print_line(f"  {shlex.join([*_program(), *words, *where])}")


def _heading(text: str) -> None:
    print_line()
    print_line(text)
    flush()


def _program() -> list[str]:
    """Return the words with which the user started rove."""
    me = Path(sys.argv[0])
    if me.name != "rove":
        return [sys.executable, "-m", "rove"]
    found = shutil.which("rove")
    return ["rove"] if found is not None and Path(found).samefile(me) else [str(me)]


def _rove(*words: str, stdout: int | None = None) -> bytes:
    command = [sys.executable, "-P", "-m", "rove", *words]
    return subprocess.run(command, check=False, stdout=stdout).stdout or b""
