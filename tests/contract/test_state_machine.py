"""Compares random histories of adds, claims, settles, losses and exclusions with a simple model."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from rove.frontier.capacity import MEMORY_SECONDS
from rove.frontier.contract import Frontier
from rove.frontier.priority import LEASES_PER_FOREIGN_TURN
from rove.frontier.records import LostVisit, Suspect
from rove.model.urls import UrlState
from rove.model.visits import Deferred, Lease, OriginRecord, Pace, RobotsStatus, Settled, VisitResult
from rove.policy import budget
from tests.contract.harness import TICK, Harness, PostgresHarness, SqliteHarness, url

T = TypeVar("T")

DELAY = 10.0
BUDGET = 20.0
MULTIPLE = 2
HORIZON = 2 * DELAY
"""Gives each domain room for four URLs, or two with a longer Crawl-delay; each is given up to seven."""
DOMAINS = [f"d{i}.test" for i in range(4)]
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Avoids waiting for the disk in thousands of small transactions."""
ENDINGS = [UrlState.DONE, UrlState.BLOCKED, UrlState.FAILED, UrlState.REDIRECTED]


@dataclass
class ModelUrl:
    order: tuple[int, int, int]
    """Class (own, foreign, retried, held, suspect, suspect and held), then depth or due time, then arrival."""
    due: float = 0.0

    @property
    def is_suspect(self) -> bool:
        return self.order[0] >= SUSPECTED


@dataclass
class ModelDomain:
    pending: dict[str, ModelUrl] = field(default_factory=dict)
    not_before: float = 0.0
    crawl_delay: float = 0.0
    backoff: float = 0.0
    lease: Lease | None = None
    lease_ends: float = 0.0
    is_unsettled: bool = False
    leases: int = 0
    token: int = 0
    excluded: bool = False
    withheld: dict[str, ModelUrl] = field(default_factory=dict)
    """URLs that an exclusion has blocked, with their old positions."""

    def delay(self) -> float:
        return max(DELAY, self.crawl_delay)

    def delay_after_loss(self) -> float:
        return max(self.delay(), self.backoff)

    def head_due(self) -> float:
        ordinary = [known for known in self.pending.values() if not known.is_suspect]
        return min(ordinary, key=lambda known: known.order, default=NEVER).due

    def open_urls(self, now: float) -> list[str]:
        """Return the URLs that the next lease takes, in order: foreign ones last, or first if it is their turn."""
        due = [text for text, known in self.pending.items() if known.due <= now and not known.is_suspect]
        is_foreign_turn = (self.leases + 1) % LEASES_PER_FOREIGN_TURN == 0

        def place(text: str) -> tuple[bool, tuple[int, int, int]]:
            order = self.pending[text].order
            return (order[0] == FOREIGN) != is_foreign_turn, order

        return sorted(due, key=place)

    def rank(self, text: str) -> tuple[int, ...]:
        """Return the class of a URL and its place in it. Retries that are due at the same moment are equal."""
        order = self.pending[text].order
        return order[:2] if order[0] >= RETRIED else order

    def due_suspects(self, now: float) -> list[str]:
        """Return the suspects that have waited longest."""
        due = {text: known.due for text, known in self.pending.items() if known.is_suspect and known.due <= now}
        return [text for text, since in due.items() if since == min(due.values())]


OWN, FOREIGN, RETRIED, HELD = range(4)
NEVER = ModelUrl((9, 0, 0), float("inf"))
SUSPECTED = 4
"""The lowest class of suspects."""


def everything(text: str) -> bool:
    return True


def is_even(text: str) -> bool:
    return int(text[-1]) % 2 == 0


def is_odd(text: str) -> bool:
    return not is_even(text)


class FrontierMachine(RuleBasedStateMachine):
    """Runs a frontier beside its model."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.harness = self.make_harness()
        self.harness.slice = 2
        self.horizon = HORIZON
        self.refused = 0
        self.full: dict[str, tuple[tuple[int, int], float]] = {}
        """Full domains: the class and depth from which on URLs are dropped, and until when."""
        self.frontier = self.open()
        self.now = 0.0
        self.arrivals = 0
        self.domains: dict[str, ModelDomain] = {}
        self.ended: dict[str, UrlState] = {}
        self.lost: list[Lease] = []
        """Leases whose process is gone, which may still be settled too late."""

    def make_harness(self) -> Harness:
        raise NotImplementedError

    def open(self) -> Frontier:
        return self.run(self.harness.open(delay=DELAY, budget=BUDGET, horizon=self.horizon))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.harness.close())
        self.runner.close()

    @rule(
        links=st.lists(
            st.tuples(st.sampled_from(DOMAINS), st.integers(0, 6), st.integers(0, 3), st.booleans()),
            min_size=1,
            max_size=6,
        )
    )
    def add(self, links: list[tuple[str, int, int, bool]]) -> None:
        links_found = [
            (f"http://{name}/{n}", FOREIGN if is_foreign and depth else OWN, depth)
            for name, n, depth, is_foreign in links
        ]
        dropped = [link for link in links_found if self.is_dropped(*link)]
        best: dict[str, tuple[int, int, int]] = {}
        for text, kind, depth in links_found:
            self.arrivals += 1
            if not self.is_dropped(text, kind, depth):
                order = (kind, depth, self.arrivals)
                best[text] = min(best.get(text, order), order)
        after: dict[str, dict[str, ModelUrl]] = {}
        adopted: dict[str, ModelUrl] = {}
        for text, order in best.items():
            name = text.split("/")[2]
            pending = self.domains.get(name, ModelDomain()).pending
            if text not in pending and text not in self.ended:
                after[name] = {**after.get(name, pending), text: ModelUrl(order)}
            elif text in pending and pending[text].order[0] == FOREIGN and order[0] == OWN:
                _, depth, arrival = pending[text].order
                adopted[text] = ModelUrl((OWN, min(depth, order[1]), arrival))
        after = {name: {t: adopted.get(t, known) for t, known in urls.items()} for name, urls in after.items()}
        trimmed = {name: self.worst(name, pending) for name, pending in after.items()}
        if any(self.leaves_only_retries(name, after[name], trimmed[name]) for name in after):
            return  # Otherwise a claim would find no URL once its lease is lost.
        for text, known in adopted.items():
            self.domains[text.split("/")[2]].pending[text] = known
        unseen = 0
        for name, pending in after.items():
            domain = self.domains.setdefault(name, ModelDomain())
            remaining = {text: known for text, known in pending.items() if text not in trimmed[name]}
            unseen += len(remaining.keys() - domain.pending.keys())
            domain.pending = remaining
            if trimmed[name]:
                worst = min(pending[text].order[:2] for text in trimmed[name])
                self.full[name] = (worst, self.now + MEMORY_SECONDS)
        taken_out = [text for texts in trimmed.values() for text in texts]
        self.refused += len(dropped) + len(taken_out)
        urls = [url(text, depth, is_foreign=kind == FOREIGN) for text, kind, depth in links_found]
        added = self.run(self.frontier.add(urls))
        assert added.unseen == unseen
        refused = {*taken_out, *(text for text, *_ in dropped)}
        assert added.refused == {(url(text).domain, url(text).fingerprint) for text in refused}

    def is_dropped(self, text: str, kind: int, depth: int) -> bool:
        """Return whether its domain is known to be full of URLs that are no worse."""
        worst, until = self.full.get(text.split("/")[2], ((OWN, 0), 0.0))
        return until > self.now and (kind, depth) >= worst and depth > 0

    def worst(self, name: str, pending: dict[str, ModelUrl]) -> list[str]:
        """Return the URLs that do not fit: never more than are new."""
        delay = self.domains[name].delay() if name in self.domains else DELAY
        room = MULTIPLE * max(1, int(min(self.horizon, 1e9) / delay))
        normal = [text for text, known in pending.items() if known.order[0] in (OWN, FOREIGN) and known.order[1]]
        normal.sort(key=lambda text: pending[text].order, reverse=True)
        new = pending.keys() - self.domains.get(name, ModelDomain()).pending.keys()
        return normal[: max(0, min(len(pending) - room, len(new)))]

    def leaves_only_retries(self, name: str, pending: dict[str, ModelUrl], trimmed: list[str]) -> bool:
        if not trimmed or self.domains.get(name, ModelDomain()).lease is None:
            return False
        rest = [known for text, known in pending.items() if text not in trimmed and not known.is_suspect]
        return min((r.order, r.due) for r in [*rest, NEVER])[1] > self.now

    @rule(seconds=st.sampled_from([0.5, 3.0, DELAY, BUDGET, BUDGET + DELAY, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.harness.advance(seconds)

    @rule(limit=st.integers(1, 5))
    def claim(self, limit: int) -> None:
        claimable = self.claimable()
        leases = self.run(self.frontier.claim(limit))
        names = {lease.name for lease in leases}
        assert names <= claimable
        if not self.has_suspects():
            assert len(names) == min(limit, len(claimable))
        for lease in leases:
            self.note_lease(lease)

    def claimable(self) -> set[str]:
        return {
            name
            for name, domain in self.domains.items()
            if domain.pending
            and not domain.excluded
            and self.now >= (domain.lease_ends if domain.lease else domain.not_before)
            and self.now >= domain.head_due()
        }

    def has_suspects(self) -> bool:
        """Whether a domain may have only suspects left, so that a claim ends its expired lease and leases nothing."""
        return any(known.is_suspect for domain in self.domains.values() for known in domain.pending.values())

    def note_lease(self, lease: Lease) -> None:
        domain = self.domains[lease.name]
        if domain.lease is not None:
            self.lost.append(domain.lease)
        texts = [pending.url for pending in lease.urls]
        if texts[0] in domain.pending and domain.pending[texts[0]].is_suspect:
            assert len(texts) == 1 and texts[0] in domain.due_suspects(self.now)
        else:
            expected = domain.open_urls(self.now)
            assert len(set(texts)) == len(texts) and set(texts) <= set(expected)
            assert [domain.rank(text) for text in texts] == [domain.rank(text) for text in expected[: len(texts)]]
        domain.lease = lease
        domain.leases += 1
        domain.token = lease.token
        assert lease.pace.backoff == domain.backoff
        domain.lease_ends = self.now + BUDGET + domain.delay_after_loss()
        domain.is_unsettled = True

    @rule()
    def claim_suspect(self) -> None:
        expected = {
            name
            for name, domain in self.domains.items()
            if domain.due_suspects(self.now)
            and not domain.excluded
            and self.now >= (domain.lease_ends if domain.lease else domain.not_before)
        }
        leases = self.run(self.frontier.claim_suspect())
        assert len(leases) == bool(expected) and {lease.name for lease in leases} <= expected
        for lease in leases:
            assert self.domains[lease.name].pending[lease.urls[0].url].is_suspect
            self.note_lease(lease)

    def leased(self) -> list[ModelDomain]:
        return [domain for domain in self.domains.values() if domain.lease is not None]

    @precondition(lambda self: self.leased())
    @rule(
        data=st.data(),
        asked=st.booleans(),
        ago=st.sampled_from([0.0, 2.0]),
        pause=st.sampled_from([0.0, 0.0, DELAY + 5, 90.0]),
        backoff=st.sampled_from([0.0, 0.0, DELAY / 2, 40.0]),
    )
    def settle(self, data: st.DataObject, asked: bool, ago: float, pause: float, backoff: float) -> None:
        domain = data.draw(st.sampled_from(self.leased()))
        assert domain.lease is not None
        settled, deferred = [], []
        for pending in domain.lease.urls:
            fate = data.draw(st.sampled_from([*ENDINGS, "retry", "hold", "leave"]))
            if isinstance(fate, UrlState):
                settled.append(Settled(fingerprint=pending.fingerprint, state=fate))
                if pending.url in domain.pending:
                    del domain.pending[pending.url]
                    self.ended[pending.url] = fate
            elif fate != "leave":
                wait = data.draw(st.sampled_from([1.0, 50.0]))
                deferred.append(
                    Deferred(fingerprint=pending.fingerprint, seconds=wait, attempts=1, failing=fate == "hold")
                )
                if pending.url in domain.pending:
                    due = self.now + wait
                    suspected = SUSPECTED - RETRIED if domain.pending[pending.url].is_suspect else 0
                    order = ((HELD if fate == "hold" else RETRIED) + suspected, round(due * 1000), pending.fingerprint)
                    domain.pending[pending.url] = ModelUrl(order, due)
        visit = VisitResult(
            lease=domain.lease,
            requested=asked,
            since_finish=ago,
            settled=settled,
            deferred=deferred,
            pause=pause,
            pace=Pace(backoff=backoff),
        )
        assert self.run(self.frontier.settle([visit])) == 1
        assert self.run(self.frontier.settle([visit])) == 0, "the repeated one finds it settled"
        delay = max(domain.delay(), pause)
        # A visit without a request was postponed: only its pause applies.
        domain.not_before = self.now - ago + delay + TICK if asked else self.now + pause
        domain.backoff = backoff
        domain.lease = None
        domain.is_unsettled = False

    @precondition(lambda self: self.lost)
    @rule()
    def settle_too_late(self) -> None:
        lease = self.lost.pop()
        states = [Settled(fingerprint=u.fingerprint, state=UrlState.DONE) for u in lease.urls]
        visit = VisitResult(lease=lease, requested=True, since_finish=0.0, settled=states)
        assert self.run(self.frontier.settle([visit])) == 0
        domain = self.domains[lease.name]
        if domain.token == lease.token and domain.lease is None and domain.is_unsettled:
            # There was no visit since, so the end of this one counts.
            domain.not_before = self.now + domain.delay() + TICK
            domain.is_unsettled = False

    @precondition(lambda self: self.leased())
    @rule(data=st.data(), crawl_delay=st.sampled_from([0.0, 5.0, 30.0]))
    def learn_crawl_delay(self, data: st.DataObject, crawl_delay: float) -> None:
        domain = data.draw(st.sampled_from(self.leased()))
        assert domain.lease is not None
        before = domain.delay()
        domain.crawl_delay = crawl_delay
        domain.lease_ends += max(0.0, domain.delay() - before)
        record = OriginRecord(
            domain=domain.lease.domain,
            origin="http://" + domain.lease.name,
            status=RobotsStatus.RULES,
            crawl_delay=crawl_delay,
            valid_for=1000.0,
        )
        self.run(self.frontier.put_origins([record]))

    @rule(horizon=st.sampled_from([HORIZON, math.inf]), reading=st.booleans())
    def crash_and_resume(self, horizon: float, reading: bool) -> None:
        """All processes die, and perhaps each of them was reading something."""
        self.horizon = horizon
        self.full.clear()
        self.frontier = self.open()
        recovered, leased = self.run(self.frontier.recover()), len(self.leased())
        assert recovered == leased or (recovered < leased and self.has_suspects())
        for domain in self.leased():
            assert domain.lease is not None
            cut = self.now + domain.delay_after_loss() + TICK
            domain.not_before = min(domain.lease_ends, cut)
            self.lost.append(domain.lease)
            if reading:
                self.suspect(domain, domain.lease)
            domain.lease = None

    def suspect(self, domain: ModelDomain, lease: Lease) -> None:
        head = lease.urls[0]
        lost = LostVisit(domain=lease.domain, visit=lease.token, rows=(), suspect=Suspect(fingerprint=head.fingerprint))
        suspicions = self.run(self.frontier.record_lost([lost]))
        is_pending = head.url in domain.pending
        assert [(s.url, s.deaths, s.has_failed) for s in suspicions] == [(head.url, 0, False)] * is_pending
        if is_pending:
            kind = max(SUSPECTED, domain.pending[head.url].order[0])
            domain.pending[head.url] = ModelUrl((kind, round(self.now * 1000), head.fingerprint), self.now)

    @rule(name=st.sampled_from(DOMAINS))
    def exclude(self, name: str) -> None:
        domain = self.domains.setdefault(name, ModelDomain())
        left = self.run(self.frontier.exclude({url(f"http://{name}/").domain: name}))
        assert left == self.withhold(domain, everything)
        domain.excluded = True
        if domain.lease is not None:
            self.lost.append(domain.lease)
            domain.lease = None
            domain.not_before = domain.lease_ends

    def withhold(self, domain: ModelDomain, matching: Callable[[str], bool]) -> int:
        texts = [text for text in domain.pending if matching(text)]
        for text in texts:
            domain.withheld[text] = domain.pending.pop(text)
            self.ended[text] = UrlState.BLOCKED
        return len(texts)

    @rule(names=st.sets(st.sampled_from(DOMAINS)))
    def include(self, names: set[str]) -> None:
        self.run(self.frontier.include([url(f"http://{name}/").domain for name in names]))
        for name in names & self.domains.keys():
            self.domains[name].excluded = False

    @rule(name=st.sampled_from(DOMAINS), matching=st.sampled_from([everything, is_even, is_odd]))
    def reopen(self, name: str, matching: Callable[[str], bool]) -> None:
        domain = self.domains.get(name, ModelDomain())
        texts = [text for text in domain.withheld if matching(text)]
        for text in texts:
            domain.pending[text] = domain.withheld.pop(text)
            del self.ended[text]
        opened = self.run(self.frontier.reopen(url(f"http://{name}/").domain, matching))
        assert opened == len(texts)

    @rule(
        name=st.sampled_from(DOMAINS),
        matching=st.sampled_from([everything, is_even, is_odd]),
        is_exclusion=st.booleans(),
    )
    def withdraw(self, name: str, matching: Callable[[str], bool], is_exclusion: bool) -> None:
        domain = self.domains.get(name, ModelDomain())
        rest = [known for text, known in domain.pending.items() if not matching(text) and not known.is_suspect]
        if domain.lease is not None and min((r.order, r.due) for r in [*rest, NEVER])[1] > self.now:
            return  # Otherwise a claim would find no URL.
        id = url(f"http://{name}/").domain
        if is_exclusion:
            left = self.run(self.frontier.withdraw(id, UrlState.BLOCKED, "excluded", matching))
            assert left == self.withhold(domain, matching)
            return
        texts = [text for text in domain.pending if matching(text)]
        for text in texts:
            del domain.pending[text]
            self.ended[text] = UrlState.FAILED
        left = self.run(self.frontier.withdraw(id, UrlState.FAILED, "given up", matching))
        assert left == len(texts)

    @invariant()
    def counters_agree(self) -> None:
        counts = self.run(self.frontier.counts())
        pending = sum(len(domain.pending) for domain in self.domains.values())
        assert counts.urls_pending == pending
        assert counts.not_accepted.get("budget", 0) == self.refused
        for state in ENDINGS:
            assert counts.urls[state] == sum(end is state for end in self.ended.values())
        domains = counts.domains
        excluded = sum(domain.excluded for domain in self.domains.values())
        assert domains["excluded"] == excluded
        idle = sum(not d.pending and not d.excluded for d in self.domains.values())
        assert domains["idle"] == idle
        assert sum(domains.values()) == len(self.domains)
        by_domain = self.run(self.harness.counted_pending())
        assert all(counter == counted for counter, counted in by_domain.values())


class SqliteMachine(FrontierMachine):
    """The embedded frontier."""

    def make_harness(self) -> Harness:
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY)
        return SqliteHarness(Path(self.folder.name))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class PostgresMachine(FrontierMachine):
    """The frontier on PostgreSQL, in a schema that is emptied for each history."""

    harness_of_tests: PostgresHarness

    def make_harness(self) -> Harness:
        self.run(self.harness_of_tests.empty())
        return PostgresHarness(self.harness_of_tests.url, self.harness_of_tests.schema)


@pytest.fixture(autouse=True)
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MULTIPLE", MULTIPLE)
    monkeypatch.setattr(budget, "FEWEST_VISITS", 1)


machine_settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
long_settings = settings(machine_settings, max_examples=2_000, stateful_step_count=80)


def test_the_embedded_frontier_agrees_with_its_model() -> None:
    run_state_machine_as_test(SqliteMachine, settings=machine_settings)


def test_the_frontier_on_postgres_agrees_with_its_model(schema_of_contract_tests: PostgresHarness) -> None:
    PostgresMachine.harness_of_tests = schema_of_contract_tests
    run_state_machine_as_test(PostgresMachine, settings=settings(machine_settings, max_examples=20))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_embedded_frontier_agrees_with_its_model_for_long() -> None:
    run_state_machine_as_test(SqliteMachine, settings=long_settings)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_frontier_on_postgres_agrees_with_its_model_for_long(schema_of_contract_tests: PostgresHarness) -> None:
    PostgresMachine.harness_of_tests = schema_of_contract_tests
    run_state_machine_as_test(PostgresMachine, settings=long_settings)
