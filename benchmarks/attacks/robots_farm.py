"""Measure whether a farm of hosts with long robots.txt files slows down healthy sites.

    .venv/bin/python -m benchmarks.attacks.robots_farm             # about two minutes
    .venv/bin/python -m benchmarks.attacks.robots_farm --quick

Each host of the farm has a robots.txt of 500 KiB with 30,000 patterns, no two alike, sent as 75 KB of gzip. The healthy
sites are those of benchmarks.zoo, and crawls with and without the farm take turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys

from tests.zoo.animal import DONE, Animal, Answer, SeenRequest, Wire, at, linking, says, whole
from tests.zoo.keeper import opened

from benchmarks.zoo import Plan, measure, table

PATTERNS = gzip.compress(b"".join(b"Disallow: /*%x\n" % number for number in range(30_000)))


def main() -> None:
    """Measure, and print a table; or serve the farm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hosts", type=int, default=300, help="hosts of the farm")
    parser.add_argument("--healthy", type=int, default=200, help="healthy sites")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds between two visits")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of a crawl")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round of ten seconds")
    parser.add_argument("--serve", action="store_true", help="serve the farm to another process")
    given = parser.parse_args()
    if given.serve:
        serve(given.hosts)
        return
    seconds, rounds = (10.0, 1) if given.quick else (given.seconds, given.rounds)
    plan = Plan(hosts=given.healthy, delay=given.delay, seconds=seconds, rounds=rounds, without=())
    farm = ["benchmarks.attacks.robots_farm", "--serve", "--hosts", str(given.hosts)]
    print("\n".join(table(plan, [(measure(plan), measure(plan, farm)) for _ in range(rounds)])))


def serve(hosts: int) -> None:
    """Serve the farm until standard input ends."""
    with opened(lambda _: [_host(number) for number in range(hosts)]) as zoo:
        print(json.dumps({"reach": zoo.reach, "seeds": zoo.seeds}), flush=True)
        sys.stdin.read()


def _host(number: int) -> Animal:
    name = f"farm-{number}"
    front = whole(linking(name, (f"/{page}" for page in range(50))))
    return Animal(
        name=name,
        what="a robots.txt of 30,000 patterns",
        answer=says(front),
        expects={at(name): (DONE,)},
        seeds=(at(name),),
        robots=_patterns(f"User-agent: *\nDisallow: /{name}\n".encode()),
    )


def _patterns(first: bytes) -> Answer:
    body = gzip.compress(first) + PATTERNS

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        await wire.send(whole(body, "Content-Encoding: gzip", type="text/plain"))

    return answer


if __name__ == "__main__":
    main()
