"""Where a crawl stands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rove.frontier.contract import FrontierReader, crawled_seconds
from rove.model import Counts, UrlState
from rove.text import seconds_text, size_text

RATE_SECONDS = 30.0
RATE_ROWS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Where a crawl stands."""

    running: bool
    since: float | None
    """When it was first started, wall-clock seconds."""
    elapsed: float
    """Seconds that it has been running, over all starts."""
    rate: float
    """Pages per second: of the last half minute while it runs, else on average."""
    counts: Counts


async def read_status(reader: FrontierReader, *, running: bool) -> Status:
    """The state of a crawl, from kept counters."""
    counts, runs = await reader.counts(), await reader.runs()
    elapsed = crawled_seconds(runs)
    average = counts.pages / elapsed if elapsed > 0 else 0.0
    return Status(
        running=running,
        since=runs[0].started if runs else None,
        elapsed=elapsed,
        rate=await _recent_rate(reader) if running else average,
        counts=counts,
    )


async def _recent_rate(reader: FrontierReader) -> float:
    """Pages per second among the newest requests."""
    now = oldest = time.time()
    pages = looked_at = 0
    async for row in reader.pages():
        looked_at += 1
        if now - row.finished > RATE_SECONDS or looked_at > RATE_ROWS:
            break
        oldest = min(oldest, row.finished)
        pages += row.text is not None or row.raw is not None
    return pages / (now - oldest) if now > oldest else 0.0


def as_json(status: Status) -> dict[str, Any]:
    """The object that `status --json` prints."""
    counts = status.counts
    return {
        "running": status.running,
        "since": status.since,
        "elapsed_s": round(status.elapsed, 3),
        "pages": counts.pages,
        "pages_per_s": round(status.rate, 2),
        "bytes": counts.bytes,
        "requests": counts.requests,
        "urls": {state.name.lower(): counts.urls[state] for state in UrlState},
        "domains": dict(counts.domains),
        "not_accepted": dict(counts.not_accepted),
        "errors": dict(counts.failures),
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
    lines = [
        f"{running}, begun {since}, crawled for {seconds_text(status.elapsed)}",
        f"pages      {counts.pages:,} ({status.rate:.1f}/s), {received}",
        "urls       " + ", ".join(f"{counts.urls[s]:,} {s.name.lower()}" for s in UrlState),
        "domains    " + ", ".join(f"{count:,} {name}" for name, count in counts.domains.items()),
    ]
    if counts.not_accepted:
        lines.append("not taken  " + _listed(counts.not_accepted))
    if counts.failures:
        lines.append("errors     " + _listed(counts.failures))
    return lines


def _listed(counts: Any) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count:,}" for name, count in ordered)
