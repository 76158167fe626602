"""Crawl a web that turns bad, and see whether the history tells it: `python -m benchmarks.bad_web`, twenty minutes.

The real `rove crawl` visits 250 sites on loopback at a delay of 5 s. The sites become slow, then four fifths of them
stop answering, then they recover, and then somebody else uses the database for most of the time. Printed are, for each
phase, what the log says limits the crawl, and figures of the history. `--output` is a plot of the whole crawl. Nothing
leaves this machine.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.acceptance.site import Reply, site

HOSTS = 250
DELAY = 5
LINKS = 20
SLOW_SECONDS = 6.0
SILENT = 0.8
"""Share of the sites that stop answering."""
LOCKED, FREE = 2.0, 0.4
"""Seconds for which the other user of the database holds its lock, and lets go of it."""
LIMIT = re.compile(r"^(\S+ \S+)Z INFO +\S+: limit factor=(\S+) ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of the crawl."""

    name: str
    share: float
    """Its share of the time."""


GOOD, SLOW, SILENCE, BACK, BUSY, END = (
    Phase(name="good", share=0.2),
    Phase(name="slow sites", share=0.2),
    Phase(name="silent sites", share=0.2),
    Phase(name="good again", share=0.15),
    Phase(name="database in use", share=0.15),
    Phase(name="good at the end", share=0.1),
)
PHASES = (GOOD, SLOW, SILENCE, BACK, BUSY, END)


class Web:
    """Answers by the phase of the crawl."""

    def __init__(self) -> None:
        self.phase = GOOD

    def answer(self, host: str, path: str) -> Reply:
        """Answer one request."""
        if path == "/robots.txt":
            return Reply(status=404)
        number = int(host.removeprefix("site").partition(".")[0])
        if self.phase is SILENCE and number < SILENT * HOSTS:
            return Reply(held=True)
        page = int(path.strip("/") or 0)
        links = "".join(f'<a href="/{page + step}">page</a>' for step in range(1, LINKS))
        return Reply(
            f"<title>{page}</title><p>Page {page} of {host}. {links}", after=SLOW_SECONDS * (self.phase is SLOW)
        )


def hold_database(turn: Path, until: threading.Event) -> None:
    """Hold the right to write to the database for most of the time."""
    handle = os.open(turn, os.O_RDWR)
    try:
        while not until.is_set():
            fcntl.flock(handle, fcntl.LOCK_EX)
            until.wait(LOCKED)
            fcntl.flock(handle, fcntl.LOCK_UN)
            until.wait(FREE)
    finally:
        os.close(handle)


def crawled(folder: Path, minutes: float) -> Iterator[tuple[Phase, float, float]]:
    """Run the crawl; yield each phase with its begin and end, in seconds since the epoch."""
    data, seeds, web = folder / "data", folder / "seeds.txt", Web()
    seeds.write_text("".join(f"http://site{number}.test/\n" for number in range(HOSTS)))
    with site(web.answer) as served, (folder / "output").open("wb") as output:
        words = [sys.executable, "-m", "rove", "crawl", str(seeds), "--email", "benchmark@crawler.test"]
        words += ["--data-dir", str(data), "--delay", str(DELAY), "--allow-short-delay", *map(str, served.reach)]
        words += ["--processes", "2", "--timeout", "20"]
        crawl = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)
        try:
            while not (data / "frontier.turn").exists():
                time.sleep(0.1)
            for web.phase in PHASES:
                if web.phase is not SILENCE:
                    served.release.set()
                    served.release.clear()
                began, over = time.time(), threading.Event()
                holder = threading.Thread(target=hold_database, args=(data / "frontier.turn", over))
                if web.phase is BUSY:
                    holder.start()
                time.sleep(60 * minutes * web.phase.share)
                over.set()
                if holder.is_alive():
                    holder.join()
                yield web.phase, began, time.time()
            crawl.terminate()
            crawl.wait(60)
        finally:
            crawl.kill()
            crawl.wait()


def factors(log: str, began: float, ended: float) -> Counter[str]:
    """Count what the log says limits the crawl between two times."""
    found: Counter[str] = Counter()
    for at, factor in LIMIT.findall(log):
        moment = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
        found.update([factor] if began <= moment < ended else [])
    return found


def main() -> int:
    """Run the crawl, tell its story, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--output", type=Path, help="a plot of the crawl: .svg, .png or .html")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rove-bad-web-") as name:
        folder = Path(name)
        phases = list(crawled(folder, options.minutes))
        log = (folder / "data" / "rove.log").read_text()
        for phase, began, ended in phases:
            says = ", ".join(f"{factor} {times}" for factor, times in factors(log, began, ended).most_common())
            print(f"{phase.name:16} {60 * options.minutes * phase.share:5.0f} s  limited by: {says or '-'}")
        print((folder / "output").read_text(errors="replace").strip().splitlines()[-1])
        data = ["--data-dir", "data"]
        columns = "pages/s,errors,in_flight,request.page:p95,query.commit:p95"
        rove = [sys.executable, "-m", "rove"]
        subprocess.run([*rove, "history", *data, "--columns", columns, "--step", "1m"], check=True, cwd=folder)
        if options.output is not None:
            output = str(options.output.resolve())
            subprocess.run([*rove, "plot", *data, "--output", output], check=True, cwd=folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
