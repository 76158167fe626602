"""What a moved crawl knows of its past: it rests only if it did before, and no later failover is overlooked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.era_file import EraFile
from rove.frontier.eras import Remembered
from rove.frontier.postgres.backend import PostgresBackend
from tests.contract.moved_crawl import MACHINE, POLICY, Target, crawl_in, sqlite_file

pytestmark = pytest.mark.system


def _remembering(path: Path) -> EraFile:
    """Return what the data directory of a SQLite file remembers."""
    with sqlite_file(path) as connection:
        ((era,),) = connection.execute("SELECT value FROM meta WHERE key = 'era'")
        ((visits,),) = connection.execute("SELECT value FROM counter WHERE name = 'visits'")
    file = EraFile()
    file.known = Remembered(crawl=era, era=era, visits=visits)
    return file


@asynccontextmanager
async def _resumed(target: Target, file: EraFile) -> AsyncIterator[tuple[Frontier, list[str]]]:
    """Resume the moved crawl; yield its frontier and what was said at the start."""
    news: list[str] = []
    backend = PostgresBackend(target.url, target.schema, MACHINE, on_news=news.append, era_file=file)
    try:
        await backend.open(create=True)
        yield await backend.begin(POLICY, await backend.begin_run()), news
    finally:
        await backend.close()


async def test_a_moved_crawl_does_not_rest(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    await target.move(path)
    async with _resumed(target, _remembering(path)) as (frontier, news):
        assert frontier.troubles()["rest"] == "" and not news
    ((timeline, rest_from),) = await target.rows("SELECT timeline, rest_from FROM era")
    assert timeline and rest_from is None, "a later promotion is noticed"


async def test_a_crawl_that_rests_goes_on_resting(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    began = clock()
    with sqlite_file(path) as connection:
        connection.execute("INSERT INTO meta VALUES ('rest_from', ?)", (f"7 {began}",))
    await target.move(path)
    async with _resumed(target, _remembering(path)) as (frontier, _):
        assert frontier.troubles()["rest"].startswith("every domain rests")
        assert await frontier.claim(10) == []
    rests = await target.rows("SELECT rest_from FROM era ORDER BY number")
    assert rests[0] == (None,) and rests[2][0] - rests[1][0] == began - 7


async def test_a_file_older_than_its_directory_rests_after_the_move(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    await target.move(path)
    file = _remembering(path)
    file.note_visits(file.known.visits + 5)
    async with _resumed(target, file) as (frontier, _):
        assert frontier.troubles()["rest"].startswith("every domain rests")
