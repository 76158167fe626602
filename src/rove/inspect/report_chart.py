"""Draws the visits to a site over time as an SVG bar chart of at most a few hundred bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rove.humanize import counted
from rove.inspect.display import utc_text

MOST_SPANS = 300
_SHORTEST_SPAN = 1.0
_WIDTH, _BASE, _BOTTOM = 900, 62, 80
_WIDEST_BAR = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Numbers of visits in consecutive spans of equal length."""

    first: float
    """Wall-clock seconds of the start of the first span."""
    seconds: float
    """Length of a span."""
    counts: Sequence[int]


class Timeline:
    """Counts visits as they are read, and doubles the length of its spans whenever it runs out of them."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._seconds = _SHORTEST_SPAN
        self._counts: list[int] = []

    def note(self, at: float) -> None:
        """Count a visit; one before the first, after a wall clock was set back, counts in the first span."""
        if self._first is None:
            self._first = at
        index = self._index(at)
        while index >= MOST_SPANS:
            pairs = zip(self._counts[::2], [*self._counts[1::2], 0], strict=False)
            self._counts = [one + other for one, other in pairs]
            self._seconds *= 2
            index = self._index(at)
        self._counts.extend([0] * (index + 1 - len(self._counts)))
        self._counts[index] += 1

    def _index(self, at: float) -> int:
        assert self._first is not None
        return max(0, int((at - self._first) // self._seconds))

    def spans(self) -> Spans | None:
        """Return the counts, None if there were no visits."""
        if self._first is None:
            return None
        return Spans(first=self._first, seconds=self._seconds, counts=tuple(self._counts))


def as_svg(spans: Spans) -> str:
    """Return the chart: a bar for each span with visits."""
    most = max(spans.counts)
    step = _WIDTH / len(spans.counts)
    bars = [
        _bar(index * step, step, count / most, _label(spans, index))
        for index, count in enumerate(spans.counts)
        if count
    ]
    end = spans.first + spans.seconds * len(spans.counts)
    label = (
        f"{sum(spans.counts):,} visits from {utc_text(spans.first)} to {utc_text(end)}; "
        f"the highest bar stands for {counted(most, 'visit')}"
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_BOTTOM + 4}" role="img" aria-label="{label}">\n'
        f'<line class="axis" x1="0" y1="{_BASE}" x2="{_WIDTH}" y2="{_BASE}"/>\n'
        f"{''.join(bars)}"
        f'<text x="0" y="{_BOTTOM}">{utc_text(spans.first)}</text>\n'
        f'<text x="{_WIDTH}" y="{_BOTTOM}" text-anchor="end">{utc_text(end)}</text>\n'
        "</svg>"
    )


def _bar(x: float, step: float, share: float, label: str) -> str:
    width, height = max(1.0, min(0.8 * step, _WIDEST_BAR)), max(4.0, share * (_BASE - 2))
    return (
        f'<rect x="{x:.1f}" y="{_BASE - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"<title>{label}</title></rect>\n"
    )


def _label(spans: Spans, index: int) -> str:
    start = utc_text(spans.first + index * spans.seconds)
    return f"{start}: {counted(spans.counts[index], 'visit')}"
