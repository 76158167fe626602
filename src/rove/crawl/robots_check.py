"""Decides whether a visit may request a URL now, and fetches the robots.txt of its origin first where needed.

`RobotsCheck.verdict` looks up the known robots.txt record and lets the gate judge the URL by it (policy/gate.py, no
I/O). If the record is missing or has expired, robots.txt is requested, its redirects are followed, and the gate judges
again. robots_answer.py decides what each response means.

A redirect to the robots.txt of another domain is not followed: that one has a record of its own, which applies here
too. If it is not known yet, the other domain is asked for it in a visit of its own, and until then this origin counts
as unreachable.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import msgspec

from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import Note
from rove.crawl.requests import Requester
from rove.crawl.robots_answer import RobotsAnswer, conditions_for, origin_record
from rove.crawl.visit_record import VisitRecord
from rove.model.ledger import DelaySource
from rove.model.marks import Mark
from rove.model.outcomes import Failed, FailureKind, Fetched, Redirected
from rove.model.visits import OriginRecord, RobotsStatus
from rove.notation.log_line import log_line
from rove.policy.constants import MAX_ROBOTS_HOPS, ROBOTS_VALID_SECONDS
from rove.policy.gate import Allowed, Blocked, Gate, Held, NeedsRobots, Verdict
from rove.policy.robots import rules_of
from rove.policy.robots_lines import LONG_ROBOTS, MAX_CRAWL_DELAY
from rove.policy.robots_redirect import ROBOTS_PATH, RobotsRedirect, judge_redirect
from rove.urls.canonical import CrawlUrl, UrlForm, parse_base

log = logging.getLogger(__name__)


class RobotsCheck:
    """Checks the URLs of one visit against exclusions and robots.txt."""

    def __init__(self, context: CrawlContext, record: VisitRecord, requester: Requester) -> None:
        self._context = context
        self._record = record
        self._requester = requester
        self._origins = record.held.origins
        self._crawl_delay = record.lease.crawl_delay
        """The longest Crawl-delay known for the domain."""
        self.failures: dict[str, Failed] = {}
        """Why a robots.txt could not be fetched in this visit, by origin."""
        self.requested: set[str] = set()
        """Origins whose robots.txt was requested in this visit."""
        self.seconds = 0.0
        """Time spent judging URLs."""

    async def verdict(self, url: CrawlUrl, *, depth: int | None = None) -> Allowed | Blocked | Held:
        """Decide whether the URL may be requested now; without a depth, no rule decides about it."""
        if url.origin not in self._origins:
            records = await self._context.frontier.origins([(url.domain, url.origin)])
            self._origins[url.origin] = records[0] if records else None
        origin = self._origins[url.origin]
        verdict = self._judge(url, origin, depth)
        if isinstance(verdict, NeedsRobots):
            verdict = self._judge(url, await self._fetch(url, origin), depth)
            assert not isinstance(verdict, NeedsRobots), "a fresh robots.txt record is valid"
        return verdict

    def origin(self, url: CrawlUrl) -> OriginRecord | None:
        """Return the robots.txt record that a URL was judged by."""
        return self._origins[url.origin]

    def _judge(self, url: CrawlUrl, origin: OriginRecord | None, depth: int | None) -> Verdict:
        started = self._context.clock()
        verdict = self._context.gate.judge(url, origin, crawl_delay=self._crawl_delay, depth=depth)
        self.seconds += self._context.clock() - started
        return verdict

    async def _fetch(self, url: CrawlUrl, before: OriginRecord | None) -> OriginRecord:
        """Fetch the robots.txt of a URL's origin, and record what it says."""
        self.requested.add(url.origin)
        answer = await request_robots(url, before, self._requester, self._context.gate, self._context.form)
        if answer.redirect is RobotsRedirect.SHARE:
            answer = await self._share(url, answer)
        elif isinstance(answer.outcome, Fetched):
            answer = replace(answer, outcome=await self._read(answer.outcome))
        origin = origin_record(url, answer, before, self._context.settings.delay)
        if isinstance(answer.outcome, Failed):
            self.failures[url.origin] = answer.outcome
        if before is not None and before.crawl_delay >= self._crawl_delay:
            self._crawl_delay = origin.crawl_delay
        self._origins[url.origin] = origin
        self._record.note_robots(origin)
        is_read = isinstance(answer.outcome, Fetched) and origin.status is RobotsStatus.RULES
        self._context.inflight_log.note(
            Note(
                row=self._record.requests[-1],
                pause=origin.crawl_delay,
                pause_from=DelaySource.CRAWL_DELAY,
                robots=origin.body if is_read else None,
            )
        )
        if log.isEnabledFor(logging.DEBUG):
            self._log_robots(origin)
        if origin.crawl_delay > max(self._context.settings.delay, self._record.lease.crawl_delay):
            # The longer delay must be in the frontier before the page is requested.
            self._record.note_not_kept(await self._context.frontier.put_origins([origin]))
        else:
            self._record.note_origin(origin)
        if origin.crawl_delay > MAX_CRAWL_DELAY:
            log.warning(
                "skipping %s: %s sets a Crawl-delay of %.0f s", url.domain_name, origin.origin, origin.crawl_delay
            )
        return origin

    def _log_robots(self, origin: OriginRecord) -> None:
        log.debug(
            "%s",
            log_line(
                "robots",
                process=self._context.frontier.process,
                domain=self._record.lease.name,
                visit=self._record.lease.token,
                origin=origin.origin,
                result=origin.status,
                crawl_delay=origin.crawl_delay,
                valid_s=origin.valid_for,
                failures=origin.failures,
            ),
        )

    async def _read(self, fetched: Fetched) -> Fetched | Failed:
        """Reduce a long robots.txt to what applies to rove; a failure if there is no time for it now."""
        if len(fetched.body) <= LONG_ROBOTS:
            with self._requester.reading:
                is_cut = rules_of(fetched.body).is_cut
            if is_cut:
                self._record.mark(Mark.ROBOTS_CUT)
            return fetched
        reduced = await self._context.long_robots.reduced(fetched.body)
        if reduced is None:
            self._record.note_unread(FailureKind.BUSY)
            return Failed(kind=FailureKind.BUSY, detail="too many long robots.txt files wait to be read")
        if reduced.is_cut:
            self._record.mark(Mark.ROBOTS_CUT)
        return msgspec.structs.replace(fetched, body=reduced.body)

    async def _share(self, page: CrawlUrl, answer: RobotsAnswer) -> RobotsAnswer:
        """Look up the robots.txt of the other domain that decides; if it is not known, have it fetched there.

        That one may redirect to a third, which then decides. A chain of too many redirects, or one that leads back,
        means that there are no rules.
        """
        target = answer.target
        assert target is not None, "only another robots.txt can be shared"
        first = last = await self._known(target)
        hops, passed, oldest = answer.hops, {page.origin, target.origin}, 0.0
        while last is not None and last.waits_for and last.age < ROBOTS_VALID_SECONDS:
            following = self._context.form.in_full.canonical(last.waits_for)
            hops += last.hops
            if following is None or following.origin in passed or hops > MAX_ROBOTS_HOPS:
                return replace(answer, redirect=RobotsRedirect.NO_RULES)
            passed.add(following.origin)
            oldest = max(oldest, last.age)
            last = await self._known(following)
        if last is not None and last.valid_for > 0 and last.status in (RobotsStatus.RULES, RobotsStatus.NONE):
            if hops + last.hops > MAX_ROBOTS_HOPS:
                return replace(answer, redirect=RobotsRedirect.NO_RULES)
            left = min(last.valid_for, ROBOTS_VALID_SECONDS - oldest)
            return replace(answer, shared=last.replace(valid_for=left), hops=hops)
        if first is None or first.valid_for <= 0:
            wanted = target.new_url(depth=0)._replace(fingerprint=self._context.form.robots_fingerprint(target.origin))
            self._record.wanted_robots.append(wanted)
        return replace(answer, shared=first)

    async def _known(self, url: CrawlUrl) -> OriginRecord | None:
        records = await self._context.frontier.origins([(url.domain, url.origin)])
        return records[0] if records else None


async def request_robots(
    page: CrawlUrl, previous: OriginRecord | None, requester: Requester, gate: Gate, form: UrlForm
) -> RobotsAnswer:
    """Request the robots.txt of a page's origin and follow up to five redirects inside its domain."""
    url = form.in_full.canonical(page.origin + ROBOTS_PATH)
    assert url is not None, "an origin with a path is a URL"
    passed: set[str] = set()
    while True:
        passed.add(url.text)
        conditions = conditions_for(url, previous)
        outcome = await requester.robots(url, conditions)
        answer = RobotsAnswer(url=url, outcome=outcome, is_conditional=bool(conditions), hops=len(passed) - 1)
        if not isinstance(outcome, Redirected):
            return answer
        target = form.in_full.canonical(outcome.location, parse_base(url.text))
        if target is None or target.text in passed:
            return answer
        hops = len(passed)
        redirect = judge_redirect(page, target, hops=hops, may_lead=gate.may_lead(target, page))
        if redirect is not RobotsRedirect.FOLLOW:
            return replace(answer, redirect=redirect, hops=hops, target=target)
        url = target
