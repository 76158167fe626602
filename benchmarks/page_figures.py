"""What 200 pages of the real web are like, and the figures of pages that are to be like them."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
# The quantiles of 200 real pages: bytes of each kind, numbers of elements, attributes per element, and so on.
FIGURES: dict[str, tuple[float, ...]] = {
    "elements": (8, 311, 492, 734, 1_034, 1_522, 2_042, 3_208, 4_219),
    "text": (74, 3_203, 5_026, 7_956, 14_281, 25_239, 31_213, 55_291, 56_290),
    "blanks": (13, 176, 744, 2_840, 9_497, 26_229, 53_256, 168_544, 182_394),
    "script": (0, 1_545, 5_842, 16_063, 44_886, 108_126, 225_320, 912_028, 979_349),
    "style": (0, 0, 0, 1_196, 10_730, 51_204, 197_419, 437_202, 564_099),
    "comment": (0, 0, 224, 756, 1_928, 3_654, 6_454, 19_943, 26_498),
    "svg": (0, 0, 0, 0, 5_385, 23_476, 44_753, 100_630, 123_300),
    "json": (0, 0, 0, 503, 3_236, 7_728, 14_193, 100_000, 200_000),
    "attributes": (0.04, 1.03, 1.3, 1.61, 1.82, 2.02, 2.2, 2.65, 3.0),
    "links": (0.0, 0.083, 0.123, 0.163, 0.218, 0.266, 0.307, 0.411, 0.44),
    "entities": (0, 6, 14, 38, 102, 327, 536, 1_984, 10_000),
    "depth": (3, 12, 14, 16, 19, 22, 25, 33, 40),
    "other_hosts": (0, 1, 5, 9, 15, 25, 33, 55, 60),
}
"""Script includes JSON. Links are a share of the elements. Blanks are those that a browser does not show."""
_SHARES = frozenset({"attributes", "links"})
FOLLOWS_ELEMENTS = {"text": 0.6, "blanks": 0.5, "script": 0.45, "style": 0.35, "attributes": 0.0, "links": 0.0}
"""How far a figure is large where the number of elements is large."""


class Figures(NamedTuple):
    """What a page is to be like; see FIGURES."""

    elements: int
    text: int
    blanks: int
    script: int
    style: int
    comment: int
    svg: int
    json: int
    attributes: float
    links: float
    entities: int
    depth: int
    other_hosts: int


def quantile(name: str, share: float) -> float:
    """Return the figure that this share of the real pages stays below."""
    values = FIGURES[name]
    place = max(index for index, at in enumerate(QUANTILES[:-1]) if at <= share)
    low, high = values[place], values[place + 1]
    way = (share - QUANTILES[place]) / (QUANTILES[place + 1] - QUANTILES[place])
    # Sizes are closer to a geometric than to a linear growth between two quantiles.
    return low + (high - low) * way if low < 1 else low * (high / low) ** way


def figures_of(seed: int, count: int) -> list[Figures]:
    """Return the figures of a number of pages, spread evenly over the quantiles."""
    choice = random.Random(f"figures {seed}")
    sizes = [choice.random() for _ in range(count)]
    columns: dict[str, list[float]] = {}
    for name in FIGURES:
        weight = 1.0 if name == "elements" else FOLLOWS_ELEMENTS.get(name, 0.2)
        scores = [weight * size + (1 - weight) * choice.random() for size in sizes]
        places = {page: place for place, page in enumerate(sorted(range(count), key=scores.__getitem__))}
        columns[name] = [quantile(name, (places[page] + 0.5) / count) for page in range(count)]
    found = []
    for page in range(count):
        row: dict[str, Any] = {
            name: column[page] if name in _SHARES else int(column[page]) for name, column in columns.items()
        }
        found.append(Figures(**row))
    return found
