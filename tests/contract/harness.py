"""What the contract tests need of every frontier: to be opened with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rove.frontier.contract import Frontier, FrontierReader, Policy
from rove.frontier.sqlite import SqliteFrontier
from rove.frontier.sqlite_database import Database
from rove.frontier.sqlite_reader import SqliteReader
from rove.model import (
    Deferred,
    Lease,
    NewUrl,
    RequestKind,
    RequestRow,
    Settled,
    UrlState,
    VisitResult,
)
from rove.url import canonical

DELAY = 70.0
BUDGET = 180.0
START = 1_700_000_000_000


class SqliteHarness:
    """The embedded frontier under a fake clock."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "frontier.sqlite"
        self._now = START
        self._databases: list[Database] = []

    async def open(
        self,
        *,
        delay: float = DELAY,
        budget: float = BUDGET,
        max_pages_per_domain: int | None = None,
        limits_epoch: int = 0,
    ) -> Frontier:
        """A frontier on the harness's database, as one more process would open it."""
        database = Database(self._path)
        self._databases.append(database)
        await database.open(create=True)
        policy = Policy(
            delay=delay,
            budget=budget,
            max_pages_per_domain=max_pages_per_domain,
            limits_epoch=limits_epoch,
        )
        frontier = SqliteFrontier(database, policy, clock=lambda: self._now)
        await frontier.begin()
        return frontier

    def reader(self) -> FrontierReader:
        """A reader of what was last opened."""
        return SqliteReader(self._databases[-1])

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += round(seconds * 1000)

    async def close(self) -> None:
        """Close everything."""
        for database in self._databases:
            await database.close()

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        """Of each domain with any: its kept count of pending URLs, and the rows counted."""
        sql = (
            "SELECT d.id, d.pending, count(u.domain) FROM domain d "
            "LEFT JOIN url u ON u.domain = d.id AND u.state = 0 GROUP BY d.id"
        )
        database = self._databases[-1]
        rows = await database.run(lambda: database._connection.execute(sql).fetchall())
        return {domain: (kept, counted) for domain, kept, counted in rows}


Harness = SqliteHarness


def url(text: str, depth: int = 0, **more: object) -> NewUrl:
    """A URL to add."""
    found = canonical(text)
    assert found is not None
    return found.offer(depth=depth, **more)  # type: ignore[arg-type]


def page_row(lease: Lease, text: str, seq: int = 0, **more: object) -> RequestRow:
    """A request that the visit made."""
    found = canonical(text)
    assert found is not None
    return RequestRow(
        visit=lease.token,
        seq=seq,
        domain=found.domain,
        kind=RequestKind.PAGE,
        url=found.text,
        fingerprint=found.fingerprint,
        started=1.0,
        finished=2.0,
        **more,  # type: ignore[arg-type]
    )


def visited(
    lease: Lease,
    *states: UrlState,
    asked: bool = True,
    since_finish: float = 0.0,
    deferred: Sequence[Deferred] = (),
    requests: Sequence[RequestRow] = (),
) -> VisitResult:
    """A visit that settles the lease's first URLs, one for each state given."""
    settled = [
        Settled(fingerprint=pending.fingerprint, state=state)
        for pending, state in zip(lease.urls, states, strict=False)
    ]
    return VisitResult(
        lease=lease,
        asked=asked,
        since_finish=since_finish,
        settled=settled,
        deferred=deferred,
        requests=requests,
    )
