"""Writing visits down, in groups, in the order that makes a kill harmless.

Pages are stored and flushed, then links are added, then the visits are settled: whatever is killed in between, no
link is lost and nothing is done without its content; at worst a page is fetched again. One group is stored while the
one before it is settled, so that the store's disk and the frontier's do not wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from rove.crawl.inflight_log import InflightLog
from rove.crawl.known_texts import KnownTexts
from rove.crawl.seen import SeenSet
from rove.crawl.visit_record import VisitRecord
from rove.errors import RoveError
from rove.frontier.contract import Frontier
from rove.model.urls import NewUrl, UrlState
from rove.store.contract import Store

GROUP = 256
"""Visits written in one go."""
LINKS_PER_ADD = 8_192
"""Links added in one transaction: few enough that a claim does not wait long for its turn (a tenth of a second)."""
GROUP_SECONDS = 0.1
"""How long a visit waits for others to be written with; and as long again where many come."""
MANY = 16
"""Visits that came meanwhile. A busy crawl gathers for longer: the more links, the more share a page of the indexes."""

log = logging.getLogger(__name__)


class GroupWriter:
    """Takes finished visits and makes them durable."""

    def __init__(
        self,
        *,
        store: Store,
        frontier: Frontier,
        clock: Callable[[], float],
        inflight_log: InflightLog,
        seen: SeenSet,
        delay: float,
        only_known_domains: bool,
        on_settled: Callable[[Sequence[VisitRecord]], None],
    ) -> None:
        self._store = store
        self._frontier = frontier
        self._clock = clock
        self._inflight_log = inflight_log
        self._delay = delay
        self._only_known_domains = only_known_domains
        self._on_settled = on_settled
        self._seen = seen
        self._copies = KnownTexts(frontier)
        self._waiting: deque[VisitRecord] = deque()
        self._unsettled: dict[VisitRecord, None] = {}
        self._something = asyncio.Event()
        self._finishing = False

    @property
    def unsettled(self) -> int:
        """How many visits are not settled yet."""
        return len(self._unsettled)

    def put(self, journal: VisitRecord) -> None:
        """Take a visit that is over."""
        self._waiting.append(journal)
        self._unsettled[journal] = None
        self._something.set()

    def finish(self) -> None:
        """No more visits will come: write what is there and end."""
        self._finishing = True
        self._something.set()

    async def run(self) -> None:
        """Write until `finish` is called and all is written; raises when a backend is lost."""
        settling: asyncio.Task[None] | None = None
        try:
            while self._waiting or not self._finishing:
                await self._gather()
                if settling is not None and settling.done():
                    await settling
                group = [self._waiting.popleft() for _ in range(min(GROUP, len(self._waiting)))]
                if not group:
                    continue
                await self._store_pages(group)
                if settling is not None:
                    await settling
                settling = asyncio.create_task(self._settle(group))
                settling.add_done_callback(lambda _: self._something.set())
        finally:
            if settling is not None:
                await settling

    async def salvage(self) -> None:
        """After a failure: say at least which domains were asked, so that their delay is kept to the second."""
        now = self._clock()
        visits = [journal.asked_only(now, self._delay) for journal in self._unsettled]
        try:
            await self._frontier.settle(visits)
        except RoveError as error:
            log.warning("leases stay out until the next start: %s", error)
        else:
            self._inflight_log.settled(visit.lease.token for visit in visits)

    async def _gather(self) -> None:
        """Wait for a group's worth of visits, or for as long as the first of them may wait, or for a settle's end."""
        await self._something.wait()
        if 0 < len(self._waiting) < GROUP and not self._finishing:
            await asyncio.sleep(GROUP_SECONDS)
        if MANY <= len(self._waiting) < GROUP and not self._finishing:
            await asyncio.sleep(GROUP_SECONDS)
        if len(self._waiting) <= GROUP and not self._finishing:
            self._something.clear()

    async def _store_pages(self, group: Sequence[VisitRecord]) -> None:
        pages = [page for journal in group for page in journal.pages]
        if not pages:
            return
        texts = await self._copies.look_up(pages)
        stored = iter(await self._store.write(pages, texts.known))
        for journal in group:
            places = [next(stored) for _ in journal.pages]
            journal.note_stored(places)
            for page, where in zip(journal.pages, places, strict=True):
                journal.note_text(
                    is_repeat=texts.is_repeat(journal.lease, page, where),
                    content=texts.content_of(journal.lease, page, where),
                )
            self._copies.sent(journal.contents)

    async def _settle(self, group: Sequence[VisitRecord]) -> None:
        now = self._clock()
        origins = [record for journal in group for record in journal.origins(now)]
        if origins:
            await self._frontier.put_origins(origins)
        await self._add_links(group)
        now = self._clock()
        await self._frontier.settle([journal.result(now, self._delay) for journal in group])
        self._inflight_log.settled(journal.lease.token for journal in group)
        for journal in group:
            self._copies.arrived(journal.contents)
            del self._unsettled[journal]
        self._on_settled(group)
        for journal in group:
            journal.forget()
        await self._give_up(group)

    async def _give_up(self, group: Sequence[VisitRecord]) -> None:
        """What is left of domains that have not answered for long fails without being asked."""
        for journal in group:
            if journal.answers.has_answered:
                continue
            reason = journal.verdict(self._delay).give_up_reason
            if reason:
                lease = journal.lease
                failed = await self._frontier.withdraw(
                    lease.domain, UrlState.FAILED, reason, lambda _: True, after=lease.token
                )
                log.info("%s is given up, with %d URLs: %s", lease.name, failed, reason)

    async def _add_links(self, group: Sequence[VisitRecord]) -> None:
        links: dict[int, NewUrl] = {}
        kept: set[int] = set()
        for journal in group:
            offered = self._seen.unseen(journal.links)
            fetched = {*journal.settled, *journal.deferred}
            if len(fetched) > 1:
                # Where a redirect led was fetched in the same visit. Both ends must be there to be settled: also if the
                # target was known and has had to make room since, or there is no room for it.
                kept |= fetched
                offered += [link for link in journal.links if link.fingerprint in fetched]
            for link in offered:
                known = links.setdefault(link.fingerprint, link)
                if link.depth < known.depth:
                    links[link.fingerprint] = link
        fingerprints, offers = list(links), list(links.values())
        for start in range(0, len(offers), LINKS_PER_ADD):
            part = fingerprints[start : start + LINKS_PER_ADD]
            added = await self._frontier.add(
                offers[start : start + LINKS_PER_ADD],
                only_known_domains=self._only_known_domains,
                kept=kept,
            )
            refused = added.refused
            self._seen.update([f for f in part if f not in refused] if refused else part)
