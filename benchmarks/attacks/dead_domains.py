"""Measure whether links to domains that never answer slow down healthy sites.

    .venv/bin/python -m benchmarks.attacks.dead_domains                  # a /64, a short delay: about three minutes
    .venv/bin/python -m benchmarks.attacks.dead_domains --names          # names instead of addresses
    .venv/bin/python -m benchmarks.attacks.dead_domains --default        # rove's default delay: about twelve minutes
    .venv/bin/python -m benchmarks.attacks.dead_domains --quick

One page links to 2,000 names, or addresses of one network, whose server accepts connections and says nothing. The
healthy sites are those of benchmarks.zoo, and crawls with and without the attack take turns. All numbers come from the
servers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.zoo.animal import DONE, Animal, at, linking, says, whole
from tests.zoo.floods import Server, serving
from tests.zoo.keeper import opened

from benchmarks.zoo import Plan, measure, table

NAME = "benchmarks.attacks.dead_domains"


def main() -> None:
    """Measure, and print a table; or serve the attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, default=2_000, help="domains that never answer")
    parser.add_argument("--names", action="store_true", help="names instead of addresses of one network")
    parser.add_argument("--healthy", type=int, default=400, help="healthy sites")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds between two visits")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of a crawl")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--default", action="store_true", help="the default delay, and 5,000 healthy sites")
    parser.add_argument("--quick", action="store_true", help="one round of fifteen seconds")
    parser.add_argument("--serve", type=Path, help="serve the attack to another process, and write a log here")
    given = parser.parse_args()
    if given.serve:
        serve(given.links, given.names, given.serve)
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
        attack = [NAME, "--serve", str(log), "--links", str(given.links), *(["--names"] if given.names else [])]
        for _ in range(plan.rounds):
            rounds.append((measure(plan), measure(plan, attack)))
            logs.append(json.loads(log.read_text()))
    print(f"{given.links:,} {'names' if given.names else 'addresses of one /64'} that never answer")
    print("\n".join(table(plan, rounds)))
    for number, seen in enumerate(logs, start=1):
        print(f"{number:>6} {seen['requests']:,} requests to {seen['hosts']:,} silent hosts, {seen['most']:,} at once")


def serve(links: int, are_names: bool, log: Path) -> None:
    """Serve a page with the links, and the silent hosts, until standard input ends."""
    if are_names:
        urls = [f"http://silent{number}.test/" for number in range(links)]
    else:
        urls = [f"http://[2001:db8:0:1::{number:x}]/" for number in range(1, links + 1)]
    page = Animal(
        name="attacker",
        what="links to silent hosts",
        answer=says(whole(linking("attacker", urls))),
        expects={at("attacker"): (DONE,)},
        seeds=(at("attacker"),),
    )
    silent = Server()
    with serving(silent), opened(lambda _: [page]) as zoo:
        rules = [f"silent*.test=127.0.0.1:{silent.port}", f"2001:db8:*=127.0.0.1:{silent.port}"]
        reach = [word for rule in rules for word in ("--connect-to", rule)]
        print(json.dumps({"reach": [*reach, *zoo.reach], "seeds": zoo.seeds}), flush=True)
        sys.stdin.read()
    hosts = {seen.host for seen in silent.requests}
    log.write_text(json.dumps({"requests": len(silent.requests), "hosts": len(hosts), "most": silent.most_at_once}))


if __name__ == "__main__":
    main()
