"""Tells the story of a crawl in the log: every minute its figures, what limits it and query times, and every pause.

docs/operations.md explains the lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Any

from rove.app.limit_watch import LimitWatch
from rove.config import Limits, Settings
from rove.crawl.progress import Counters, Progress
from rove.errors import RoveError
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier
from rove.frontier.query_times import TimesReader, timing_lines
from rove.model.counts import Counts
from rove.model.ledger import RequestKind
from rove.notation.log_line import log_line
from rove.policy.limiting import Factor, Limiting

INTERVAL = 60.0
"""Seconds between two lines with the figures."""
CHECK_SECONDS = 1.0
"""How often pauses are looked for."""
LIMIT_SECONDS = 5.0
"""How often the log looks whether something else limits the crawl."""
LOOK_SHARE = 200
"""It looks again after a pause this many times as long as looking took: a large frontier is slow to count."""
COUNTS_SECONDS = 5.0
MIB = 1 << 20

log = logging.getLogger(__name__)


class PauseLog:
    """Logs the beginning and the end of everything that slows the crawl down or pauses it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def note(self, troubles: Mapping[str, str]) -> None:
        """Log what has begun or ended since the last call."""
        now = self._clock()
        for cause, sentence in troubles.items():
            if cause not in self._since:
                self._since[cause] = now
                log.warning("%s", log_line("pause", cause=cause, why=sentence))
        for cause in [cause for cause in self._since if cause not in troubles]:
            log.warning("%s", log_line("pause-end", cause=cause, seconds=now - self._since.pop(cause)))


class LimitLog:
    """Logs what limits the crawl: with the figures of every minute, and when something else has done so for a while."""

    def __init__(self) -> None:
        self._logged: Factor | None = None
        self._seen: Factor | None = None

    def note(self, found: Limiting) -> None:
        """Log the factor if it is another one than that of the last line, and was found twice in a row."""
        if found.factor is self._seen and found.factor is not self._logged:
            self.write(found)
        self._seen = found.factor

    def write(self, found: Limiting) -> None:
        """Log what limits the crawl now."""
        self._logged = found.factor
        log.info("%s", log_line("limit", factor=found.factor, domains_served=found.domains_served, why=found.why))


class CrawlLog:
    """Writes the figures of a running crawl into the log."""

    def __init__(
        self,
        progress: Progress,
        frontier: Frontier,
        *,
        limits: LimitWatch | None = None,
        clock: Callable[[], float] = steady_seconds,
        interval: float = INTERVAL,
        check_seconds: float = CHECK_SECONDS,
        limit_seconds: float = LIMIT_SECONDS,
        patience: float = COUNTS_SECONDS,
    ) -> None:
        """Prepare to write.

        `limits` finds out what limits the crawl; without it, that is not said. `patience` is how long a line waits for
        the frontier's counters; then it is written without them.
        """
        self._limits = limits
        self._limit_log = LimitLog()
        self._limit_seconds = limit_seconds
        self._look_at = clock() + limit_seconds
        self._progress = progress
        self._frontier = frontier
        self._clock = clock
        self._interval = interval
        self._check_seconds = check_seconds
        self._patience = patience
        self._pauses = PauseLog(clock)
        self._last = progress.snapshot()
        self._written_at = clock()

    @asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        """Write the log during the block, and its last line at the end."""
        task = asyncio.create_task(self._keep_writing())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await self._write()

    async def _keep_writing(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            self._pauses.note(self._progress.troubles)
            if self._clock() - self._written_at >= self._interval:
                await self._write()
            elif self._limits is not None and self._clock() >= self._look_at:
                await self._look(self._limits)

    async def _look(self, limits: LimitWatch) -> None:
        began = self._clock()
        with suppress(TimeoutError, RoveError):
            async with asyncio.timeout(self._patience):
                counts = await self._frontier.counts()
            self._limit_log.note(await limits.look(counts, patience=self._patience))
        took = self._clock() - began
        self._look_at = began + max(self._limit_seconds, LOOK_SHARE * took)

    async def _write(self) -> None:
        self._pauses.note(self._progress.troubles)
        now, counters = self._clock(), self._progress.snapshot()
        seconds = max(now - self._written_at, 0.001)
        counts = None
        with suppress(TimeoutError, RoveError):
            async with asyncio.timeout(self._patience):
                counts = await self._frontier.counts()
        figures = _figures(self._last, counters, seconds) | _frontier_figures(counts)
        log.info("%s", log_line("minute", elapsed_s=now - self._progress.started, **figures))
        if self._limits is not None and not self._progress.is_stopping:
            self._limit_log.write(await self._limits.look(counts, patience=self._patience))
        for line in timing_lines("query", self._frontier.query_times(TimesReader.LOG)):
            log.info("%s", line)
        self._last, self._written_at = counters, now


def _figures(before: Counters, counters: Counters, seconds: float) -> dict[str, Any]:
    """Return the totals of this run, and what was new in the last seconds."""
    new = counters.request_counters - before.request_counters
    return {
        "pages": counters.pages,
        "pages_per_s": (counters.pages - before.pages) / seconds,
        "visits_per_s": (counters.visits - before.visits) / seconds,
        "kib_per_s": (counters.bytes - before.bytes) / seconds / 1024,
        **{f"{kind}_requests": new[f"requests.{kind}"] for kind in RequestKind},
        "errors": _errors(new, counters.internal_errors - before.internal_errors),
        "in_flight": counters.in_flight,
        "at_once": counters.at_once,
        "held_by": ",".join(sorted(counters.held_by)),
        "queued": counters.queued,
        "rss_mib": round(counters.resident / MIB),
        "open_files": counters.open_files,
        "longest_lag_s": counters.longest_lag,
        "paused_by": ",".join(counters.troubles),
    }


def _errors(new: Counter[str], internal: int) -> str:
    errors = {name.removeprefix("errors."): count for name, count in new.items() if name.startswith("errors.")}
    if internal:
        errors["internal"] = internal
    return ",".join(f"{name}:{count}" for name, count in Counter(errors).most_common())


def _frontier_figures(counts: Counts | None) -> dict[str, Any]:
    """Return the figures of the whole crawl; '-' where the frontier does not answer."""
    names = ("ready", "waiting", "leased", "idle", "excluded")
    return {
        **{name: None if counts is None else counts.domains[name] for name in names},
        "pending": None if counts is None else counts.urls_pending,
        "pages_all_runs": None if counts is None else counts.pages,
    }


def settings_lines(settings: Settings) -> list[str]:
    """Return a line for each setting, with its default if it has another value."""
    return list(_setting_lines(settings, Settings(email=settings.email), ""))


def _setting_lines(settings: Settings | Limits, defaults: Settings | Limits, prefix: str) -> Iterable[str]:
    for field in fields(settings):
        value, default = getattr(settings, field.name), getattr(defaults, field.name)
        if is_dataclass(value):
            assert isinstance(value, Limits) and isinstance(default, Limits)
            yield from _setting_lines(value, default, f"{field.name}.")
            continue
        shown = {f"{prefix}{field.name}": _setting(value)}
        yield log_line("setting", **shown if value == default else shown | {"default": _setting(default)})


def _setting(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, tuple) else value
