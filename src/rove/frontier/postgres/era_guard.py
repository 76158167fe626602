"""Checks at every new connection whether the PostgreSQL server is the one that this crawl knows, and has lost nothing.

A standby that is promoted has a higher timeline. The first process that notices begins a new era under a lock: visit
numbers jump, and every domain rests, because the last claims may be lost. A server with a lower timeline, or another
system, is refused.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import asyncpg

from rove.errors import StaleDatabase
from rove.frontier.era_file import EraFile
from rove.frontier.eras import JUMP, LOST, Era, Past, Server, compare
from rove.frontier.postgres.session import Session

_UNREADABLE = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedFunctionError,
    asyncpg.FeatureNotSupportedError,
    asyncpg.ObjectNotInPrerequisiteStateError,
)
"""Errors of managed servers that do not show their timeline or system identifier."""
_BEGINS_ERA = (Past.FIRST, Past.PROMOTED, Past.OLDER)
_NEWS = {
    Past.PROMOTED: "the database was promoted from a standby",
    Past.OLDER: "the database is older than this data directory",
}
_NO_LIMITS: Mapping[str, int] = {"earliest": -(1 << 62), "ceiling": 1 << 62}

log = logging.getLogger(__name__)


class EraGuard:
    """Knows the era of the database, as one process has seen it."""

    def __init__(
        self, schema: str, location: str, file: EraFile, on_news: Callable[[str], None], *, only_refuses: bool = False
    ) -> None:
        """`on_news` is called when an era begins. With `only_refuses`, nothing is written or remembered."""
        self._only_refuses = only_refuses
        self._schema = schema
        self._location = location
        self.file = file
        self._on_news = on_news
        self.limits: Callable[[], Mapping[str, int]] = lambda: _NO_LIMITS
        """Returns what this process knows of the crawl's time."""
        self.era: Era | None = None
        self.changes = 0
        """How often the era has changed since this process began."""

    async def check(self, session: Session) -> None:
        """Compare the server with what is known; begin an era if it may have lost something.

        Raise StaleDatabase for a server that must not be used.
        """
        if await session.value("is_standby"):
            if self._only_refuses:
                return
            raise asyncpg.ReadOnlySQLTransactionError("it is a standby, which is read-only")
        server = await read_server(session)
        self.file.reread()
        past, eras = await self._compare(session, server)
        if past in _BEGINS_ERA and not self._only_refuses:
            async with session.connection.transaction():
                await session.fetch("advisory_lock", name=f"rove era {self._schema}")
                past, eras = await self._compare(session, server)  # another process may have been first
                if past in _BEGINS_ERA:
                    eras.append(await self._begin(session, server, has_lost=past is not Past.FIRST))
        if past in (Past.FOREIGN, Past.BEHIND):
            raise StaleDatabase(self._refusal(past, server, eras))
        if self._only_refuses:
            return
        self._enter(eras[-1], crawl=eras[0].id)
        if past in _NEWS:
            self._on_news(_NEWS[past] + LOST)

    async def _compare(self, session: Session, server: Server) -> tuple[Past, list[Era]]:
        rows = await session.fetch("eras")
        eras = [Era(id, Server(system, timeline), rest_from) for id, system, timeline, rest_from in rows]
        # A role that may read the tables need not be allowed to read the sequences.
        visits: int = self.file.known.visits if self._only_refuses else await session.value("visits_given")
        return compare(server, eras, visits, self.file.known), eras

    async def _begin(self, session: Session, server: Server, *, has_lost: bool) -> Era:
        id = secrets.token_hex(8)
        system, timeline = server
        rest_from: int | None = await session.value(
            "begin_era", id=id, system=system, timeline=timeline, rests=has_lost, **self.limits()
        )
        if has_lost:
            await session.fetch("jump_numbers", visits=self.file.known.visits, jump=JUMP)
        return Era(id, server, rest_from)

    def _enter(self, era: Era, *, crawl: str) -> None:
        """Note the era that the database is in."""
        before, self.era = self.era, era
        self.file.note_era(era, crawl=crawl)
        if before is not None and before.id != era.id:
            self.changes += 1
            self.file.save()
            log.warning("the database is in a new era, on timeline %d", era.server.timeline)

    def _refusal(self, past: Past, server: Server, eras: list[Era]) -> str:
        known = self.file.known
        seen = max([era.server.timeline for era in eras] + [known.timeline])
        if past is Past.BEHIND:
            return (
                f"{self._location} is on a former primary (timeline {server.timeline}; this crawl has been on timeline "
                f"{seen}), so it lacks what happened since; give the URL of the current primary with --frontier"
            )
        return (
            f"{self._location} is on another PostgreSQL server (system {server.system}) than the crawl; give the URL "
            f"of the right one with --frontier, or, if you restored the crawl here on purpose, run "
            f"'DELETE FROM \"{self._schema}\".era' and start again"
        )


async def read_server(session: Session) -> Server:
    """Return what identifies a primary, as far as it shows it."""
    timeline = await _shown(session, "timeline")
    return Server(await _shown(session, "system_identifier") or "", int(timeline, 16) if timeline else 0)


async def _shown(session: Session, query: str) -> Any:
    try:
        return await session.value(query)
    except _UNREADABLE as error:
        log.debug("the server does not show its %s: %s", query, error)
        return None
