"""Every statement of rove can be explained, and nothing is different afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest

from rove.errors import FrontierError, UsageError
from rove.model.ledger import RequestKind
from rove.model.urls import UrlState
from tests.contract.harness import DELAY, Harness, PostgresHarness, page_row, url, visited

DONE = UrlState.DONE
TABLES = ("counter", "domain", "meta", "origin", "request", "url")


async def crawled(harness: Harness) -> None:
    """Crawl enough that every kind of parameter can be taken from the crawl. A URL has a text that needs quotes."""
    frontier = await harness.open()
    await frontier.add([url(f"http://n{number}.test/it's/{page}") for number in range(70) for page in range(2)])
    leases = await frontier.claim(5)
    rows = [page_row(lease, lease.urls[0].url).replace(content_hash=1, kind=RequestKind.PAGE) for lease in leases]
    await frontier.settle([visited(lease, DONE, requests=[row]) for lease, row in zip(leases, rows, strict=True)])
    harness.advance(DELAY / 2)
    await frontier.claim(3)


async def contents(harness: Harness) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for table in TABLES:
        rows += sorted(await harness.statement(f"SELECT * FROM {table}"), key=str)
    return rows


async def test_every_statement_can_be_explained_and_changes_nothing(harness: Harness) -> None:
    await crawled(harness)
    before = await contents(harness)
    reader = harness.reader()
    names = reader.query_names()
    assert len(names) > 50 and {"settle_urls", "raise_pending", "next_due", "domains_in_slice"} <= set(names)
    for name in names:
        assert await reader.explain_query(name), name
    assert await contents(harness) == before
    with pytest.raises(UsageError, match="no statement 'nonsense'"):
        await reader.explain_query("nonsense")


async def test_statements_run_with_parameters_of_the_crawl(postgres: PostgresHarness) -> None:
    await crawled(postgres)
    numbers = await postgres.rows("SELECT last_value FROM visit_number UNION ALL SELECT last_value FROM add_number")
    reader = postgres.reader()
    for name, node in {"settle_urls": "url_pkey", "lease": "domain_due", "head_urls": "url_pending"}.items():
        plan = "\n".join(await reader.explain_query(name))
        assert node in plan and "Buffers" in plan and "actual time" in plan, plan
        assert "rows=0 " not in plan.splitlines()[0] or name == "settle_urls", f"{name} finds rows of the crawl"
    after = await postgres.rows("SELECT last_value FROM visit_number UNION ALL SELECT last_value FROM add_number")
    assert numbers == after, "a rollback would not give numbers back"


async def test_a_locked_row_is_not_waited_for(postgres: PostgresHarness) -> None:
    await crawled(postgres)
    connection = await asyncpg.connect(postgres.url)
    try:
        async with connection.transaction():
            await connection.execute(f'SELECT * FROM "{postgres.schema}".domain FOR UPDATE')
            async with asyncio.timeout(20):
                with pytest.raises(FrontierError, match="has locked"):
                    await postgres.reader().explain_query("lock_domains")
    finally:
        await connection.close()
    assert await postgres.reader().explain_query("lock_domains"), "the connection can still be used"
