"""Guards the crawl against steps of the server's clock.

Times that decide about politeness are the database's, so that all machines agree. But the server's clock may be set,
so every process compares it with its own steady clock. A step forward would make domains due early; therefore a
claim passes the latest time that it can be. A step back would stall the crawl, and delays that are written during the
step would end too early once it is corrected; therefore delays count from the earliest time that it can be. The first
process that notices a step corrects the crawl's clock for all. The others then find that server clock and correction
together are as they were. Only a process that began between a step and its correction, and has read the clock only
once, can be wrong.

A step while no process of the crawl runs cannot be told from time that has passed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session

STEP_MS = 50
"""A smaller difference is no step. The round-trip time is allowed for as well."""
DRIFT = 0.001
"""Maximum relative drift between the two clocks: twice NTP's 500 ppm slew limit."""
_FAR_AWAY = (1 << 62) - 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of the server's clock, and when it was made by our own clock."""

    server_ms: int
    amendment_ms: int
    """Added to the server's clock to get the crawl's clock."""
    asked_at: float
    answered_at: float

    @property
    def crawl_ms(self) -> int:
        """The crawl's clock."""
        return self.server_ms + self.amendment_ms


class ServerClock:
    """The limits of the crawl's time, as one process knows them."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._reference: Reading | None = None
        self._readings = 0

    def latest(self) -> int:
        """Return the latest time that it can be by the crawl's clock."""
        reference = self._reference
        if reference is None:
            return _FAR_AWAY
        elapsed = self._steady() - reference.asked_at
        return reference.crawl_ms + round(elapsed * 1000 * (1 + DRIFT)) + STEP_MS

    def earliest(self) -> int:
        """Return the earliest time that it can be by the crawl's clock."""
        reference = self._reference
        if reference is None:
            return -_FAR_AWAY
        elapsed = max(0.0, self._steady() - reference.answered_at)
        return reference.crawl_ms + round(elapsed * 1000 * (1 - DRIFT)) - STEP_MS

    def ceiling(self) -> int:
        """Return the latest time that may be written.

        A process that has read the clock only once may have begun just after a step back. It has no ceiling, because it
        would write delays that end too early.
        """
        return self.latest() if self._readings > 1 else _FAR_AWAY

    def check(self, reading: Reading) -> int:
        """Return by how many milliseconds a step made the crawl's clock wrong, or 0.

        Without a step the reading becomes the new reference. With one, the caller corrects the crawl's clock and reads
        it again.
        """
        reference = self._reference
        self._readings += 1
        if reference is None:
            self._reference = reading
            return 0
        server_step = _step(reference, reading, reading.server_ms - reference.server_ms)
        crawl_step = _step(reference, reading, reading.crawl_ms - reference.crawl_ms)
        if not (server_step and crawl_step):
            # There was no step, or another process has corrected it, or it was before this process began.
            self._reference = reading
            return 0
        # Not the server's step: another process may have corrected most of it, after a slow reading.
        return crawl_step


class ClockGuard:
    """Watches the server's clock for one process, and corrects the crawl's clock."""

    def __init__(self, database: PostgresDatabase, steady: Callable[[], float]) -> None:
        self._database = database
        self._steady = steady
        self._clock = ServerClock(steady)
        self.latest = self._clock.latest
        self.ceiling = self._clock.ceiling

    def limits(self) -> dict[str, int]:
        """Return the parameters of the fragment {now}."""
        return {"earliest": self._clock.earliest(), "ceiling": self._clock.ceiling()}

    async def watch(self) -> None:
        """Check the server's clock for a step, and take the step out of the crawl's clock."""
        reading = await self._database.run("read the clock", self._read)
        step = self._clock.check(reading)
        if step:
            log.warning("the server's clock was set by %+.1f s; the crawl's clock is corrected", step / 1000)
            amend = partial(self._amend, reading.amendment_ms, step)
            await self._database.transaction("correct the clock", amend)
            self._clock.check(await self._database.run("read the clock", self._read))

    async def _read(self, session: Session) -> Reading:
        asked_at = self._steady()
        row = (await session.fetch("read_clock"))[0]
        return Reading(row[0], row[1] or 0, asked_at, self._steady())

    async def _amend(self, known: int, step: int, session: Session) -> None:
        """Correct the crawl's clock, unless another process has done so since."""
        await session.fetch("advisory_lock", name=f"rove clock {self._database.schema}")
        amendment = int(await session.value("get_meta", key="clock_amendment") or 0)
        if amendment == known:
            await session.fetch("amend_clock", amendment=known - step)
            await session.fetch("set_meta", key="clock_amendment", value=str(known - step))


def _step(first: Reading, second: Reading, passed_ms: int) -> int:
    """Return how far a clock that advanced by `passed_ms` is off, given the time between two readings.

    Rounds up, so that the corrected clock is never ahead of the right time.
    """
    least = max(0.0, second.asked_at - first.answered_at) * 1000
    most = (second.answered_at - first.asked_at) * 1000
    slack = STEP_MS + most * DRIFT
    if least - slack <= passed_ms <= most + slack:
        return 0
    return round(passed_ms - least)
