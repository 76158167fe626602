"""Gathers everything that the frontier knows about one URL, for `rove explain`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rove.config import Settings
from rove.frontier.contract import FrontierReader
from rove.frontier.records import DomainRecord, Exclusion, UrlRecord
from rove.frontier.retries import Retry
from rove.inspect.lookup import domain_of_site, record_of, site_of
from rove.inspect.request_rows import is_stored
from rove.model.ledger import RequestKind, RequestRow
from rove.model.reasons import RequestError
from rove.model.visits import OriginRecord
from rove.urls.canonical import CrawlUrl, UrlForm

HISTORY_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlHistory:
    """The ledger's requests for a URL, and the last request to its domain."""

    requests: int = 0
    """Number of all requests for the URL."""
    newest: Sequence[RequestRow] = ()
    """The newest of them, oldest first."""
    last_of_domain: RequestRow | None = None
    domain_requests: int = 0
    """Number of all requests to its domain, for whatever URL."""
    domain_answers: int = 0
    """How many of them got a response."""
    domain_errors: Mapping[str, int] = field(default_factory=dict)
    """Those without a response, by error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """The records that decide whether a URL is fetched."""

    settings: Settings
    record: UrlRecord | None
    domain: DomainRecord | None
    origin: OriginRecord | None
    wanted_robots: UrlRecord | None
    """The request of other domains for the origin's robots.txt, None if no other redirects there."""
    exclusions: Sequence[Exclusion]
    """All exclusions of the crawl, lifted ones included."""
    history: UrlHistory
    is_running: bool
    roots: Sequence[tuple[str, bool]] = ()
    """The pages of depth 0 of its domain, and whether each is a seed."""
    retries: Sequence[Retry] = ()
    """The retries that made the URL pending again."""

    @property
    def crawl_delay(self) -> float:
        """The longest Crawl-delay known for the domain."""
        return max(self.domain.crawl_delay if self.domain else 0.0, self.origin.crawl_delay if self.origin else 0.0)

    @property
    def settling_request(self) -> RequestRow | None:
        """The request that settled the URL, if it is among the newest."""
        visit = self.record.visit if self.record else None
        for row in reversed(self.history.newest):
            if row.visit == visit and row.kind is not RequestKind.ROBOTS:
                return row
        return None


async def read_url_facts(
    reader: FrontierReader,
    url: CrawlUrl,
    form: UrlForm,
    *,
    settings: Settings,
    exclusions: Sequence[Exclusion],
    retries: Sequence[Retry] = (),
    is_running: bool,
) -> UrlFacts:
    """Read all records about a URL from the frontier; `retries` are all of the crawl."""
    record, history = await record_of(reader, url), await _history(reader, url)
    origins = await reader.origins([(url.domain, url.origin)])
    return UrlFacts(
        settings=settings,
        record=record,
        domain=await domain_of_site(reader, site_of(url)),
        origin=origins[0] if origins else None,
        wanted_robots=await reader.url(url.domain, form.robots_fingerprint(url.origin)),
        exclusions=exclusions,
        history=history,
        is_running=is_running,
        roots=(await reader.roots([url.domain])).get(url.domain, ()) if settings.scope.needs_roots else (),
        retries=[retry for retry in retries if record is not None and _covers(retry, record, history)],
    )


def _covers(retry: Retry, record: UrlRecord, history: UrlHistory) -> bool:
    """Whether a retry made a URL pending again, judged by the last request before it."""
    wanted = retry.filter
    if wanted.domain not in (None, record.domain) or (wanted.only_seeds and not record.is_seed):
        return False
    before = [row for row in history.newest if row.kind is not RequestKind.ROBOTS and row.began <= retry.ended]
    if not before or is_stored(before[-1]):
        return False
    last = before[-1]
    return wanted.error in ("", last.error) and wanted.status in (None, last.status)


async def _history(reader: FrontierReader, url: CrawlUrl) -> UrlHistory:
    count, last = 0, None
    requests, answers, errors = 0, 0, Counter[str]()
    newest: deque[RequestRow] = deque(maxlen=HISTORY_SHOWN)
    async for row in reader.visits(url.domain):
        last = row
        requests += 1
        if row.status:
            answers += 1
        else:
            errors[row.error or RequestError.LOST] += 1
        if row.fingerprint == url.fingerprint:
            count += 1
            newest.append(row)
    return UrlHistory(
        requests=count,
        newest=list(newest),
        last_of_domain=last,
        domain_requests=requests,
        domain_answers=answers,
        domain_errors=errors,
    )
