"""One visit to one domain: robots.txt if it is needed, then one page, with the redirects that lead to it.

The rules of a visit (docs/states.md draws them): at most eight requests; at most three redirect hops inside the domain,
each allowed by robots.txt and to a URL that was not fetched before; no request after the deadline of the lease. The
VisitRecord holds everything that happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import assert_never

from rove.crawl.context import CrawlContext
from rove.crawl.https_guess import HttpsGuess, is_wrong_guess
from rove.crawl.page_decision import decide_page, usage_of_page
from rove.crawl.requests import Requester, VisitOver
from rove.crawl.robots_check import RobotsCheck
from rove.crawl.target import Target, as_foreign_sitemap, redirect_target, target_of
from rove.crawl.visit_record import VisitRecord
from rove.model.languages import Language
from rove.model.marks import Mark
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
from rove.model.reasons import FailReason, refused_status, robots_unreachable, unread_type
from rove.model.text_hash import text_hash
from rove.model.urls import NotAccepted, UrlState
from rove.model.visits import RobotsStatus
from rove.parse.html import Document, PageSource, read_html, read_plain
from rove.parse.simhash import simhash
from rove.parse.sitemap import Listed, read_sitemap
from rove.policy.challenges import is_challenge
from rove.policy.constants import MAX_REQUESTS_PER_VISIT
from rove.policy.gate import Allowed, Blocked, Held, Refusal
from rove.policy.retry import is_temporary, retry_in
from rove.policy.robots import rules_of
from rove.store.contract import Keep, Page
from rove.urls.canonical import CrawlUrl
from rove.urls.domain import domain_of

FIRST_REFILL = 20
"""URLs to read next when all URLs of the lease were blocked."""
LATER_REFILLS = 1_000
MAX_URLS_CHECKED = 5_000
"""URLs that one visit checks before it gives the domain back."""
CHECKS_PER_TURN = 50
"""URLs checked against robots.txt before other visits get a turn."""
TURN_SECONDS = 0.005
"""Time of such checks after which other visits get a turn, because some robots.txt are made to be slow."""
CHILDREN_PER_TURN = 100
"""Sitemaps taken from an index before other visits get a turn."""
MAX_CHECK_SECONDS = 1.0
"""Time that one visit may spend checking URLs."""


class Visit:
    """A visit in progress."""

    def __init__(self, context: CrawlContext, record: VisitRecord) -> None:
        """`record` is filled in as the visit goes on."""
        self._context = context
        self._record = record
        self._requester = Requester(context, record)
        self._robots_check = RobotsCheck(context, record, self._requester)
        self.busy_with = record.lease.urls[0].fingerprint
        """Which URL the visit is working on."""
        self._guess: HttpsGuess | None = None
        self._read_for_others: set[str] = set()
        """Origins whose robots.txt this visit has read only because other domains want it."""
        self._sitemaps_collected: set[str] = set()
        """Origins whose sitemaps were collected in this visit."""
        self._own_sitemaps: dict[str, str] = {}
        """Those of them that are in the domain: the host that names each, by URL."""

    async def run(self) -> None:
        """Make the visit."""
        with closing(self._requester), suppress(VisitOver):
            await self._visit_first_allowed()

    async def _visit_first_allowed(self) -> None:
        """Go through the domain's URLs until one of them has been requested."""
        lease = self._record.lease
        queue = list(lease.urls)
        checked, until = 0, TURN_SECONDS
        while queue and checked < MAX_URLS_CHECKED:
            for number, pending in enumerate(queue, start=1):
                if not number % CHECKS_PER_TURN or self._robots_check.seconds > until:
                    until = self._robots_check.seconds + TURN_SECONDS
                    await asyncio.sleep(0)
                if self._robots_check.seconds > MAX_CHECK_SECONDS:
                    return
                target = target_of(pending, self._context.form)
                if target.url.domain != lease.domain:
                    self._settle(target, UrlState.FAILED, FailReason.DAMAGED)
                elif self._may_turn_to(target):
                    self._requester.turn_to(pending)
                    if await self._follow(target):
                        return
            checked += len(queue)
            limit = LATER_REFILLS if checked > len(lease.urls) else FIRST_REFILL
            queue = await self._context.frontier.more(lease, queue[-1], limit)

    def _may_turn_to(self, target: Target) -> bool:
        """Whether this visit may go on with a URL: after a failed robots.txt, other origins wait for a later visit.

        A robots.txt that other domains want is read in addition to the page, so that it costs the domain no visit. A
        foreign URL that came first in the lease may come a second time.
        """
        if target.url.fingerprint in self._record.settled or target.url.fingerprint in self._record.deferred:
            return False
        if target.is_robots and self._record.requested:
            return False
        requested = self._robots_check.requested
        return requested <= self._read_for_others or target.url.origin in requested

    async def _follow(self, first: Target) -> bool:
        """Request a URL and follow its redirects; return whether a page was requested."""
        target: Target | None = first
        has_requested = False
        while target is not None:
            self.busy_with = target.url.fingerprint
            verdict = await self._robots_check.verdict(target.url, depth=target.depth_for_rules)
            if self._context.settings.sitemaps and not target.is_robots:
                self._collect_sitemaps(target.url)
                target = self._as_robots_names_it(target)
            match verdict:
                case Allowed() if target.is_robots:
                    self._read_for_others.add(target.url.origin)
                    self._settle(target, UrlState.READ)
                    target = None
                case Allowed():
                    has_requested = True
                    request = self._requester.sitemap if target.sitemap_of else self._requester.page
                    target = await self._handle(target, await request(target.url))
                case Blocked(reason=reason):
                    self._settle(target, UrlState.BLOCKED, reason)
                    target = None
                case Held(seconds=seconds, failing=failing):
                    target = await self._handle_held(target, seconds, failing=failing)
                case _:
                    assert_never(verdict)
        return has_requested

    def _collect_sitemaps(self, url: CrawlUrl) -> None:
        """Collect the sitemaps that the origin's robots.txt names, once in a visit."""
        origin = self._robots_check.origin(url)
        if origin is None or origin.status is not RobotsStatus.RULES or url.origin in self._sitemaps_collected:
            return
        self._sitemaps_collected.add(url.origin)
        for text in rules_of(origin.body).sitemaps:
            sitemap = self._context.form.canonical(text)
            if sitemap is not None:
                target = Target(url=sitemap, depth=0, sitemap_of=url.host)
                if sitemap.domain == url.domain:
                    self._own_sitemaps[sitemap.text] = url.host
                else:
                    target = as_foreign_sitemap(target)
                self._add_link(target, url)

    def _as_robots_names_it(self, target: Target) -> Target:
        """Return the target as a sitemap if robots.txt names it as one, no matter which link led to it."""
        host = self._own_sitemaps.get(target.url.text)
        return target if host is None or target.sitemap_of else target.as_sitemap_of(host)

    async def _handle_held(self, target: Target, seconds: float, *, failing: bool) -> Target | None:
        """Handle a URL whose robots.txt could not be fetched; return the URL to try instead, if any."""
        failure = self._robots_check.failures.get(target.url.origin)
        if is_wrong_guess(target, failure):
            return await self._try_http(target)
        if failure is None or is_temporary(failure) or failure.kind in UNREACHABLE_FAILURES:
            reason = "" if failure is None else robots_unreachable(failure.kind)
            self._defer(target, seconds, attempts=target.attempts, failing=failing, reason=reason)
        else:
            self._settle(target, UrlState.FAILED, failure.kind.value)
        return None

    async def _handle(self, target: Target, outcome: Outcome) -> Target | None:
        """Handle the outcome of a request; return the URL to request next, if any."""
        if not isinstance(outcome, Failed) and is_challenge(outcome.response):
            self._give_up_at_wall(target)
            return None
        match outcome:
            case Fetched():
                if target.sitemap_of:
                    await self._read_sitemap(target, outcome)
                else:
                    self._read_page(target, outcome)
            case Redirected(location=location):
                return await self._redirect(target, location)
            case WrongType(response=response):
                self._settle(target, UrlState.FAILED, unread_type(response.media_type))
            case Refused(response=response):
                self._fail(target, outcome, refused_status(response.status))
            case Failed(kind=kind):
                if is_wrong_guess(target, outcome):
                    return await self._try_http(target)
                self._fail(target, outcome, kind.value)
            case _:
                assert_never(outcome)
        return None

    def _read_page(self, target: Target, fetched: Fetched) -> None:
        """Take the title, the text and the links from a page."""
        document = self._parse(target, fetched)
        self._record.answers.reading_seconds += document.reading_seconds
        if Mark.CHALLENGED in document.marks:
            self._give_up_at_wall(target)
            return
        self._record.mark(*document.marks)
        origin = self._robots_check.origin(target.url)
        usage = usage_of_page(target, fetched, document, robots=b"" if origin is None else origin.body)
        self._record.note_usage(usage)
        row, purpose = self._record.requests[-1], self._context.settings.purpose
        decision = decide_page(self._context.gate.rules, target, row, document, usage=usage, purpose=purpose)
        if decision.not_followed is None:
            self._add_links(document.links, target.url, depth=target.depth + 1, languages=document.languages)
        else:
            self._record.links_found += len(document.links)
            ruled_out = [(decision.not_followed, link) for link in document.links]
            self._record.refuse(ruled_out, target.url, self._context.skip_sample)
        if decision.blocked:
            self._settle(target, UrlState.BLOCKED, decision.blocked)
            return
        page = Page(
            url=target.url.text,
            fetched_at=self._record.requests[-1].started,
            text=document.utf8,
            source=None if self._context.settings.store == Keep.TEXT else fetched,
            content_hash=text_hash(document.utf8),
            languages=tuple(language.code for language in document.languages),
        )
        self._record.note_page(page, document, purpose, simhash(document.utf8))
        self._settle(target, UrlState.DONE)

    def _parse(self, target: Target, fetched: Fetched) -> Document:
        """Parse a page. No page takes long, because its length is limited."""
        settings = self._context.settings
        source = PageSource(
            body=fetched.body,
            url=target.url.text,
            content_type=fetched.response.header("content-type"),
            robots_tags=fetched.response.all_headers("x-robots-tag"),
            now=self._record.requests[-1].finished,
            max_links=settings.max_links,
            max_parsed=settings.max_parsed_size,
        )
        with self._requester.reading:
            if self._record.requests[-1].media_type == "text/plain":
                return read_plain(source)
            return read_html(source, self._context.form)

    async def _read_sitemap(self, target: Target, fetched: Fetched) -> None:
        """Take the URLs from a sitemap, in slices, because there may be tens of thousands."""
        host = target.sitemap_of
        self._record.note_body(fetched)
        # The robots.txt of the host vouches for the sitemap, wherever it is.
        named_by = self._context.form.domain_id(domain_of(host))
        # Only an index that robots.txt names may name further sitemaps. It has depth 1 if it is in another domain.
        may_name_others = target.depth == int(target.url.domain != named_by)
        slices = read_sitemap(fetched.body, url=target.url.text, host=host, form=self._context.form)
        while (listed := self._next_of(slices)) is not None:
            self._add_links(listed.urls, target.url, depth=1, vouching=named_by)
            await self._let_others_run()
            for number, child in enumerate(listed.sitemaps if may_name_others else (), start=1):
                if not number % CHILDREN_PER_TURN:
                    await self._let_others_run()
                child_target = Target(url=child, depth=target.depth + 1, sitemap_of=host)
                self._add_link(child_target, target.url, vouching=named_by)
        self._settle(target, UrlState.READ)

    def _next_of(self, slices: Iterator[Listed]) -> Listed | None:
        with self._requester.reading:
            return next(slices, None)

    async def _let_others_run(self) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._record.note_unread(FailureKind.ABORTED)
            raise

    async def _redirect(self, target: Target, location: str) -> Target | None:
        """Return the next URL if this visit may follow the redirect; otherwise leave it to the frontier."""
        url = redirect_target(target.url, location, self._context.form)
        if url is None:
            self._settle(target, UrlState.FAILED, FailReason.REDIRECT_TO_NO_URL)
            return None
        if self._guess is not None and self._guess.leads_back(url):
            self._return_to_https(target, self._guess)
            return None
        if url.fingerprint in (target.url.fingerprint, *target.came_from):
            self._settle(target, UrlState.FAILED, FailReason.REDIRECT_LOOP)
            return None
        self._settle(target, UrlState.REDIRECTED, url.text)
        following = Target(
            url=url,
            depth=target.depth,
            hops=target.hops + 1,
            sitemap_of=target.sitemap_of,
            came_from=(*target.came_from, target.url.fingerprint),
        )
        if target.sitemap_of and url.domain != target.url.domain:
            following = as_foreign_sitemap(following)
        if not target.sitemap_of and not await self._context.scope.covers_redirect(url, depth=target.depth):
            self._record.links_found += 1
            self._record.refuse([(NotAccepted.OUT_OF_SCOPE, url)], target.url, self._context.skip_sample)
            return None
        may_follow = (
            self._add_link(following, target.url)
            and url.domain_name == self._record.lease.name
            and len(target.came_from) < self._context.settings.redirect_hops
            and len(self._record.requests) < MAX_REQUESTS_PER_VISIT
            and await self._state_of(url) is UrlState.PENDING
        )
        return following if may_follow else None

    async def _try_http(self, target: Target) -> Target | None:
        """Return the http URL to request instead of an https URL that cannot be reached."""
        guess = self._guess = HttpsGuess(target, self._context.form)
        state = await self._state_of(guess.http.url)
        if state is UrlState.PENDING:
            return guess.http
        if state is UrlState.REDIRECTED:
            self._try_later(target, FailReason.HTTP_LEADS_ELSEWHERE)
        else:
            self._settle(target, UrlState.REDIRECTED, guess.http.url.text)
        return None

    def _return_to_https(self, target: Target, guess: HttpsGuess) -> None:
        """Handle a redirect back to the https URL that could not be reached: try that again later."""
        if target is not guess.http:
            self._settle(target, UrlState.REDIRECTED, guess.https.url.text)
            guess.reopen_https(self._record)
        self._try_later(guess.https, FailReason.HTTP_LEADS_TO_HTTPS)

    def _give_up_at_wall(self, target: Target) -> None:
        """Fail a URL whose server sent a bot wall. Nothing of it is used, and asking again would not help."""
        self._record.note_challenge()
        self._settle(target, UrlState.FAILED, FailReason.CHALLENGED)

    def _fail(self, target: Target, outcome: Failed | Refused, reason: str) -> None:
        if is_temporary(outcome):
            self._try_later(target, reason)
        else:
            self._settle(target, UrlState.FAILED, reason)

    def _try_later(self, target: Target, reason: str) -> None:
        """Retry a URL later, or fail it if it has been tried too often."""
        attempts = target.attempts + 1
        wait = retry_in(attempts, self._context.settings.delay)
        if wait is None:
            self._settle(target, UrlState.FAILED, reason)
        else:
            self._defer(target, wait, attempts=attempts, failing=False, reason=reason)

    def _settle(self, target: Target, state: UrlState, reason: str = "") -> None:
        if self._guess is not None and target is self._guess.http:
            self._guess.settle_https(self._record)
        self._record.settle(target.url.fingerprint, state, reason)

    def _defer(self, target: Target, seconds: float, *, attempts: int, failing: bool, reason: str) -> None:
        if self._guess is not None and target is self._guess.http:
            target = self._guess.https  # neither server responded, so the guess stays open
        self._record.defer(target.url.fingerprint, seconds, attempts=attempts, failing=failing, reason=reason)

    def _add_links(
        self,
        links: Sequence[CrawlUrl],
        source: CrawlUrl,
        *,
        depth: int,
        vouching: int | None = None,
        languages: Sequence[Language] = (),
    ) -> None:
        """Record the links of a page that may be new to the frontier; most are known.

        The links to its own domain are that domain's own. So are those to the domain that vouches for a sitemap.
        `languages` are those of the page; a sitemap has none.
        """
        refused: list[tuple[Refusal, CrawlUrl]] = []
        own_domains = (source.domain,) if vouching is None else (source.domain, vouching)
        self._record.links_found += len(links)
        self._record.links += self._context.gate.admitted(
            self._context.seen.unseen_links(links, own_domains),
            depth=depth,
            source=source,
            own_domains=own_domains,
            refused=refused,
            languages=languages,
        )
        self._record.refuse(refused, source, self._context.skip_sample)

    def _add_link(self, link: Target, source: CrawlUrl, *, vouching: int | None = None) -> bool:
        """Record a URL to add to the frontier, if the gate accepts it; return whether it does."""
        gate = self._context.gate
        self._record.links_found += 1
        penalty = gate.admits(
            link.url,
            depth=link.depth,
            hops=link.hops,
            source=source,
            any_file=link.may_be_a_file,
            is_sitemap=bool(link.sitemap_of),
        )
        if not isinstance(penalty, int):
            self._record.refuse([(penalty, link.url)], source, self._context.skip_sample)
            return False
        # What a seed redirects to counts as a seed, in whatever domain it is.
        is_foreign = link.depth > 0 and link.url.domain not in (source.domain, vouching)
        self._record.links.append(link.as_new_url(penalty, is_foreign=is_foreign))
        return True

    async def _state_of(self, url: CrawlUrl) -> UrlState:
        """Return the state of a URL of the leased domain; one that is new counts as pending."""
        key = (url.domain, url.fingerprint)
        return (await self._context.frontier.states([key])).get(key, UrlState.PENDING)
