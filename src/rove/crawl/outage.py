"""Holds back visits without a response until it is known whether the sites or this machine's connection failed.

Every finished visit passes through here on its way to the writer. A visit without a response is held back, with its
lease, as long as the cause is unknown (policy/outage.py judges it). Then it is settled as a failure of its domain, or
it is disregarded: its requests enter the ledger and its delay applies, but neither the domain nor its URLs nor its
robots.txt count a failure. No lease is held beyond its deadline, and if the process is killed, a visit that is held
back is lost like any other in flight.

A failure counts against its site only if a request that began later gets a response. A response to an earlier request
proves nothing: it may have been on its way when the connection was lost. That a name could not be looked up
counts only if a name server answers a later lookup: sites whose addresses are cached respond without one.

While the connection counts as lost, the claimer only probes: it visits a few domains now and then, and requests their
robots.txt even if it is known, because some sites answer for nothing else. The first response of any site ends the
outage. A site whose last visit had a response and then none is no witness. Each process judges by its own visits,
because another machine may well be online.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from itertools import islice

from rove.crawl.context import CrawlContext
from rove.crawl.shutdown import Ending, wait_for_event
from rove.crawl.visit_record import VisitRecord
from rove.crawl.writer import BatchWriter
from rove.model.outcomes import FailureKind
from rove.notation.humanize import seconds_text
from rove.policy.outage import Cause, OutageRules, Silence, cause_of, is_hopeless, probe_wait

CHECK_SECONDS = 0.25
GATHER_SECONDS = 0.02
"""Wait this long before a check, so that visits that fail together are judged together."""
SETTLE_SECONDS = 5.0
"""A visit that is held back is settled this long before the deadline of its lease."""
MARGIN_SECONDS = 1.0
"""A visit that is held back is settled this long after the cause could have been known."""
MAX_WITNESSES = 1_000
"""Domains remembered that responded before and fail now."""
MAX_HALF_SILENT = 10_000
"""How many domains are remembered whose last visit had a response and then none."""
PROBE_CANDIDATES = 20
"""A probe visits some of this many domains."""

log = logging.getLogger(__name__)


class OutageWatch:
    """Notices that no site responds, and finds out when sites respond again."""

    def __init__(
        self,
        context: CrawlContext,
        writer: BatchWriter,
        *,
        on_news: Callable[[str], None],
        rules: OutageRules,
    ) -> None:
        """`on_news` shows a sentence to the user."""
        self._context = context
        self._frontier = context.frontier
        self._clock = context.clock
        self._writer = writer
        self._on_news = on_news
        self._rules = rules
        self._started = context.clock()
        self._held: list[VisitRecord] = []
        self._began: float | None = None
        """When the first visit without a response ended that no later request has disproved."""
        self._witnesses: dict[int, None] = {}
        """Domains that had responded to their last visit, and now failed."""
        self._strangers: set[int] = set()
        self._half_silent: dict[int, None] = {}
        """Domains whose last visit had a response and then none, oldest first."""
        self.is_offline = False
        self._back_since = -math.inf
        """When a site responded again after the last outage."""
        self._probes = 0
        self._next_probe = 0.0
        self._woken = asyncio.Event()

    @property
    def held(self) -> int:
        """How many visits are held back."""
        return len(self._held)

    @property
    def is_full(self) -> bool:
        """Whether no further visit may start until the cause is known."""
        return len(self._held) >= self._rules.max_held

    @property
    def trouble(self) -> str:
        """Why the crawl waits, as text for the user; '' if it does not."""
        return f"waiting: no site has answered for {seconds_text(self._silent_for())}" if self.is_offline else ""

    @property
    def probed(self) -> Sequence[int]:
        """The domains to probe: they responded before, and fail now. Those that failed longest ago come first."""
        return list(islice(self._witnesses, PROBE_CANDIDATES))

    def probes_due(self) -> int:
        """Return how many domains to visit now, to find out whether the connection is back."""
        if self._clock() < self._next_probe:
            return 0
        self._context.fetcher.forget_failures()
        return self._rules.probes

    def note_probe(self) -> None:
        """Wait longer until the next probe."""
        self._probes += 1
        self._next_probe = self._clock() + probe_wait(self._probes, self._rules)

    def take(self, record: VisitRecord) -> None:
        """Take a finished visit: settle it, disregard it, or hold it back."""
        self._heed_answers()
        if not record.answers.ends_in_silence:
            self._half_silent.pop(record.lease.domain, None)
            self._writer.put(record)
        elif record.request_began <= self._back_since:
            self._disregard([record])  # its request was made during the outage
        elif self._is_disproved(record):
            self._writer.put(record)
        else:
            self._note_failure(record)
        if record.answers.ends_in_silence and record.answers.has_answered:
            self._note_half_silent(record.lease.domain)

    def close(self) -> None:
        """Disregard all visits that are held back, because the crawl ends before the cause is known."""
        self._disregard(self._take_held())

    async def run(self) -> None:
        """Judge the visits that are held back, until the crawl ends."""
        while True:
            await wait_for_event(self._woken, CHECK_SECONDS) if self._is_open else await self._woken.wait()
            self._woken.clear()
            await asyncio.sleep(GATHER_SECONDS)
            self._heed_answers()
            self._release_overdue()
            if self._is_open:
                await self._judge()

    @property
    def _is_open(self) -> bool:
        return bool(self._held) or self.is_offline

    async def _judge(self) -> None:
        reach = await self._frontier.reach()
        now = self._clock()
        if self._began is None:
            return  # a site has responded while the frontier was read
        # The visit that brought the first response may not be settled yet.
        answered = max(reach.answered, int(self._context.progress.last_answer > -math.inf))
        if self.is_offline:
            if is_hopeless(answered=answered, started=self._started, now=now, rules=self._rules):
                self._context.shutdown.begin(Ending.UNREACHABLE)
            return
        held = {record.lease.domain for record in self._held}
        # Sites whose names are cached may have responded after the first failure.
        began = max(self._began, self._context.progress.last_answer)
        cause = cause_of(
            Silence(began=began, witnesses=len(self._witnesses), strangers=len(self._strangers)),
            now=now,
            domains=reach.domains,
            answered=answered,
            possible_witnesses=len(set(reach.responding) - held - self._half_silent.keys()),
            rules=self._rules,
        )
        if cause is Cause.SITES:
            self._settle(self._take_held())
        elif cause is Cause.CONNECTION:
            self._begin_outage(began, now)

    def _begin_outage(self, began: float, now: float) -> None:
        self.is_offline = True
        self._began = began
        self._probes = 0
        self._next_probe = now + probe_wait(0, self._rules)
        self._on_news(f"No site has answered for {self._rules.silence:.0f} s: is this machine online? Waiting.")
        log.warning("%d domains that had answered fail, and %d others", len(self._witnesses), len(self._strangers))
        self._disregard(self._take_held())

    def _heed_answers(self) -> None:
        """End the silence, in whole or in part, if a site has responded to a request that was started in it."""
        progress = self._context.progress
        if self._began is None or progress.answered_from <= self._began:
            return
        was_offline = self.is_offline
        earlier = [record for record in self._held if self._is_disproved(record)]
        if not earlier and not was_offline:
            return
        if was_offline:
            self.is_offline = False
            self._back_since = progress.last_answer
            self._on_news(f"Sites answer again after {seconds_text(self._silent_for())}; the crawl goes on.")
        later = [record for record in self._held if not self._is_disproved(record)]
        # If this many failed at once, the connection was lost for a moment.
        if len(self._witnesses) >= self._rules.witnesses:
            self._context.fetcher.forget_failures()
            self._disregard(earlier)
        else:
            self._settle(earlier)
        self._began = None
        self._witnesses.clear()
        self._strangers.clear()
        self._held = []
        for record in later:
            self._note_failure(record)

    def _is_disproved(self, record: VisitRecord) -> bool:
        """Whether the connection, or the name server, worked after the visit failed."""
        if record.answers.failure is FailureKind.DNS:
            return record.finished_at <= self._context.fetcher.names_answered_from
        return record.finished_at <= self._context.progress.answered_from

    def _note_failure(self, record: VisitRecord) -> None:
        if self._began is None:
            self._began = record.finished_at
        domain = record.lease.domain
        if self._is_witness(record):
            self._witnesses.pop(domain, None)
            if len(self._witnesses) < MAX_WITNESSES:
                self._witnesses[domain] = None
        elif len(self._strangers) < self._rules.max_held:
            self._strangers.add(domain)
        if self.is_offline:
            self._disregard([record])
        else:
            self._held.append(record)
            self._woken.set()

    def _is_witness(self, record: VisitRecord) -> bool:
        """Whether the domain responded to its last visit, or earlier in this one, and did not fail in the same way."""
        has_responded = record.lease.pace.is_responding or record.answers.has_answered
        return has_responded and record.lease.domain not in self._half_silent

    def _note_half_silent(self, domain: int) -> None:
        self._half_silent.pop(domain, None)
        self._half_silent[domain] = None
        if len(self._half_silent) > MAX_HALF_SILENT:
            del self._half_silent[next(iter(self._half_silent))]

    def _release_overdue(self) -> None:
        """Disregard visits that were held back for long enough: with a long delay, witnesses come slowly."""
        now = self._clock()
        overdue = [record for record in self._held if self._held_until(record) <= now]
        self._held = [record for record in self._held if self._held_until(record) > now]
        self._disregard(overdue)

    def _held_until(self, record: VisitRecord) -> float:
        return min(record.held.deadline - SETTLE_SECONDS, record.finished_at + self._rules.silence + MARGIN_SECONDS)

    def _take_held(self) -> list[VisitRecord]:
        held, self._held = self._held, []
        return held

    def _settle(self, records: Sequence[VisitRecord]) -> None:
        for record in records:
            self._writer.put(record)

    def _disregard(self, records: Sequence[VisitRecord]) -> None:
        for record in records:
            record.disregard()
            self._writer.put(record)

    def _silent_for(self) -> float:
        return 0.0 if self._began is None else self._clock() - self._began
