"""A running crawl hears of other exclusions; what they do in the frontier is in tests/contract."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

import rove.admin.apply_exclusions
from rove.admin.apply_exclusions import follow_exclusions, include
from rove.errors import FrontierError
from rove.frontier.contract import Catalog
from rove.policy.exclusions import Exclusions
from tests.unit.crawl.scripted import World, page


class ScriptedCatalog:
    """Answers as scripted, one step each time that it is asked for the revision; then nothing more happens."""

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


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rove.admin.apply_exclusions, "FOLLOW_SECONDS", 0.0)


async def heard(catalog: ScriptedCatalog) -> list[int]:
    """How many exclusions each change was told with."""
    told: list[int] = []

    def tell(exclusions: Exclusions) -> None:
        told.append(len(exclusions))

    task = asyncio.create_task(follow_exclusions(cast(Catalog, catalog), tell))
    over = asyncio.create_task(catalog.over.wait())
    await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED, timeout=10)
    task.cancel()
    over.cancel()
    await asyncio.gather(over, return_exceptions=True)
    with suppress(asyncio.CancelledError):
        await task
    return told


async def test_those_that_hold_are_told_at_once() -> None:
    assert await heard(ScriptedCatalog((0, ["a.test", "b.test"]))) == [2]


async def test_only_changes_are_told() -> None:
    one, two = ["a.test"], ["a.test", "*b*"]
    catalog = ScriptedCatalog((3, one), (3, one), (4, two), (4, two), (4, two), (5, []), (5, []))
    assert await heard(catalog) == [1, 2, 0]


async def test_a_database_that_is_away_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    error = FrontierError("away")
    catalog = ScriptedCatalog((1, ["a.test"]), error, (1, ["a.test"]), error, (2, []))
    assert await heard(catalog) == [1, 0]
    assert caplog.messages.count("whether exclusions have changed could not be seen: away") == 2


async def test_a_change_that_could_not_be_read_is_not_missed() -> None:
    catalog = ScriptedCatalog((1, []), (2, FrontierError("away")), (2, ["a.test"]), (2, ["a.test"]))
    assert await heard(catalog) == [0, 1]


async def test_a_mistake_of_ours_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        await heard(ScriptedCatalog(RuntimeError("broken")))


async def test_what_a_visit_blocked_by_a_pattern_of_any_domain_comes_back_when_it_is_lifted(
    tmp_path: Path,
) -> None:
    """The domain itself was not covered, only one of its hosts."""
    world = World(tmp_path)
    urls = ["http://ads.a.test/", "http://a.test/"]
    await world.open(*urls, script={"http://a.test/": page()}, exclude=["ads.*"])
    await world.visit()
    before = await world.states()
    opened = await include(world.frontier, ["ads.*"], Exclusions())
    after = await world.states()
    world.inflight_log.close()
    await world.harness.close()
    assert before == {urls[0]: "blocked", urls[1]: "done"}
    assert (after, opened) == ({urls[0]: "pending", urls[1]: "done"}, 1)
