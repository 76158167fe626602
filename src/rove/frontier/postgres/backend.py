"""A crawl in a schema of a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rove.errors import UsageError
from rove.frontier.contract import MovedContent, Node, Policy
from rove.frontier.dsn import redacted
from rove.frontier.move.bookmark import is_moving
from rove.frontier.postgres.catalog import PostgresCatalog
from rove.frontier.postgres.contents import forget_contents, place_contents
from rove.frontier.postgres.database import Database
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.reader import PostgresReader
from rove.frontier.rows import place_values
from rove.model.ledger import Location, RequestRow

ALIVE_MS = 15_000
"""A process that was seen within this time is taken to be alive."""
_PLACE = (
    *("visit", "seq", "text_file", "text_offset", "text_length"),
    *("raw_file", "raw_offset", "raw_length", "is_copy"),
)


class PostgresBackend:
    """The step to many machines."""

    def __init__(
        self,
        url: str,
        schema: str,
        machine: Node,
        *,
        register: bool = True,
        on_news: Callable[[str], None] | None = None,
    ) -> None:
        """`register`: this machine takes part; `on_news` is told when the server goes away and comes back."""
        self._database = Database(url, schema)
        if on_news is not None:
            self._database.on_news = on_news
        self._machine = machine if register else None
        self._machine_id = 0
        self.place = f"the schema {schema!r} of {redacted(url)}"
        self.catalog = PostgresCatalog(self._database, lambda: self._machine_id)
        self.reader = PostgresReader(self._database, machine.key)

    async def exists(self) -> bool:
        return await self._database.holds_schema()

    async def open(self, *, create: bool = False) -> None:
        await self._database.open(create=create)
        if await is_moving(self._database):
            raise UsageError(f"a move into {self.place} is not finished; run 'rove move' again")
        machine = self._machine
        if machine is not None and not self._machine_id:
            await self._refuse_copy(machine)
            self._machine_id = await self._database.run(
                "name this machine",
                lambda session: session.value(
                    "this_machine", key=machine.key, host=machine.host, path=machine.path
                ),
            )

    async def _refuse_copy(self, machine: Node) -> None:
        found = await self._database.run(
            "look for a copy of this machine",
            lambda session: session.fetch(
                "same_machine_elsewhere",
                key=machine.key,
                host=machine.host,
                path=machine.path,
                alive_ms=ALIVE_MS,
            ),
        )
        for host, path in found:
            raise UsageError(
                f"{machine.path} is a copy of the data directory {host}:{path}, which is crawling; "
                "use a new one with 'rove join'"
            )

    async def begin_run(self) -> int:
        run: int = await self._database.run(
            "begin a run", lambda session: session.value("begin_run", wall=time.time())
        )
        return run

    async def begin(self, policy: Policy, run: int | None) -> PostgresFrontier:
        assert self._machine_id, "a process that crawls has a data directory"
        frontier = PostgresFrontier(self._database, policy, self._machine_id)
        await frontier.begin(run)
        return frontier

    async def place_again(self, rows: Sequence[RequestRow]) -> None:
        columns = [list(column) for column in zip(*map(place_values, rows), strict=True)]
        if columns:
            values = dict(zip(_PLACE, columns, strict=True))
            await self._database.run(
                "place pages again", lambda session: session.fetch("place_again", **values)
            )

    async def place_contents(self, moved: Sequence[MovedContent]) -> None:
        await place_contents(self._database, self._machine_id, moved)

    async def forget_contents(self, places: Sequence[tuple[int, Location]]) -> None:
        await forget_contents(self._database, self._machine_id, places)

    async def close(self) -> None:
        await self._database.close()
