"""`rove demo`: the small web and a crawl of it, with nothing prepared and nothing sent outside this machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from rove.app.preparation import CrawlOptions
from rove.cli.crawl import run_crawl
from rove.demo.web import SmallWeb
from rove.errors import RoveError

HOSTS = 300
SEED = 1
SECONDS = 30.0
DELAY = 1.0
EMAIL = "demo@example.org"


@click.command(short_help="crawl a small web on this machine")
@click.option(
    "--hosts",
    type=click.IntRange(min=1),
    default=HOSTS,
    show_default=True,
    metavar="N",
    help="sites that the small web has",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=SECONDS,
    show_default=True,
    metavar="N",
    help="how long to crawl it",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="where to keep what is collected [default: a new directory for temporary files]",
)
def demo(hosts: int, seconds: float, data_dir: Path | None) -> int:
    """Crawl some hundred small sites, served on this machine, for half a minute."""
    place = data_dir or Path(tempfile.mkdtemp(prefix="rove-demo-")) / "data"
    place.parent.mkdir(parents=True, exist_ok=True)
    seeds = place.parent / f"{place.name}-seeds.txt"
    web = SmallWeb(seed=SEED, hosts=hosts)
    seeds.write_text("".join(f"http://{name}/\n" for name in web.seeds()))
    print(f"A small web of {hosts} sites on loopback; rove visits each at most every {DELAY:g} s.")
    with small_web(hosts) as address:
        code = run_crawl(
            CrawlOptions(
                data_dir=place,
                seeds=str(seeds),
                settings={
                    "email": EMAIL,
                    "delay": DELAY,
                    "allow_short_delay": True,
                    "connect_to": (f"*.test={address}",),
                    "allow_private_addresses": True,
                },
                max_duration=seconds,
            )
        )
    if code == 0:
        _show_what_was_collected(place)
    return code


@contextmanager
def small_web(hosts: int) -> Iterator[str]:
    """The small web in a process of its own; yields where it listens."""
    command = [sys.executable, "-P", "-m", "rove.demo.server", "--port", "0", "--hosts", str(hosts)]
    command += ["--seed", str(SEED), "--profile", "full", "--stop-at-eof"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None, "its output is piped"
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise RoveError("the small web did not start")
        try:
            yield line.removeprefix("listening on ").strip()
        finally:
            server.terminate()


def _show_what_was_collected(place: Path) -> None:
    print("\nWhat was collected:", flush=True)
    _rove("status", "--data-dir", str(place))
    print("\nThe newest pages:", flush=True)
    _rove("pages", "--status", "200", "--limit", "5", "--data-dir", str(place))
    print("\nWhether it was polite, by the ledger of all requests:", flush=True)
    _rove("audit", "--data-dir", str(place))
    print("\nLook further (the small web has ended, what was collected stays):")
    for words in ("pages --limit 50", "show URL", "explain URL", "report DOMAIN", "export"):
        print(f"  {sys.argv[0]} {words} --data-dir {place}")


def _rove(*words: str) -> None:
    subprocess.run([sys.executable, "-P", "-m", "rove", *words], check=True)
