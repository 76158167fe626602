"""Measure what one address sees that 3,000 domains share, and whether they slow down healthy sites.

    .venv/bin/python -m benchmarks.attacks.one_address                   # a short delay: about three minutes
    .venv/bin/python -m benchmarks.attacks.one_address --seconds-each 1  # a server that takes a second for each page
    .venv/bin/python -m benchmarks.attacks.one_address --default         # rove's default delay: about ten minutes
    .venv/bin/python -m benchmarks.attacks.one_address --quick

The domains lead to 127.0.0.2 by a name server. The healthy sites are those of benchmarks.zoo, and crawls with and
without the domains take turns. All numbers come from the servers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.zoo.floods import Crowd, Seen, name_server, serving

from benchmarks.zoo import Plan, measure, table

NAME = "benchmarks.attacks.one_address"
ADDRESS = "127.0.0.2"


def main() -> None:
    """Measure, and print a table; or serve the domains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=3_000, help="domains on one address")
    parser.add_argument("--seconds-each", type=float, default=0.0, help="seconds that an answer of theirs takes")
    parser.add_argument("--healthy", type=int, default=400, help="healthy sites")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds between two visits")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of a crawl")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--default", action="store_true", help="the default delay, and 5,000 healthy sites")
    parser.add_argument("--quick", action="store_true", help="one round of fifteen seconds")
    parser.add_argument("--serve", type=Path, help="serve the domains to another process, and write a log here")
    given = parser.parse_args()
    if given.serve:
        serve(given.domains, given.seconds_each, given.serve)
        return
    plan = Plan(
        hosts=5_000 if given.default else given.healthy,
        delay=70.0 if given.default else given.delay,
        seconds=280.0 if given.default else 15.0 if given.quick else given.seconds,
        rounds=1 if given.quick or given.default else given.rounds,
        timeout=None,
    )
    rounds, logs = [], []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.json"
        crowd = [NAME, "--serve", str(log), "--domains", str(given.domains), "--seconds-each", str(given.seconds_each)]
        for _ in range(plan.rounds):
            rounds.append((measure(plan), measure(plan, crowd)))
            logs.append(json.loads(log.read_text()))
    print(f"{given.domains:,} domains on one address, {given.seconds_each:g} s for each answer")
    print("\n".join(table(plan, rounds)))
    for number, seen in enumerate(logs, start=1):
        print(
            f"{number:>6} {seen['visits']:,} visits to {seen['domains']:,} domains;"
            f" most in one second {seen['visits_per_second']:,} (requests: {seen['requests_per_second']:,});"
            f" most at once {seen['most']:,}"
        )


def serve(domains: int, seconds: float, log: Path) -> None:
    """Serve the domains until standard input ends."""
    crowd = Crowd(seconds=seconds)
    with serving(crowd, ADDRESS), name_server(lambda _: ADDRESS) as names:
        seeds = [f"http://crowd{number}.test:{crowd.port}/" for number in range(domains)]
        reach = ["--dns-server", names, "--allow-private-addresses"]
        print(json.dumps({"reach": reach, "seeds": seeds}), flush=True)
        sys.stdin.read()
    report = {
        "visits": len(crowd.visits),
        "domains": len({seen.host for seen in crowd.requests}),
        "visits_per_second": most_in_a_second(crowd.visits),
        "requests_per_second": most_in_a_second(crowd.requests),
        "most": crowd.most_at_once,
    }
    log.write_text(json.dumps(report))


def most_in_a_second(requests: list[Seen]) -> int:
    """Return the largest number of requests within any second."""
    times = sorted(seen.at for seen in requests)
    most = first = 0
    for last, at in enumerate(times):
        while times[first] <= at - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


if __name__ == "__main__":
    main()
