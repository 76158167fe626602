"""A scripted web, and around it a real frontier, a real store and a clock that the test moves."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rove.config import Settings
from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import InflightLog
from rove.crawl.meter import Meter
from rove.crawl.new_domains import NewDomainLimits
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.seed_scope import ScopeCheck
from rove.crawl.shutdown import Ending, Shutdown
from rove.crawl.silence import SilentVisits
from rove.crawl.visit import Visit
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.crawl.writer import BatchWriter
from rove.fetch.contract import Request
from rove.fetch.visit_connection import VisitConnection
from rove.frontier.contract import Frontier
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Redirected, Refused, Response, WrongType
from rove.model.urls import NewUrl, UrlState
from rove.model.usage import Purpose
from rove.model.visits import Lease, OriginRecord, RobotsStatus
from rove.policy.concurrency import fixed
from rove.policy.constants import DEFAULT_MAX_LINKS, DEFAULT_MAX_PARSED_SIZE, DEFAULT_REDIRECT_HOPS, VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.rules import NO_RULES, Rules
from rove.policy.scope import SeedScope
from rove.policy.spread import Spread
from rove.store.contract import Keep, Page
from rove.store.warc import WarcStore
from rove.urls.canonical import CrawlUrl
from tests.contract.harness import SqliteHarness
from tests.urls import FORM, canonical

DELAY = 70.0
Script = Mapping[str, Any]
"""For each URL its Outcome, or a list of Outcomes that are returned one after the other."""


def response(status: int, *headers: tuple[str, str]) -> Response:
    """Return the head of a response; the fetcher fills in the URL."""
    return Response(url="", status=status, status_line=f"HTTP/1.1 {status}", headers=headers, address="192.0.2.7")


def page(html: str = "<title>A page</title><p>Some text.", media_type: str = "text/html") -> Fetched:
    """Return a page."""
    body = html.encode()
    head = response(200, ("Content-Type", f"{media_type}; charset=utf-8"))
    return Fetched(response=head, body=body, wire_body=body, truncated=False)


def page_with_links(*hrefs: str) -> Fetched:
    """Return a page with links."""
    return page("<title>Links</title>" + "".join(f'<a href="{href}">x</a> ' for href in hrefs))


def robots(text: str) -> Fetched:
    """Return a robots.txt."""
    return page(text, "text/plain")


def redirect(location: str, status: int = 301) -> Redirected:
    """Return a redirect."""
    return Redirected(response=response(status, ("Location", location)), location=location)


def refused(status: int, *headers: tuple[str, str]) -> Refused:
    """Return a response with an error status."""
    return Refused(response=response(status, *headers))


def wrong_type(media_type: str = "image/png") -> WrongType:
    """Return a response of a type that rove does not read."""
    return WrongType(response=response(200, ("Content-Type", media_type)))


def failed(kind: FailureKind = FailureKind.CONNECT) -> Failed:
    """Return a failure without a response."""
    return Failed(kind=kind, detail="as scripted")


class ScriptedFetcher:
    """Replaces the network: returns the outcome of each URL, or the next one of its list of outcomes.

    A robots.txt that is not in the script is a 404. Any other URL that is not in the script fails the test.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script: dict[str, Any] = dict(script or {})
        self.requested: list[str] = []
        self.requests: list[Request] = []
        self.before_answer: Callable[[Request], Awaitable[None]] | None = None
        self.full: dict[str, float] = {}
        """Hosts without room at their address, and the seconds until there is some."""
        self.names_answered_from = -math.inf
        self.looked_ahead: list[str] = []

    @property
    def pages_requested(self) -> list[str]:
        """The URLs requested, without robots.txt."""
        return [url for url in self.requested if not url.endswith("/robots.txt")]

    async def reserve(self, url: CrawlUrl, connection: VisitConnection, *, within: float) -> float:
        return self.full.get(url.host, 0.0)

    async def fetch(self, request: Request) -> Outcome:
        self.requested.append(request.url.text)
        self.requests.append(request)
        if self.before_answer is not None:
            await self.before_answer(request)
        return self._answer(request.url.text)

    def look_ahead(self, origin: str) -> None:
        self.looked_ahead.append(origin)

    def forget_failures(self) -> None:
        """Do nothing: nothing is remembered."""

    async def close(self) -> None:
        return

    def _answer(self, url: str) -> Outcome:
        outcome = self.script.get(url)
        if outcome is None:
            assert url.endswith("/robots.txt"), f"{url} must not be requested"
            outcome = refused(404)
        if isinstance(outcome, Sequence):
            assert outcome, f"{url} was requested too often"
            outcome, self.script[url] = outcome[0], outcome[1:]
        if isinstance(outcome, Failed):
            return outcome
        return replace(outcome, response=replace(outcome.response, url=url))


class World:
    """One crawl's frontier and store, in which a test makes visits one by one."""

    def __init__(self, folder: Path) -> None:
        self.harness = SqliteHarness(folder)
        self.fetcher = ScriptedFetcher()
        self.keep_raw = False
        self.purpose: Purpose | None = None
        self.redirect_hops = DEFAULT_REDIRECT_HOPS
        self.sitemaps = False
        self.scope = SeedScope.ANYWHERE
        self.max_parsed_size = DEFAULT_MAX_PARSED_SIZE
        self.max_links = DEFAULT_MAX_LINKS
        self.gate = Gate(Exclusions())
        self.form = FORM
        self.log_folder = folder / "inflight"
        self.inflight_log = InflightLog(self.log_folder, 1)
        self._folder = folder
        self._store = WarcStore(folder / "warc", keep=Keep.TEXT, name="visit", software="rove/test")
        self.pages: list[Page] = []
        """The pages of the visit that was written last."""
        self._frontier: Frontier | None = None
        self._shutdown: Shutdown | None = None

    @property
    def frontier(self) -> Frontier:
        assert self._frontier is not None, "the world is not open"
        return self._frontier

    def now(self) -> float:
        """Return the time of the steady clock in seconds."""
        return self.harness.now() / 1000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.harness.advance(seconds)

    async def next_due(self) -> float | None:
        """Return the seconds until a domain is due, without the millisecond that makes up for the truncated clock."""
        due = await self.frontier.next_due()
        return None if due is None else _without_rounding(due)

    def stop(self) -> None:
        """Shut the crawl down."""
        assert self._shutdown is not None, "the world is not open"
        self._shutdown.begin(Ending.STOPPED)

    async def open(
        self,
        *urls: str | NewUrl,
        script: Script | None = None,
        exclude: Sequence[str] = (),
        max_depth: int | None = None,
        rules: Rules = NO_RULES,
    ) -> None:
        """Open the frontier with these URLs in it."""
        self.gate = Gate(Exclusions(exclude), max_depth=max_depth, rules=rules)
        self.fetcher = ScriptedFetcher(script)
        self._frontier = await self.harness.open(delay=DELAY, budget=VISIT_BUDGET)
        self._shutdown = Shutdown(self._frontier)
        await self.frontier.add([new_url(url) if isinstance(url, str) else url for url in urls])

    def close(self) -> None:
        """Close everything."""
        self.inflight_log.close()
        asyncio.run(self._store.close())
        asyncio.run(self.harness.close())

    def context(self) -> CrawlContext:
        """Return a context with the settings that the test has chosen."""
        assert self._shutdown is not None, "the world is not open"
        settings = Settings(
            email="me@crawler.test",
            delay=DELAY,
            max_page_size=1 << 20,
            max_parsed_size=self.max_parsed_size,
            max_links=self.max_links,
            redirect_hops=self.redirect_hops,
            sitemaps=self.sitemaps,
            scope=self.scope,
            store=Keep.BOTH if self.keep_raw else Keep.TEXT,
            purpose=self.purpose,
        )
        pressure = Pressure(settings, bounds=fixed(1), directory=self._folder, clock=self.now, on_news=lambda _: None)
        return CrawlContext(
            settings=settings,
            frontier=self.frontier,
            fetcher=self.fetcher,
            store=self._store,
            gate=self.gate,
            scope=ScopeCheck(self.frontier, settings.scope, self.now),
            form=self.form,
            inflight_log=self.inflight_log,
            pressure=pressure,
            silence=SilentVisits(pressure.throttle, self.now),
            new_domains=NewDomainLimits(self.now),
            spread=Spread(settings.delay, lambda: 0.5),
            progress=Progress(started=0.0),
            meter=Meter("1", delay=settings.delay, clock=self.now),
            shutdown=self._shutdown,
            clock=self.now,
            batch_seconds=0.0,
        )

    async def claim(self) -> HeldLease:
        """Claim the next domain that is due, if need be after the millisecond that makes up for the truncated clock."""
        leases = await self.frontier.claim(1)
        if not leases:
            self.harness.advance(0.001)
            leases = await self.frontier.claim(1)
        assert leases, "no domain is due"
        return await self.hold(leases[0])

    async def hold(self, lease: Lease) -> HeldLease:
        """Complete a lease as the claimer does."""
        keys = {(lease.domain, crawl_url(pending.url).origin) for pending in lease.urls}
        origins: dict[str, OriginRecord | None] = {origin: None for _, origin in keys}
        origins |= {record.origin: record for record in await self.frontier.origins(keys)}
        now = self.now()
        return HeldLease(
            lease=lease, deadline=now + VISIT_BUDGET, clock_offset=lease.claimed_ms / 1000 - now, origins=origins
        )

    def start(self, held: HeldLease) -> tuple[VisitRecord, Visit]:
        """Return a visit that has not begun yet, and its record."""
        record = VisitRecord(held)
        return record, Visit(self.context(), record)

    async def write(self, record: VisitRecord) -> None:
        """Write and settle a visit."""
        assert not set(record.settled) & set(record.deferred), "a settled URL is not deferred"
        self.pages = list(record.pages)
        writer = BatchWriter(self.context(), on_settled=lambda _: None)
        writer.put(record)
        writer.finish()
        await writer.run()

    async def visit(self) -> VisitRecord:
        """Claim a domain, visit it, and write the visit."""
        record, visit = self.start(await self.claim())
        await visit.run()
        await self.write(record)
        return record

    async def visit_next(self, *, within: float = 1e9) -> tuple[float, VisitRecord]:
        """Wait for the next domain that is due, and visit it; return the seconds waited, and the visit."""
        rows = await self.rows("SELECT min(ready_at) FROM domain WHERE ready_at IS NOT NULL")
        assert rows[0][0] is not None, "nothing is pending"
        waited = max(0, rows[0][0] - self.harness.now()) / 1000
        assert waited <= within, f"the next visit is {waited} s away"
        self.advance(waited)
        return _without_rounding(waited), await self.visit()

    async def keep_origin(self, origin: str, body: str | bytes, *, valid_for: float = 3600.0) -> None:
        """Put a robots.txt record into the frontier."""
        url = crawl_url(origin + "/")
        text = body.encode() if isinstance(body, str) else body
        record = OriginRecord(
            domain=url.domain, origin=url.origin, status=RobotsStatus.RULES, body=text, valid_for=valid_for
        )
        await self.frontier.put_origins([record])

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement on the database."""
        return query(self._folder, sql, *values)

    async def states(self) -> dict[str, str]:
        """Return all URLs of the frontier with their states."""
        return states(self._folder)

    async def reason(self, url: str) -> str:
        """Return why a URL is in its state."""
        ((reason,),) = await self.rows("SELECT reason FROM url WHERE url = ?", url)
        return str(reason)

    async def counters(self) -> dict[str, int]:
        """Return the counters of the frontier."""
        return dict(await self.rows("SELECT name, value FROM counter"))


def query(folder: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement on the frontier in a folder, over a connection of its own."""
    with closing(sqlite3.connect(folder / "frontier.sqlite", timeout=20)) as connection, connection:
        return connection.execute(sql, values).fetchall()


def states(folder: Path) -> dict[str, str]:
    """Return all URLs of the frontier in a folder, with their states."""
    rows = query(folder, "SELECT url, state FROM url")
    return {url: UrlState(state).name.lower() for url, state in rows}


def crawl_url(text: str) -> CrawlUrl:
    """Return a canonical URL."""
    url = canonical(text)
    assert url is not None, f"{text} is not a URL"
    return url


def new_url(text: str, depth: int = 0, **more: Any) -> NewUrl:
    """Return a URL to add to the frontier."""
    return crawl_url(text).new_url(depth=depth, **more)


def bare_domain(name: str) -> NewUrl:
    """Return the URL to add for a bare domain in the seeds."""
    return new_url(f"https://{name}/", assume_https=True)


A = "http://a.test"
ROBOTS = f"{A}/robots.txt"
NOTHING_ALLOWED = robots("User-agent: *\nDisallow: /\n")
NOTHING_PRIVATE = robots("User-agent: *\nDisallow: /private\n")


def _without_rounding(seconds: float) -> float:
    return round(seconds, 2)
