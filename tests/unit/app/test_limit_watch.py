"""What limits a crawl that runs in this process, from its counters and the counts of its frontier."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rove.app.limit_watch import SAMPLES, SURROUNDINGS_SECONDS, LimitWatch, Surroundings
from rove.config import Limits
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Progress
from rove.errors import FrontierError
from rove.model.counts import Counts
from rove.model.request_counts import request_counts
from rove.model.samples import Distribution, Sample
from rove.model.urls import UrlState
from rove.policy.limiting import Factor

WAITING = Counts(
    urls=dict.fromkeys(UrlState, 0) | {UrlState.PENDING: 900},
    domains={"idle": 0, "waiting": 90, "ready": 0, "leased": 10, "excluded": 0},
    pages=50,
    bytes=0,
    request_counts=request_counts({}),
)
READY = replace(WAITING, domains={"idle": 0, "waiting": 10, "ready": 80, "leased": 10, "excluded": 0})


class Due:
    """A frontier that only tells when the next domain is due, and may hang or fail."""

    def __init__(self) -> None:
        self.hangs = False
        self.error: Exception | None = None
        self.asked = 0

    async def next_due(self) -> float | None:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return 41.0


class Watched:
    """A watch with a clock and surroundings of its own."""

    def __init__(self, *, processes: int = 2, limits: Limits | None = None) -> None:
        self.now = 100.0
        self.progress = Progress(started=self.now, at_once=500, held_by=Counter(demand=processes))
        self.frontier = Due()
        self.surroundings = Surroundings()
        self.looked_around = 0
        self._processes = processes
        frontier: Any = self.frontier
        self.watch = LimitWatch(
            self.progress,
            frontier,
            remaining_limits=RemainingLimits(
                limits=limits or Limits(), seconds_before=0.0, started=self.now, clock=lambda: self.now
            ),
            surroundings=self._look_around,
            cores=2,
            clock=lambda: self.now,
        )

    async def _look_around(self) -> Surroundings:
        self.looked_around += 1
        return self.surroundings

    def sample(self, figures: Mapping[str, float], **statements: float) -> None:
        """Let ten seconds pass, and take a sample at their end."""
        self.now += 10.0
        self.watch.note_sample(
            Sample(
                node="here",
                ended=round(1000 * self.now),
                seconds=10.0,
                figures={"processes": self._processes, **figures},
                histograms={f"query.{name}": Distribution(count=1, total=total) for name, total in statements.items()},
            )
        )


async def test_politeness_with_the_next_visit_and_the_domains_that_could_be_served() -> None:
    watched = Watched()
    watched.sample({"visits": 100, "cpu.1": 1.0, "cpu.2": 0.8})
    found = await watched.watch.look(WAITING)
    assert found.why.startswith("100 domains, 90 waiting, 10 being visited; the next is due in 41 s.")
    assert found.domains_served == 1_000, "1.8 s of CPU time in 10 s on two cores"


async def test_only_the_last_minute_counts() -> None:
    watched = Watched()
    watched.progress.request_counters.update({"requests.page": 5, "errors.page.dns": 5})
    assert (await watched.watch.look(WAITING)).factor is Factor.SITES, "without samples, all requests of the run"
    for _ in range(SAMPLES):
        watched.sample({"requests.page": 10, "errors.page.dns": 10})
    assert (await watched.watch.look(WAITING)).why.startswith("60 of 60 requests failed (dns 60)")
    for _ in range(SAMPLES):
        watched.sample({"requests.page": 10})
    assert (await watched.watch.look(WAITING)).factor is Factor.POLITENESS


async def test_pauses_and_limits() -> None:
    watched = Watched(limits=Limits(max_pages=60))
    watched.progress.in_flight = 10
    assert (await watched.watch.look(WAITING)).why.startswith("10 pages left until --max-pages")
    watched.progress.set_trouble("operator", "paused by 'rove pause'")
    assert (await watched.watch.look(WAITING)).sentence == "pause: by 'rove pause'. Continue with 'rove unpause'"
    watched.progress.is_stopping = True
    assert (await watched.watch.look(WAITING)).why == "the crawl stops; 10 visits in flight may finish"


async def test_statements_are_those_of_the_last_minute() -> None:
    watched = Watched(processes=1)
    watched.sample({"unsettled": 300}, commit=8.0, lease=1.0, **{"connection held: claim": 500.0})
    assert (await watched.watch.look(READY)).sentence == (
        "database: its statements take 90 % of the time; commit alone takes 80 %; "
        "300 finished visits wait to be written"
    )
    for _ in range(SAMPLES):
        watched.sample({})
    assert (await watched.watch.look(READY)).factor is Factor.UNKNOWN


async def test_the_surroundings_are_read_from_time_to_time() -> None:
    watched = Watched()
    for _ in range(20):
        watched.now += SURROUNDINGS_SECONDS / 5
        await watched.watch.look(WAITING)
    assert watched.looked_around <= 5
    watched.surroundings = Surroundings(machines=3, seeds_loading=7)
    watched.now += SURROUNDINGS_SECONDS
    assert (await watched.watch.look(WAITING)).why.startswith("7 seeds loaded so far")
    watched.surroundings = Surroundings(machines=3)
    watched.sample({"visits": 100, "cpu.1": 1.0})
    found = await watched.watch.look(WAITING)
    assert "these 3 machines could serve" in found.why, "while seeds are loaded they are read each time"


async def test_a_database_that_does_not_answer_holds_nothing_up() -> None:
    watched = Watched()
    assert (await watched.watch.look(None)).factor is Factor.UNKNOWN
    assert watched.frontier.asked == 0
    watched.frontier.error = FrontierError("gone")
    assert (await watched.watch.look(WAITING)).why.startswith("100 domains, 90 waiting")
    watched.frontier.hangs = True
    assert (await watched.watch.look(WAITING, patience=0.01)).why.startswith("100 domains, 90 waiting")
    watched.progress.set_trouble("database", "the database is away (refused); waiting for it")
    assert (await watched.watch.look(None)).factor is Factor.DATABASE
