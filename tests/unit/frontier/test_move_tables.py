"""What a move says about the tables that it copied."""

from __future__ import annotations

from rove.frontier.move.tables import TABLES, rows_text


def test_rows_are_named_in_the_singular_and_the_plural() -> None:
    titles = [table.title for table in TABLES]
    one, many = rows_text(dict.fromkeys(titles, 1)), rows_text(dict.fromkeys(titles, 2_000))
    assert one.startswith("1 domain, 1 URL, 1 robots.txt record, 1 request, 1 skipped link, 1 text, ")
    assert many.endswith("2,000 seed files, 2,000 retries, 2,000 runs, 2,000 processes, 2,000 counters")
