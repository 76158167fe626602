"""URLs are settled and reopened in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.frontier.bulk_settle import BulkSettling
from rove.model.urls import UrlState

PENDING, BLOCKED, FAILED = UrlState.PENDING, UrlState.BLOCKED, UrlState.FAILED


class Rows:
    """The URLs of one domain in memory; `before` is called before each transaction."""

    def __init__(self, count: int, before: Callable[[int], None] = lambda number: None) -> None:
        self.states = dict.fromkeys(range(count), (PENDING, ""))
        self.order = {i: (i % 3, i) for i in range(count)}
        self.slices: list[int] = []
        self.before = before

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        if query == "pending_from":
            return self._pending_from(**parameters)
        return self._blocked_after(**parameters)

    def _pending_from(self, domain: int, priority: int, position: int, limit: int) -> list[Any]:
        there = sorted(
            (self.order[i], i)
            for i, (state, _) in self.states.items()
            if state is PENDING and self.order[i] >= (priority, position)
        )
        self.slices.append(min(limit, len(there)))
        return [(i, f"http://a.test/{i}", *position, i % 3, i % 5 > 0) for position, i in there[:limit]]

    def _blocked_after(self, domain: int, fingerprint: int, limit: int) -> list[Any]:
        behind = sorted(i for i in self.states if i > fingerprint)
        self.slices.append(min(limit, len(behind)))
        reasons = {i: reason if state is BLOCKED else "" for i, (state, reason) in self.states.items()}
        return [(i, f"http://a.test/{i}", i % 3, reasons[i]) for i in behind[:limit]]

    async def settle(
        self, domain: int, fingerprints: list[int], state: UrlState, reason: str, after: int | None
    ) -> int:
        return self._move(fingerprints, PENDING, (state, reason))

    async def reopen(self, domain: int, fingerprints: list[int], reason: str) -> int:
        assert {self.states[i] for i in fingerprints} <= {(BLOCKED, reason), (PENDING, "")}
        return self._move(fingerprints, BLOCKED, (PENDING, ""))

    def _move(self, fingerprints: list[int], old: UrlState, new: tuple[UrlState, str]) -> int:
        assert fingerprints, "a transaction without URLs"
        self.before(len(self.slices))
        moved = [i for i in fingerprints if self.states[i][0] is old]
        self.states.update(dict.fromkeys(moved, new))
        return len(moved)

    def in_state(self, state: UrlState) -> set[int]:
        return {i for i, (current, _) in self.states.items() if current is state}


def is_even(url: str) -> bool:
    return int(url.rpartition("/")[2]) % 2 == 0


def bulk(rows: Rows) -> BulkSettling:
    return BulkSettling(rows, limit=4)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 9, 40])
async def test_all_leave_in_slices(count: int) -> None:
    rows = Rows(count)
    assert await bulk(rows).withdraw(1, FAILED, "gone", lambda _: True) == count
    assert rows.in_state(FAILED) == set(range(count))
    assert max(rows.slices) <= 4 and len(rows.slices) == count // 4 + 1
    assert await bulk(rows).withdraw(1, FAILED, "gone", lambda _: True) == 0


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 9, 40])
async def test_only_matching_urls_are_settled_and_reopened(count: int) -> None:
    rows = Rows(count)
    even = set(range(0, count, 2))
    assert await bulk(rows).withdraw(1, BLOCKED, "excluded", is_even) == len(even)
    assert rows.in_state(BLOCKED) == even
    assert await bulk(rows).reopen(1, lambda url: not is_even(url)) == 0
    assert await bulk(rows).reopen(1, is_even) == len(even)
    assert await bulk(rows).reopen(1, is_even) == 0
    assert rows.in_state(PENDING) == set(range(count))


@pytest.mark.parametrize("positions", [1, 2, 3])
async def test_urls_that_share_a_position(positions: int) -> None:
    """The retries of a domain may all be due in the same millisecond."""
    rows = Rows(20)
    rows.order = {i: (1 << 20, i % positions) for i in range(20)}
    assert await bulk(rows).withdraw(1, BLOCKED, "excluded", is_even) == 10
    assert await bulk(rows).withdraw(1, FAILED, "gone", lambda _: True) == 10
    assert rows.in_state(PENDING) == set()


async def test_urls_blocked_for_another_reason_stay_blocked() -> None:
    rows = Rows(6)
    rows.states[2] = (BLOCKED, "robots")
    rows.states[3] = (BLOCKED, "excluded")
    rows.states[4] = (FAILED, "excluded")
    assert await bulk(rows).reopen(1, lambda _: True) == 1
    assert rows.in_state(PENDING) == {0, 1, 3, 5}


async def test_urls_that_another_process_settles_are_not_counted() -> None:
    def settle(number: int) -> None:
        rows.states[0] = rows.states[1] = (UrlState.DONE, "")

    rows = Rows(10, settle)
    assert await bulk(rows).withdraw(1, FAILED, "gone", lambda _: True) == 8
    assert rows.in_state(UrlState.DONE) == {0, 1}


async def test_many_domains() -> None:
    rows = Rows(6)
    assert await bulk(rows).withdraw_all([1, 2], FAILED, "gone") == 6
    assert await bulk(rows).withdraw_all([], FAILED, "gone") == 0


class Killed(Exception):
    pass


@given(count=st.integers(0, 30), kills=st.lists(st.integers(1, 4), max_size=6))
def test_killed_between_slices_and_begun_again(count: int, kills: list[int]) -> None:
    """Finished slices stay finished, and the last start does the rest."""
    asyncio.run(killed_and_begun_again(count, kills))


async def killed_and_begun_again(count: int, kills: list[int]) -> None:
    left = 0
    rows = Rows(count)

    async def until_killed(work: Callable[[], Any], after: int | None) -> int:
        slices = len(rows.slices)

        def kill(number: int) -> None:
            if after is not None and number - slices > after:
                raise Killed

        rows.before = kill
        count: int = await work()
        return count

    for after in [*kills, None]:
        with suppress(Killed):
            await until_killed(lambda: bulk(rows).withdraw(1, BLOCKED, "excluded", lambda _: True), after)
        assert len(rows.in_state(BLOCKED)) >= left
        left = len(rows.in_state(BLOCKED))
    assert rows.in_state(BLOCKED) == set(range(count))
    for after in [*kills, None]:
        with suppress(Killed):
            await until_killed(lambda: bulk(rows).reopen(1, lambda _: True), after)
    assert rows.in_state(PENDING) == set(range(count))


async def test_urls_are_judged_by_rules_with_their_depth_and_come_back() -> None:
    rows = Rows(20)

    def judge(url: str, depth: int) -> str | None:
        assert depth == int(url.rpartition("/")[2]) % 3
        return None if depth == 2 else f"rejected by rule {depth}"

    rejected = {i for i in range(20) if i % 3 < 2 and i % 5}
    assert await bulk(rows).rejudge(1, judge) == len(rejected)
    assert rows.in_state(BLOCKED) == rejected, "every fifth is no page"
    assert {reason for i, (_, reason) in rows.states.items() if i in rejected} == {
        "rejected by rule 0",
        "rejected by rule 1",
    }
    assert await bulk(rows).reopen(1, lambda _: True) == 0, "no exclusion blocked them"
    assert await bulk(rows).reopen_rejected(1, judge) == 0
    assert await bulk(rows).reopen_rejected(1, lambda _, depth: judge("/1", 1) if depth else None) == sum(
        i % 3 == 0 for i in rejected
    )
    assert rows.in_state(BLOCKED) == {i for i in rejected if i % 3}
