"""Reads the history of a crawl from either database, in slices."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any, Protocol

from rove.frontier.rows.samples import STEPS, SampleRow
from rove.model.samples import Sample, combined

SLICE = 200
"""Rows that are read at a time."""
_END_OF_TIME = (1 << 63) - 1
LAST = (1 << 31) - 1
"""A machine and a step after all others."""


class SampleTables(Protocol):
    """The queries that read samples."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of a named query."""

    async def machine_name(self, machine: int) -> str:
        """Return the name of a machine."""


class SampleReader:
    """Reads samples, several of one machine combined where they are shorter than what is asked for."""

    def __init__(self, tables: SampleTables, *, limit: int = SLICE) -> None:
        self._tables = tables
        self._limit = limit

    async def samples(
        self, *, since: float = -math.inf, until: float = math.inf, step: float = STEPS[0], node: str | None = None
    ) -> AsyncIterator[list[Sample]]:
        """Iterate over the history; see HistoryReader."""
        length = round(step * 1000)
        begun: dict[int, list[SampleRow]] = {}
        slot = None
        async for row in self._rows(since, until):
            row_slot = (row.ended - 1) // length
            if row_slot != slot and begun:
                samples = await self._combined(begun, node)
                begun = {}
                if samples:
                    yield samples
            slot = row_slot
            begun.setdefault(row.machine, []).append(row)
        samples = await self._combined(begun, node)
        if samples:
            yield samples

    async def latest_samples(self) -> list[Sample]:
        """Return the latest sample of each machine."""
        rows = [SampleRow(*row) for row in await self._tables.fetch("latest_samples")]
        return [row.sample(await self._tables.machine_name(row.machine)) for row in rows]

    async def _combined(self, rows: dict[int, list[SampleRow]], node: str | None) -> list[Sample]:
        """Return one sample for each machine, or only that of one."""
        names = {machine: await self._tables.machine_name(machine) for machine in rows}
        return [
            combined([row.sample(names[machine]) for row in rows[machine]])
            for machine in rows
            if node is None or names[machine] == node
        ]

    async def _rows(self, since: float, until: float) -> AsyncIterator[SampleRow]:
        """Iterate over the samples that ended after `since` and until `until`, each slice by a statement of its own."""
        last = _END_OF_TIME if math.isinf(until) else math.floor(until * 1000)
        first = 0 if math.isinf(since) else math.floor(since * 1000)
        after = {"ended": first, "machine": LAST, "step": LAST}
        while True:
            rows = await self._tables.fetch("samples_after", **after, until=last, limit=self._limit)
            for row in rows:
                yield SampleRow(*row)
            if len(rows) < self._limit:
                return
            after = {"ended": rows[-1][0], "machine": rows[-1][1], "step": rows[-1][2]}
