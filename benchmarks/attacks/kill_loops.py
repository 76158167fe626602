"""Kill crawls again and again at random times, and count the URLs that are given up for it. There must be none.

    .venv/bin/python -m benchmarks.attacks.kill_loops                 # 50 rounds of six crawls, about 20 minutes
    .venv/bin/python -m benchmarks.attacks.kill_loops --rounds 5 --web mixed --database sqlite

Each round starts the crawl, waits for a random time, and kills everything, one worker, or only the parent, with
SIGKILL. After the rounds one more start goes on to the end. With --poison, one page kills the process that parses it.
Delays are measured from the log of the web.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from tests.acceptance.deadly import DEADLY_PAGES, DEADLY_TEXT
from tests.acceptance.interruption import environment_with
from tests.acceptance.site import Reply, Site, site
from tests.postgres import own_server

EMAIL = "benchmark@crawler.test"
HOSTS = 60
DELAY = 1.0
SLOW_SECONDS = 1.0
SLOW_PAGES, FAST_PAGES = 4, 25
"""Pages of a host. A slow host is visited less often: rove waits ten times as long as its response took."""
WEBS = ("slow", "fast", "mixed")
LONGEST_ROUND = 4.0
"""Seconds after which a round is killed at the latest. A start takes about one."""
POISON = "http://host0.test/poison"


@dataclass(kw_only=True)
class Result:
    """What one crawl went through."""

    database: str
    web: str
    kills: Counter[str] = field(default_factory=Counter)
    suspects: int = 0
    failed: int = 0
    missing: int = 0
    shortest_gap: float = 0.0
    is_polite: bool = False
    poison_requests: int = 0

    def row(self) -> str:
        """Return a row of the table."""
        kills = ", ".join(f"{count} x {what}" for what, count in sorted(self.kills.items()))
        audit = "clean" if self.is_polite else "BROKEN"
        return (
            f"| {self.database} | {self.web} | {kills} | {self.suspects} | {self.failed} | {self.missing} "
            f"| {self.shortest_gap:.3f} s | {audit} | {self.poison_requests} |"
        )


def main() -> None:
    """Run the crawls and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--web", choices=WEBS, action="append", help="default: all")
    parser.add_argument("--database", choices=("sqlite", "postgres"), action="append", help="default: both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--poison", action="store_true", help="one page kills the process that parses it")
    given = parser.parse_args()
    print("| database | web | kills | suspects | failed | missing | shortest gap | audit | requests for the poison |")
    print("|---|---|---|--:|--:|--:|--:|---|--:|", flush=True)
    results = []
    for database in given.database or ("sqlite", "postgres"):
        for web in given.web or WEBS:
            results.append(kill_loop(database, web, rounds=given.rounds, seed=given.seed, with_poison=given.poison))
            print(results[-1].row(), flush=True)
    wrong = [result for result in results if result.failed != given.poison or result.missing or not result.is_polite]
    sys.exit(bool(wrong))


def kill_loop(database: str, kind: str, *, rounds: int, seed: int, with_poison: bool) -> Result:
    """Crawl through this many rounds of kills and then to the end."""
    chance = random.Random(f"{database} {kind} {seed}")
    result = Result(database=database, web=kind)
    with tempfile.TemporaryDirectory(prefix="rove-kills-") as name, site(_answers(kind, with_poison)) as web:
        folder = Path(name)
        environment = environment_with(folder / "code", DEADLY_PAGES)
        data = folder / "data"
        seeds = folder / "seeds.txt"
        seeds.write_text("".join(f"http://host{number}.test/\n" for number in range(HOSTS)))
        with _frontier(database) as frontier:
            first = ["crawl", seeds, "--email", EMAIL, "--data-dir", data, "--delay", DELAY, "--allow-short-delay"]
            first += ["--processes", 2, "--concurrency", 2 * HOSTS, *web.reach, *frontier]
            again = ["crawl", "--resume", "--data-dir", data]
            for _ in range(rounds):
                is_resumed = _holds_crawl(data)
                _round(again if is_resumed else first, folder, environment, chance, result)
            end = _run(*(again if _holds_crawl(data) else first), environment=environment)
            assert end.returncode == 0, end.stderr
            _judge(result, data, web, kind)
    return result


def _round(
    command: list[object], folder: Path, environment: dict[str, str], chance: random.Random, result: Result
) -> None:
    """Start the crawl and kill it, or a part of it first."""
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rove", *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=environment,
        )
    what = chance.choices(("everything", "one worker", "the parent"), (6, 2, 2))[0]
    with suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(0.2, LONGEST_ROUND))
    if process.poll() is None:
        result.kills[what] += 1
    if what == "one worker":
        with suppress(psutil.Error, IndexError):
            chance.choice(psutil.Process(process.pid).children()).kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.2, LONGEST_ROUND))
    elif what == "the parent":
        process.kill()
        time.sleep(chance.uniform(0.0, 1.0))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _judge(result: Result, data: Path, web: Site, kind: str) -> None:
    """Count what became of the crawl."""
    status = json.loads(_run("status", "--json", "--data-dir", data).stdout)
    result.failed = status["urls"]["failed"]
    result.is_polite = _run("audit", "--data-dir", data).returncode == 0
    exported = _run("export", "--data-dir", data).stdout.splitlines()
    pages = {json.loads(line)["url"] for line in exported}
    expected = {f"http://host{host}.test/{page or ''}" for host in range(HOSTS) for page in range(_pages(kind, host))}
    result.missing = len(expected - pages)
    result.suspects = len(re.findall(r": suspect url=", (data / "rove.log").read_text()))
    result.poison_requests = len([request for request in web.requests if request.url == POISON])
    visits = sorted((r for r in web.requests if r.path != "/robots.txt"), key=lambda r: (r.host, r.at))
    result.shortest_gap = min(
        later.at - earlier.ended for earlier, later in itertools.pairwise(visits) if earlier.host == later.host
    )


def _is_slow(kind: str, host: int) -> bool:
    return kind == "slow" or (kind == "mixed" and host % 2 == 0)


def _pages(kind: str, host: int) -> int:
    return SLOW_PAGES if _is_slow(kind, host) else FAST_PAGES


def _answers(kind: str, with_poison: bool) -> Callable[[str, str], Reply]:
    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        if f"http://{host}{path}" == POISON:
            return Reply(DEADLY_TEXT)
        number = int(host.removeprefix("host").partition(".")[0])
        links = [f"/{page or ''}" for page in range(_pages(kind, number))]
        if with_poison and number == 0:
            links.append("/poison")
        body = f"{host}{path} " + "".join(f'<a href="{link}">{link}</a>' for link in links)
        return Reply(body, after=SLOW_SECONDS if _is_slow(kind, number) else 0.0)

    return answer


@contextmanager
def _frontier(database: str) -> Iterator[list[object]]:
    if database == "sqlite":
        yield []
        return
    with own_server() as server:
        yield ["--frontier", server.url, "--crawl-name", "kills"]


def _holds_crawl(data: Path) -> bool:
    return _run("status", "--data-dir", data).returncode == 0


def _run(*command: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "rove", *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, env=environment)


if __name__ == "__main__":
    main()
