"""Processes notice steps of the server's clock and correct the crawl's clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rove.frontier.postgres.clock import DRIFT, STEP_MS, Reading, ServerClock

HOUR = 3_600_000


@dataclass
class Server:
    """A server whose clock can be set, and the steady clock of the processes."""

    steady: float = 1000.0
    ahead_ms: float = 1_700_000_000_000.0
    amendment_ms: int = 0
    rate: float = 1.0

    def steady_seconds(self) -> float:
        return self.steady

    def wait(self, seconds: float) -> None:
        self.steady += seconds
        self.ahead_ms += (self.rate - 1.0) * seconds * 1000

    @property
    def server_ms(self) -> int:
        return int(self.ahead_ms + self.steady * 1000)

    @property
    def crawl_ms(self) -> int:
        return self.server_ms + self.amendment_ms

    def set_forward(self, milliseconds: int) -> None:
        self.ahead_ms += milliseconds


@dataclass
class Watcher:
    """A process that reads the clock and corrects it, as the frontier does."""

    server: Server
    clock: ServerClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = ServerClock(self.server.steady_seconds)
        self.watch()

    def read(self, there: float = 0.0, back: float = 0.0) -> Reading:
        asked_at = self.server.steady
        self.server.wait(there)
        server_ms, amendment_ms = self.server.server_ms, self.server.amendment_ms
        self.server.wait(back)
        return Reading(server_ms, amendment_ms, asked_at, self.server.steady)

    def watch(self, there: float = 0.0, back: float = 0.0) -> int:
        """Read the clock; return the step that was noticed."""
        reading = self.read(there, back)
        step = self.clock.check(reading)
        if step:
            self.amend(reading, step)
            self.clock.check(self.read())
        return step

    def amend(self, reading: Reading, step: int) -> None:
        if self.server.amendment_ms == reading.amendment_ms:
            self.server.amendment_ms -= step

    def claims_at(self) -> int:
        """Return the time that a claim uses."""
        return min(self.server.crawl_ms, self.clock.latest())


def test_a_process_that_has_not_read_the_clock_trusts_it() -> None:
    clock = ServerClock(lambda: 0.0)
    assert clock.latest() > 1 << 61 and clock.earliest() < -(1 << 61)


def test_a_clock_that_runs_as_ours_is_left_alone() -> None:
    server = Server()
    watcher = Watcher(server)
    for _ in range(100):
        server.wait(2.0)
        assert watcher.watch(0.01, 0.01) == 0
        assert 0 <= watcher.clock.latest() - server.crawl_ms <= STEP_MS + 30
        assert 0 <= server.crawl_ms - watcher.clock.earliest() <= STEP_MS + 30
    assert server.amendment_ms == 0


@pytest.mark.parametrize("step", [HOUR, -HOUR, 1_000, -1_000, 100, -100, 30 * 24 * HOUR])
def test_a_step_is_taken_out(step: int) -> None:
    server = Server()
    watcher = Watcher(server)
    server.wait(10.0)
    before = server.crawl_ms
    server.set_forward(step)
    assert watcher.claims_at() <= before + STEP_MS + 10, "before it has been seen"
    assert watcher.clock.earliest() >= before - STEP_MS - 10
    assert watcher.watch() == pytest.approx(step, abs=1)
    assert server.crawl_ms == pytest.approx(before, abs=1)
    for _ in range(3):
        server.wait(5.0)
        assert watcher.watch() == 0
    assert server.crawl_ms == pytest.approx(before + 15_000, abs=1)


def test_several_steps_are_taken_out_one_after_the_other() -> None:
    server = Server()
    watcher = Watcher(server)
    start = server.crawl_ms
    for number, step in enumerate((HOUR, -2 * HOUR, 500, HOUR), start=1):
        server.wait(2.0)
        server.set_forward(step)
        assert watcher.watch() != 0
        assert server.crawl_ms == pytest.approx(start + 2000 * number, abs=4)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_step_that_another_process_corrected_is_not_corrected_again(step: int) -> None:
    server = Server()
    first, second = Watcher(server), Watcher(server)
    server.wait(3.0)
    server.set_forward(step)
    assert first.watch() != 0
    before = server.amendment_ms
    assert second.claims_at() == server.crawl_ms, "even before it looks"
    server.wait(2.0)
    assert second.watch() == 0
    assert server.amendment_ms == before
    server.wait(2.0)
    assert first.watch() == second.watch() == 0


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_two_that_see_a_step_at_once_amend_it_once(step: int) -> None:
    server = Server()
    watchers = [Watcher(server), Watcher(server)]
    server.wait(3.0)
    before = server.crawl_ms
    server.set_forward(step)
    readings = [watcher.read() for watcher in watchers]
    steps = [w.clock.check(r) for w, r in zip(watchers, readings, strict=True)]
    assert all(steps)
    for watcher, reading, found in zip(watchers, readings, steps, strict=True):
        watcher.amend(reading, found)
        watcher.clock.check(watcher.read())
    assert server.crawl_ms == pytest.approx(before, abs=1)
    assert [watcher.watch() for watcher in watchers] == [0, 0]


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_process_that_joined_between_a_step_and_its_correction_continues(step: int) -> None:
    server = Server()
    first = Watcher(server)
    server.set_forward(step)
    joined = Watcher(server)
    assert first.watch() != 0
    assert joined.claims_at() == server.crawl_ms or step < 0
    assert joined.watch() == 0
    server.wait(1.0)
    assert joined.claims_at() == server.crawl_ms
    assert first.watch() == joined.watch() == 0


def test_a_slow_answer_is_no_step() -> None:
    server = Server()
    watcher = Watcher(server)
    for there, back in ((9.0, 0.0), (0.0, 9.0), (0.0, 0.0), (30.0, 30.0), (0.0, 0.0)):
        server.wait(2.0)
        assert watcher.watch(there, back) == 0
        assert watcher.clock.earliest() <= server.crawl_ms <= watcher.clock.latest()
    assert server.amendment_ms == 0


@pytest.mark.parametrize("step", [HOUR, -HOUR])
@pytest.mark.parametrize(("there", "back"), [(2.0, 0.0), (0.0, 2.0), (1.0, 1.0)])
def test_a_step_seen_in_a_slow_answer_is_taken_out_in_the_end(step: int, there: float, back: float) -> None:
    """The step is known only up to the round-trip time. The correction is too large at first, then reverted."""
    server = Server()
    watcher = Watcher(server)
    server.wait(5.0)
    ahead = server.crawl_ms - server.steady * 1000
    server.set_forward(step)
    watcher.watch(there, back)
    for _ in range(5):
        assert -2_100 <= server.crawl_ms - server.steady * 1000 - ahead <= STEP_MS, "never ahead"
        server.wait(2.0)
        watcher.watch()
    assert server.crawl_ms - server.steady * 1000 == pytest.approx(ahead, abs=STEP_MS + 10)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_correction_after_a_slow_reading_is_only_completed(step: int) -> None:
    server = Server()
    slow, quick = Watcher(server), Watcher(server)
    server.wait(5.0)
    ahead = server.crawl_ms - server.steady * 1000
    server.set_forward(step)
    reading = slow.read(2.0, 0.0)
    slow.amend(reading, slow.clock.check(reading))
    for _ in range(5):
        assert -2_100 <= server.crawl_ms - server.steady * 1000 - ahead <= STEP_MS, "never ahead"
        quick.watch()
        slow.watch()
        server.wait(2.0)
    assert server.crawl_ms - server.steady * 1000 == pytest.approx(ahead, abs=STEP_MS + 10)


@pytest.mark.parametrize("rate", [1 - DRIFT, 1 + DRIFT, 1.0005])
def test_a_clock_that_is_slewed_is_no_step(rate: float) -> None:
    server = Server(rate=rate)
    watcher = Watcher(server)
    for seconds in (2.0, 60.0, 3600.0, 86_400.0):
        server.wait(seconds)
        assert watcher.clock.earliest() <= server.crawl_ms <= watcher.clock.latest()
        assert watcher.watch() == 0


def test_a_clock_that_runs_wild_is_held_back() -> None:
    """The clock runs twice as fast, so each reading finds a step of the difference."""
    server = Server(rate=2.0)
    watcher = Watcher(server)
    start, steady = server.crawl_ms, server.steady
    for _ in range(10):
        server.wait(2.0)
        assert watcher.claims_at() - start <= (server.steady - steady) * 1000 * 1.001 + 100
        watcher.watch()
        assert abs(server.crawl_ms - start - (server.steady - steady) * 1000) <= 100


moments = st.floats(0.0, 3.0)
steps = st.integers(-40 * HOUR, 40 * HOUR)


@given(
    history=st.lists(
        st.one_of(
            st.tuples(st.just("wait"), st.floats(0.0, 600.0)),
            st.tuples(st.just("set"), steps),
            st.tuples(st.just("watch"), st.integers(0, 2)),
        ),
        max_size=30,
    )
)
@example(history=[("wait", 161.0), *[("wait", 600.0)] * 3, ("set", 2011)])
def test_with_quick_answers_no_history_moves_the_time_of_claims(history: list[tuple[str, float]]) -> None:
    """Whichever process notices the steps, none claims ahead of the time that has passed."""
    server = Server()
    watchers = [Watcher(server) for _ in range(3)]
    ahead = server.crawl_ms - server.steady * 1000
    for kind, value in history:
        if kind == "wait":
            server.wait(value)
        elif kind == "set":
            server.set_forward(int(value))
        else:
            watchers[int(value)].watch()
        passed = server.steady - 1000.0
        slack = 40 * STEP_MS + passed * DRIFT * 1000
        for watcher in watchers:
            assert watcher.claims_at() - server.steady * 1000 <= ahead + slack
    for watcher in watchers * 2:
        watcher.watch()
    # After a long wait, a step may be smaller than the possible drift of the clocks.
    drifted = (server.steady - 1000.0) * DRIFT * 1000
    assert abs(server.crawl_ms - server.steady * 1000 - ahead) <= 40 * STEP_MS + drifted + 10


@given(
    step=steps,
    first=st.tuples(moments, moments),
    found=st.tuples(moments, moments),
    others=st.lists(st.tuples(st.booleans(), moments, moments), max_size=12),
    seconds=st.floats(0.0, 100.0),
)
def test_with_slow_answers_the_error_is_no_longer_than_they_took(
    step: int,
    first: tuple[float, float],
    found: tuple[float, float],
    others: list[tuple[bool, float, float]],
    seconds: float,
) -> None:
    assume(abs(step) > 20_000)
    server = Server()
    watchers = [Watcher(server), Watcher(server)]
    watchers[0].watch(*first)
    server.wait(seconds)
    ahead = server.crawl_ms - server.steady * 1000
    server.set_forward(step)
    watchers[0].watch(*found)
    for is_second, there, back in others:
        server.wait(2.0)
        watchers[is_second].watch(there, back)
        assert abs(server.crawl_ms - server.steady * 1000 - ahead) <= 6_500
