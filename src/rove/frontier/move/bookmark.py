"""The bookmark of a move: how far it has got, stored in the target."""

from __future__ import annotations

import msgspec

from rove.frontier.move.tables import Key
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session


class Bookmark(msgspec.Struct, frozen=True, kw_only=True):
    """How far a move has got."""

    id: str
    """Names the SQLite file."""
    state: str
    """A hash that changes when the crawl in the file goes on."""
    machine: int
    """The row of its data directory."""
    table: str
    """The table being copied, '' when all are copied."""
    after: Key | None = None
    """The key of its last row that was copied."""
    rows: dict[str, int]
    """Rows copied, by table."""
    finished: bool = False

    @property
    def text(self) -> str:
        """The bookmark as it is stored."""
        return msgspec.json.encode(self).decode()


async def read_bookmark(session: Session) -> Bookmark | None:
    """Return the bookmark of the move into this schema, None if there was no move."""
    text = await session.value("get_meta", key="move")
    return None if text is None else msgspec.json.decode(text, type=Bookmark)


async def is_moving(database: PostgresDatabase) -> bool:
    """Whether a move into this schema has begun and is not finished."""
    bookmark = await database.run("read the bookmark of a move", read_bookmark)
    return bookmark is not None and not bookmark.finished
