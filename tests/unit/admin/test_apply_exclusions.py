"""Running processes follow changed exclusions. tests/contract tests the effect on the frontier."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from rove.admin.apply_exclusions import follow_exclusions, reopen_covered
from rove.errors import FrontierError
from rove.frontier.contract import Catalog
from rove.policy.exclusions import Exclusions
from tests.unit.crawl.scripted import World, page
from tests.urls import FORM


class ScriptedCatalog:
    """Takes one step of its script each time the revision is read, then blocks."""

    def __init__(self, *steps: tuple[int, list[str] | BaseException] | BaseException) -> None:
        self._steps = list(steps)
        self._patterns: list[str] | BaseException = []
        self.over = asyncio.Event()

    async def exclusions_revision(self) -> int:
        if not self._steps:
            self.over.set()
            await asyncio.Event().wait()
        step = self._steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        revision, self._patterns = step
        return revision

    async def exclusions(self) -> list[str]:
        if isinstance(self._patterns, BaseException):
            raise self._patterns
        return self._patterns


async def followed(catalog: ScriptedCatalog) -> list[int]:
    """Return how many of two hosts each reported change excluded."""
    reported: list[int] = []

    def report(exclusions: Exclusions) -> None:
        reported.append(sum(map(exclusions.covers, ("a.test", "b.test"))))

    following = follow_exclusions(cast(Catalog, catalog), report, interval=0.0)
    task = asyncio.create_task(following)
    over = asyncio.create_task(catalog.over.wait())
    await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED, timeout=10)
    task.cancel()
    over.cancel()
    await asyncio.gather(over, return_exceptions=True)
    with suppress(asyncio.CancelledError):
        await task
    return reported


async def test_the_exclusions_are_reported_at_once() -> None:
    assert await followed(ScriptedCatalog((0, ["a.test", "b.test"]))) == [2]


async def test_only_changes_are_reported() -> None:
    one, two = ["a.test"], ["a.test", "*b*"]
    catalog = ScriptedCatalog((3, one), (3, one), (4, two), (4, two), (4, two), (5, []), (5, []))
    assert await followed(catalog) == [1, 2, 0]


async def test_a_database_that_is_away_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    error = FrontierError("away")
    catalog = ScriptedCatalog((1, ["a.test"]), error, (1, ["a.test"]), error, (2, []))
    assert await followed(catalog) == [1, 0]
    assert caplog.messages.count("Could not check for changed exclusions: away") == 2


async def test_a_change_that_could_not_be_read_is_not_missed() -> None:
    catalog = ScriptedCatalog((1, []), (2, FrontierError("away")), (2, ["a.test"]), (2, ["a.test"]))
    assert await followed(catalog) == [0, 1]


async def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        await followed(ScriptedCatalog(RuntimeError("broken")))


async def test_urls_blocked_by_a_pattern_for_any_domain_are_pending_again_when_it_is_lifted(tmp_path: Path) -> None:
    """The pattern covers one host, not the domain."""
    world = World(tmp_path)
    urls = ["http://ads.a.test/", "http://a.test/"]
    await world.open(*urls, script={"http://a.test/": page()}, exclude=["ads.*"])
    await world.visit()
    before = await world.states()
    opened = await reopen_covered(world.frontier, ["ads.*"], Exclusions(), FORM)
    after = await world.states()
    world.inflight_log.close()
    await world.harness.close()
    assert before == {urls[0]: "blocked", urls[1]: "done"}
    assert (after, opened) == ({urls[0]: "pending", urls[1]: "done"}, 1)
