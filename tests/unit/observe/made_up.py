"""Made-up samples of a crawl of 2,400 domains, whose line is away for a while in the middle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import exp, log2

from rove.model.samples import SHORTEST_SECONDS, Distribution, Sample

START = 1_763_510_400.0
"""2025-11-19 00:00:00Z."""


def times(random: random.Random, median: float, count: int) -> Distribution:
    """Return a histogram of durations around a median."""
    values = [median * exp(random.gauss(0, 0.6)) for _ in range(count)]
    buckets: dict[int, int] = {}
    for value in values:
        bucket = max(0, int(log2(value / SHORTEST_SECONDS)) + 1)
        buckets[bucket] = buckets.get(bucket, 0) + 1
    return Distribution(count=count, total=sum(values), longest=max(values, default=0.0), buckets=buckets)


def sample(
    at: float,
    *,
    node: str = "crawler-1",
    seconds: float = 10.0,
    begun: float = START,
    away: bool = False,
    seed: int = 0,
) -> Sample:
    """Return the sample of a machine that ends at `at`; `away`: its line is lost."""
    chance = random.Random(f"{node} {at} {seed}")
    age = at - begun
    warm = 1 - exp(-age / 120)
    pages = 0.0 if away else seconds * 31 * warm * chance.uniform(0.85, 1.1)
    in_flight = 20.0 if away else 90 * warm * chance.uniform(0.9, 1.1)
    waiting = 2_400 * warm * chance.uniform(0.96, 1.0)
    figures = {
        "pages.stored": pages * 0.9,
        "pages.copy": pages * 0.1,
        "visits": pages * 1.1,
        "requests.page": pages * 1.15,
        "requests.robots": pages * 0.05,
        "bytes.received": pages * 60_000,
        "bytes.stored": pages * 4_000,
        "links.found": pages * 40,
        "links.new": pages * 9,
        "errors.page.status-404": pages * 0.04,
        "errors.page.status-403": pages * 0.01,
        "errors.page.status-503": pages * 0.01,
        "errors.page.dns-not-found": pages * 0.006,
        "errors.page.connect": 30.0 if away else pages * 0.004,
        "errors.page.timeout-connect": 60.0 if away else pages * 0.005,
        "errors.robots.timeout-total": pages * 0.002,
        "claims": seconds * 4,
        "claims.empty": seconds * (4 if away else 1.2 * chance.random()),
        "no_request.blocked": pages * 0.03,
        "no_request.deferred": pages * 0.01,
        "in_flight": in_flight,
        "at_once": 120.0 + 40 * warm,
        "urls.pending": 2_400 + age * 250,
        "domains.ready": 2_400 - waiting + (300.0 if away else 0.0),
        "domains.waiting": waiting,
        "domains.leased": in_flight,
        "domains.idle": 40 * warm,
        "ceiling": 34.3,
        "cpu.supervisor": seconds * 0.03,
        "cpu.1": seconds * (0.05 + 0.5 * warm * (not away) * chance.uniform(0.9, 1.1)),
        "cpu.2": seconds * (0.05 + 0.45 * warm * (not away) * chance.uniform(0.9, 1.1)),
        "rss.supervisor": 60e6,
        "rss.1": 110e6 + min(age, 4e4) * 2_000,
        "rss.2": 105e6 + min(age, 4e4) * 1_800,
        "open_files.web": in_flight * 1.1,
        "open_files.database": 6.0,
        "open_files.files": 9.0,
        "open_files.other": 14.0,
        "lag.longest": 0.02 * chance.uniform(0.5, 3),
        "margin.smallest": chance.uniform(0.01, 0.4),
        "disk.free": 90e9 - age * 40_000,
        "memory.free": 3e9,
    }
    if away:
        figures["paused.outage"] = 1.0
    count = 2 if away else max(2, min(40, round(pages)))
    histograms = {
        name: times(chance, median, count)
        for name, median in (
            ("phase.dns", 0.02),
            ("phase.connect", 0.07),
            ("phase.tls", 0.12),
            ("phase.first_byte", 2.5 if away else 0.35),
            ("phase.transfer", 0.15),
            ("claim", 0.004),
            ("add", 0.012),
            ("settle", 0.006),
            ("flush", 0.008),
        )
    }
    return Sample(node=node, ended=round(at * 1000), seconds=seconds, figures=figures, histograms=histograms)


def samples(
    seconds: float,
    *,
    node: str = "crawler-1",
    every: float = 10.0,
    begun: float = START,
    outage: tuple[float, float] = (0.0, 0.0),
    missing: tuple[float, float] = (0.0, 0.0),
    seed: int = 0,
) -> Iterator[Sample]:
    """Yield the samples of a machine. In `outage` (since the start) its line is lost, in `missing` it is off."""
    for number in range(1, int(seconds / every) + 1):
        age = number * every
        if not missing[0] < age <= missing[1]:
            away = outage[0] < age <= outage[1]
            yield sample(begun + age, node=node, seconds=every, begun=begun, away=away, seed=seed)
