"""Measure what a site sees if thousands of hosts redirect their robots.txt to it.

    .venv/bin/python -m benchmarks.attacks.reflection               # 3,000 hosts, about a minute
    .venv/bin/python -m benchmarks.attacks.reflection --hosts 300

Half of the hosts redirect to a path of their choice on the victim, half to its robots.txt. All numbers come from the
victim's log.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.acceptance.site import SeenRequest
from tests.zoo.reflection import VICTIM, Reflection, attacking, shortest_gap

EMAIL = "benchmark@crawler.test"


def main() -> None:
    """Run one crawl and print what the victim saw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=3_000)
    parser.add_argument("--delay", type=float, default=2.0)
    given = parser.parse_args()
    reflection = Reflection(hosts=given.hosts)
    with tempfile.TemporaryDirectory() as folder, attacking(reflection) as web:
        seeds = Path(folder) / "seeds.txt"
        seeds.write_text("".join(f"{url}\n" for url in reflection.seeds))
        command = [sys.executable, "-m", "rove", "crawl", seeds, "--email", EMAIL, "--data-dir", f"{folder}/data"]
        command += ["--delay", given.delay, "--allow-short-delay", *web.reach]
        started = time.monotonic()
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        audit = subprocess.run(
            [sys.executable, "-m", "rove", "audit", "--data-dir", f"{folder}/data"], capture_output=True, text=True
        )
    seen = sorted(web.requests_to(VICTIM), key=lambda request: request.at)
    robots = [request for request in seen if request.path == "/robots.txt"]
    chosen = [request for request in seen if request.path.startswith("/search")]
    print(f"{given.hosts:,} hosts, delay {given.delay:g} s, {seconds:.1f} s")
    print(f"requests to the victim        {len(seen):,} (its own pages: {reflection.pages})")
    print(f"  for its robots.txt          {len(robots):,}")
    print(f"  for paths that others chose {len(chosen):,}")
    print(f"  most in one second          {most_in_a_second(seen)}")
    print(f"shortest gap between visits   {shortest_gap(web, VICTIM):.2f} s")
    print(f"rove audit                    {audit.stdout.splitlines()[0]}")


def most_in_a_second(requests: list[SeenRequest]) -> int:
    """Return the largest number of requests within any second."""
    times = [request.at for request in requests]
    return max((sum(at <= other < at + 1 for other in times[n:]) for n, at in enumerate(times)), default=0)


if __name__ == "__main__":
    main()
