"""How late the event loop is."""

from __future__ import annotations

import asyncio
import time

from rove.resources.loop_lag import LoopLag, mean_lag


def test_a_blocked_loop_lags_by_the_time_it_was_blocked() -> None:
    async def measured() -> float:
        lag = LoopLag()
        await asyncio.sleep(0.05)
        before = lag.seconds
        time.sleep(0.3)  # noqa: ASYNC251 - blocks the loop on purpose
        await asyncio.sleep(0.05)
        lag.close()
        return lag.seconds - before

    assert asyncio.run(measured()) > 0.2


def test_the_longest_stop_is_remembered() -> None:
    async def measured() -> tuple[float, float]:
        lag = LoopLag()
        await asyncio.sleep(0.05)
        time.sleep(0.3)  # noqa: ASYNC251 - blocks the loop on purpose
        await asyncio.sleep(0.05)
        time.sleep(0.1)  # noqa: ASYNC251
        await asyncio.sleep(0.05)
        lag.close()
        return lag.longest, lag.seconds

    longest, total = asyncio.run(measured())
    assert 0.2 < longest <= total


def test_the_mean_is_that_of_the_times_the_timer_fired() -> None:
    assert mean_lag(0.0, 1.0) == 0.0
    assert 0.17 < mean_lag(0.9, 1.0) < 0.19, "rounds of a fifth of a second"
    assert mean_lag(3.0, 2.5) == 3.0, "blocked all the time"
