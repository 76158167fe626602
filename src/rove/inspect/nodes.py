"""The machines of a crawl and the processes on them, for `rove nodes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rove.frontier.runs import Participant
from rove.notation.humanize import counted, seconds_text

GONE_AFTER_SECONDS = 15.0
"""A process that has been silent for this long is taken to be gone; processes report every few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """A machine and data directory that takes part in the crawl, or did."""

    name: str
    is_here: bool
    processes: Sequence[Participant]
    """Its running processes."""
    pages: int
    """Pages stored by all its processes so far."""
    since: float
    """Seconds since the oldest running process started; if none is running, since the last start."""
    silent_for: float
    has_left: bool
    """Its last process shut down cleanly."""

    @property
    def pages_per_second(self) -> float:
        """Sum over its processes."""
        return sum(process.pages_per_second for process in self.processes)

    @property
    def in_flight(self) -> int:
        """Sum over its processes."""
        return sum(process.in_flight for process in self.processes)

    @property
    def is_paused(self) -> bool:
        """Whether its processes are running and start no new visits."""
        return bool(self.processes) and all(process.is_paused for process in self.processes)

    @property
    def state(self) -> str:
        """Return "running", "left" or "disappeared"."""
        if self.processes:
            return "running"
        return "left" if self.has_left else "disappeared"


def is_alive(process: Participant) -> bool:
    """Whether a process has neither shut down nor fallen silent."""
    return not process.has_left and process.silent_for < GONE_AFTER_SECONDS


def runs_elsewhere(participants: Sequence[Participant]) -> bool:
    """Whether a process on another machine is alive. Those on this machine hold a lock on the data directory."""
    return any(is_alive(process) and not process.is_here for process in participants)


def machines_alive(participants: Sequence[Participant]) -> int:
    """Return on how many machines a process is alive."""
    return len({process.node for process in participants if is_alive(process)})


def nodes_of(participants: Sequence[Participant]) -> list[NodeStatus]:
    """Group processes by machine, in the order in which the machines joined."""
    by_node: dict[str, list[Participant]] = {}
    for participant in participants:
        by_node.setdefault(participant.node, []).append(participant)
    return [_node(name, processes) for name, processes in by_node.items()]


def _node(name: str, processes: list[Participant]) -> NodeStatus:
    alive = [process for process in processes if is_alive(process)]
    latest = min(processes, key=lambda process: process.silent_for)
    return NodeStatus(
        name=name,
        is_here=latest.is_here,
        processes=alive,
        pages=sum(process.pages for process in processes),
        since=max((process.since for process in alive), default=latest.since),
        silent_for=latest.silent_for,
        has_left=latest.has_left,
    )


def as_json(node: NodeStatus) -> dict[str, Any]:
    """Return the object that `nodes --json` prints for a machine."""
    return {
        "place": node.name,
        "here": node.is_here,
        "state": node.state,
        "paused": node.is_paused,
        **_activity_json(node),
        "processes": [
            {"process": process.process, "pid": process.pid, **_activity_json(process)} for process in node.processes
        ],
    }


def _activity_json(source: NodeStatus | Participant) -> dict[str, Any]:
    return {
        "since_s": round(source.since, 3),
        "silent_for_s": round(source.silent_for, 3),
        "pages": source.pages,
        "pages_per_s": round(source.pages_per_second, 2),
        "in_flight": source.in_flight,
    }


def as_line(node: NodeStatus) -> str:
    """Return the line that `nodes` prints for a machine."""
    here = " (here)" if node.is_here else ""
    if node.processes:
        what = (
            f"{counted(len(node.processes), 'process', 'processes')}, "
            f"{'paused, ' if node.is_paused else ''}"
            f"up for {seconds_text(node.since)}, last seen {node.silent_for:.0f} s ago, "
            f"{node.pages_per_second:.1f} pages/s, {node.in_flight:,} in flight, {counted(node.pages, 'page')}"
        )
    else:
        what = f"{node.state} {seconds_text(node.silent_for)} ago, {counted(node.pages, 'page')}"
    return f"{node.name}{here}: {what}"
