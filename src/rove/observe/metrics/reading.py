"""What the metrics are made from: the figures of this machine at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rove.model.samples import Distribution
from rove.policy.limiting import Factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """One process of this machine."""

    is_up: bool | None = True
    """None: it comes and goes."""
    resident: float | None = None
    """Bytes of resident memory; None: not measured, as for all of these."""
    cpu_seconds: float | None = None
    """CPU time since it was first started, by all processes that had its number."""
    open_files: Mapping[str, float] = field(default_factory=dict)
    """By kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Figures by the names that `rove.observe.figures` lists."""

    totals: Mapping[str, float] = field(default_factory=dict)
    """Counts since the command began. One that is absent is 0."""
    gauges: Mapping[str, float] = field(default_factory=dict)
    """Everything else, at the moment. One that is absent was not measured."""
    histograms: Mapping[str, Distribution] = field(default_factory=dict)
    """Durations and sizes since the command began."""
    processes: Mapping[str, ProcessReading] = field(default_factory=dict)
    """By name: supervisor, 1, 2 ..."""
    last_page: float | None = None
    """When a page was last stored, in wall-clock seconds since the epoch; None: not since the command began."""
    limiting_factor: Factor = Factor.UNKNOWN
