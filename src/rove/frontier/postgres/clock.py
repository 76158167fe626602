"""The clock of the server, watched by those who use it.

Times that decide about politeness are the database's, so that all machines agree; but somebody may set the server's
clock. Every process compares it with its own steady clock. A step forward would make domains due early: a claim
therefore says what time it can be at the latest. A step back would stall the crawl, and what is written then would be
over too early once it is amended: delays are therefore reckoned from the earliest that it can be, at least. The first
process that sees a step takes it out of the crawl's clock for everybody; the others find that the two together are as
they were. Only a process that began between a step and that, and has not looked a second time, can be wrong.

A server whose clock is set while no process of the crawl runs cannot be told from time that has passed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rove.frontier.postgres.database import Database, Session

STEP_MS = 50
"""A difference that is no step yet; how long an answer was under way is reckoned with besides."""
DRIFT = 0.001
"""How much faster or slower than ours a clock may run: twice what keeping it right by slewing makes of it."""
_FAR_AWAY = (1 << 62) - 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the server said, and when by our own clock."""

    server_ms: int
    amendment_ms: int
    """What is added to it to make the crawl's clock."""
    asked_at: float
    answered_at: float

    @property
    def crawl_ms(self) -> int:
        """The crawl's clock."""
        return self.server_ms + self.amendment_ms


class ServerClock:
    """What one process knows of the server's clock."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._first: Reading | None = None
        self._looked = 0

    def latest(self) -> int:
        """The latest that it can be by the crawl's clock."""
        first = self._first
        if first is None:
            return _FAR_AWAY
        elapsed = self._steady() - first.asked_at
        return first.crawl_ms + round(elapsed * 1000 * (1 + DRIFT)) + STEP_MS

    def earliest(self) -> int:
        """The earliest that it can be by the crawl's clock."""
        first = self._first
        if first is None:
            return -_FAR_AWAY
        elapsed = max(0.0, self._steady() - first.answered_at)
        return first.crawl_ms + round(elapsed * 1000 * (1 - DRIFT)) - STEP_MS

    def ceiling(self) -> int:
        """The latest that may be written down.

        Who has looked only once may have begun just after a step back, and would write what is over too early.
        """
        return self.latest() if self._looked > 1 else _FAR_AWAY

    def check(self, reading: Reading) -> int:
        """By how many milliseconds the crawl's clock is wrong since the server's was set, 0 if it was not; take the
        reading for the truth if not.

        Whoever finds a step amends the crawl's clock by it, and then reads again.
        """
        first = self._first
        self._looked += 1
        if first is None:
            self._first = reading
            return 0
        server_step = _step(first, reading, reading.server_ms - first.server_ms)
        crawl_step = _step(first, reading, reading.crawl_ms - first.crawl_ms)
        if not (server_step and crawl_step):
            # Nothing was set; or it was and somebody has amended it; or it was before we came.
            self._first = reading
            return 0
        # Not the server's step: somebody may have amended most of it, from an answer that was long under way.
        return crawl_step


class ClockGuard:
    """Watches the server's clock for one process, and amends the crawl's."""

    def __init__(self, database: Database, steady: Callable[[], float]) -> None:
        self._database = database
        self._steady = steady
        self._clock = ServerClock(steady)

    def latest(self) -> int:
        """The latest that it can be by the crawl's clock."""
        return self._clock.latest()

    def earliest(self) -> int:
        """The earliest that it can be by the crawl's clock."""
        return self._clock.earliest()

    def ceiling(self) -> int:
        """The latest that may be written down."""
        return self._clock.ceiling()

    async def watch(self) -> None:
        """See whether the server's clock was set, and take that out of the crawl's."""
        reading = await self._database.run("read the clock", self._read)
        step = self._clock.check(reading)
        if step:
            log.warning("the server's clock was set by %+.1f s; the crawl's is not", step / 1000)
            amend = partial(self._amend, reading.amendment_ms, step)
            await self._database.transaction("amend the clock", amend)
            self._clock.check(await self._database.run("read the clock", self._read))

    async def _read(self, session: Session) -> Reading:
        asked_at = self._steady()
        row = (await session.fetch("server_clock"))[0]
        return Reading(row[0], row[1] or 0, asked_at, self._steady())

    async def _amend(self, known: int, step: int, session: Session) -> None:
        """Unless somebody else has done so since."""
        connection = session.connection
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
            f"rove clock {self._database.schema}",
        )
        kept = await session.value("get_meta", key="clock_amendment")
        if int(kept or 0) == known:
            amendment = known - step
            await connection.execute(
                "CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
                f"$$ SELECT server_ms() + ({amendment:d}) $$"
            )
            await session.fetch("set_meta", key="clock_amendment", value=str(amendment))


def _step(first: Reading, second: Reading, passed_ms: int) -> int:
    """How far a clock that went on by so much differs from what can have passed between two readings.

    Rather too much than too little: the amended clock is then never ahead of what it should be.
    """
    least = max(0.0, second.asked_at - first.answered_at) * 1000
    most = (second.answered_at - first.asked_at) * 1000
    slack = STEP_MS + most * DRIFT
    if least - slack <= passed_ms <= most + slack:
        return 0
    return round(passed_ms - least)
