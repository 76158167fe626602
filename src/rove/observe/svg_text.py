"""The smallest parts of an SVG: escaped texts, numbers and paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from rove.notation.harmless import one_line

Point = tuple[float, float]
_NOT_IN_XML = re.compile("[\ufffe\uffff]")


def safe(text: str) -> str:
    r"""Write a foreign text so that it stays text in XML and HTML, in an element and in an attribute.

    >>> safe("<b>\x00'")
    '&lt;b&gt;\\x00&#x27;'
    """
    return escape(_NOT_IN_XML.sub("\ufffd", one_line(text)))


def shortened(text: str, most: int) -> str:
    """Cut a text that is too long.

    >>> shortened("crawler-1.example.org", 10)
    'crawler-1…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def line_path(points: Sequence[Point | None]) -> str:
    """Return the path of a line that is broken at each None; a point between two gaps becomes a dot.

    >>> line_path([(0, 5), (2, 6), None, (6, 7)])
    'M0 5L2 6M6 7h0'
    """
    return "".join(f"M{_points(part)}" if len(part) > 1 else f"M{_points(part)}h0" for part in _parts(points) if part)


def area_path(upper: Sequence[Point | None], lower: Sequence[Point | None]) -> str:
    """Return the path around the area between two lines that have the same gaps.

    >>> area_path([(0, 5), (2, 6), None], [(0, 8), (2, 9), None])
    'M0 5L2 6L2 9L0 8Z'
    """
    parts = zip(_parts(upper), _parts(lower), strict=True)
    return "".join(f"M{_points(top)}L{_points(bottom[::-1])}Z" for top, bottom in parts if top)


def number(value: float) -> str:
    """Write a coordinate to a tenth of a pixel.

    >>> number(3.04), number(12.0)
    ('3', '12')
    """
    return f"{value:.1f}".removesuffix(".0")


def _points(points: Iterable[Point]) -> str:
    return "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _parts(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    part: list[Point] = []
    for point in points:
        if point is not None:
            part.append(point)
        elif part:
            yield part
            part = []
    yield part
