"""Samples are packed so small that a year of one machine takes less than 250 MB."""

from __future__ import annotations

import hashlib
import random
from importlib import resources

from rove.frontier.queries import load_queries
from rove.frontier.rows.packed_samples import pack, unpack
from rove.model.histogram import DURATION_BOUNDS, SIZE_BOUNDS, Histogram
from rove.model.ledger import RequestKind
from rove.model.marks import Mark
from rove.model.outcomes import FailureKind
from rove.model.request_counts import counter_names
from rove.model.samples import Distribution, Sample
from rove.model.urls import NotAccepted

DICTIONARY = "bb5c2112"
ROW_BYTES = 150
"""The other columns of a row and its entries in the indexes, at most."""
YEAR = {10: 2 * 86_400 / 10, 60: 14 * 86_400 / 60, 600: 365 * 86_400 / 600}
"""How many samples of each step one machine has after a year."""


def sample(figures: dict[str, float], histograms: dict[str, Distribution] | None = None) -> Sample:
    return Sample(node="", ended=0, seconds=10.0, figures=figures, histograms=histograms or {})


def busy_sample() -> Sample:
    """A sample with more names than a real one has: all errors, fifty queries, eight processes."""
    dice = random.Random(7)
    errors = [name for kind in RequestKind for error in FailureKind for name in counter_names(kind, error.value)]
    errors += [name for status in range(400, 520, 10) for name in counter_names(RequestKind.PAGE, f"status-{status}")]
    reasons = [f"not_taken.{reason}" for reason in NotAccepted] + [f"marks.{mark}" for mark in Mark]
    processes = [f"{figure}.{process}" for figure in ("cpu", "rss") for process in range(1, 9)]
    figures = {name: float(dice.randrange(1, 5_000)) for name in (*errors, *reasons)}
    figures |= {name: dice.random() * 1e9 for name in processes}
    queries = [f"query.{name}" for name in load_queries("sqlite")][:50]
    phases = [f"phase.{phase}" for phase in ("dns", "connect", "tls", "first_byte", "transfer")]
    histograms = {}
    for name in (*queries, *phases, "page_size"):
        histogram = Histogram(SIZE_BOUNDS if name == "page_size" else DURATION_BOUNDS)
        for _ in range(300):
            histogram.add(dice.lognormvariate(-5, 1.0) * (1e6 if name == "page_size" else 1))
        histograms[name] = histogram.take()
    return sample(figures, histograms)


def test_what_was_packed_comes_back() -> None:
    durations = Distribution(count=4, total=1.2345678, longest=1.0049, buckets={0: 1, 5: 2, 14: 1})
    sizes = Distribution(count=1, total=70_000.0, longest=70_000.0, buckets={11: 1}, first=64.0)
    figures = {
        "visits": 12_345_678.0,
        "rss.1": 123_456_789.0,
        "ceiling": 123.456,
        "ceiling.used": 0.0,
        "errors.page.é": 1.0,
    }
    given = sample(figures, {"claim": durations, "page_size": sizes, "add": Distribution()})
    assert unpack(pack(given)) == (
        {**figures, "ceiling": 123.5, "rss.1": 123_500_000.0},
        {
            "claim": Distribution(count=4, total=1.235, longest=1.0, buckets=durations.buckets),
            "page_size": sizes,
        },
    )


def test_a_year_of_a_busy_machine_stays_below_250_mb() -> None:
    size = len(pack(busy_sample()))
    assert sum(YEAR.values()) * (size + ROW_BYTES) < 250e6, f"{size} bytes each"


def test_the_dictionary_stays_as_it_is() -> None:
    """With another one, no sample that was written before could be read: change it only together with the schema."""
    names = resources.files("rove.frontier.rows").joinpath("sample_names.txt").read_bytes()
    assert hashlib.blake2b(names, digest_size=4).hexdigest() == DICTIONARY
