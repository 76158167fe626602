"""The rows of stored texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.records import MovedContent
from rove.frontier.rows.requests import location_from
from rove.model.ledger import Content, Location
from rove.model.visits import VisitResult


def content_rows(visits: Iterable[VisitResult]) -> list[list[Any]]:
    """Return the texts that visits stored, each once, in the order in which all processes lock them."""
    contents: dict[int, Content] = {}
    for visit in visits:
        for content in visit.contents:
            contents.setdefault(content.hash, content)
    return [_values(contents[hash]) for hash in sorted(contents)]


def content_record(row: Sequence[Any], node: str = "") -> Content:
    """Build a stored text from a row of known_contents; `node` stores it."""
    hash, sha1_64, domain, visit, file, offset, length, url, fetched_at, *_ = row
    where = location_from((file, offset, length))
    assert where is not None, "the columns are NOT NULL"
    return Content(
        hash=hash, sha1_64=sha1_64, domain=domain, visit=visit, where=where, url=url, fetched_at=fetched_at, node=node
    )


def relocation_row(moved: MovedContent) -> list[Any]:
    """Return the values of relocate_contents: the text, the page that its record names now, and the new location."""
    new = moved.new
    heir = moved.heir or (None, None)
    return [*location_key(moved.hash, moved.old), *heir, new.file, new.offset, new.length]


def location_key(hash: int, where: Location) -> list[Any]:
    """Return the values that identify a text at a location."""
    return [hash, where.file, where.offset]


def _values(content: Content) -> list[Any]:
    where = content.where
    return [*(content.hash, content.sha1_64, content.domain, content.visit), *(where.file, where.offset, where.length)]
