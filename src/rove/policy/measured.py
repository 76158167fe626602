"""What samples tell about how busy the machines are, for policy/limiting.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rove.model.samples import Sample
from rove.policy.situation import Load

POSTGRES_SESSIONS = 3
"""A process claims, adds and settles at the same time. On SQLite it has one connection."""
MOSTLY = 0.5
"""A cause that paused the crawl for this share of the time still counts at its end."""
_QUERY = "query."
_CONNECTION = "connection "
"""The names of durations that include those of statements begin with this."""


def load_of(sample: Sample, *, machines: int = 1, cores: int | None = None) -> Load:
    """Return how busy the machines were. `cores` are those of all machines, if that is known."""
    figures = sample.figures
    is_postgres = any(name.startswith("database.connections.") for name in figures)
    flush = sample.histograms.get("flush")
    return Load(
        seconds=sample.seconds,
        machines=machines,
        processes=max(1, round(figures.get("processes", 1))),
        cores=cores,
        sessions=POSTGRES_SESSIONS if is_postgres else 1,
        domains=_with_work(figures),
        visits=round(figures.get("visits", 0)),
        received=round(figures.get("bytes.received", 0)),
        cpu_seconds=sample.total("cpu."),
        store_seconds=None if flush is None else flush.total,
        statements=_statements(sample),
    )


def _with_work(figures: Mapping[str, float]) -> float | None:
    states = [f"domains.{state}" for state in ("waiting", "ready", "leased")]
    return sum(figures[state] for state in states) if all(state in figures for state in states) else None


def _statements(sample: Sample) -> Mapping[str, float]:
    names = {name: name.removeprefix(_QUERY) for name in sample.histograms if name.startswith(_QUERY)}
    return {
        statement: sample.histograms[name].total
        for name, statement in names.items()
        if not statement.startswith(_CONNECTION)
    }


def requests_of(sample: Sample) -> int:
    """Return how many requests were made."""
    return round(sample.total("requests."))


def errors_of(sample: Sample) -> Counter[str]:
    """Return the requests that failed, by error."""
    errors: Counter[str] = Counter()
    for name, count in sample.family("errors.").items():
        errors[name.partition(".")[2]] += round(count)
    return errors


def troubles_of(sample: Sample) -> dict[str, str]:
    """Return what slowed the crawl down or paused it for most of the time, by cause, without sentences."""
    return {cause: "" for cause, share in sample.family("paused.").items() if share >= MOSTLY}
