"""Telling a crawl to stop or to pause, and waiting for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rove.admin import control
from rove.admin.control import Machines, machines_given
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.inspect.pauses import Scope
from rove.model.instructions import Instruction, InstructionKind

NOBODY = 65534
PATIENCE = 60.0
"""Only a hang may take this long."""


def crawl_in(folder: Path) -> DataDir:
    """Return a directory that looks like that of a crawl; its database cannot be read."""
    data = DataDir(folder)
    data.frontier.write_text("no database")
    return data


async def stop_in(data: DataDir, *, patience: float = PATIENCE, then: object = None) -> control.Obeyed:
    def obey() -> None:
        if callable(then):
            then()

    async with machines_given(data.root, None, None) as machines:
        return await control.stop(machines, patience=patience, on_told=obey)


async def test_a_crawl_that_is_not_running_is_not_told(tmp_path: Path) -> None:
    data = crawl_in(tmp_path)
    with data.held():
        pass
    obeyed = await stop_in(data)
    assert not obeyed.was_running and not obeyed.late
    assert data.instructions().stop is None


async def test_without_a_crawl_there_is_nothing_to_tell(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="holds no crawl"):
            async with machines_given(place, None, None):
                pass


async def test_a_stop_waits_until_the_directory_is_free(tmp_path: Path) -> None:
    data = crawl_in(tmp_path)
    running = data.held()
    running.__enter__()

    def end() -> None:
        assert data.instructions().stop is not None
        asyncio.get_running_loop().call_later(0.05, running.__exit__, None, None, None)

    obeyed = await stop_in(data, then=end)
    assert obeyed.was_running and not obeyed.late and obeyed.counts is None
    assert not data.in_use()


async def test_a_crawl_that_does_not_stop_is_named(tmp_path: Path) -> None:
    data = crawl_in(tmp_path)
    with data.held():
        obeyed = await stop_in(data, patience=0.3)
    assert obeyed.late == [f"process {os.getpid()}"]


async def test_a_later_start_is_not_waited_for(tmp_path: Path) -> None:
    data = crawl_in(tmp_path)
    first, second = data.held(), data.held()
    first.__enter__()

    def restart() -> None:
        first.__exit__(None, None, None)
        second.__enter__()

    obeyed = await stop_in(data, then=restart)
    assert obeyed.was_running and not obeyed.late and data.in_use()
    second.__exit__(None, None, None)


async def pauses_in(machines: Machines) -> set[Scope]:
    return set(await control.pauses_of(machines))


async def test_a_pause_holds_until_it_is_withdrawn(tmp_path: Path) -> None:
    data = crawl_in(tmp_path)
    async with machines_given(data.root, None, None) as machines:
        assert await pauses_in(machines) == set()
        obeyed = await control.pause(machines, patience=PATIENCE)
        assert not obeyed.was_running and await pauses_in(machines) == {Scope.HERE}
        await control.unpause(machines, patience=PATIENCE)
        assert await pauses_in(machines) == set() and data.instructions().pause is None
        data.instruct(InstructionKind.PAUSE, None)  # once more is no error


@contextmanager
def another_user(folder: Path) -> Iterator[None]:
    """Let this process be a user who may read the folder and not write to it."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    here, above = Path.cwd(), [path for path in folder.parents if path.stat().st_uid == os.geteuid()]
    modes = {path: path.stat().st_mode for path in above}
    try:
        for path, mode in modes.items():
            path.chmod(mode | 0o055)
        os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(0)
        os.chdir(here)
        for path, mode in modes.items():
            path.chmod(mode)


def test_without_permission_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    data = crawl_in(tmp_path)
    data.instruct(InstructionKind.PAUSE, Instruction(who="ann", at=0.0))
    for told in (None, Instruction(who="me", at=0.0)):
        with (
            another_user(tmp_path),
            pytest.raises(UsageError, match=r"no permission to change .*/pause\.json; run the command as "),
        ):
            data.instruct(InstructionKind.PAUSE, told)
    assert data.instructions().pause == Instruction(who="ann", at=0.0, id=getattr(data.instructions().pause, "id", ""))
    assert {path.name for path in tmp_path.iterdir()} == {"frontier.sqlite", "pause.json"}, "something was left behind"
