"""One domain: its state, its delay, its robots.txt files in force, and its last requests."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from rove.inspect.lookup import Site, domain_of_site
from rove.inspect.open_crawl import Archive
from rove.inspect.queue_rows import queued_json
from rove.inspect.request_rows import request_json
from rove.model.ledger import RequestRow
from rove.model.visits import OriginRecord
from rove.notation.harmless import whole_text
from rove.policy.exclusions import Exclusions

REQUESTS_SHOWN = 50
QUEUE_SHOWN = 20
MAX_ORIGINS = 20
MAX_ROBOTS_TEXT = 20_000
"""Characters of one robots.txt; `rove report` has all of it."""


async def read_domain(archive: Archive, site: Site) -> dict[str, Any]:
    """Read everything about a domain but its report."""
    reader = archive.reader
    record = await domain_of_site(reader, site)
    newest = await _newest(archive, site)
    origins = {f"{scheme}://{site.name}": None for scheme in ("https", "http")}
    origins |= {f"{url.scheme}://{url.netloc}": None for url in (urlsplit(row.url) for row in newest)}
    robots = await reader.origins([(site.id, origin) for origin in list(origins)[:MAX_ORIGINS]])
    delay = (await archive.settings()).delay
    queue = await reader.queue(delay=delay, limit=QUEUE_SHOWN, domain=site.id)
    return {
        "name": site.name,
        "pending": 0 if record is None else record.pending,
        "ready_in_s": None if record is None else record.ready_in,
        "free_in_s": None if record is None else record.free_in,
        "crawl_delay_s": 0.0 if record is None else record.crawl_delay,
        "backoff_s": 0.0 if record is None else record.pace.backoff,
        "failures": 0 if record is None else record.pace.failures,
        "leased": record is not None and record.is_leased,
        "excluded": record is not None and record.is_excluded,
        "excluded_by": Exclusions(await archive.catalog.exclusions()).covering(site.name),
        "robots": [_robots(origin) for origin in robots],
        "queue": [queued_json(url) for url in queue],
        "requests": [{**request_json(row), "title": row.title or None} for row in newest],
    }


async def _newest(archive: Archive, site: Site) -> list[RequestRow]:
    newest = []
    async for row in archive.reader.pages(domain=site.id):
        newest.append(row)
        if len(newest) == REQUESTS_SHOWN:
            break
    return newest


def _robots(record: OriginRecord) -> dict[str, Any]:
    text = whole_text(record.body)
    return {
        "origin": record.origin,
        "status": record.status,
        "age_s": record.age,
        "valid_for_s": record.valid_for,
        "crawl_delay_s": record.crawl_delay,
        "source": record.source or None,
        "text": text[:MAX_ROBOTS_TEXT],
        "characters": len(text),
    }
