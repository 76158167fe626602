"""Draws the visits to a site over time as an SVG bar chart of at most a few hundred bars."""

from __future__ import annotations

from rove.notation.humanize import counted, utc_text

MOST_SPANS = 300
_SHORTEST_SPAN = 1.0
_WIDTH, _BASE, _BOTTOM = 900, 62, 80
_WIDEST_BAR = 10.0


class Timeline:
    """Counts visits in consecutive spans of equal length, which doubles whenever there would be too many spans."""

    def __init__(self) -> None:
        self.first = 0.0
        """Wall-clock seconds of the start of the first span."""
        self.seconds = _SHORTEST_SPAN
        """Length of a span."""
        self.counts: list[int] = []

    def note(self, at: float) -> None:
        """Count a visit; one before the first, after a wall clock was set back, counts in the first span."""
        if not self.counts:
            self.first = at
        index = self._index(at)
        while index >= MOST_SPANS:
            pairs = zip(self.counts[::2], [*self.counts[1::2], 0], strict=False)
            self.counts = [one + other for one, other in pairs]
            self.seconds *= 2
            index = self._index(at)
        self.counts.extend([0] * (index + 1 - len(self.counts)))
        self.counts[index] += 1

    def _index(self, at: float) -> int:
        return max(0, int((at - self.first) // self.seconds))


def as_svg(timeline: Timeline) -> str:
    """Return the chart: a bar for each span with visits."""
    first, seconds, counts = timeline.first, timeline.seconds, timeline.counts
    most = max(counts)
    step = _WIDTH / len(counts)
    bars = [
        _bar(index * step, step, count / most, f"{utc_text(first + index * seconds)}: {counted(count, 'visit')}")
        for index, count in enumerate(counts)
        if count
    ]
    end = first + seconds * len(counts)
    label = (
        f"{counted(sum(counts), 'visit')} from {utc_text(first)} to {utc_text(end)}; "
        f"the highest bar stands for {counted(most, 'visit')}"
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_BOTTOM + 4}" role="img" aria-label="{label}">\n'
        f'<line class="axis" x1="0" y1="{_BASE}" x2="{_WIDTH}" y2="{_BASE}"/>\n'
        f"{''.join(bars)}"
        f'<text x="0" y="{_BOTTOM}">{utc_text(first)}</text>\n'
        f'<text x="{_WIDTH}" y="{_BOTTOM}" text-anchor="end">{utc_text(end)}</text>\n'
        "</svg>"
    )


def _bar(x: float, step: float, share: float, label: str) -> str:
    width, height = max(1.0, min(0.8 * step, _WIDEST_BAR)), max(4.0, share * (_BASE - 2))
    return (
        f'<rect x="{x:.1f}" y="{_BASE - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"<title>{label}</title></rect>\n"
    )
