"""The state of a crawl in numbers, for `rove status`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rove.frontier.contract import Catalog, FrontierReader
from rove.frontier.retries import Retry
from rove.frontier.runs import Participant, crawled_seconds
from rove.inspect.explain_text import retry_json, retry_text
from rove.inspect.limiting import limiting_json, what_limits
from rove.inspect.nodes import is_alive, runs_elsewhere
from rove.inspect.pauses import Scope, pause_json, pause_text, pauses_in_force
from rove.model.counts import Counts
from rove.model.instructions import Instruction, Instructions
from rove.model.ledger import RequestKind
from rove.model.request_counts import KIND_NAMES, RequestCounts, WithoutContent
from rove.model.urls import UrlState
from rove.notation.humanize import counted, seconds_text, size_text, utc_text
from rove.policy.concurrency import held_by_text
from rove.policy.limiting import Limiting

WITHOUT_CONTENT_TEXTS = {
    WithoutContent.NO_ROBOTS: "found no robots.txt",
    WithoutContent.NOT_MODIFIED: "not modified",
    WithoutContent.OTHER_TYPE: "of a type that is not read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a crawl."""

    running: bool
    since: float | None
    """Wall-clock seconds of the first start; None if it was never started."""
    elapsed: float
    """Seconds that it has run, summed over all starts."""
    rate: float
    """Pages per second: the current rate while it runs, else the average."""
    counts: Counts
    pauses: Mapping[Scope, Instruction] = field(default_factory=dict)
    """The pauses in force."""
    retries: Sequence[Retry] = ()
    in_flight: int = 0
    """Visits in flight at the last sign of life of each process."""
    at_once: int = 0
    """How many visits may be in flight."""
    held_by: Mapping[str, int] = field(default_factory=dict)
    """Why not more (policy.concurrency.HeldBy): the number of processes for each reason."""
    limiting: Limiting | None = None
    """What limits it; None if it does not run."""
    alive: Sequence[Participant] = ()
    """Its processes that are alive."""


async def read_status(
    reader: FrontierReader,
    catalog: Catalog,
    *,
    in_use: bool,
    told: Mapping[Scope, Instructions] | None = None,
    retries: Sequence[Retry] = (),
) -> Status:
    """Read the state of a crawl from its counters.

    `in_use`: a process on this machine has it open; `told`: the instructions of the owner; `retries`: all of the crawl.
    """
    counts, runs = await reader.counts(), await reader.runs()
    participants = await reader.participants()
    running = in_use or runs_elsewhere(participants)
    elapsed = crawled_seconds(runs)
    average = counts.pages / elapsed if elapsed > 0 else 0.0
    alive = [process for process in participants if running and is_alive(process)]
    current = sum(process.pages_per_second for process in alive)
    pauses = pauses_in_force(told or {})
    found = None
    if running:
        found = await what_limits(
            reader, catalog, counts=counts, alive=alive, elapsed=elapsed, pauses=pauses, now=time.time()
        )
    return Status(
        running=running,
        since=runs[0].started if runs else None,
        elapsed=elapsed,
        rate=current if running else average,
        counts=counts,
        pauses=pauses,
        retries=retries,
        in_flight=sum(process.in_flight for process in alive),
        at_once=sum(process.at_once for process in alive),
        held_by=Counter(process.held_by for process in alive if process.held_by),
        limiting=found,
        alive=alive,
    )


def as_json(status: Status) -> dict[str, Any]:
    """Return the object that `status --json` prints."""
    counts = status.counts
    return {
        "running": status.running,
        "paused": bool(status.pauses),
        "pauses": [pause_json(pause, scope) for scope, pause in status.pauses.items()],
        "since": status.since,
        "elapsed_s": round(status.elapsed, 3),
        "pages": counts.pages,
        "copies": counts.copies,
        "pages_per_s": round(status.rate, 2),
        "bytes": counts.bytes,
        "requests": counts.requests,
        "in_flight": status.in_flight,
        "in_flight_at_most": status.at_once,
        "in_flight_held_by": dict(status.held_by),
        "limited_by": None if status.limiting is None else limiting_json(status.limiting),
        "urls": {state.name.lower(): counts.urls[state] for state in UrlState},
        "domains": dict(counts.domains),
        "not_accepted": dict(counts.not_accepted),
        "evicted": counts.evicted,
        "marks": dict(counts.marks),
        "blocked": dict(counts.blocked),
        "errors": dict(counts.failures),
        "requests_by_kind": dict(counts.request_counts.by_kind),
        "errors_by_kind": _nested(counts.request_counts.errors_by_kind),
        "without_content_by_kind": _nested(counts.request_counts.without_content_by_kind),
        "leases": counts.leases,
        "leases_without_request": dict(counts.without_request),
        "retries": [retry_json(retry) for retry in status.retries],
    }


def as_lines(status: Status) -> list[str]:
    """Return what `status` prints for people."""
    counts = status.counts
    running = "running" if status.running else "not running"
    paused = "".join(f", {pause_text(pause, scope)}" for scope, pause in status.pauses.items())
    started = "never started" if status.since is None else f"started {utc_text(status.since)}"
    copies = f", {counts.copies:,} of them copies of stored texts" if counts.copies else ""
    received = f"{size_text(counts.bytes)} received in {counted(counts.requests, 'request')}"
    lines = [
        f"{running}{paused}, {started}, crawled for {seconds_text(status.elapsed)}",
        f"pages      {counts.pages:,} ({status.rate:.1f}/s){copies}, {received}",
        "urls       " + ", ".join(f"{counts.urls[s]:,} {s.name.lower()}" for s in UrlState),
        "domains    " + ", ".join(f"{count:,} {name}" for name, count in counts.domains.items()),
    ]
    if status.at_once:
        at_most = f"at most {status.at_once:,}: {held_by_text(status.held_by)}"
        lines.append(f"{'in flight':<11}{counted(status.in_flight, 'fetch', 'fetches')}, {at_most}")
    if status.limiting is not None:
        lines.append(f"limited by {status.limiting.sentence}")
    lines += _request_lines(counts.request_counts)
    if counts.without_request:
        without = _largest_first(counts.without_request)
        lines.append(f"leases     {counts.leases:,}; ended without a request: {without}")
    for name, reasons in (
        ("blocked", counts.blocked),
        ("not taken", counts.not_accepted),
        ("marked", counts.marks),
    ):
        if reasons:
            lines.append(f"{name:<11}{_largest_first(reasons)}")
    if counts.evicted:
        lines.append(f"evicted    {counted(counts.evicted, 'URL')} that had been pending (counted under budget too)")
    if status.retries:
        urls, times = sum(retry.urls for retry in status.retries), counted(len(status.retries), "time")
        lines.append(f"{'retried':<11}{counted(urls, 'URL')}, {times}; last {retry_text(status.retries[-1])}")
    return lines


def _request_lines(requests: RequestCounts) -> list[str]:
    """Return one line for each kind of request, and below it why requests of this kind failed."""
    lines = []
    for kind, name in KIND_NAMES.items():
        if not requests.by_kind[kind]:
            continue
        numbers = [counted(requests.by_kind[kind], "request"), f"{requests.failed(kind):,} failed"]
        without = requests.without_content_by_kind[kind]
        numbers += [f"{count:,} {WITHOUT_CONTENT_TEXTS[WithoutContent(reason)]}" for reason, count in without.items()]
        lines.append(f"{name:<11}{', '.join(numbers)}")
        errors = requests.errors_by_kind[kind]
        if errors:
            lines.append(f"{'':<11}errors: {_largest_first(errors)}")
    return lines


def _nested(counts: Mapping[RequestKind, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {kind.value: dict(named) for kind, named in counts.items()}


def _largest_first(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in Counter(counts).most_common())
