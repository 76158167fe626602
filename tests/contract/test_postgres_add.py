"""Adds on PostgreSQL while another transaction inserts the same URLs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rove.frontier.contract import Frontier
from rove.frontier.postgres.add import WARY_ADDS
from rove.frontier.records import Added
from rove.model.urls import NewUrl
from tests.contract.harness import PostgresHarness, connected, url

INSERT = "INSERT INTO url (domain, fingerprint, url, priority, position, depth) VALUES ($1, $2, $3, 0, 0, 0)"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"
LINKS = [url(f"http://a.test/{number}") for number in range(5)]


@asynccontextmanager
async def inserting(postgres: PostgresHarness, link: NewUrl, *, ends_well: bool) -> AsyncIterator[None]:
    """Insert a URL, then commit or roll back once another transaction waits for it."""
    async with connected(postgres) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(INSERT, link.domain, link.fingerprint, link.url)
        yield
        async with asyncio.timeout(20):
            me = connection.get_server_pid()
            while not (await postgres.rows(WAITING, me))[0][0]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await (transaction.commit() if ends_well else transaction.rollback())


async def overtaken(postgres: PostgresHarness, frontier: Frontier, *, ends_well: bool = True) -> Added:
    async with inserting(postgres, LINKS[2], ends_well=ends_well):
        adding = asyncio.create_task(frontier.add([*LINKS, LINKS[0]]))
    return await adding


@pytest.mark.parametrize("ends_well", [True, False])
async def test_urls_that_another_transaction_inserted_first_are_skipped(
    postgres: PostgresHarness, ends_well: bool
) -> None:
    frontier = await postgres.open()
    added = await overtaken(postgres, frontier, ends_well=ends_well)
    assert added.unseen == 5 - ends_well
    assert (await frontier.counts()).urls_pending == 5 - ends_well
    assert await postgres.counted_pending() == {LINKS[0].domain: (5 - ends_well, 5)}
    await postgres.close()


async def test_adds_expect_conflicts_for_a_while_after_one(postgres: PostgresHarness) -> None:
    frontier = await postgres.open()
    await overtaken(postgres, frontier)
    for number in range(WARY_ADDS + 3):
        await frontier.add([url(f"http://b.test/{number}")])
    timings = postgres.database.timings.by_name
    assert timings["insert_urls"].count == 1 + 3
    assert timings["insert_urls_beside"].count == 1 + WARY_ADDS
    assert (await frontier.counts()).urls_pending == 4 + WARY_ADDS + 3
    await postgres.close()
