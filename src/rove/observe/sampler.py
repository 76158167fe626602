"""Takes a sample of this machine every ten seconds, and keeps it until the database has it.

Nothing here may disturb the crawl. A database that is away, a full disk or a bug costs at most the samples that do not
fit into an hour's buffer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from rove.errors import RoveError
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier
from rove.model.samples import Sample, together
from rove.notation.humanize import counted
from rove.observe.ceiling import Ceiling
from rove.observe.machine import Machine

SAMPLE_SECONDS = 10.0
OFFSET_SECONDS = 1.0
"""A sample is taken this long after a multiple of ten seconds of the steady clock: all processes have sent theirs."""
BUFFERED = 360
"""Samples that are kept while the database is away: those of an hour."""
COUNTS_SECONDS = 3.0
"""How long a sample waits for the counters of the crawl; then it is taken without them."""
SLOWEST_COUNT = "query.count_ready"
"""The query of the counters whose duration grows with the crawl: with the number of domains that are ready."""
COUNTS_SHARE = 100
"""The counters are read again after a pause this many times as long as that query took."""
LAST_SECONDS = 5.0
ROLL_UPS = 3
"""Steps of the roll-up after each sample."""

log = logging.getLogger(__name__)


class Sampler:
    """The samples of this machine, from the start of a run to its end."""

    def __init__(
        self,
        frontier: Frontier,
        machine: Machine,
        *,
        take: Callable[[], list[Sample]],
        is_loading: Callable[[], bool],
        on_sample: Callable[[Sample], None] = lambda sample: None,
        clock: Callable[[], float] = steady_seconds,
        wall_clock: Callable[[], float] = time.time,
        interval: float = SAMPLE_SECONDS,
        last_seconds: float = LAST_SECONDS,
    ) -> None:
        """Prepare.

        `take` returns what each process of this machine has done since the last call. `is_loading` tells whether seeds
        are being loaded. `on_sample` is given each sample. The end of a run waits `last_seconds` for the last samples
        to be written.
        """
        self._frontier = frontier
        self._machine = machine
        self._take = take
        self._is_loading = is_loading
        self._on_sample = on_sample
        self._clock = clock
        self._wall_clock = wall_clock
        self._interval = interval
        self._last_seconds = last_seconds
        self._ceiling = Ceiling()
        self._began = clock()
        self._count_at = self._began
        self._unwritten: deque[bytes] = deque(maxlen=BUFFERED)
        """Samples that the database does not have yet, oldest first. Encoded, they take a tenth of the memory."""
        self._has_new = asyncio.Event()
        self._is_ending = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take samples during the block, and the last one at its end."""
        sampling, writing = asyncio.create_task(self._keep_sampling()), asyncio.create_task(self._keep_writing())
        try:
            yield
        finally:
            sampling.cancel()
            await asyncio.wait([sampling])
            self._is_ending = True
            await self._sample_safely()
            self._has_new.set()
            await asyncio.wait([writing], timeout=self._last_seconds)
            writing.cancel()
            await asyncio.wait([writing])
            if self._unwritten:
                log.warning("%s could not be written", counted(len(self._unwritten), "sample"))

    async def _keep_sampling(self) -> None:
        while True:
            await asyncio.sleep(self._seconds_to_next())
            await self._sample_safely()

    def _seconds_to_next(self) -> float:
        seconds = self._interval - (self._clock() - OFFSET_SECONDS) % self._interval
        return seconds if seconds > self._interval / 2 else seconds + self._interval

    async def _sample_safely(self) -> None:
        try:
            sample = await self._sample()
            self._unwritten.append(msgspec.msgpack.encode(sample))
            self._has_new.set()
            self._on_sample(sample)
        except Exception:
            log.exception("a sample could not be taken; this is a bug")

    async def _sample(self) -> Sample:
        processes = self._take()
        now = self._clock()
        own = Sample(
            node=self._frontier.node,
            ended=round(self._wall_clock() * 1000),
            seconds=now - self._began,
            figures={**self._machine.figures(), "seeds.loading": float(self._is_loading())},
        )
        self._began = now
        whole = together([*processes, own])
        crawl = await self._crawl_figures(whole)
        return msgspec.structs.replace(own, figures={**whole.figures, **crawl}, histograms=whole.histograms)

    async def _crawl_figures(self, whole: Sample) -> dict[str, float]:
        """Return the figures of the whole crawl; none if the frontier does not answer, or if it was asked just now."""
        now = self._clock()
        slowest = whole.histograms.get(SLOWEST_COUNT)
        if slowest is not None:
            self._count_at = now + COUNTS_SHARE * slowest.longest - self._interval
        if now < self._count_at or self._frontier.troubles().get("database"):
            return {}
        try:
            async with asyncio.timeout(COUNTS_SECONDS):
                counts, due = await self._frontier.counts(), await self._frontier.due_in()
        except (TimeoutError, RoveError) as error:
            log.debug("a sample without the counters of the crawl: %s", error)
            return {}
        return {
            **{f"urls.{state.name.lower()}": number for state, number in counts.urls.items()},
            **{f"domains.{state}": number for state, number in counts.domains.items()},
            **({} if due is None else {"oldest_due": max(0.0, -due), "next_due": max(0.0, due)}),
            **self._ceiling.figures(whole, counts.domains),
        }

    async def _keep_writing(self) -> None:
        """Write samples as they come. While the database is away, `add_samples` waits for it, and samples collect."""
        has_failed = False
        while self._unwritten or not self._is_ending:
            await self._has_new.wait()
            self._has_new.clear()
            try:
                await self._write()
                has_failed = False
            except RoveError as error:
                if not has_failed:
                    log.warning("samples could not be written and are kept: %s", error)
                has_failed = True
            except Exception:
                log.exception("samples could not be written; this is a bug")
            if self._is_ending:
                return

    async def _write(self) -> None:
        while self._unwritten:
            encoded = list(self._unwritten)
            await self._frontier.add_samples([msgspec.msgpack.decode(text, type=Sample) for text in encoded])
            # Meanwhile the oldest may have been dropped for lack of room.
            written = set(encoded)
            while self._unwritten and self._unwritten[0] in written:
                self._unwritten.popleft()
        for _ in range(ROLL_UPS):
            if self._is_ending or not await self._frontier.roll_up_samples(round(self._wall_clock() * 1000)):
                return
