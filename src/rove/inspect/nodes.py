"""Who takes part in a crawl: machines, and the processes on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rove.datadir import DataDir
from rove.frontier.contract import FrontierReader
from rove.frontier.runs import Participant
from rove.humanize import seconds_text

ALIVE_SECONDS = 15.0
"""A process that has been silent for longer is taken to be gone; they say something every few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One data directory that takes part, or did."""

    place: str
    is_here: bool
    processes: Sequence[Participant]
    """Those that are alive; of a machine that is gone, none."""
    pages: int
    """Stored by all processes that it ever had."""
    since: float
    """Seconds since the first of those that are alive began, or since its last start if none is."""
    silent_for: float
    has_left: bool
    """Its last processes ended in good order."""

    @property
    def pages_per_second(self) -> float:
        """Over all its processes."""
        return sum(process.pages_per_second for process in self.processes)

    @property
    def in_flight(self) -> int:
        """Over all its processes."""
        return sum(process.in_flight for process in self.processes)

    @property
    def state(self) -> str:
        """What has become of it."""
        if self.processes:
            return "running"
        return "left" if self.has_left else "disappeared"


def is_alive(process: Participant) -> bool:
    """Whether a process is still heard of."""
    return not process.has_left and process.silent_for < ALIVE_SECONDS


async def is_running(data: DataDir, reader: FrontierReader) -> bool:
    """Whether the crawl of a data directory is running, here or on another machine."""
    return data.in_use() or runs_elsewhere(await reader.participants())


def runs_elsewhere(participants: Sequence[Participant]) -> bool:
    """Whether a process on another machine is alive. Those on this machine hold a lock on the data directory."""
    return any(is_alive(process) and not process.is_here for process in participants)


def nodes_of(participants: Sequence[Participant]) -> list[NodeStatus]:
    """The machines, in the order in which they first came."""
    by_place: dict[str, list[Participant]] = {}
    for participant in participants:
        by_place.setdefault(participant.node, []).append(participant)
    return [_node(place, processes) for place, processes in by_place.items()]


def _node(place: str, processes: list[Participant]) -> NodeStatus:
    alive = [process for process in processes if is_alive(process)]
    latest = min(processes, key=lambda process: process.silent_for)
    return NodeStatus(
        place=place,
        is_here=latest.is_here,
        processes=alive,
        pages=sum(process.pages for process in processes),
        since=max((process.since for process in alive), default=latest.since),
        silent_for=latest.silent_for,
        has_left=latest.has_left,
    )


def as_json(node: NodeStatus) -> dict[str, Any]:
    """The object that `nodes --json` prints."""
    return {
        "place": node.place,
        "here": node.is_here,
        "state": node.state,
        "since_s": round(node.since, 3),
        "silent_for_s": round(node.silent_for, 3),
        "pages": node.pages,
        "pages_per_s": round(node.pages_per_second, 2),
        "in_flight": node.in_flight,
        "processes": [
            {
                "process": process.process,
                "pid": process.pid,
                "since_s": round(process.since, 3),
                "silent_for_s": round(process.silent_for, 3),
                "pages": process.pages,
                "pages_per_s": round(process.pages_per_second, 2),
                "in_flight": process.in_flight,
            }
            for process in node.processes
        ],
    }


def as_line(node: NodeStatus) -> str:
    """What `nodes` prints of a machine for people."""
    here = " (here)" if node.is_here else ""
    if node.processes:
        what = (
            f"{len(node.processes)} process{'es' if len(node.processes) > 1 else ''}, "
            f"up for {seconds_text(node.since)}, "
            f"last seen {node.silent_for:.0f} s ago, {node.pages_per_second:.1f} pages/s, "
            f"{node.in_flight:,} in flight, {node.pages:,} pages"
        )
    else:
        what = f"{node.state} {seconds_text(node.silent_for)} ago, {node.pages:,} pages"
    return f"{node.place}{here}: {what}"
