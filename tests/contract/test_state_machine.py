"""Random histories of adds, claims, settles, losses and time, against a model simple enough to be right."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rove.frontier.contract import MAX_UNSETTLED
from rove.model import Deferred, Lease, OriginRecord, RobotsStatus, Settled, UrlState, VisitResult
from tests.contract.harness import Harness, PostgresHarness, SqliteHarness, url

DELAY = 10.0
BUDGET = 20.0
DOMAINS = [f"d{i}.test" for i in range(4)]
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Thousands of small transactions, each of which waits for its disk."""
ENDINGS = [UrlState.DONE, UrlState.BLOCKED, UrlState.FAILED, UrlState.REDIRECTED]


@dataclass
class ModelUrl:
    order: tuple[int, int, int]
    """Class (normal, retried, held), then depth or due time, then arrival."""
    due: float = 0.0


@dataclass
class ModelDomain:
    pending: dict[str, ModelUrl] = field(default_factory=dict)
    not_before: float = 0.0
    crawl_delay: float = 0.0
    lease: Lease | None = None
    lease_ends: float = 0.0
    unsettled: int = 0

    def delay(self) -> float:
        return max(DELAY, self.crawl_delay)

    def head_due(self) -> float:
        return min(self.pending.values(), key=lambda known: known.order).due

    def open_urls(self, now: float) -> list[str]:
        due = [text for text, known in self.pending.items() if known.due <= now]
        return sorted(due, key=lambda text: self.pending[text].order)


class FrontierMachine(RuleBasedStateMachine):
    """A frontier beside its model."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.harness = self.make_harness()
        self.frontier = self.run(self.harness.open(delay=DELAY, budget=BUDGET))
        self.now = 0.0
        self.arrivals = 0
        self.domains: dict[str, ModelDomain] = {}
        self.ended: dict[str, UrlState] = {}
        self.lost: list[Lease] = []
        """Leases whose process is gone, which might still be settled too late."""

    def make_harness(self) -> Harness:
        raise NotImplementedError

    def run(self, work):
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.harness.close())
        self.runner.close()

    @rule(
        links=st.lists(
            st.tuples(st.sampled_from(DOMAINS), st.integers(0, 6), st.integers(0, 3)),
            min_size=1,
            max_size=6,
        )
    )
    def add(self, links: list[tuple[str, int, int]]) -> None:
        offers = [(f"http://{name}/{n}", depth) for name, n, depth in links]
        best: dict[str, tuple[int, int]] = {}
        for text, depth in offers:
            self.arrivals += 1
            best[text] = min(best.get(text, (depth, self.arrivals)), (depth, self.arrivals))
        unseen = 0
        for text, (depth, arrival) in best.items():
            domain = self.domains.setdefault(text.split("/")[2], ModelDomain())
            if text not in domain.pending and text not in self.ended:
                unseen += 1
                domain.pending[text] = ModelUrl((0, depth, arrival))
        added = self.run(self.frontier.add([url(text, depth) for text, depth in offers]))
        assert added == unseen

    @rule(seconds=st.sampled_from([0.5, 3.0, DELAY, BUDGET, BUDGET + DELAY, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.harness.advance(seconds)

    @rule(limit=st.integers(1, 5))
    def claim(self, limit: int) -> None:
        claimable = self.claimable()
        leases = self.run(self.frontier.claim(limit))
        names = {lease.name for lease in leases}
        given_up = {name for name in self.last_suspects(claimable) - names if self.is_lost(name)}
        assert names <= claimable
        assert len(names) + len(given_up) == min(limit, len(claimable))
        for name in given_up:
            self.give_up_head(self.domains[name])
        for lease in leases:
            self.note_lease(lease)

    def claimable(self) -> set[str]:
        return {
            name
            for name, domain in self.domains.items()
            if domain.pending
            and self.now >= (domain.lease_ends if domain.lease else domain.not_before)
            and self.now >= domain.head_due()
        }

    def is_lost(self, name: str) -> bool:
        head = url(self.domains[name].open_urls(self.now)[0])
        key = (head.domain, head.fingerprint)
        return self.run(self.frontier.states([key]))[key] is UrlState.FAILED

    def last_suspects(self, names: set[str]) -> set[str]:
        """Domains whose only open URL a claim settles as lost, so that nothing is leased."""
        return {
            name
            for name in names
            if self.domains[name].unsettled >= MAX_UNSETTLED
            and len(self.domains[name].open_urls(self.now)) == 1
        }

    def give_up_head(self, domain: ModelDomain) -> None:
        text = domain.open_urls(self.now)[0]
        del domain.pending[text]
        self.ended[text] = UrlState.FAILED
        domain.unsettled = 0
        domain.lease = None
        domain.not_before = self.now

    def note_lease(self, lease: Lease) -> None:
        domain = self.domains[lease.name]
        if domain.lease is not None:
            self.lost.append(domain.lease)
        if domain.unsettled >= MAX_UNSETTLED:
            self.give_up_head(domain)
        expected = domain.open_urls(self.now)[: len(lease.urls)]
        assert [pending.url for pending in lease.urls] == expected
        assert lease.urls
        domain.lease = lease
        domain.lease_ends = self.now + BUDGET + domain.delay()
        domain.unsettled += 1

    def leased(self) -> list[ModelDomain]:
        return [domain for domain in self.domains.values() if domain.lease is not None]

    @precondition(lambda self: self.leased())
    @rule(data=st.data(), asked=st.booleans(), ago=st.sampled_from([0.0, 2.0]))
    def settle(self, data: st.DataObject, asked: bool, ago: float) -> None:
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
                    Deferred(
                        fingerprint=pending.fingerprint,
                        seconds=wait,
                        attempts=1,
                        failing=fate == "hold",
                    )
                )
                if pending.url in domain.pending:
                    due = self.now + wait
                    # Two put off to the same moment are served by fingerprint.
                    order = (1 + (fate == "hold"), round(due * 1000), pending.fingerprint)
                    domain.pending[pending.url] = ModelUrl(order, due)
        visit = VisitResult(
            lease=domain.lease, asked=asked, since_finish=ago, settled=settled, deferred=deferred
        )
        assert self.run(self.frontier.settle([visit])) == 1
        assert self.run(self.frontier.settle([visit])) == 0, "the repeated one finds it settled"
        domain.not_before = self.now - ago + domain.delay() if asked else self.now
        domain.lease = None
        domain.unsettled = 0

    @precondition(lambda self: self.lost)
    @rule()
    def settle_too_late(self) -> None:
        lease = self.lost.pop()
        states = [Settled(fingerprint=u.fingerprint, state=UrlState.DONE) for u in lease.urls]
        visit = VisitResult(lease=lease, asked=True, since_finish=0.0, settled=states)
        assert self.run(self.frontier.settle([visit])) == 0

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

    @rule()
    def crash_and_resume(self) -> None:
        self.frontier = self.run(self.harness.open(delay=DELAY, budget=BUDGET))
        assert self.run(self.frontier.recover()) == len(self.leased())
        for domain in self.leased():
            assert domain.lease is not None
            domain.not_before = min(domain.lease_ends, self.now + domain.delay())
            self.lost.append(domain.lease)
            domain.lease = None

    @invariant()
    def counters_agree(self) -> None:
        counts = self.run(self.frontier.counts())
        pending = sum(len(domain.pending) for domain in self.domains.values())
        assert counts.urls_pending == pending
        for state in ENDINGS:
            assert counts.urls[state] == sum(end is state for end in self.ended.values())
        domains = counts.domains
        assert domains["idle"] == sum(not domain.pending for domain in self.domains.values())
        assert sum(domains.values()) == len(self.domains)
        kept = self.run(self.harness.counted_pending())
        assert all(kept_count == counted for kept_count, counted in kept.values())


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

    kept: PostgresHarness

    def make_harness(self) -> Harness:
        self.run(self.kept.empty())
        return PostgresHarness(self.kept.url, self.kept.schema)


machine_settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
long_settings = settings(machine_settings, max_examples=2_000, stateful_step_count=80)


def test_the_embedded_frontier_is_as_its_model() -> None:
    run_state_machine_as_test(SqliteMachine, settings=machine_settings)


def test_the_frontier_on_postgres_is_as_its_model(kept_postgres: PostgresHarness) -> None:
    PostgresMachine.kept = kept_postgres
    run_state_machine_as_test(PostgresMachine, settings=settings(machine_settings, max_examples=20))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_embedded_frontier_is_as_its_model_for_long() -> None:
    run_state_machine_as_test(SqliteMachine, settings=long_settings)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_frontier_on_postgres_is_as_its_model_for_long(kept_postgres: PostgresHarness) -> None:
    PostgresMachine.kept = kept_postgres
    run_state_machine_as_test(PostgresMachine, settings=long_settings)
