"""The table of domains: a page of it, sorted and searched by the database."""

from __future__ import annotations

from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from rove.frontier.domain_list import DomainCursor, DomainOrder, DomainQuery, DomainState, DomainTrait, ListedDomain
from rove.inspect.domain_rows import domain_delays, domain_json, next_visit_text
from rove.inspect.open_crawl import Archive
from rove.inspect.request_rows import DELAY_REASONS

ROWS = 50
"""Domains on one page of the table."""
MAX_SEARCH = 253
"""No name is longer."""

T = TypeVar("T")


async def read_domains(archive: Archive, request: Request) -> dict[str, Any]:
    """Read a page of the table: the one after `after`, which is the `next` of the page before."""
    given, delay = request.query_params, (await archive.settings()).delay
    query = DomainQuery(
        delay=delay,
        by=_chosen(DomainOrder, given.get("by") or DomainOrder.PENDING),
        reverse=given.get("reverse") == "yes",
        only=_filter(given.get("only", "")),
        search=given.get("search", "").strip()[:MAX_SEARCH],
    )
    page = await archive.reader.domains(query, limit=ROWS, after=_cursor(given.get("after", "")))
    return {
        "domains": [_row(domain, delay) for domain in page.domains],
        "matching": page.matching,
        "next": None if page.next is None else f"{page.next.key}.{page.next.tie}",
    }


def _row(domain: ListedDomain, delay: float) -> dict[str, Any]:
    source = next(iter(domain_delays(domain, delay)))
    return {
        **domain_json(domain, delay),
        "next_visit": next_visit_text(domain),
        "delay_why": DELAY_REASONS[source],
    }


def _filter(text: str) -> DomainState | DomainTrait | None:
    if not text:
        return None
    return _chosen(DomainTrait, text) if text in set(DomainTrait) else _chosen(DomainState, text)


def _chosen(kind: type[T], text: str) -> T:
    try:
        return kind(text)  # type: ignore[call-arg]
    except ValueError:
        raise HTTPException(400, f"{text!r} is not one of {', '.join(map(str, kind))}") from None  # type: ignore[call-overload]


def _cursor(text: str) -> DomainCursor | None:
    if not text:
        return None
    key, _, tie = text.partition(".")
    try:
        return DomainCursor(int(key), int(tie))
    except ValueError:
        raise HTTPException(400, f"{text!r} is not the 'next' of another page") from None
