"""Cut a real crawl off for three minutes and see what it does: `python -m benchmarks.outage`, six minutes per case.

The real `rove crawl` visits 200 sites on loopback with a delay of 5 s. Then all sites close their sockets, or the name
server dies, and they come back after three minutes. The crawl must go on, fetch again within a minute, break no delay
by the sites' own log, and count nothing against a domain. Nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
from tests.acceptance.fragile_web import FragileWeb, fragile_web, name_server, shortest_pause
from tests.acceptance.results import frontier_rows
from tests.postgres import server_url

CASES = ("web", "resolver", "postgresql")
NOTICED, BACK = "No site has answered", "Sites answer again"
SCHEMA = "outage"
AGAINST_DOMAINS = (
    "SELECT count(*) FROM domain WHERE failures > 0",
    "SELECT count(*) FROM url WHERE attempts > 0 OR state = 3",
    "SELECT count(*) FROM origin WHERE failures > 0",
)
NEVER = float("nan")
Query = Callable[[str], list[Any]]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The measurements of one crawl. Times are in seconds."""

    case: str
    noticed: float
    """From the loss to the message."""
    resumed: float
    """From the return to the next request that a site received."""
    recovered: float
    """From the return until half of the sites had been visited again."""
    probes: int
    """Visits in the ledger that were not counted, because no site responded."""
    before: int
    """Requests that the sites received before the loss."""
    after: int
    """Requests that the sites received after the return, within a minute."""
    pause: float
    """The shortest pause between two visits to a site, by the log of the sites."""
    against: list[int]
    """Domains, URLs and robots.txt files that count a failure."""
    still_running: bool
    messages: int
    """How often the crawl said that no site answers."""
    audit: bool

    def is_good(self, delay: float) -> bool:
        """Whether everything is as promised."""
        return (
            self.still_running
            and self.audit
            and self.messages == 1
            and self.resumed <= 60
            and self.pause >= delay
            and not any(self.against)
        )


def main() -> int:
    """Run every case and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES, help="only this case; repeatable")
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--delay", type=float, default=5.0)
    parser.add_argument("--outage", type=float, default=180.0, help="seconds (default: 180)")
    options = parser.parse_args()
    print(
        f"{'':12} {'noticed':>8} {'resumed':>8} {'half back':>10} {'probes':>7} {'before':>7} {'after':>6} "
        f"{'shortest pause':>15} {'counted':>9}  verdict"
    )
    good = True
    for case in options.only or CASES:
        with tempfile.TemporaryDirectory() as folder:
            result = run_case(case, Path(folder), options)
        is_good = result.is_good(options.delay)
        good = good and is_good
        print(
            f"{case:12} {result.noticed:>6.1f} s {result.resumed:>6.1f} s {result.recovered:>8.1f} s "
            f"{result.probes:>7,} {result.before:>7,} {result.after:>6,} {result.pause:>13.3f} s "
            f"{'/'.join(map(str, result.against)):>9}  {'good' if is_good else result}",
            flush=True,
        )
    return 0 if good else 1


def run_case(case: str, folder: Path, options: argparse.Namespace) -> Result:
    """Run one crawl through one outage."""
    data = folder / "data"
    with ExitStack() as stack:
        # A crawl that goes on for six minutes needs about this many pages of each site.
        web = stack.enter_context(fragile_web(options.sites, pages=int(400 / options.delay) + 20))
        lose, restore = web.go_away, web.come_up
        reach: list[object] = ["--connect-to", f"*=127.0.0.1:{web.port}"]
        rows: Query = lambda sql: frontier_rows(data, sql)  # noqa: E731 - it is replaced below
        if case == "resolver":
            names = stack.enter_context(name_server())
            lose, restore = names.die, names.come_up
            reach = ["--dns-server", names.address]
        elif case == "postgresql":
            url = stack.enter_context(server_url())
            reach += ["--frontier", url, "--crawl-name", SCHEMA, "--processes", 2]
            rows = _rows_of(url)
        seeds = web.write_seeds(folder / "seeds.txt")
        crawl = [
            *("crawl", seeds, "--email", "bench@crawler.test", "--data-dir", data, "--delay", options.delay),
            *("--allow-short-delay", "--allow-private-addresses", "--min-free-disk", 0, *reach),
        ]
        with _running(crawl, folder / "output.txt") as process:
            return _measure(case, process, folder / "output.txt", data, web, lose, restore, rows, options)


def _measure(
    case: str,
    process: subprocess.Popen[bytes],
    output: Path,
    data: Path,
    web: FragileWeb,
    lose: Callable[[], None],
    restore: Callable[[], None],
    rows: Query,
    options: argparse.Namespace,
) -> Result:
    def said(sentence: str) -> int:
        return output.read_text().count(sentence)

    # Each visit is a robots.txt and a page: three visits to each site.
    _until(lambda: len(web.requests) >= 6 * options.sites, 600)
    before = len(web.requests)
    lost = time.monotonic()
    lose()
    noticed = _until(lambda: said(NOTICED), options.outage)
    time.sleep(max(0.0, lost + options.outage - time.monotonic()))
    still_running = process.poll() is None
    during = len(web.requests)
    restored = time.monotonic()
    restore()
    resumed = _until(lambda: len(web.requests) > during, 120)
    recovered = _until(lambda: _sites(web.requests[during:]) >= options.sites / 2, 120)
    time.sleep(max(0.0, restored + 60 - time.monotonic()))
    after = len(web.requests) - during
    still_running = still_running and process.poll() is None and bool(said(BACK))
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    audit = subprocess.run(
        [sys.executable, "-m", "rove", "audit", "--json", "--data-dir", str(data)], capture_output=True, text=True
    )
    ((probes,),) = rows("SELECT count(DISTINCT visit) FROM request WHERE settlement = 'offline'")
    return Result(
        case=case,
        noticed=noticed - lost,
        resumed=resumed - restored,
        recovered=recovered - restored,
        probes=probes,
        before=before,
        after=after,
        pause=shortest_pause(web.requests),
        against=[rows(query)[0][0] for query in AGAINST_DOMAINS],
        still_running=still_running,
        messages=said(NOTICED),
        audit=audit.returncode == 0 and json.loads(audit.stdout)["polite"],
    )


def _sites(requests: Sequence[Any]) -> int:
    return len({request.host.partition(".")[2] for request in requests})


def _until(holds: Callable[[], object], seconds: float) -> float:
    """Wait until a condition holds, and return when it did; NaN if it did not within these seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return NEVER
        time.sleep(0.05)
    return time.monotonic()


@contextmanager
def _running(arguments: Sequence[object], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("w") as file:
        command = [sys.executable, "-m", "rove", *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def _rows_of(url: str) -> Query:
    """Return a function that queries the crawl's schema."""

    async def fetch(sql: str) -> list[Any]:
        connection = await asyncpg.connect(url, server_settings={"search_path": f'"{SCHEMA}"'})
        try:
            found: list[Any] = await connection.fetch(sql)
            return found
        finally:
            await connection.close()

    return lambda sql: asyncio.run(fetch(sql))


if __name__ == "__main__":
    sys.exit(main())
