"""What the owner tells one start of a crawl: by a signal, in the data directory and in the database."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from rove.app.control import Control, StoppedInPreparation, beside
from rove.crawl.loop import Loader
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir, Remote
from rove.errors import FrontierError
from rove.frontier.backends import DEFAULT_CRAWL_NAME
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.database import SqliteDatabase
from rove.inspect.pauses import Scope, frontier_options, scope_options
from rove.model.instructions import Instruction, InstructionKind, Instructions

STOP, PAUSE = InstructionKind.STOP, InstructionKind.PAUSE
PATIENCE = 60.0
"""Only a hang may take this long."""


class Runner:
    """A running crawl that notes what it is told."""

    def __init__(self) -> None:
        self.progress = Progress(started=0.0)
        self.told: list[object] = []

    async def run(self, seed_loader: Loader) -> Ending:
        raise NotImplementedError

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        self.told.append(ending)

    def set_paused(self, is_paused: bool) -> None:
        self.told.append("pause" if is_paused else "continue")

    def accounts(self) -> dict[str, str]:
        raise NotImplementedError

    def kill(self) -> None:
        self.told.append("kill")

    def count(self, counters: Counters) -> None:
        raise NotImplementedError


class Start:
    """One start of a crawl in a data directory."""

    def __init__(self, folder: Path) -> None:
        self.data = DataDir(folder)
        self.said: list[str] = []
        self.runner = Runner()
        self.control = Control(
            self.data, scope_options(self.data, None), say=self.said.append, file_seconds=0.001, catalog_seconds=0.001
        )


def instruction(who: str = "ann@host") -> Instruction:
    return Instruction(who=who, at=0.0)


async def until_told(runner: Runner, *expected: object) -> None:
    async with asyncio.timeout(PATIENCE):
        while runner.told != list(expected):
            assert len(runner.told) <= len(expected), runner.told
            await asyncio.sleep(0.001)


async def test_a_stop_in_the_data_directory_stops_only_the_start_that_it_was_given_to(tmp_path: Path) -> None:
    DataDir(tmp_path).instruct(STOP, instruction())
    start = Start(tmp_path)
    async with beside(start.control.follow_file()):
        with start.control.running(start.runner):
            await asyncio.sleep(0.02)
            assert start.runner.told == ["continue"], "the stop was there before"
            start.data.instruct(STOP, instruction())
            await until_told(start.runner, "continue", Ending.TOLD_TO_STOP)
    assert start.control.ending is Ending.TOLD_TO_STOP
    later = Start(tmp_path)
    async with beside(later.control.follow_file()):
        with later.control.running(later.runner):
            await asyncio.sleep(0.02)
    assert later.control.ending is None and later.runner.told == ["continue"]


async def test_a_pause_holds_over_restarts_and_is_announced(tmp_path: Path) -> None:
    start = Start(tmp_path)
    async with beside(start.control.follow_file()):
        with start.control.running(start.runner):
            start.data.instruct(PAUSE, instruction())
            await until_told(start.runner, "continue", "pause")
    later = Start(tmp_path)
    sentence = f"paused by ann@host: no new visit starts until 'rove unpause --data-dir {tmp_path}'"
    assert start.said == later.said == [sentence], "it says so before it begins"
    async with beside(later.control.follow_file()):
        with later.control.running(later.runner):
            assert later.runner.told == ["pause"]
            later.data.instruct(PAUSE, None)
            await until_told(later.runner, "pause", "continue")
    assert later.said == [sentence, "no longer paused: visits start again"]


async def test_the_crawl_continues_when_the_last_pause_has_ended(tmp_path: Path) -> None:
    start, database = Start(tmp_path), SqliteDatabase(tmp_path / "frontier.sqlite")
    await database.open(create=True)
    catalog, runner = SqliteCatalog(database), start.runner
    await catalog.instruct(STOP, instruction("old"))
    await start.control.begin_everywhere(catalog)
    async with beside(start.control.follow_file(), start.control.follow_catalog(catalog)):
        with start.control.running(runner):
            await catalog.instruct(PAUSE, instruction("bob@there"))
            await until_told(runner, "continue", "pause")
            assert start.said[0].startswith("paused on all machines by bob@there: no new visit")
            start.data.instruct(PAUSE, instruction())
            await asyncio.sleep(0.02)
            start.data.instruct(PAUSE, None)
            await asyncio.sleep(0.02)
            assert runner.told == ["continue", "pause"] and start.control.is_paused
            await catalog.instruct(PAUSE, None)
            await until_told(runner, "continue", "pause", "continue")
            await catalog.instruct(STOP, instruction("bob@there"))
            await until_told(runner, "continue", "pause", "continue", Ending.TOLD_TO_STOP)
    await database.close()


class FailingCatalog(SqliteCatalog):
    """A catalog whose database is away at first."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self.failures = 3

    async def instructions(self) -> Instructions:
        if self.failures:
            self.failures -= 1
            raise FrontierError("away")
        return Instructions(stop=instruction())


async def test_a_database_that_is_away_is_asked_again(tmp_path: Path) -> None:
    start = Start(tmp_path)
    catalog = FailingCatalog(SqliteDatabase(tmp_path / "frontier.sqlite"))
    async with beside(start.control.follow_catalog(catalog)):
        with start.control.running(start.runner):
            await until_told(start.runner, "continue", Ending.TOLD_TO_STOP)
    assert catalog.failures == 0


async def test_files_that_cannot_be_read_change_nothing(tmp_path: Path) -> None:
    DataDir(tmp_path).instruct(PAUSE, instruction())
    start = Start(tmp_path)
    (tmp_path / "stop.json").mkdir()  # reading it fails
    async with beside(start.control.follow_file()):
        with start.control.running(start.runner):
            await asyncio.sleep(0.02)
            assert start.runner.told == ["pause"]
            (tmp_path / "stop.json").rmdir()
            start.data.instruct(STOP, instruction())
            await until_told(start.runner, "pause", Ending.TOLD_TO_STOP)


async def test_a_stop_ends_the_preparation(tmp_path: Path) -> None:
    start = Start(tmp_path)
    cleaned_up = False
    with pytest.raises(StoppedInPreparation):
        async with beside(start.control.follow_file()):
            try:
                with start.control.preparing():
                    start.data.instruct(STOP, instruction())
                    await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned_up = True
    assert cleaned_up and start.control.ending is Ending.TOLD_TO_STOP
    with pytest.raises(StoppedInPreparation), start.control.preparing():
        raise AssertionError("a crawl that was stopped is not prepared again")


async def test_a_cancellation_that_is_no_stop_stays_one(tmp_path: Path) -> None:
    start = Start(tmp_path)

    async def prepare() -> None:
        with start.control.preparing():
            await asyncio.Event().wait()

    task = asyncio.create_task(prepare())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_stop_between_preparation_and_run_is_kept(tmp_path: Path) -> None:
    start = Start(tmp_path)
    assert not start.control.stop(), "nothing runs yet"
    with start.control.running(start.runner):
        assert start.runner.told == ["continue", Ending.STOPPED]
        assert start.control.stop(Ending.TOLD_TO_STOP), "it runs now"
        start.control.kill()
    assert start.runner.told[2:] == ["kill"] and start.control.ending is Ending.STOPPED, "only the first call counts"
    start.control.kill()


def test_every_scope_has_options_that_name_it(tmp_path: Path) -> None:
    assert scope_options(DataDir(Path("my data")), None)[Scope.HERE] == "--data-dir 'my data'"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("postgresql://ann@db/x", "--frontier postgresql://ann@db/x"),
        (
            "postgresql://ann:s3cret@db/x",
            "--frontier 'postgresql://ann:***@db/x' (write the URL as you gave it: what is secret is not shown here)",
        ),
    ],
)
def test_advice_that_needs_a_password_says_so(url: str, options: str) -> None:
    remote = Remote(url=url, crawl_name=DEFAULT_CRAWL_NAME)
    assert frontier_options(remote) == options
    in_a_joined_directory = scope_options(DataDir(Path("mine")), remote)[Scope.EVERYWHERE]
    assert in_a_joined_directory == "--data-dir mine --all-machines", "it can be pasted"
