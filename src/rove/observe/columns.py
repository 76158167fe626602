"""The columns of the history: which figures they show, and how people and programs see them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from rove.errors import UsageError
from rove.model.figures import FIGURES, Figure, Unit, figure_of
from rove.model.samples import Distribution, Sample
from rove.notation.humanize import size_text
from rove.observe.figures import is_known, selected

PER_SECOND = "/s"
_PART = ":"
_ANY = "*"
DEFAULT_COLUMNS = (
    *("pages/s", "errors/s", "in_flight", "urls.pending", "ceiling.used", "request.page:p95", "cpu/s", "rss"),
)
"""What a person wants to see first."""


class Part(enum.StrEnum):
    """What a column shows of a histogram."""

    COUNT = "count"
    MEAN = "mean"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    MAX = "max"


SHOWN_PARTS = (Part.COUNT, Part.MEAN, Part.P50, Part.P95, Part.MAX)
"""The parts of a histogram that is named without one."""
_PARTS: dict[Part, Callable[[Distribution], float]] = {
    Part.COUNT: lambda values: values.count,
    Part.MEAN: lambda values: values.mean,
    Part.P50: lambda values: values.quantile(0.5),
    Part.P95: lambda values: values.quantile(0.95),
    Part.P99: lambda values: values.quantile(0.99),
    Part.MAX: lambda values: values.longest,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the history: a figure, the sum of those whose names begin with a name, or a part of a histogram."""

    name: str
    part: Part | None = None
    is_rate: bool = False

    @property
    def title(self) -> str:
        """The column as a user writes it."""
        return f"{self.name}{PER_SECOND if self.is_rate else ''}{_PART + self.part if self.part else ''}"

    def value(self, sample: Sample) -> float | None:
        """Return the value of a sample; None if it was not measured."""
        if self.part is not None:
            values = sample.histograms.get(self.name)
            return None if values is None else _PARTS[self.part](values)
        value = self._figure(sample)
        if value is None or not self.is_rate:
            return value
        return value / sample.seconds if sample.seconds else None

    def text(self, sample: Sample) -> str:
        """Return the value of a sample for people."""
        value = self.value(sample)
        return "-" if value is None else _text(value, self._unit)

    def _figure(self, sample: Sample) -> float | None:
        value = sample.figures.get(self.name)
        if value is not None:
            return value
        family = sample.family(f"{self.name}.")
        if family and not _is_single(self.name):
            return sum(family.values())
        return 0.0 if all(figure.is_zero_if_absent for figure in _figures(self.name)) else None

    @property
    def _unit(self) -> Unit | None:
        """The unit that is shown with the value; None for plain numbers."""
        if self.part is Part.COUNT:
            return None
        unit = _figures(self.name)[0].unit
        # CPU seconds per second are cores.
        return None if self.is_rate and unit is Unit.SECONDS else unit


def _text(value: float, unit: Unit | None) -> str:
    match unit:
        case Unit.BYTES:
            return size_text(value)
        case Unit.RATIO:
            return f"{100 * value:.0f} %"
        case Unit.SECONDS:
            return f"{value:.3f} s" if abs(value) < 10 else f"{value:,.1f} s"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def check_columns(texts: Iterable[str]) -> None:
    """Raise a UsageError if a column is not one that a sample may have."""
    for text in texts:
        name, part, _ = _parsed(text)
        if not (is_known(name) or is_known(f"{name}.*")):
            names = {figure.prefix.rstrip(".") for figure in FIGURES}
            names |= {known.partition(".")[0] for known in names}
            close = get_close_matches(name, sorted(names), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; choose from {', '.join(sorted(names))}"
            raise UsageError(f"there is no figure {name!r}{hint}")
        if part is not None and not _may_be_histogram(name):
            raise UsageError(f"{text!r}: {name} is no histogram and has no {part}; leave out '{_PART}{part}'")


def columns_for(texts: Iterable[str], names: Sequence[str]) -> list[Column]:
    """Return the columns that texts stand for, such as `pages/s`, `errors.*` and `claim:p95`.

    `names` are the figures and histograms that there are, for patterns with stars.
    """
    return [column for text in texts for column in _columns(text, names)]


def _columns(text: str, names: Sequence[str]) -> list[Column]:
    name, part, is_rate = _parsed(text)
    found = selected([name], names) if _ANY in name else [name]
    return [column for known in found for column in _of_figure(known, part, is_rate=is_rate)]


def _of_figure(name: str, part: Part | None, *, is_rate: bool) -> list[Column]:
    figures = _figures(name)
    if figures[0].is_histogram:
        return [Column(name=name, part=shown) for shown in (SHOWN_PARTS if part is None else (part,))]
    return [Column(name=name, is_rate=is_rate and all(figure.is_count for figure in figures))]


def _parsed(text: str) -> tuple[str, Part | None, bool]:
    name, colon, part = text.rpartition(_PART)
    if colon and part in list(Part):
        return name, Part(part), False
    return text.removesuffix(PER_SECOND), None, text.endswith(PER_SECOND)


def _is_single(name: str) -> bool:
    return any(figure.pattern == name for figure in FIGURES)


def _figures(name: str) -> list[Figure]:
    """Return the entries of a name, or of the names that begin with it; at least one."""
    beginning = [figure for figure in FIGURES if figure.prefix.startswith(f"{name}.") and not figure.is_histogram]
    return beginning if beginning and not _is_single(name) else [figure_of(name)]


def _may_be_histogram(name: str) -> bool:
    beginning = name.partition(_ANY)[0]
    return any(
        figure.is_histogram and (figure.prefix.startswith(beginning) or beginning.startswith(figure.prefix))
        for figure in FIGURES
    )
