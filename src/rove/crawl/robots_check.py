"""Whether a visit may ask for a URL now; the robots.txt of its origin is asked for first where need be.

Only one thing is written from here: a Crawl-delay that is longer than the delay in force, which must be in the frontier
before the page is asked.
"""

from __future__ import annotations

import logging

from rove.crawl.inflight_log import Note
from rove.crawl.requests import CrawlContext, Requester
from rove.crawl.robots_fetch import fetch_robots, read_rules
from rove.crawl.visit_record import VisitRecord
from rove.model.ledger import DelaySource
from rove.model.outcomes import Failed
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.gate import Allowed, Blocked, Held, NeedsRobots, Verdict
from rove.policy.robots import MAX_CRAWL_DELAY
from rove.urls.canonical import CrawlUrl

log = logging.getLogger(__name__)


class RobotsCheck:
    """What a visit knows of the robots.txt of its domain's origins."""

    def __init__(
        self,
        context: CrawlContext,
        journal: VisitRecord,
        requester: Requester,
        origins: dict[str, OriginRecord | None],
    ) -> None:
        """`origins`: the records that the frontier holds for the lease's URLs, None where it has none."""
        self._context = context
        self._journal = journal
        self._requester = requester
        self._origins = origins
        self.failures: dict[str, Failed] = {}
        """By origin: why its robots.txt could not be had in this visit."""
        self.asked: set[str] = set()
        """Origins whose robots.txt was asked for in this visit."""
        self.seconds = 0.0
        """Spent on judging URLs."""
        self._crawl_delay = journal.lease.crawl_delay
        """The longest that the domain's origins are known to ask for."""

    async def verdict(self, url: CrawlUrl) -> Allowed | Blocked | Held:
        """The gate's verdict."""
        origin = await self._origin(url)
        if origin is not None:
            await read_rules(origin.body)
        verdict = self._judge(url, origin)
        if isinstance(verdict, NeedsRobots):
            await self._fetch_robots(url)
            verdict = self._judge(url, self._origins[url.origin])
            assert not isinstance(verdict, NeedsRobots), "a fresh robots.txt record is valid"
        return verdict

    def record(self, url: CrawlUrl) -> OriginRecord | None:
        """The record in force for a URL that was judged."""
        return self._origins[url.origin]

    def _judge(self, url: CrawlUrl, origin: OriginRecord | None) -> Verdict:
        started = self._context.clock()
        verdict = self._context.gate.judge(url, origin, crawl_delay=self._crawl_delay)
        self.seconds += self._context.clock() - started
        return verdict

    async def _origin(self, url: CrawlUrl) -> OriginRecord | None:
        if url.origin not in self._origins:
            found = await self._context.frontier.origins([(url.domain, url.origin)])
            self._origins[url.origin] = found[0] if found else None
        return self._origins[url.origin]

    async def _fetch_robots(self, url: CrawlUrl) -> None:
        self.asked.add(url.origin)
        answer = await fetch_robots(
            url,
            ask=self._requester.robots,
            may_ask=lambda target: self._context.gate.may_lead(target, url),
            previous=self._origins[url.origin],
            delay=self._context.delay,
        )
        record, before = answer.record, self._origins[url.origin]
        if before is not None and before.crawl_delay >= self._crawl_delay:
            self._crawl_delay = record.crawl_delay
        self._origins[url.origin] = record
        self._journal.note_copy(record)
        self._context.inflight_log.note(_robots_note(self._journal, record))
        if answer.failure is not None:
            self.failures[url.origin] = answer.failure
        if record.crawl_delay > max(self._context.delay, self._journal.lease.crawl_delay):
            await self._context.frontier.put_origins([record])
        else:
            self._journal.note_origin(record)
        if record.crawl_delay > MAX_CRAWL_DELAY:
            log.warning(
                "%s asks for a Crawl-delay of %.0f s: %s is left alone",
                record.origin,
                record.crawl_delay,
                url.domain_name,
            )


def _robots_note(journal: VisitRecord, record: OriginRecord) -> Note:
    """What a robots.txt asks for, before anything else is done about it."""
    is_read = record.status is RobotsStatus.RULES
    return Note(
        visit=journal.lease.token,
        domain=journal.lease.domain,
        row=journal.requests[-1] if journal.requests else None,
        pause=record.crawl_delay,
        pause_from=DelaySource.CRAWL_DELAY,
        robots=record.body if is_read else None,
    )
