"""One visit to one domain: robots.txt where it is needed, then one page, with the hops it leads through.

The rules of a visit (docs/states.md draws them): at most eight requests, at most three redirect hops inside the
domain, each allowed by robots.txt and not fetched before; nothing starts after the lease's deadline. What happens is
noted in a Journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import assert_never

import msgspec

from rove.crawl.requests import CrawlContext, Requester, VisitOver
from rove.crawl.robots_check import RobotsCheck
from rove.crawl.visit_record import VisitRecord
from rove.model.outcomes import (
    UNREACHABLE_FAILURES,
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Redirected,
    Refused,
    WrongType,
)
from rove.model.reasons import BlockReason, FailReason, refused_status, unread_type
from rove.model.urls import NewUrl, PendingUrl, UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from rove.parse.html import Document, PageSource
from rove.parse.reader import SITEMAP_TOO_COMPLEX, TOO_COMPLEX, Unread
from rove.policy.constants import MAX_REQUESTS_PER_VISIT
from rove.policy.gate import Allowed, Blocked, Held
from rove.policy.retry import is_temporary, retry_in
from rove.policy.robots import rules_of
from rove.store.contract import Page
from rove.urls.canonical import CrawlUrl, canonical, http_twin, parse_base, restored
from rove.urls.fingerprint import fingerprint_bytes

MORE_URLS = (20, 1_000)
"""URLs read on when all of the lease's were blocked; and from then on, at a time."""
MAX_LOOKED_AT = 5_000
"""URLs that one visit looks at before it gives the domain back."""
LOOKED_AT_ONCE = 50
"""URLs that are put to a robots.txt before others have their turn: some texts are made to take long."""
JUDGING_SECONDS = 1.0
"""Seconds that one visit may spend on it, likewise."""


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that the visit is at, and how it came there."""

    url: CrawlUrl
    offer: NewUrl
    attempts: int = 0
    came_from: tuple[int, ...] = ()
    """The URLs whose redirects led here in this visit."""
    guess: _Step | None = None
    """The https guess for a bare domain that this http URL stands in for."""


class Visit:
    """A visit under way."""

    def __init__(
        self, context: CrawlContext, journal: VisitRecord, origins: dict[str, OriginRecord | None]
    ) -> None:
        """`origins`: the robots.txt records that the frontier holds for the lease's URLs, None where it has none."""
        self._context = context
        self._journal = journal
        self._requester = Requester(context, journal)
        self._robots_check = RobotsCheck(context, journal, self._requester, origins)
        self._guess: _Step | None = None
        self._listed: set[str] = set()
        """Origins whose sitemaps were offered in this visit."""

    async def run(self) -> None:
        """Make the visit; the journal then says what came of it."""
        try:
            await self._until_one_is_asked()
        except VisitOver:
            return
        finally:
            self._requester.close()

    async def _until_one_is_asked(self) -> None:
        lease = self._journal.lease
        queue = list(lease.urls)
        looked_at = 0
        while queue and looked_at < MAX_LOOKED_AT:
            for number, pending in enumerate(queue, start=1):
                if not number % LOOKED_AT_ONCE:
                    await asyncio.sleep(0)
                if self._robots_check.seconds > JUDGING_SECONDS:
                    return
                step = _first_step(pending)
                if self._may_turn_to(step.url) and await self._follow(step):
                    return
            looked_at += len(queue)
            limit = MORE_URLS[looked_at > len(lease.urls)]
            queue = await self._context.frontier.more(lease, queue[-1], limit)

    def _may_turn_to(self, url: CrawlUrl) -> bool:
        """A visit that has asked for a robots.txt in vain keeps to that origin: another one waits for its turn."""
        return not self._journal.asked or url.origin in self._robots_check.asked

    async def _follow(self, first: _Step) -> bool:
        """Follow one URL through its redirects; whether a page was asked for."""
        step: _Step | None = first
        asked = False
        while step is not None:
            verdict = await self._robots_check.verdict(step.url)
            if self._context.sitemaps:
                self._meet_sitemaps(step.url)
            match verdict:
                case Allowed():
                    asked = True
                    step = await self._after(step, await self._ask(step))
                case Blocked(reason=reason):
                    self._settle(step, UrlState.BLOCKED, reason)
                    step = None
                case Held(seconds=seconds, failing=failing):
                    step = await self._when_held(step, seconds, failing=failing)
                case _:
                    assert_never(verdict)
        return asked

    def _meet_sitemaps(self, url: CrawlUrl) -> None:
        """Offer the sitemaps that the robots.txt in force names; most are known, and dropped soon."""
        record = self._robots_check.record(url)
        if record is None or record.status is not RobotsStatus.RULES or url.origin in self._listed:
            return
        self._listed.add(url.origin)
        for text in rules_of(record.body).sitemaps:
            sitemap = canonical(text, None, self._context.reader.ignored_params)
            if sitemap is not None:
                self._meet(sitemap, url, depth=0, sitemap_of=url.host)

    async def _ask(self, step: _Step) -> Outcome:
        if step.offer.sitemap_of:
            return await self._requester.sitemap(step.url)
        return await self._requester.page(step.url)

    async def _when_held(self, step: _Step, seconds: float, *, failing: bool) -> _Step | None:
        """robots.txt cannot be had: try plain http for a bare domain, give up what cannot be mended, or wait."""
        failure = self._robots_check.failures.get(step.url.origin)
        if _missed(step, failure):
            return await self._twin(step)
        if failure is not None and not _worth_waiting_for(failure):
            self._settle(step, UrlState.FAILED, failure.kind.value)
        else:
            self._put_off(step, seconds, attempts=step.attempts, failing=failing)
        return None

    async def _after(self, step: _Step, outcome: Outcome) -> _Step | None:
        """Draw the consequence of a page's outcome; the step that follows, if one does."""
        match outcome:
            case Fetched() if step.offer.sitemap_of:
                await self._read_sitemap(step, outcome)
            case Fetched():
                await self._read(step, outcome)
            case Redirected(location=location):
                return await self._redirect(step, location)
            case WrongType(response=response):
                self._settle(step, UrlState.FAILED, unread_type(response.media_type))
            case Refused(response=response):
                self._fail(step, outcome, refused_status(response.status))
            case Failed(kind=kind):
                if _missed(step, outcome):
                    return await self._twin(step)
                self._fail(step, outcome, kind.value)
            case _:
                assert_never(outcome)
        return None

    async def _read(self, step: _Step, fetched: Fetched) -> None:
        """Take title, text and links from a page."""
        document = await self._document(step, fetched)
        if isinstance(document, Unread):
            self._leave_unread(step, document, TOO_COMPLEX)
            return
        self._journal.mark(*document.marks)
        self._meet_all(document.links, step.url, depth=step.offer.depth + 1)
        if document.noindex:
            self._settle(step, UrlState.BLOCKED, BlockReason.NOINDEX)
            return
        content_hash = fingerprint_bytes(document.utf8)
        page = Page(
            url=step.url.text,
            fetched_at=self._journal.requests[-1].started,
            text=document.utf8,
            source=fetched if self._context.keep_raw else None,
            content_hash=content_hash,
        )
        self._journal.note_page(page, title=document.title, content_hash=content_hash)
        self._settle(step, UrlState.DONE)

    async def _document(self, step: _Step, fetched: Fetched) -> Document | Unread:
        """What a page says; at once for most of them, without a turn of the event loop."""
        reader = self._context.reader
        answer = PageSource(
            body=fetched.body,
            url=step.url.text,
            content_type=fetched.response.header("content-type"),
            robots_tags=fetched.response.all_headers("x-robots-tag"),
            now=self._journal.requests[-1].finished,
            max_links=reader.max_links,
            drop_params=reader.drop_params,
        )
        is_plain_text = self._journal.requests[-1].media_type == "text/plain"
        document = reader.read_at_once(answer, is_plain_text=is_plain_text)
        if document is not None:
            return document
        self._journal.note_body(fetched)
        try:
            return await reader.read_apart(answer, is_plain_text=is_plain_text)
        except asyncio.CancelledError:
            self._journal.note_unread(FailureKind.ABORTED)
            raise

    async def _read_sitemap(self, step: _Step, fetched: Fetched) -> None:
        """Take the URLs from a sitemap, some at a time: there may be tens of thousands."""
        host, url = step.offer.sitemap_of, step.url.text
        self._journal.note_body(fetched)
        try:
            found = await self._context.reader.list_sitemap(fetched.body, url=url, host=host)
            if isinstance(found, Unread):
                self._leave_unread(step, found, SITEMAP_TOO_COMPLEX)
                return
            for pages in found.urls():
                self._meet_all(pages, step.url, depth=1)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._journal.note_unread(FailureKind.ABORTED)
            raise
        if not step.offer.depth:
            # An index names sitemaps, and none of these another index.
            for child in found.sitemaps:
                self._meet(child, step.url, depth=1, sitemap_of=host)
        self._settle(step, UrlState.READ)

    def _leave_unread(self, step: _Step, why: Unread, mark: str) -> None:
        match why:
            case Unread.TOO_COMPLEX:
                self._journal.mark(mark)
                self._settle(step, UrlState.FAILED, FailReason.TOO_COMPLEX)
            case Unread.BUSY:
                self._journal.note_unread(FailureKind.BUSY)
                self._try_later(step, FailReason.NOT_READ_IN_TIME)
            case _:
                assert_never(why)

    async def _redirect(self, step: _Step, location: str) -> _Step | None:
        """Follow a redirect at once where the visit may, else leave it to the frontier."""
        target = self._target(step.url, location)
        if target is None:
            self._settle(step, UrlState.FAILED, FailReason.REDIRECT_TO_NO_URL)
            return None
        guess = self._guess
        if guess is not None and target.fingerprint == guess.url.fingerprint:
            if step.guess is None:
                self._settle(step, UrlState.REDIRECTED, target.text)
                self._journal.settled.pop(target.fingerprint, None)
            self._try_later(guess, FailReason.HTTP_LEADS_TO_HTTPS)
            return None
        if target.fingerprint in (step.url.fingerprint, *step.came_from):
            self._settle(step, UrlState.FAILED, FailReason.REDIRECT_LOOP)
            return None
        self._settle(step, UrlState.REDIRECTED, target.text)
        hops = step.offer.hops + 1
        offer = self._meet(
            target, step.url, depth=step.offer.depth, hops=hops, sitemap_of=step.offer.sitemap_of
        )
        may_follow = (
            offer is not None
            and target.domain == self._journal.lease.domain
            and len(step.came_from) < self._context.redirect_hops
            and len(self._journal.requests) < MAX_REQUESTS_PER_VISIT
            and await self._is_open(target)
        )
        if offer is None or not may_follow:
            return None
        came_from = (*step.came_from, step.url.fingerprint)
        return _Step(url=target, offer=offer, came_from=came_from)

    def _target(self, url: CrawlUrl, location: str) -> CrawlUrl | None:
        """Where a redirect leads. A server that wants to see its session id before it answers has its way."""
        base = parse_base(url.text)
        target = canonical(location, base, self._context.reader.ignored_params)
        is_back = target is not None and target.fingerprint == url.fingerprint
        return canonical(location, base) if is_back else target

    async def _twin(self, step: _Step) -> _Step | None:
        """Try http in the place of an https guess that cannot be reached."""
        url = http_twin(step.url)
        self._guess = step
        key = (url.domain, url.fingerprint)
        state = (await self._context.frontier.states([key])).get(key, UrlState.PENDING)
        if state is UrlState.REDIRECTED:
            self._try_later(step, FailReason.HTTP_LEADS_ELSEWHERE)
            return None
        if state is not UrlState.PENDING:
            self._settle(step, UrlState.REDIRECTED, url.text)
            return None
        offer = url.new_url(depth=step.offer.depth)
        return _Step(url=url, offer=offer, attempts=step.attempts, guess=step)

    def _fail(self, step: _Step, outcome: Failed | Refused, reason: str) -> None:
        if is_temporary(outcome):
            self._try_later(step, reason)
        else:
            self._settle(step, UrlState.FAILED, reason)

    def _try_later(self, step: _Step, reason: str) -> None:
        """Try a URL again after a while, if it has not been tried too often."""
        attempts = step.attempts + 1
        wait = retry_in(attempts, self._context.delay)
        if wait is None:
            self._settle(step, UrlState.FAILED, reason)
        else:
            self._put_off(step, wait, attempts=attempts, failing=False)

    def _settle(self, step: _Step, state: UrlState, reason: str = "") -> None:
        if step.guess is not None:
            self._journal.settle(step.guess.url.fingerprint, UrlState.REDIRECTED, step.url.text)
            self._journal.links.append(step.offer)
        self._journal.settle(step.url.fingerprint, state, reason)

    def _put_off(self, step: _Step, seconds: float, *, attempts: int, failing: bool) -> None:
        """Leave a URL for later. A guess stays what it was: neither https nor http answered."""
        if step.guess is not None:
            step = step.guess
        self._journal.defer(step.url.fingerprint, seconds, attempts=attempts, failing=failing)

    def _meet_all(self, links: Sequence[CrawlUrl], source: CrawlUrl, *, depth: int) -> None:
        """Offer what a page names to the frontier, but for what is known there: of most pages, most links are."""
        journal = self._journal
        journal.links += self._context.gate.admitted(
            self._context.seen.unseen(links),
            depth=depth,
            source=source,
            refused=journal.not_accepted,
        )

    def _meet(
        self, url: CrawlUrl, source: CrawlUrl, *, depth: int, hops: int = 0, sitemap_of: str = ""
    ) -> NewUrl | None:
        """Offer a URL that another led to, if the gate lets it in, to the frontier."""
        admitted = self._context.gate.admits(url, depth=depth, hops=hops, source=source)
        if not isinstance(admitted, int):
            self._journal.not_accepted[admitted] += 1
            return None
        offer = url.new_url(depth=depth, hops=hops, sitemap_of=sitemap_of, penalty=admitted)
        self._journal.links.append(offer)
        return offer

    async def _is_open(self, url: CrawlUrl) -> bool:
        """Whether a URL of the leased domain has not been fetched yet."""
        key = (url.domain, url.fingerprint)
        states = await self._context.frontier.states([key])
        return states.get(key, UrlState.PENDING) is UrlState.PENDING


def _missed(step: _Step, failure: Failed | None) -> bool:
    """Whether https was only a guess, and one that did not hold."""
    return step.offer.assume_https and failure is not None and failure.kind in UNREACHABLE_FAILURES


def _worth_waiting_for(failure: Failed) -> bool:
    return is_temporary(failure) or failure.kind in UNREACHABLE_FAILURES


def _first_step(pending: PendingUrl) -> _Step:
    url = restored(pending.url, pending.fingerprint)
    offer = url.new_url(
        depth=pending.depth,
        hops=pending.hops,
        assume_https=pending.assume_https,
        sitemap_of=pending.sitemap_of,
    )
    return _Step(url=url, offer=offer, attempts=pending.attempts)
