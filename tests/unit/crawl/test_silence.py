"""Visits to domains that do not respond hold a quarter of the slots, and the others go on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rove.crawl.silence import SilentVisits
from rove.crawl.throttle import Throttle
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from rove.model.outcomes import FailureKind
from rove.model.visits import Lease, Pace
from rove.policy.silence import SILENT_AFTER
from tests.unit.crawl.scripted import ScriptedFetcher, failed, new_url, page
from tests.unit.crawl.test_loop_outage import running, until
from tests.unit.crawl.workspace import Workspace

RESPONDS = Pace(answered=True)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def visit(pace: Pace = Pace()) -> VisitRecord:  # noqa: B008 - it cannot change
    lease = Lease(domain=1, name="a.test", token=1, crawl_delay=0.0, urls=(), pace=pace)
    return VisitRecord(HeldLease(lease=lease, deadline=1_000.0, origins={}))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def silence(clock: Clock) -> SilentVisits:
    return SilentVisits(Throttle(40), clock)


def begun(silence: SilentVisits, count: int, pace: Pace = Pace()) -> list[VisitRecord]:  # noqa: B008
    visits = [visit(pace) for _ in range(count)]
    for record in visits:
        silence.begin(record)
    return visits


@pytest.mark.parametrize(
    "pace", [Pace(), Pace(failures=1), Pace(answered=True, failures=1)], ids=["new", "never", "not lately"]
)
def test_a_stranger_counts_as_silent_after_two_seconds(silence: SilentVisits, clock: Clock, pace: Pace) -> None:
    first, second = begun(silence, 2, pace)
    clock.now += SILENT_AFTER - 0.1
    assert silence.count == 0
    clock.now += 0.1
    assert silence.count == 2
    silence.end(first)
    assert silence.count == 1
    silence.end(second)
    silence.end(second)
    assert silence.count == 0


def test_a_domain_that_responded_never_counts(silence: SilentVisits, clock: Clock) -> None:
    begun(silence, 40, RESPONDS)
    clock.now += 60
    assert silence.count == 0 and silence.room(0) >= 40


def test_a_visit_that_has_brought_a_response_no_longer_counts(silence: SilentVisits, clock: Clock) -> None:
    (record,) = begun(silence, 1)
    silence.end(record)
    clock.now += 60
    assert silence.count == 0


def test_a_new_crawl_may_use_all_slots(silence: SilentVisits) -> None:
    begun(silence, 40)
    assert silence.room(0) >= 40


def test_silent_visits_leave_no_room_for_strangers(silence: SilentVisits, clock: Clock) -> None:
    visits = begun(silence, 9)
    clock.now += SILENT_AFTER
    assert silence.room(0) > 0 and silence.are_many
    visits += begun(silence, 1)
    clock.now += SILENT_AFTER
    assert silence.count == 10 and silence.room(0) == 0
    silence.end(visits[0])
    assert silence.room(0) > 0


def test_where_strangers_are_silent_only_a_quarter_may_begin(silence: SilentVisits, clock: Clock) -> None:
    for _ in range(30):
        for record in begun(silence, 10):
            clock.now += SILENT_AFTER
            silence.end(record)
    assert silence.count == 0
    assert silence.room(0) == 10
    lease = visit().lease
    for _ in range(4):
        silence.queue(lease)
    assert silence.room(0) == 6, "those that wait for a slot count too"
    begun(silence, 3)
    assert silence.room(0) == 3
    silence.unqueue(lease)
    assert silence.room(0) == 4


def test_a_crawl_recovers_when_strangers_respond_again(silence: SilentVisits, clock: Clock) -> None:
    for _ in range(30):
        for record in begun(silence, 10):
            clock.now += SILENT_AFTER
            silence.end(record)
    for _ in range(30):
        for record in begun(silence, min(10, silence.room(0))):
            silence.end(record)
    assert silence.room(0) >= 40


async def test_domains_that_respond_go_on_while_others_are_silent(workspace: Workspace) -> None:
    """Silent hosts have taken nearly all slots. Slots that become free serve the site that responds.

    A page that never comes keeps the crawl from ending before the silent hosts are added.
    """
    endless = "http://endless.test/"
    names = [f"http://good.test/{number or ''}" for number in range(30)]
    script: dict[str, Any] = {name: page(f"<p>This is {name}") for name in [*names, endless]}
    silent = [f"http://silent{number}.test/" for number in range(100)]
    script |= {f"{url}robots.txt": failed(FailureKind.TIMEOUT_FIRST_BYTE) for url in silent}
    web = workspace.fetcher = ScriptedFetcher(script)
    released, all_read = asyncio.Semaphore(0), asyncio.Event()
    waiting = 0

    async def before_answer(request: Request) -> None:
        nonlocal waiting
        if "silent" in request.url.host:
            waiting += 1
            await released.acquire()
            waiting -= 1
        elif request.url.text == endless:
            await all_read.wait()

    web.before_answer = before_answer
    await workspace.open(names[0], endless)
    skipped = 0.0
    async with running(workspace, concurrency=8, clock=lambda: steady_seconds() + skipped) as (crawl, _):
        await until(lambda: crawl.progress.pages == 1)
        await workspace.frontier.add([new_url(url, 1) for url in silent])
        await until(lambda: waiting == 7)
        skipped = SILENT_AFTER + 1
        await workspace.frontier.add([new_url(url, 1) for url in names[1:]])
        for _ in range(4):
            released.release()
        await until(lambda: crawl.progress.pages == len(names))
        asked = [url for url in web.requested if "silent" in url]
        assert len(asked) <= 7 + 2, "only the two that were queued have followed"
        all_read.set()
        for _ in range(100):
            released.release()


async def test_the_first_visit_is_brief_while_many_are_silent(workspace: Workspace) -> None:
    """Strangers that come later are given less time, but not if they have failed before."""
    silent = [f"http://silent{number}.test/" for number in range(4)]
    late = "http://late.test/"
    script: dict[str, Any] = {f"{url}robots.txt": failed(FailureKind.TIMEOUT_FIRST_BYTE) for url in silent}
    web = workspace.fetcher = ScriptedFetcher(script | {late: page()})
    released = asyncio.Event()
    waiting = 0

    async def before_answer(request: Request) -> None:
        nonlocal waiting
        if "silent" in request.url.host:
            waiting += 1
            await released.wait()

    web.before_answer = before_answer
    await workspace.open(*silent)
    skipped = 0.0
    async with running(workspace, concurrency=20, clock=lambda: steady_seconds() + skipped) as (crawl, _):
        await until(lambda: waiting == 4)
        skipped = SILENT_AFTER + 1
        await workspace.frontier.add([new_url(late, 1)])
        await until(lambda: crawl.progress.pages == 1)
        released.set()
    is_brief = {request.url.text: request.is_brief for request in web.requests}
    assert is_brief[f"{late}robots.txt"], "nothing is known of it"
    assert not is_brief[late], "it has answered"
    assert not any(is_brief[f"{url}robots.txt"] for url in silent), "slots were not short"
