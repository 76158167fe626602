"""Reads the frontier on PostgreSQL, also while a crawl writes to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.counters import counts_from
from rove.frontier.postgres.claim_floor import LOWEST
from rove.frontier.postgres.contents import fetch_contents
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.explain import explain_query, query_names
from rove.frontier.postgres.session import Session
from rove.frontier.records import Node
from rove.frontier.rows.contents import content_record
from rove.frontier.rows.records import participant
from rove.frontier.rows.requests import REQUEST_COLUMNS, request_row
from rove.frontier.runs import Participant
from rove.model.counts import Counts
from rove.model.ledger import Content, RequestRow

UNKNOWN = "an unknown machine"


class PostgresTables:
    """The queries of a reader that are specific to PostgreSQL."""

    def __init__(self, database: PostgresDatabase, node_key: str = "") -> None:
        """`node_key` identifies this data directory, whose pages are not elsewhere."""
        self._database = database
        self._node_key = node_key
        self._nodes: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self.fetch = database.fetch

    async def request(self, row: Any) -> RequestRow:
        return request_row(row, await self._node(row[len(REQUEST_COLUMNS)]))

    async def counts(self) -> Counts:
        async def work(session: Session) -> Counts:
            return counts_from(
                dict(await session.fetch("counters")),
                ready=await session.value("count_ready"),
                leased=await session.value("count_leased"),
                capped=await session.value("count_capped"),
            )

        return await self._database.run("count", work)

    async def participants(self) -> list[Participant]:
        return [
            participant(f"{host}:{path}", key == self._node_key, row)
            for key, host, path, *row in await self.fetch("participants")
        ]

    async def machine_name(self, machine: int) -> str:
        if machine not in self._names:
            self._names = {
                id: Node(key=key, host=host, path=path).name for id, key, host, path in await self.fetch("machines")
            }
        return self._names.get(machine, UNKNOWN)

    async def next_due(self) -> float | None:
        rows = await self.fetch("next_due", bound=LOWEST, within=0)
        return max(0, rows[0][0]) / 1000 if rows else None

    async def domain(self, id: int) -> list[Any]:
        return await self.fetch("domain_record", id=id)

    def query_names(self) -> list[str]:
        return query_names()

    async def explain_query(self, name: str) -> list[str]:
        return await explain_query(self._database, name)

    async def now(self) -> int:
        return int(await self._database.value("now"))

    async def listed_domains(self, ids: list[int], now: int) -> list[Any]:
        return await self.fetch("listed_domains", domains=ids, now=now)

    async def queued_domains(self, ids: list[int], now: int, delay: int) -> list[Any]:
        return await self.fetch("queued_domains", domains=ids, now=now, delay=delay)

    async def queue_heads(self, ids: list[int], *, low: int, below: int, limit: int) -> list[Any]:
        return await self.fetch("queue_heads", domains=ids, low=low, below=below, limit=limit)

    async def failing_domains(self, limit: int) -> list[Any]:
        return await self.fetch("failing_domains", limit=limit)

    async def origins(self, keys: list[tuple[int, str]]) -> list[Any]:
        return await self._database.batch("origins", ("domains", "origins"), keys)

    async def known_urls(self, keys: Sequence[tuple[int, int]]) -> list[Any]:
        return await self._database.batch("known_urls", ("domains", "fingerprints"), keys)

    async def roots(self, domains: list[int]) -> list[Any]:
        return await self.fetch("roots", domains=domains)

    async def known_domains(self, ids: list[int]) -> list[Any]:
        return await self.fetch("known_domains", domains=ids)

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        rows = await fetch_contents(self._database, hashes)
        return {row[0]: content_record(row, await self._node(row[-1])) for row in rows}

    async def copy_counts(self, hashes: list[int]) -> list[Any]:
        return await self.fetch("copy_counts", hashes=hashes)

    async def depths(self, keys: list[tuple[int, int]]) -> list[Any]:
        return await self._database.batch("depths", ("domains", "fingerprints"), keys)

    async def _node(self, machine: int) -> str:
        """Return the host and path of a node, '' for this one."""
        if machine not in self._nodes:
            self._nodes = {
                id: "" if key == self._node_key else f"{host}:{path}"
                for id, key, host, path in await self.fetch("machines")
            }
        return self._nodes.get(machine, UNKNOWN)
