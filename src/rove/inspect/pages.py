"""Pages and URLs of a crawl as people and programs read them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from rove.errors import UsageError
from rove.frontier.contract import FrontierReader, UrlRecord
from rove.humanize import hash_text
from rove.model.ledger import (
    Content,
    Location,
    RequestKind,
    RequestRow,
)
from rove.urls.canonical import CrawlUrl, canonical
from rove.urls.domain import domain_of
from rove.urls.ignored_params import IgnoredParams
from rove.urls.seed import parse_seed


def domain_id(name: str) -> int:
    """The id of the registrable domain that a name given by a person belongs to."""
    found = parse_seed(name)
    if found is None:
        raise UsageError(f"{name!r} is not a domain")
    return domain_of(found[0].host)[1]


def url_given(text: str, drops: IgnoredParams | None = None) -> CrawlUrl:
    """The URL that a person means, https assumed, without what the crawl drops."""
    found = parse_seed(text, drops) if "://" not in text else None
    url = found[0] if found is not None else canonical(text, None, drops)
    if url is None:
        raise UsageError(f"{text!r} is not a URL")
    return url


async def url_known(reader: FrontierReader, text: str, drops: IgnoredParams | None) -> CrawlUrl:
    """Likewise, but with all of it where the crawl has that: a redirect may have insisted on a session id."""
    in_full = url_given(text)
    if await reader.url(in_full.domain, in_full.fingerprint) is not None:
        return in_full
    return url_given(text, drops)


def page_json(row: RequestRow) -> dict[str, Any]:
    """A request for a page as an object."""
    record: dict[str, Any] = {
        "url": row.url,
        "fetched": iso_time(row.started),
        "seconds": round(row.finished - row.started, 3),
        "status": row.status,
        "error": row.error or None,
        "type": row.media_type or None,
        "bytes": row.size,
        "truncated": row.truncated,
        "redirect_to": row.target or None,
        "title": row.title,
        "content_hash": hash_text(row.content_hash),
        "visit": row.visit,
    }
    own = "revisit_record" if row.is_copy else "text_record"
    for name, where in ((own, row.text), ("raw_record", row.raw)):
        if where is not None:
            record[name] = _location_json(where)
    return record


def copy_json(content: Content | None, row: RequestRow) -> dict[str, Any]:
    """What is to be said besides of a page whose text is this one; nothing of a page with a text of its own."""
    if content is None:
        return {}
    copy_of = {"copy_of": content.url} if content.url != row.url else {}
    return {"text_record": _location_json(content.where), **copy_of}


def _location_json(where: Location) -> dict[str, Any]:
    return {"file": where.file, "offset": where.offset, "length": where.length}


def page_line(row: RequestRow) -> str:
    """A request for a page on one line."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.started))
    outcome = str(row.status) if row.status else row.error
    what = row.title or (f"-> {row.target}" if row.target else row.error)
    return f"{when}  {outcome:>4}  {row.size:>9,}  {row.url}  {what}".rstrip()


def iso_time(seconds: float) -> str:
    """A wall-clock time as ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


async def settling_request(reader: FrontierReader, record: UrlRecord) -> RequestRow | None:
    """The request that settled a URL, None where none was made."""
    if record.visit is None:
        return None
    for row in reversed(await reader.requests(record.visit)):
        if row.fingerprint == record.fingerprint and row.kind is RequestKind.PAGE:
            return row
    return None
