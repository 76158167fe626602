"""Lines up the columns of a table for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rove.notation.harmless import one_line

WIDEST_COLUMN = 40
"""A longer text moves the rest of its line, so that one long name does not widen a whole table."""


def table_lines(titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> Iterator[str]:
    """Yield a line of titles and one line for each row; columns in `right` end at the same place.

    >>> list(table_lines(["n", "name"], [["7", "a"], ["12", "b"]], right=["n"]))
    [' n  name', ' 7  a', '12  b']
    """
    table = [[one_line(text) for text in row] for row in (titles, *rows)]
    widths = [min(WIDEST_COLUMN, max(len(row[column]) for row in table)) for column in range(len(titles))]
    for row in table:
        cells = [
            text.rjust(width) if title in right else text.ljust(width)
            for title, text, width in zip(titles, row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()
