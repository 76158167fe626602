"""A web that answers as scripted, and a world around it with a real frontier and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rove.crawl.inflight_log import InflightLog
from rove.crawl.requests import CrawlContext
from rove.crawl.seen import SeenSet
from rove.crawl.visit import Visit
from rove.crawl.visit_record import VisitRecord
from rove.fetch.contract import Request
from rove.frontier.contract import Frontier
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Redirected,
    Refused,
    Response,
    WrongType,
)
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Lease, OriginRecord, RobotsStatus
from rove.parse.reader import PageReader
from rove.policy.constants import DEFAULT_REDIRECT_HOPS, VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.store.contract import Stored
from rove.urls.canonical import CrawlUrl, canonical
from tests.contract.harness import SqliteHarness

DELAY = 70.0
Answer = Outcome | Sequence[Outcome]
Script = Mapping[str, Answer]


def response(status: int, *headers: tuple[str, str]) -> Response:
    """The head of an answer; the fetcher puts the URL in."""
    return Response(
        url="",
        status=status,
        status_line=f"HTTP/1.1 {status}",
        headers=headers,
        address="192.0.2.7",
    )


def page(
    html: str = "<title>A page</title><p>Some text.", media_type: str = "text/html"
) -> Fetched:
    """A page."""
    body = html.encode()
    head = response(200, ("Content-Type", f"{media_type}; charset=utf-8"))
    return Fetched(response=head, body=body, wire_body=body, truncated=False)


def page_with_links(*hrefs: str) -> Fetched:
    """A page that links to others."""
    return page("<title>Links</title>" + "".join(f'<a href="{href}">x</a> ' for href in hrefs))


def robots(text: str) -> Fetched:
    """A robots.txt."""
    return page(text, "text/plain")


def redirect(location: str, status: int = 301) -> Redirected:
    """A redirect."""
    return Redirected(response=response(status, ("Location", location)), location=location)


def refused(status: int, *headers: tuple[str, str]) -> Refused:
    """A status that is no page."""
    return Refused(response=response(status, *headers))


def wrong_type(media_type: str = "image/png") -> WrongType:
    """Something that is not read."""
    return WrongType(response=response(200, ("Content-Type", media_type)))


def failed(kind: FailureKind = FailureKind.CONNECT) -> Failed:
    """No answer."""
    return Failed(kind=kind, detail="as scripted")


class ScriptedFetcher:
    """Stands in the network's place: answers each URL as scripted, a list of answers one after the other.

    A robots.txt that is not in the script is a 404; any other URL that is not is a mistake of the crawl.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script: dict[str, Answer] = dict(script or {})
        self.asked: list[str] = []
        self.requests: list[Request] = []
        self.before_answer: Callable[[Request], Awaitable[None]] | None = None

    @property
    def pages_asked(self) -> list[str]:
        """What was asked but for robots.txt."""
        return [url for url in self.asked if not url.endswith("/robots.txt")]

    async def fetch(self, request: Request) -> Outcome:
        self.asked.append(request.url)
        self.requests.append(request)
        if self.before_answer is not None:
            await self.before_answer(request)
        return self._answer(request.url)

    async def close(self) -> None:
        return

    def _answer(self, url: str) -> Outcome:
        found = self.script.get(url)
        if found is None:
            assert url.endswith("/robots.txt"), f"{url} was not to be asked"
            found = refused(404)
        if isinstance(found, Sequence):
            assert found, f"{url} was asked too often"
            found, self.script[url] = found[0], found[1:]
        if isinstance(found, Failed):
            return found
        return replace(found, response=replace(found.response, url=url))


class World:
    """One crawl's frontier, in which visits are made one by one."""

    def __init__(self, folder: Path) -> None:
        self.harness = SqliteHarness(folder)
        self.fetcher = ScriptedFetcher()
        self.stopping = False
        self.keep_raw = False
        self.redirect_hops = DEFAULT_REDIRECT_HOPS
        self.sitemaps = False
        self.gate = Gate(Exclusions())
        self.reader = PageReader()
        self.spool_folder = folder / "spool"
        self.inflight_log = InflightLog(self.spool_folder, 1)
        self._frontier: Frontier | None = None

    @property
    def frontier(self) -> Frontier:
        assert self._frontier is not None, "the world is not open"
        return self._frontier

    def now(self) -> float:
        """Steady-clock seconds."""
        return self.harness._now / 1000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.harness.advance(seconds)

    async def open(
        self,
        *urls: str | NewUrl,
        script: Script | None = None,
        exclude: Sequence[str] = (),
        max_depth: int | None = None,
    ) -> None:
        """Open the frontier with these URLs in it."""
        self.gate = Gate(Exclusions(exclude), max_depth=max_depth)
        self.fetcher = ScriptedFetcher(script)
        self._frontier = await self.harness.open(delay=DELAY, budget=VISIT_BUDGET)
        await self.frontier.add([offered(url) if isinstance(url, str) else url for url in urls])

    def close(self) -> None:
        """Close the frontier."""
        self.inflight_log.close()
        asyncio.run(self.reader.close())
        asyncio.run(self.harness.close())

    async def claim(self) -> Lease | None:
        """The next lease, with its deadline."""
        leases = await self.frontier.claim(1)
        return self.timed(leases[0]) if leases else None

    def timed(self, lease: Lease) -> Lease:
        """A lease as the crawl takes it: with its deadline, and what the crawl's clock is ahead."""
        now = self.now()
        return lease.replace(
            deadline=now + VISIT_BUDGET, clock_offset=lease.claimed_ms / 1000 - now
        )

    async def start(self, lease: Lease) -> tuple[VisitRecord, Visit]:
        """A visit with its journal, not begun yet."""
        found = {canonical(pending.url) for pending in lease.urls}
        keys = [(url.domain, url.origin) for url in found if url is not None]
        origins: dict[str, OriginRecord | None] = {origin: None for _, origin in keys}
        origins |= {record.origin: record for record in await self.frontier.origins(keys)}
        journal = VisitRecord(lease)
        context = CrawlContext(
            frontier=self.frontier,
            fetcher=self.fetcher,
            gate=self.gate,
            reader=self.reader,
            inflight_log=self.inflight_log,
            seen=SeenSet(),
            delay=DELAY,
            max_body=1 << 20,
            redirect_hops=self.redirect_hops,
            sitemaps=self.sitemaps,
            keep_raw=self.keep_raw,
            clock=self.now,
            is_stopping=lambda: self.stopping,
        )
        return journal, Visit(context, journal, origins)

    async def write_down(self, journal: VisitRecord) -> None:
        """Settle a visit as the crawl does."""
        both = set(journal.settled) & set(journal.deferred)
        assert not both, "what is settled is not put off"
        journal.note_stored([Stored(text=None, raw=None) for _ in journal.pages])
        origins = journal.origins(self.now())
        if origins:
            await self.frontier.put_origins(origins)
        await self.frontier.add(journal.links)
        await self.frontier.settle([journal.result(self.now(), DELAY)])
        self.inflight_log.settled([journal.lease.token])

    async def visit(self) -> VisitRecord:
        """Claim a domain, visit it, and write the visit down."""
        lease = await self.claim()
        assert lease is not None, "no domain is due"
        journal, visit = await self.start(lease)
        await visit.run()
        await self.write_down(journal)
        return journal

    async def visit_next(self, *, within: float = 1e9) -> tuple[float, VisitRecord]:
        """Wait for the next domain that is due, whatever it waits for; how long that took, and the visit."""
        rows = await self.rows("SELECT min(ready_at) FROM domain WHERE ready_at IS NOT NULL")
        assert rows[0][0] is not None, "nothing is pending"
        waited = max(0, rows[0][0] - self.harness._now) / 1000
        assert waited <= within, f"the next visit is {waited} s away"
        self.advance(waited)
        return waited, await self.visit()

    async def keep_origin(self, origin: str, body: str, *, valid_for: float = 3600.0) -> None:
        """Put a robots.txt record into the frontier."""
        url = crawl_url(origin + "/")
        record = OriginRecord(
            domain=url.domain,
            origin=url.origin,
            status=RobotsStatus.RULES,
            body=body.encode(),
            valid_for=valid_for,
        )
        await self.frontier.put_origins([record])

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database says."""
        database = self.harness._databases[-1]
        assert database._connection is not None, "the database is open"
        connection = database._connection
        return await database.run(lambda: connection.execute(sql, values).fetchall())

    async def states(self) -> dict[str, str]:
        """All URLs of the frontier by state."""
        rows = await self.rows("SELECT url, state FROM url")
        return {url: UrlState(state).name.lower() for url, state in rows}

    async def reason(self, url: str) -> str:
        """Why a URL is in its state."""
        ((reason,),) = await self.rows("SELECT reason FROM url WHERE url = ?", url)
        return str(reason)

    async def counters(self) -> dict[str, int]:
        """The kept counters."""
        return dict(await self.rows("SELECT name, value FROM counter"))


def crawl_url(text: str) -> CrawlUrl:
    """A canonical URL."""
    found = canonical(text)
    assert found is not None, f"{text} is no URL"
    return found


def offered(text: str, depth: int = 0, **more: Any) -> NewUrl:
    """A URL to add."""
    return crawl_url(text).new_url(depth=depth, **more)


def assume_https(text: str) -> NewUrl:
    """The guess that a bare domain in the seeds is."""
    return offered(f"https://{text}/", assume_https=True)
