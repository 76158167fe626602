"""The history in the embedded frontier. Everything here runs in the database's thread."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.rows.samples import KEPT_MS, STEPS, SampleRow, period_due, rolled_up, sample_values
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.samples import Sample

THIS_MACHINE = 0


def machine_name(database: SqliteDatabase) -> str:
    """Return the name of the machine: the data directory, because there is only one machine."""
    return str(database.path.parent)


def add_samples(database: SqliteDatabase, samples: Sequence[Sample]) -> None:
    """Append samples as they were taken."""
    rows = [sample_values(THIS_MACHINE, sample, STEPS[0])[1:] for sample in samples]
    with database.transaction():
        database.insert("insert_samples", rows)


def roll_up(database: SqliteDatabase, now: int) -> bool:
    """Roll up the oldest samples that are old enough, of one period; return whether there were any."""
    for step in KEPT_MS:
        oldest = database.execute("oldest_sample", step=step)
        period = period_due(step, oldest[0][0], now) if oldest else None
        if period is not None:
            with database.transaction():
                taken = database.execute("take_samples", **period._asdict())
                database.insert("insert_samples", [row[1:] for row in rolled_up(map(SampleRow._make, taken))])
            return True
    return False
