"""The figures of samples, for everything that shows them.

The table itself is in the model, because the frontier needs it to roll samples up.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from rove.model.figures import FIGURES, Combining, Figure, Unit, figure_of
from rove.model.samples import Sample

__all__ = ["FIGURES", "Combining", "Figure", "Unit", "figure_of", "in_table_order", "is_known", "names_in", "selected"]


def is_known(pattern: str) -> bool:
    """Whether a name, or a pattern with stars, stands for at least one figure of the table.

    >>> is_known("errors.page.dns"), is_known("errors.*"), is_known("error.*")
    (True, True, False)
    """
    if any(fnmatch.fnmatchcase(figure.prefix, pattern) for figure in FIGURES):
        return True
    try:
        figure_of(pattern)
    except KeyError:
        return False
    return True


def names_in(samples: Iterable[Sample]) -> list[str]:
    """Return the names of all figures and histograms of samples, in the order of the table."""
    return in_table_order(name for sample in samples for part in (sample.figures, sample.histograms) for name in part)


def in_table_order(names: Iterable[str]) -> list[str]:
    """Return names of figures, each once, in the order of the table."""
    places = {figure.pattern: place for place, figure in enumerate(FIGURES)}
    return sorted(set(names), key=lambda name: (places[figure_of(name).pattern], name))


def selected(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names that patterns such as `errors.page.*` stand for, in the order of the patterns.

    >>> selected(["visits", "pages.*"], ["pages.copy", "pages.stored", "visits"])
    ['visits', 'pages.copy', 'pages.stored']
    """
    return list(dict.fromkeys(name for pattern in patterns for name in names if fnmatch.fnmatchcase(name, pattern)))
