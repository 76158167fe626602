"""What limits a crawl that runs, as far as its database tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rove.config import Settings, settings_from_json
from rove.frontier.contract import Catalog, FrontierReader
from rove.frontier.runs import Participant
from rove.inspect.nodes import machines_alive
from rove.inspect.pauses import Scope, pause_text
from rove.inspect.seed_loading import seeds_loading
from rove.model.counts import Counts
from rove.model.instructions import Instruction
from rove.model.samples import Sample, combined, together
from rove.policy.limiting import Limiting, limiting
from rove.policy.measured import errors_of, load_of, requests_of, troubles_of
from rove.policy.situation import Load, Situation

MINUTE = 65.0
"""Seconds that are looked back, so that six samples are found."""


async def what_limits(
    reader: FrontierReader,
    catalog: Catalog,
    *,
    counts: Counts,
    alive: Sequence[Participant],
    elapsed: float,
    pauses: Mapping[Scope, Instruction],
    now: float,
) -> Limiting:
    """Return what limits a crawl.

    `alive` are its running processes, `elapsed` the seconds that it has run; `now` is the wall clock.
    """
    saved = await catalog.settings()
    samples = [sample async for slot in reader.samples(since=now - MINUTE) for sample in slot]
    return limiting(
        situation_of(
            counts=counts,
            alive=alive,
            elapsed=elapsed,
            pauses=pauses,
            settings=None if saved is None else settings_from_json(saved),
            next_due=None if counts.domains["ready"] else await reader.next_due(),
            seeds=seeds_loading(await catalog.seed_sources()),
            samples=samples,
        )
    )


def limiting_json(found: Limiting) -> dict[str, Any]:
    """Return the object that `status --json` prints for what limits the crawl."""
    return {"factor": found.factor, "why": found.why, "domains_served": found.domains_served}


def situation_of(
    *,
    counts: Counts,
    alive: Sequence[Participant],
    elapsed: float,
    pauses: Mapping[Scope, Instruction],
    settings: Settings | None,
    next_due: float | None,
    seeds: int | None,
    samples: Sequence[Sample],
) -> Situation:
    """Build the situation of a crawl from what its database holds; `samples` are those of the last minute.

    Without samples, the failures of the whole crawl stand for those of the last minute.
    """
    minute, latest = _of_the_last_minute(samples)
    paused = bool(alive) and all(process.is_paused for process in alive)
    by = ", ".join(pause_text(pause, scope).removeprefix("paused ") for scope, pause in pauses.items())
    limits = None if settings is None else settings.limits
    return Situation(
        paused_by=(by or "by 'rove pause'") if paused else "",
        troubles={} if latest is None else troubles_of(latest),
        domains=counts.domains,
        pending=counts.urls_pending,
        next_due=next_due,
        in_flight=sum(process.in_flight for process in alive),
        at_once=sum(process.at_once for process in alive),
        held_by=Counter(process.held_by for process in alive if process.held_by),
        unsettled=0 if latest is None else round(latest.figures.get("unsettled", 0)),
        pages_left=None if limits is None else limits.pages_left(counts.pages),
        seconds_left=None if limits is None else limits.seconds_left(elapsed),
        seeds_loading=seeds,
        requests=counts.requests if minute is None else requests_of(minute),
        errors=counts.failures if minute is None else errors_of(minute),
        load=Load() if minute is None else load_of(minute, machines=max(1, machines_alive(alive))),
    )


def _of_the_last_minute(samples: Sequence[Sample]) -> tuple[Sample, Sample] | tuple[None, None]:
    """Return the whole minute and its end, each as one sample of all machines."""
    by_node: dict[str, list[Sample]] = {}
    for sample in samples:
        by_node.setdefault(sample.node, []).append(sample)
    if not by_node:
        return None, None
    return together([combined(of_node) for of_node in by_node.values()]), together(
        [of_node[-1] for of_node in by_node.values()]
    )
