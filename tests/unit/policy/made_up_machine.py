"""A made-up machine and web for tests of policy/concurrency.py: a queue, a fake clock, and no real time."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rove.policy.concurrency import Bounds, Figures, InFlight, decide, first


@dataclass
class Machine:
    """One process. A visit waits for the web, and then in a queue for the CPU."""

    bounds: Bounds
    latency: tuple[float, float] = (0.2, 1.5)
    cost: float = 0.003
    """CPU seconds of a visit."""
    silent_share: float = 0.0
    silent_seconds: float = 15.0
    memory: float = 1e9
    bytes_each: float = 60_000.0
    stolen: Callable[[float], float] = lambda _: 0.0
    """The share of the CPU that others use, by time."""
    now: float = 0.0
    limits: list[int] = field(default_factory=list)
    """The limit after each second."""
    rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state: InFlight = first(self.bounds)
        self._random = random.Random(1)
        self._on_the_web: list[tuple[float, float]] = []
        """When each visit's answer comes, and what it costs."""
        self._queue: deque[tuple[float, float]] = deque()
        """When each answer came, and what it costs."""
        self._cpu_free_at = 0.0

    @property
    def in_flight(self) -> int:
        """Visits that wait for the web or for the CPU."""
        return len(self._on_the_web) + len(self._queue)

    def run(self, seconds: int) -> Machine:
        """Let time pass; decide once a second."""
        for _ in range(seconds):
            self._second()
        return self

    def _second(self) -> None:
        end, step = self.now + 1.0, 0.02
        ended, busy, lags = 0, 0.0, []
        while self.now < end:
            self.now += step
            while self.in_flight < self.state.limit:
                self._begin()
            while self._on_the_web and self._on_the_web[0][0] <= self.now:
                self._queue.append(heapq.heappop(self._on_the_web))
            self._cpu_free_at = max(self._cpu_free_at, self.now - step)
            while self._queue and self._cpu_free_at < self.now:
                _, cost = self._queue.popleft()
                busy += cost
                self._cpu_free_at += cost / (1 - self.stolen(self.now))
                ended += 1
            lags.append(self.now - self._queue[0][0] if self._queue else 0.0)
        figures = Figures(
            seconds=1.0,
            are_waiting=True,
            cpu=min(busy, 1.0),
            lag=sum(lags) / len(lags),
            rate=ended,
            free_memory=self.memory - self.in_flight * self.bytes_each,
        )
        self.state = decide(self.state, figures, self.bounds)
        self.limits.append(self.state.limit)
        self.rates.append(ended)

    def _begin(self) -> None:
        is_silent = self._random.random() < self.silent_share
        seconds = self.silent_seconds if is_silent else self._random.uniform(*self.latency)
        cost = 0.0002 if is_silent else self.cost * self._random.uniform(0.5, 1.5)
        heapq.heappush(self._on_the_web, (self.now + seconds, cost))
