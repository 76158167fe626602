"""Where the values of metrics come from: functions that pick figures from a reading.

All labels are names from rove's own lists. A domain or URL is never one, because every new value of a label is a new
series in the memory of whoever collects the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus

from rove.model.ledger import RequestKind
from rove.model.reasons import error_status, is_status_error
from rove.model.request_counts import request_counts
from rove.model.samples import Distribution
from rove.observe.metrics.metric import Labels
from rove.observe.metrics.reading import ProcessReading, Reading
from rove.policy.limiting import Factor

Read = Callable[[Reading], Mapping[Labels, float]]
ReadDistributions = Callable[[Reading], Mapping[Labels, Distribution]]

_NUMBERED_STATUSES = frozenset(status.value for status in HTTPStatus)
OTHER_STATUS = "status-other"


def count(name: str) -> Read:
    """Return a count."""
    return lambda reading: {(): reading.totals.get(name, 0.0)}


def counts(prefix: str, known: Iterable[str] = ()) -> Read:
    """Return the counts whose names begin with a prefix; the rest of the name is the label.

    Those that are known to exist are 0 before they happen, so that a rate sees their first occurrence too.
    """
    zeros = {(label,): 0.0 for label in known}
    return lambda reading: zeros | _family(reading.totals, prefix)


def chosen_counts(prefix: str, labels: Iterable[str]) -> Read:
    """Return the counts whose names are a prefix and one of the labels."""
    names = {(label,): f"{prefix}{label}" for label in labels}
    return lambda reading: {label: reading.totals.get(name, 0.0) for label, name in names.items()}


def gauge(name: str) -> Read:
    """Return a gauge, if it was measured."""
    return lambda reading: {(): reading.gauges[name]} if name in reading.gauges else {}


def gauges(prefix: str, known: Iterable[str] = ()) -> Read:
    """Return the gauges whose names begin with a prefix; the rest of the name is the label.

    Those that are known to exist are 0 unless they were measured.
    """
    zeros = {(label,): 0.0 for label in known}
    return lambda reading: zeros | _family(reading.gauges, prefix)


def distribution(name: str) -> ReadDistributions:
    """Return a histogram."""
    return lambda reading: {(): reading.histograms.get(name, Distribution())}


def distributions(prefix: str, known: Iterable[str] = ()) -> ReadDistributions:
    """Return the histograms whose names begin with a prefix; the rest of the name is the label."""
    empty: dict[Labels, Distribution] = {(label,): Distribution() for label in known}

    def read(reading: Reading) -> dict[Labels, Distribution]:
        found = {name: times for name, times in reading.histograms.items() if name.startswith(prefix)}
        return empty | {(name.removeprefix(prefix),): times for name, times in found.items()}

    return read


def while_any(read: Read) -> Read:
    """Turn shares of the last interval into 1 if they are above 0."""
    return lambda reading: {labels: float(share > 0) for labels, share in read(reading).items()}


def while_always(read: Read) -> Read:
    """Turn shares of the last interval into 1 if they are 1, else into 0."""
    return lambda reading: {labels: float(share >= 1) for labels, share in read(reading).items()}


def of_each_process(pick: Callable[[ProcessReading], float | None]) -> Read:
    """Return a value of each process that was measured."""

    def read(reading: Reading) -> dict[Labels, float]:
        picked = {(name,): pick(process) for name, process in reading.processes.items()}
        return {labels: value for labels, value in picked.items() if value is not None}

    return read


def open_files(reading: Reading) -> dict[Labels, float]:
    """Return the open files by process and kind."""
    return {
        (name, kind): number
        for name, process in reading.processes.items()
        for kind, number in process.open_files.items()
    }


def requests(reading: Reading) -> dict[Labels, float]:
    """Return the requests by kind and result."""
    found: dict[Labels, float] = {}
    of_this_kind = request_counts({name: int(number) for name, number in reading.totals.items()})
    for kind in RequestKind:
        failed = of_this_kind.failed(kind)
        without = sum(of_this_kind.without_content_by_kind[kind].values())
        found[kind.value, "ok"] = of_this_kind.by_kind[kind] - failed - without
        found[kind.value, "failed"] = failed
        found[kind.value, "without-content"] = without
    return found


def request_errors(reading: Reading) -> dict[Labels, float]:
    """Return the failed requests by kind and error."""
    found: Counter[Labels] = Counter()
    for name, number in _family(reading.totals, "errors.").items():
        kind, _, error = name[0].partition(".")
        found[kind, _bounded(error)] += int(number)
    return dict(found)


def links(reading: Reading) -> dict[Labels, float]:
    """Return the links by what became of them."""
    return {
        ("new",): reading.totals.get("links.new", 0.0),
        ("known",): reading.totals.get("links.known", 0.0),
        ("not-taken",): sum(_family(reading.totals, "not_taken.").values()),
    }


def claims(reading: Reading) -> dict[Labels, float]:
    """Return the claims by whether they found a domain."""
    empty = reading.totals.get("claims.empty", 0.0)
    return {("found",): reading.totals.get("claims", 0.0) - empty, ("empty",): empty}


def limiting_factor(reading: Reading) -> dict[Labels, float]:
    """Return 1 for what limits the crawl, and 0 for everything else that could."""
    return {(factor.value,): float(factor is reading.limiting_factor) for factor in Factor}


def _bounded(error: str) -> str:
    """Return an error as a label: a server may invent statuses, and each would be a series of its own.

    >>> _bounded("status-404"), _bounded("status-987"), _bounded("dns")
    ('status-404', 'status-other', 'dns')
    """
    status = error_status(error)
    return OTHER_STATUS if is_status_error(error) and status not in _NUMBERED_STATUSES else error


def _family(figures: Mapping[str, float], prefix: str) -> dict[Labels, float]:
    return {(name.removeprefix(prefix),): value for name, value in figures.items() if name.startswith(prefix)}
