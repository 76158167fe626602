"""What the frontier knows that has to do with a URL: the records that an explanation is drawn from."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from rove.config import Settings
from rove.frontier.contract import DomainRecord, Exclusion, FrontierReader, UrlRecord
from rove.model.ledger import RequestRow
from rove.model.visits import OriginRecord
from rove.urls.canonical import CrawlUrl

HISTORY_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the ledger has of a URL and of its domain."""

    requests: int = 0
    """For the URL, whatever they came to."""
    newest: Sequence[RequestRow] = ()
    """The last of them, oldest first."""
    last_of_domain: RequestRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """The records that the answer is drawn from."""

    settings: Settings
    record: UrlRecord | None
    domain: DomainRecord | None
    origin: OriginRecord | None
    exclusions: Sequence[Exclusion]
    """All there ever were."""
    past: Past
    is_running: bool


async def read_known(
    reader: FrontierReader,
    url: CrawlUrl,
    *,
    settings: Settings,
    exclusions: Sequence[Exclusion],
    is_running: bool,
) -> UrlFacts:
    """Everything that the frontier knows that has to do with a URL."""
    origins = await reader.origins([(url.domain, url.origin)])
    return UrlFacts(
        settings=settings,
        record=await reader.url(url.domain, url.fingerprint),
        domain=await reader.domain(url.domain),
        origin=origins[0] if origins else None,
        exclusions=exclusions,
        past=await _past(reader, url),
        is_running=is_running,
    )


async def _past(reader: FrontierReader, url: CrawlUrl) -> Past:
    """One pass over what was asked of the domain; of a robots.txt also what led there from elsewhere."""
    count, last = 0, None
    newest: deque[RequestRow] = deque(maxlen=HISTORY_SHOWN)
    async for row in reader.visits(url.domain):
        last = row
        if row.fingerprint == url.fingerprint:
            count += 1
            newest.append(row)
    led_here, found = await _led_here(reader.elsewhere(url.domain), url.fingerprint)
    merged = sorted((*newest, *found), key=lambda row: row.started)
    return Past(requests=count + led_here, newest=merged[-HISTORY_SHOWN:], last_of_domain=last)


async def _led_here(
    rows: AsyncIterator[RequestRow], fingerprint: int
) -> tuple[int, deque[RequestRow]]:
    count = 0
    newest: deque[RequestRow] = deque(maxlen=HISTORY_SHOWN)
    async for row in rows:
        if row.fingerprint == fingerprint:
            count += 1
            newest.append(row)
    return count, newest
