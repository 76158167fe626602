"""Kill the PostgreSQL primary of a real crawl and promote its standby: `python -m benchmarks.failover`.

The real `rove crawl` visits sites on loopback with two processes, for about a minute per case. The standby is
synchronous, asynchronous and up to date, or asynchronous and cut off for 3 s. The old primary comes back and is still
the first host of the URL. A visit may take 10 s instead of three minutes, so that the rest is short. Nothing leaves
this machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.acceptance.failover import PROMOTED, Plan, Result, fail_over
from tests.judge import Rule

PLAN = Plan(hosts=150, delay=1.0, budget=10.0, requests_before=300)
CASES: Mapping[str, Plan] = {
    "synchronous": replace(PLAN, is_synchronous=True),
    "asynchronous, no lag": PLAN,
    "asynchronous, 3 s behind": replace(PLAN, lag_requests=100, lag_seconds=3.0),
}


@dataclass(frozen=True)
class Column:
    """A number of the table."""

    title: str
    value: float
    is_good: bool


def main() -> int:
    """Run every case and print one table."""
    is_good = True
    for name, plan in CASES.items():
        with tempfile.TemporaryDirectory(prefix="rove-failover-") as folder:
            columns = columns_of(fail_over(plan, Path(folder)))
        if name == next(iter(CASES)):
            print("| standby | " + " | ".join(column.title for column in columns) + " |")
            print("|---|" + "--:|" * len(columns))
        print(f"| {name} | " + " | ".join(f"{column.value:g}" for column in columns) + " |", flush=True)
        is_good = is_good and all(column.is_good for column in columns)
    return 0 if is_good else 1


def columns_of(result: Result) -> list[Column]:
    """Return the numbers of a case, and whether each is as promised."""
    verdict = result.verdict
    broken = sum(violation.broken in (Rule.TOO_SOON, Rule.OVERLAP) for violation in verdict.violations)
    audit_found = 0 if result.audit.startswith("no violations") else int(result.audit.split()[0].replace(",", ""))
    promoted = result.output.count(PROMOTED)
    return [
        Column("requests", verdict.requests, True),
        Column("delays broken by the web's log", broken, broken == 0),
        Column("violations by the audit", audit_found, audit_found == len(verdict.violations)),
        Column("visit numbers given twice", result.given_twice, result.given_twice == 0),
        Column("URLs lost", result.lost_urls, True),
        Column("of them not found again", result.missing, result.missing == 0),
        Column("pages fetched again", verdict.refetches, True),
        Column("away said after s", round(result.away, 1), result.away < 10),
        Column("first new visit after s", round(result.pause, 1), True),
        Column("times said", promoted, promoted == 1),
    ]


if __name__ == "__main__":
    sys.exit(main())
