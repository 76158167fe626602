"""Writes finished visits in batches, in an order that makes a kill at any moment harmless.

First the pages are stored and flushed, then their links are added to the frontier, then the visits are settled. If the
process is killed in between, no link is lost and no URL counts as done without its content; at worst a page is fetched
again. One batch is stored while the one before it is settled, so that the store and the frontier do not wait for each
other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence

from rove.crawl.context import CrawlContext
from rove.crawl.known_texts import KnownTexts
from rove.crawl.seen import SeenSet
from rove.crawl.skip_sample import SkipSample
from rove.crawl.visit_record import VisitRecord
from rove.errors import RoveError
from rove.frontier.records import Added
from rove.frontier.rows.requests import delay_in_force
from rove.model.urls import NewUrl, NotAccepted, UrlState
from rove.model.visits import VisitResult
from rove.notation.log_line import log_line
from rove.policy.scope import SeedScope

LINKS_PER_ADD = 8_192
"""Links added in one transaction: few enough that a claim waits at most about a tenth of a second for its turn."""
BUSY_BATCH = 16
"""With this many visits waiting, wait one more interval: larger batches touch each index page less often."""

log = logging.getLogger(__name__)


class BatchWriter:
    """Stores and settles finished visits."""

    def __init__(self, context: CrawlContext, *, on_settled: Callable[[Sequence[VisitRecord]], None]) -> None:
        """`on_settled` is called with each batch once its visits are settled."""
        self._context = context
        self._frontier = context.frontier
        self._delay = context.settings.delay
        self._meter = context.meter
        self._add_times, self._settle_times, self._flush_times = map(self._meter.histogram, ("add", "settle", "flush"))
        self._on_settled = on_settled
        self.known_texts = KnownTexts(context.frontier)
        self._new_domains = context.new_domains
        self._waiting: deque[VisitRecord] = deque()
        self._unsettled: dict[VisitRecord, None] = {}
        self._woken = asyncio.Event()
        self._is_finishing = False

    @property
    def unsettled(self) -> int:
        """How many visits are not settled yet."""
        return len(self._unsettled)

    def put(self, record: VisitRecord) -> None:
        """Take a finished visit."""
        self._waiting.append(record)
        self._unsettled[record] = None
        self._woken.set()

    def finish(self) -> None:
        """Let `run` return once all visits are written; no more will come."""
        self._is_finishing = True
        self._woken.set()

    async def run(self) -> None:
        """Write visits until `finish` is called and none is left; raise if the store or the frontier fails."""
        settling: asyncio.Task[None] | None = None
        try:
            while self._waiting or not self._is_finishing:
                await self._gather()
                if settling is not None and settling.done():
                    await settling
                size = min(self._context.batch_size, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(size)]
                if not batch:
                    continue
                await self._store_pages(batch)
                if settling is not None:
                    await settling
                settling = asyncio.create_task(self._settle(batch))
                settling.add_done_callback(lambda _: self._woken.set())
        finally:
            if settling is not None:
                await settling

    async def salvage(self) -> None:
        """After a failure, record at least which domains were visited, so that their delay is respected."""
        now = self._context.clock()
        visits = [record.requests_only(now, self._delay) for record in self._unsettled]
        try:
            await self._frontier.settle(visits)
        except RoveError as error:
            log.warning("could not end %d leases; the next start will: %s", len(visits), error)
        else:
            self._context.inflight_log.settled(visit.lease.token for visit in visits)

    async def _gather(self) -> None:
        """Wait until there is a full batch, or the first visit has waited long enough, or a settle has ended."""
        await self._woken.wait()
        full = self._context.batch_size
        if 0 < len(self._waiting) < full and not self._is_finishing:
            await asyncio.sleep(self._context.batch_seconds)
        if BUSY_BATCH <= len(self._waiting) < full and not self._is_finishing:
            await asyncio.sleep(self._context.batch_seconds)
        if len(self._waiting) <= full and not self._is_finishing:
            self._woken.clear()

    async def _store_pages(self, batch: Sequence[VisitRecord]) -> None:
        pages = [page for record in batch for page in record.pages]
        if not pages:
            return
        texts = await self.known_texts.look_up(pages)
        with self._flush_times.measured():
            locations = iter(await self._context.store.write(pages, texts.known))
        for record in batch:
            stored = [next(locations) for _ in record.pages]
            record.note_stored(stored)
            for page, where in zip(record.pages, stored, strict=True):
                record.note_text(
                    is_repeat=texts.is_repeat(record.lease, page, where),
                    content=texts.content_of(record.lease, page, where),
                )
            self.known_texts.sent(record.contents)

    async def _settle(self, batch: Sequence[VisitRecord]) -> None:
        now = self._context.clock()
        origins = [origin for record in batch for origin in record.origins(now)]
        if origins:
            not_kept = await self._frontier.put_origins(origins)
            if not_kept:
                for record in batch:
                    record.note_not_kept(not_kept)
        eras = self._frontier.eras
        await self._add_links(batch)
        await self._frontier.want_robots([url for record in batch for url in record.wanted_robots])
        now = self._context.clock()
        results = [record.result(now, self._delay) for record in batch]
        with self._settle_times.measured():
            ended = await self._frontier.settle(results)
        self._meter.note_settled(results, lost=len(results) - ended)
        if self._frontier.eras != eras:
            await self._add_links(batch)  # the database may have lost the links and still know the leases
        if log.isEnabledFor(logging.DEBUG):
            self._log_settle(results)
        self._context.inflight_log.settled(record.lease.token for record in batch)
        for record in batch:
            self.known_texts.arrived(record.contents)
            del self._unsettled[record]
        self._on_settled(batch)
        for record in batch:
            record.release()
        await self._give_up_domains(batch)

    def _log_settle(self, results: Sequence[VisitResult]) -> None:
        for result in results:
            lease = result.lease
            delay, reason = delay_in_force(result, self._delay, lease.crawl_delay)
            log.debug(
                "%s",
                log_line(
                    "settle",
                    process=self._frontier.process,
                    domain=lease.name,
                    visit=lease.token,
                    requests=len(result.requests),
                    settled=",".join(f"{url.state.name.lower()}:{url.reason}".rstrip(":") for url in result.settled),
                    deferred=len(result.deferred),
                    no_request=result.no_request_reason,
                    delay=delay if result.requested else None,
                    delay_from=reason if result.requested else None,
                ),
            )

    async def _give_up_domains(self, batch: Sequence[VisitRecord]) -> None:
        """Fail all URLs of domains that have not responded for too long."""
        for record in batch:
            if record.answers.has_answered:
                continue
            reason = record.pacing(self._delay).give_up_reason
            if reason:
                lease = record.lease
                failed = await self._frontier.withdraw(
                    lease.domain, UrlState.FAILED, reason, lambda _: True, after=lease.token
                )
                log.info("gave up %s with %d URLs: %s", lease.name, failed, reason)

    async def _add_links(self, batch: Sequence[VisitRecord]) -> None:
        seen = self._context.seen
        seen.enter_era(self._frontier.eras)
        links: dict[str, NewUrl] = {}
        beyond: dict[str, NewUrl] = {}
        """Links that count only if their domain is known."""
        exempt: set[tuple[int, int]] = set()
        for record in batch:
            domain = record.lease.domain
            fetched = {(domain, fingerprint) for fingerprint in (*record.settled, *record.deferred)}
            if len(fetched) > 1:
                # The visit followed a redirect. The frontier must hold both ends so that they can be settled, even if
                # the target was evicted for lack of room since, or there is no room for it now.
                exempt |= fetched
                _merge((link for link in record.links if (link.domain, link.fingerprint) in fetched), links)
            may_be_new, others = self._new_domains.split(domain, record.links)
            await new_links(may_be_new, seen, links)
            await new_links(others, seen, beyond)
        news = AddedLinks(self._context.skip_sample)
        await self._drop_out_of_scope((links, beyond), exempt, news)
        is_limited = self._context.settings.scope is not SeedScope.ANYWHERE
        scope = NotAccepted.OUT_OF_SCOPE if is_limited else None
        await self._add(list(links.values()), exempt, scope, news)
        self._new_domains.note(batch, news.made)
        await self._add(list(beyond.values()), exempt, scope or NotAccepted.NEW_DOMAINS, news)
        _note_skipped(batch, news.skipped)
        for record in batch:
            news.not_taken.update(record.not_accepted)
        found = sum(record.links_found for record in batch)
        self._meter.note_links(found=found, new=news.new, not_taken=news.not_taken, evicted=news.evicted)

    async def _drop_out_of_scope(
        self, found: Sequence[dict[str, NewUrl]], exempt: Collection[tuple[int, int]], news: AddedLinks
    ) -> None:
        """Remove the links that are out of scope, apart from those that a visit has followed."""
        scope, settings = self._context.scope, self._context.settings
        if not settings.scope.needs_roots:
            return
        for is_redirect in (True, False):
            part = [link for links in found for link in links.values() if (link.depth == 0) is is_redirect]
            out = [link for link in await scope.outside(part) if (link.domain, link.fingerprint) not in exempt]
            names = {link.url for link in out}
            for links in found:
                for name in names & links.keys():
                    del links[name]
            news.refuse([(NotAccepted.OUT_OF_SCOPE, link) for link in out])
            if is_redirect:
                # What a seed redirects to may be on another host. The links of that page are judged by it.
                redirects = [link for link in part if link.url not in names]
                await self._add(redirects, exempt, NotAccepted.OUT_OF_SCOPE, news)
                scope.forget(link.domain for link in redirects)
        if count := news.not_taken[NotAccepted.OUT_OF_SCOPE]:
            await self._frontier.count({f"not_accepted.{NotAccepted.OUT_OF_SCOPE}": count})

    async def _add(
        self,
        urls: Sequence[NewUrl],
        exempt: Collection[tuple[int, int]],
        refuse_new_domains: NotAccepted | None,
        news: AddedLinks,
    ) -> None:
        """Add links to the frontier, in slices; note in `news` what became of them."""
        for start in range(0, len(urls), LINKS_PER_ADD):
            part = urls[start : start + LINKS_PER_ADD]
            era = self._frontier.eras
            with self._add_times.measured():
                added = await self._frontier.add(part, refuse_new_domains=refuse_new_domains, exempt=exempt)
            news.note(added)
            # After a failover, what was added may be lost with the database's last transactions.
            if refuse_new_domains is not NotAccepted.NEW_DOMAINS and self._frontier.eras == era:
                self._context.seen.note(part, added.refused)


class AddedLinks:
    """What became of the links of a batch."""

    def __init__(self, sample: SkipSample) -> None:
        """`sample` chooses the examples of links that were refused."""
        self._sample = sample
        self.made: set[int] = set()
        """Domains that were not in the frontier before."""
        self.new = 0
        self.evicted = 0
        self.not_taken: Counter[str] = Counter()
        """Links that were refused, by reason."""
        self.skipped: list[tuple[NotAccepted, NewUrl]] = []
        """Examples of them."""

    def note(self, added: Added) -> None:
        """Note the result of an add."""
        self.made |= added.made
        self.new += added.unseen
        self.evicted += added.evicted
        self.not_taken.update(added.not_accepted)
        self._keep_examples(added.skipped)

    def refuse(self, links: Sequence[tuple[NotAccepted, NewUrl]]) -> None:
        """Note links that were not added."""
        self.not_taken.update(reason.value for reason, _ in links)
        self._keep_examples(links)

    def _keep_examples(self, links: Iterable[tuple[NotAccepted, NewUrl]]) -> None:
        chooses = self._sample.chooses
        self.skipped += [(reason, link) for reason, link in links if chooses(reason, link.fingerprint)]


def _note_skipped(batch: Sequence[VisitRecord], skipped: Sequence[tuple[NotAccepted, NewUrl]]) -> None:
    """Note links that the frontier did not take with the visits that found them. There are few, and mostly none."""
    if not skipped:
        return
    reasons = {url.url: reason for reason, url in skipped}
    for record in batch:
        for link in record.links:
            reason = reasons.pop(link.url, None)
            if reason is not None:
                record.skip(reason.value, link.domain, link.fingerprint, link.url)


async def new_links(found: Sequence[NewUrl], seen: SeenSet, links: dict[str, NewUrl]) -> None:
    """Add the links that may be new to `links`, each once; in slices, because a sitemap lists many."""
    for start in range(0, len(found), LINKS_PER_ADD):
        if start:
            await asyncio.sleep(0)
        _merge(seen.unseen(found[start : start + LINKS_PER_ADD]), links)


def _merge(found: Iterable[NewUrl], links: dict[str, NewUrl]) -> None:
    """Keep the best of equal links: one that is not foreign, then the shallowest. The shortest way counts for it."""
    for link in found:
        known = links.setdefault(link.url, link)
        if known is not link:
            best = min(known, link, key=lambda url: (url.is_foreign, url.depth))
            depth = min(known.depth, link.depth)
            links[link.url] = best if best.depth == depth else best._replace(depth=depth)
