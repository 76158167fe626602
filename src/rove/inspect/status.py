"""Where a crawl stands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rove.frontier.contract import FrontierReader
from rove.frontier.runs import crawled_seconds
from rove.humanize import seconds_text, size_text
from rove.inspect.nodes import is_alive, runs_elsewhere
from rove.model.ledger import Counts
from rove.model.urls import UrlState


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Where a crawl stands."""

    running: bool
    since: float | None
    """When it was first started, wall-clock seconds."""
    elapsed: float
    """Seconds that it has been running, over all starts."""
    rate: float
    """Pages per second: of the last seconds while it runs, else on average."""
    counts: Counts


async def read_status(reader: FrontierReader, *, running: bool) -> Status:
    """The state of a crawl, from kept counters; `running`: it is known to run on this machine."""
    counts, runs = await reader.counts(), await reader.runs()
    participants = await reader.participants()
    alive = [process for process in participants if is_alive(process)]
    running = running or runs_elsewhere(participants)
    elapsed = crawled_seconds(runs)
    average = counts.pages / elapsed if elapsed > 0 else 0.0
    return Status(
        running=running,
        since=runs[0].started if runs else None,
        elapsed=elapsed,
        rate=sum(process.pages_per_second for process in alive) if running else average,
        counts=counts,
    )


def as_json(status: Status) -> dict[str, Any]:
    """The object that `status --json` prints."""
    counts = status.counts
    return {
        "running": status.running,
        "since": status.since,
        "elapsed_s": round(status.elapsed, 3),
        "pages": counts.pages,
        "copies": counts.copies,
        "pages_per_s": round(status.rate, 2),
        "bytes": counts.bytes,
        "requests": counts.requests,
        "urls": {state.name.lower(): counts.urls[state] for state in UrlState},
        "domains": dict(counts.domains),
        "not_accepted": dict(counts.not_accepted),
        "marks": dict(counts.marks),
        "blocked": dict(counts.blocked),
        "errors": dict(counts.failures),
        "leases": counts.leases,
        "leases_without_request": dict(counts.unasked),
    }


def as_lines(status: Status) -> list[str]:
    """What `status` prints for people."""
    counts = status.counts
    since = (
        "not started"
        if status.since is None
        else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(status.since))
    )
    running = "running" if status.running else "not running"
    received = f"{size_text(counts.bytes)} received in {counts.requests:,} requests"
    copies = f"{counts.copies:,} of them with a text stored before, " if counts.copies else ""
    lines = [
        f"{running}, begun {since}, crawled for {seconds_text(status.elapsed)}",
        f"pages      {counts.pages:,} ({status.rate:.1f}/s), {copies}{received}",
        "urls       " + ", ".join(f"{counts.urls[s]:,} {s.name.lower()}" for s in UrlState),
        "domains    " + ", ".join(f"{count:,} {name}" for name, count in counts.domains.items()),
    ]
    if counts.unasked:
        lines.append(
            f"leases     {counts.leases:,}, of which without a request: {_listed(counts.unasked)}"
        )
    if counts.blocked:
        lines.append("blocked    " + _listed(counts.blocked))
    if counts.not_accepted:
        lines.append("not taken  " + _listed(counts.not_accepted))
    if counts.failures:
        lines.append("errors     " + _listed(counts.failures))
    if counts.marks:
        lines.append("marked     " + _listed(counts.marks))
    return lines


def _listed(counts: Any) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count:,}" for name, count in ordered)
