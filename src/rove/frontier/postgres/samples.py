"""The history in the frontier on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session
from rove.frontier.rows.samples import (
    KEPT_MS,
    SAMPLE_COLUMNS,
    STEPS,
    Period,
    SampleRow,
    period_due,
    rolled_up,
    sample_values,
)
from rove.model.samples import Sample


async def add_samples(database: PostgresDatabase, machine: int, samples: Sequence[Sample]) -> None:
    """Append samples of a machine as they were taken."""
    rows = [sample_values(machine, sample, STEPS[0]) for sample in samples]
    await database.batch("insert_samples", SAMPLE_COLUMNS, rows)


async def roll_up(database: PostgresDatabase, now: int) -> bool:
    """Roll up the oldest samples that are old enough, of one period and all machines; return whether there were any."""
    for step in KEPT_MS:
        oldest: int | None = await database.value("oldest_sample", step=step)
        period = None if oldest is None else period_due(step, oldest, now)
        if period is not None:
            await database.transaction("roll up samples", partial(_roll_up, period))
            return True
    return False


async def _roll_up(period: Period, session: Session) -> None:
    taken = await session.fetch("take_samples", **period._asdict())
    await session.batch("insert_samples", SAMPLE_COLUMNS, rolled_up(SampleRow(*row) for row in taken))
