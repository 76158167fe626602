"""The rows of the table of samples: a few columns for SQL, and all figures and histograms packed into one value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from rove.frontier.rows.packed_samples import pack, unpack
from rove.model.samples import Sample, combined

STEPS = (10, 60, 600)
"""The lengths of stored samples in seconds: as they are taken, and rolled up once and twice."""
_DAY_MS = 86_400_000
KEPT_MS = {10: 2 * _DAY_MS, 60: 14 * _DAY_MS}
"""How long samples are kept before they are rolled up into the next step, in milliseconds."""
SAMPLE_COLUMNS = (
    *("machine", "ended", "step", "seconds", "pages", "visits", "requests", "errors", "bytes", "in_flight"),
    *("pending", "figures"),
)


class SampleRow(NamedTuple):
    """A row of the table that is read."""

    ended: int
    machine: int
    """0 on SQLite, where there is only one."""
    step: int
    seconds: float
    figures: bytes

    def sample(self, node: str) -> Sample:
        """Unpack the sample of a machine with this name."""
        figures, histograms = unpack(self.figures)
        return Sample(node=node, ended=self.ended, seconds=self.seconds, figures=figures, histograms=histograms)


class Period(NamedTuple):
    """Samples of one step that become one sample of the next, of each machine: those that end in this time."""

    step: int
    after: int
    until: int


def period_due(step: int, oldest: int, now: int) -> Period | None:
    """Return the period of the oldest sample of a step if it is old enough to be rolled up; times in milliseconds."""
    length = following(step) * 1000
    after = (oldest - 1) // length * length
    period = Period(step, after, after + length)
    return period if period.until <= now - KEPT_MS[step] else None


def following(step: int) -> int:
    """Return the step into which samples of this one are rolled up."""
    return STEPS[STEPS.index(step) + 1]


def rolled_up(rows: Iterable[SampleRow]) -> list[tuple[Any, ...]]:
    """Return the rows that replace the samples of one period."""
    by_machine: dict[int, list[SampleRow]] = {}
    for row in rows:
        by_machine.setdefault(row.machine, []).append(row)
    rolled = []
    for machine, parts in by_machine.items():
        samples = [row.sample("") for row in sorted(parts, key=lambda row: row.ended)]
        rolled.append(sample_values(machine, combined(samples), following(parts[0].step)))
    return rolled


def sample_values(machine: int, sample: Sample, step: int) -> tuple[Any, ...]:
    """Return the values of SAMPLE_COLUMNS."""
    figures = sample.figures
    pending = figures.get("urls.pending")
    return (
        machine,
        sample.ended,
        step,
        sample.seconds,
        *(round(sample.total(prefix)) for prefix in ("pages.", "visits", "requests.", "errors.", "bytes.received")),
        figures.get("in_flight"),
        None if pending is None else round(pending),
        pack(sample),
    )
