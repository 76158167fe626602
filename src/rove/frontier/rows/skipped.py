"""Rows of links that were not taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.sanitize import storable
from rove.model.skipped import SkippedLink
from rove.model.visits import VisitResult

SKIPPED_COLUMNS = ("reasons", "fingerprints", "domains", "urls", "pages")


def skipped_rows(visits: Iterable[VisitResult]) -> list[tuple[Any, ...]]:
    """Return the values of insert_skipped for these visits, by key, each once."""
    links = {(link.reason, link.fingerprint, link.domain): link for visit in visits for link in visit.skipped}
    return [(*key, storable(link.url), storable(link.page)) for key, link in sorted(links.items())]


def reasons_in(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the reasons of rows for insert_skipped, in order."""
    return sorted({row[0] for row in rows})


def skipped_link(row: Sequence[Any]) -> SkippedLink:
    """Build a link from a row of skipped_links."""
    reason, fingerprint, domain, url, page, at = row
    return SkippedLink(reason=reason, fingerprint=fingerprint, domain=domain, url=url, page=page, at=at / 1000)
