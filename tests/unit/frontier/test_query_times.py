"""The durations of queries, and the watch for connections that are held for too long."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from rove.frontier.postgres import held_connections as postgres_watch
from rove.frontier.postgres.held_connections import QUIET_SECONDS, HeldWatch, stack_of
from rove.frontier.postgres.session import Session
from rove.frontier.query_times import TimesReader, Timings, timing_lines

SHORT = 0.01
LONG = 0.05


def test_each_name_has_its_own_histogram() -> None:
    timings = Timings()
    timings.add("a", 1.0)
    timings.add("b", 2.0)
    timings.add("a", 3.0)
    assert {name: (h.count, h.total) for name, h in timings.by_name.items()} == {"a": (2, 4.0), "b": (1, 2.0)}


def test_a_block_is_timed_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 10.5, 20.0, 20.25])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    timings = Timings()
    with timings.measured("work"):
        pass
    with pytest.raises(RuntimeError), timings.measured("work"):
        raise RuntimeError
    times = timings.by_name["work"]
    assert (times.count, times.total, times.longest) == (2, 0.75, 0.5)


def test_lines_come_with_the_costliest_first() -> None:
    timings = Timings()
    timings.add("one long", 0.9)
    for _ in range(1000):
        timings.add("many-short", 0.002)
    assert timing_lines("query", timings.by_name) == [
        "query name=many-short times=1000 total_s=2 p50_ms=2 p95_ms=2 max_ms=2",
        'query name="one long" times=1 total_s=0.9 p50_ms=900 p95_ms=900 max_ms=900',
    ]


def test_nothing_timed_is_no_line() -> None:
    assert timing_lines("query", Timings().by_name) == []


def test_each_reader_takes_recent_durations_once() -> None:
    timings = Timings()
    timings.add("a", 1.0)
    first = timings.take_recent(TimesReader.LOG)
    timings.add("a", 5.0)
    timings.add("b", 2.0)
    second = timings.take_recent(TimesReader.LOG)
    assert {name: (h.count, h.longest) for name, h in first.items()} == {"a": (1, 1.0)}
    assert {name: (h.count, h.longest) for name, h in second.items()} == {"a": (1, 5.0), "b": (1, 2.0)}
    assert timings.take_recent(TimesReader.LOG) == {}
    others = timings.take_recent(TimesReader.SAMPLES)
    assert {name: (h.count, h.longest) for name, h in others.items()} == {"a": (2, 5.0), "b": (1, 2.0)}
    total = timings.by_name
    assert {name: (h.count, h.total) for name, h in total.items()} == {"a": (2, 6.0), "b": (1, 2.0)}
    assert sum(total["a"].buckets.values()) == 2


def test_durations_of_other_threads_are_not_lost() -> None:
    timings = Timings()

    def add_many() -> None:
        for _ in range(5_000):
            timings.add("a", 0.5)

    with ThreadPoolExecutor(4) as threads:
        working = [threads.submit(add_many) for _ in range(4)]
        taken = 0
        while not all(work.done() for work in working):
            taken += sum(times.count for times in timings.take_recent(TimesReader.SAMPLES).values())
    taken += sum(times.count for times in timings.take_recent(TimesReader.SAMPLES).values())
    assert taken == timings.by_name["a"].count == 20_000


def session_running(query: str) -> Session:
    session = Session(None, Timings())
    session.query = query
    return session


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, logger=postgres_watch.__name__)
    return caplog


async def held(watch: HeldWatch, what: str, query: str = "claim", *, seconds: float = LONG) -> None:
    with watch.over(what, session_running(query)):
        await asyncio.sleep(seconds)


async def test_a_connection_given_back_in_time_is_not_logged(said: pytest.LogCaptureFixture) -> None:
    watch = HeldWatch(threshold=LONG)
    await held(watch, "add", seconds=0.0)
    with pytest.raises(RuntimeError), watch.over("add", session_running("claim")):
        raise RuntimeError
    await asyncio.sleep(2 * LONG)
    assert said.messages == [], "nor is one that was given back because of an error"


async def test_every_kind_of_work_is_logged_for_itself(said: pytest.LogCaptureFixture) -> None:
    watch = HeldWatch(threshold=SHORT)
    await asyncio.gather(*(held(watch, what) for what in ("add", "claim", "add")))
    assert sorted(text.split(",")[0] for text in said.messages) == [
        "a connection has been held for 0.0 s to add",
        "a connection has been held for 0.0 s to claim",
    ]


async def test_it_is_logged_again_after_a_while(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([1.0, QUIET_SECONDS, QUIET_SECONDS + 1.0, QUIET_SECONDS + 2.0])
    monkeypatch.setattr(postgres_watch, "time", SimpleNamespace(monotonic=lambda: next(times)))
    watch = HeldWatch(threshold=SHORT)
    counts = []
    for _ in range(4):
        await held(watch, "add")
        counts.append(len(said.messages))
    assert counts == [1, 1, 2, 2], "the first time even on a machine that was only just started"


async def test_a_connection_without_a_query_yet(said: pytest.LogCaptureFixture) -> None:
    await held(HeldWatch(threshold=SHORT), "add", query="")
    (text,) = said.messages
    assert "in query (none yet)" in text


async def test_the_query_is_the_one_at_the_time_of_the_complaint(said: pytest.LogCaptureFixture) -> None:
    session = session_running("first")
    with HeldWatch(threshold=SHORT).over("settle", session):
        session.query = "second"
        await asyncio.sleep(LONG)
    (text,) = said.messages
    assert "in query second" in text


async def _outer(ready: asyncio.Event) -> None:
    async for _ in _generated(ready):
        pass


async def _generated(ready: asyncio.Event) -> AsyncIterator[int]:
    await _inner(ready)
    yield 1


async def _inner(ready: asyncio.Event) -> None:
    ready.set()
    await asyncio.Event().wait()


async def test_a_stack_goes_from_the_outermost_inwards() -> None:
    ready = asyncio.Event()
    task = asyncio.create_task(_plain(ready))
    await ready.wait()
    places = [line.split(" in ")[1].split("\n")[0] for line in stack_of(task)]
    task.cancel()
    assert places[:2] == ["_plain", "_inner"]


async def _plain(ready: asyncio.Event) -> None:
    await _inner(ready)


async def test_the_stack_of_a_task_that_is_done_is_empty() -> None:
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    assert stack_of(task) == []


async def test_a_generator_on_the_way_does_not_break_the_stack() -> None:
    ready = asyncio.Event()
    task = asyncio.create_task(_outer(ready))
    await ready.wait()
    places = [line.split(" in ")[1].split("\n")[0] for line in stack_of(task)]
    task.cancel()
    assert places[0] == "_outer"
