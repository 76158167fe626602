"""Measure whether sites can take the visits of others by naming URLs there: the pace of the victims' own pages.

    .venv/bin/python -m benchmarks.attacks.foreign_links                          # 0.5 s between visits, two minutes
    .venv/bin/python -m benchmarks.attacks.foreign_links --delay 70 --seconds 420 --victims 40      # default settings

Each victim has more pages than there is time for. A page elsewhere names 2,000 URLs there that do not exist, or the
robots.txt files of twenty hosts name them as sitemaps. All numbers come from the victims' log.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.zoo.foreign_links import Flood, ForeignLinks, flooding, is_own

EMAIL = "benchmark@crawler.test"
GOAL = 0.90


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the victims saw of one crawl, and what waits for them at its end."""

    own: int
    """Requests for their own pages."""
    others: int
    """Requests for URLs that only others named."""
    longest_queue: int
    rate: float
    """Own pages per second of a victim, from its first request to its last: a busy machine takes long to start."""


def main() -> None:
    """Run one crawl for each flood and print a table; exit with 1 if one of them slows the victims down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victims", type=int, default=10)
    parser.add_argument("--urls", type=int, default=2_000, help="URLs that are named in the queue of each victim")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds between two visits")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of a crawl")
    parser.add_argument("--json", type=Path, help="write the numbers to a file")
    given = parser.parse_args()
    print(f"{given.victims} victims, {given.urls:,} URLs each, delay {given.delay:g} s, {given.seconds:g} s")
    print(f"{'flood':<10}{'own pages':>10}{'others':>8}{'queue':>8}{'own/s':>8}{'pace':>8}")
    found: dict[str, dict[str, float]] = {}
    alone = 0.0
    for flood in Flood:
        attack = ForeignLinks(flood=flood, victims=given.victims, urls=given.urls)
        seen = measure(attack, given.delay, given.seconds)
        alone = alone or seen.rate
        pace = seen.rate / alone
        found[flood] = {"own": seen.own, "others": seen.others, "queue": seen.longest_queue, "pace": pace}
        print(
            f"{flood:<10}{seen.own:>10,}{seen.others:>8,}{seen.longest_queue:>8,}{seen.rate:>8.3f}{pace:>8.1%}",
            flush=True,
        )
    if given.json:
        given.json.write_text(json.dumps(found))
    sys.exit(any(numbers["pace"] < GOAL for numbers in found.values()))


def measure(attack: ForeignLinks, delay: float, seconds: float) -> Seen:
    """Run one crawl with default settings apart from the delay and its length."""
    with tempfile.TemporaryDirectory() as folder, flooding(attack) as web:
        seeds, data = Path(folder) / "seeds.txt", Path(folder) / "data"
        seeds.write_text("".join(f"{url}\n" for url in attack.seeds))
        command = [sys.executable, "-m", "rove", "crawl", seeds, "--email", EMAIL, "--data-dir", data, "--sitemaps"]
        command += ["--quiet"]
        command += ["--delay", delay, "--max-duration", f"{seconds:g}s", *web.reach]
        command += ["--allow-short-delay"] if delay < 70 else []
        subprocess.run([str(word) for word in command], check=True)
        with closing(sqlite3.connect(data / "frontier.sqlite")) as base:
            ((longest,),) = base.execute("SELECT max(pending) FROM domain WHERE name LIKE 'victim%'")
        by_victim = [[r for r in web.requests_to(name) if r.path != "/robots.txt"] for name in attack.names]
    own = [sum(is_own(request.path) for request in requests) for requests in by_victim]
    seconds = sum(requests[-1].at - requests[0].at for requests in by_victim if requests)
    others = sum(map(len, by_victim)) - sum(own)
    # The first page begins the time that is measured.
    rate = sum(pages - 1 for pages in own if pages) / seconds
    return Seen(own=sum(own), others=others, longest_queue=longest, rate=rate)


if __name__ == "__main__":
    main()
