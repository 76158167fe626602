"""Decides where a move starts: from nothing, from the bookmark of an earlier start, or not at all."""

from __future__ import annotations

from collections.abc import Callable

from rove.errors import UsageError
from rove.frontier.move.bookmark import Bookmark, read_bookmark
from rove.frontier.move.source import Source
from rove.frontier.move.tables import TABLES
from rove.frontier.move.target import fetch
from rove.frontier.postgres.session import Session
from rove.frontier.records import Node


async def start_or_resume(
    session: Session, source: Source, node: Node, target: str, say: Callable[[str], None]
) -> Bookmark:
    """Return the bookmark to resume from, or a new one; UsageError if the target holds something else.

    `target` is how messages call it.
    """
    bookmark = await read_bookmark(session)
    has_settings = await session.value("get_meta", key="settings") is not None
    if bookmark is None or bookmark.id != source.id:
        await _check_empty(session, bookmark, has_settings, target)
        return await _start(session, source, node)
    has_gone_on = bookmark.state != source.state
    if bookmark.finished and has_gone_on:
        raise UsageError(
            f"{target} is an earlier copy of this crawl, which has gone on here since; choose another --crawl-name"
        )
    if has_settings and not bookmark.finished:
        raise UsageError(
            f"{target} was started before the move of this crawl was finished; choose another --crawl-name"
        )
    if has_gone_on:
        say("the crawl has gone on since its move was interrupted; moving all of it again")
        await fetch(session.connection, "clear")
        return await _start(session, source, node)
    await _rename_machine(session, bookmark, node)
    return bookmark


async def _check_empty(session: Session, bookmark: Bookmark | None, has_settings: bool, target: str) -> None:
    if bookmark is not None and not bookmark.finished:
        raise UsageError(f"{target} is an unfinished move of another crawl; choose another --crawl-name")
    if has_settings or (await fetch(session.connection, "holds_rows"))[0][0]:
        raise UsageError(f"{target} exists already; choose another --crawl-name for this one")


async def _start(session: Session, source: Source, node: Node) -> Bookmark:
    machine = await session.value("this_machine", key=node.key, host=node.host, path=node.path)
    bookmark = Bookmark(id=source.id, state=source.state, machine=machine, table=TABLES[0].name, rows={})
    await session.fetch("set_meta", key="move", value=bookmark.text)
    return bookmark


async def _rename_machine(session: Session, bookmark: Bookmark, node: Node) -> None:
    """Update the row of the data directory, whose key or path may have changed since the earlier start."""
    connection, machine = session.connection, bookmark.machine
    if not bookmark.finished:
        await fetch(connection, "forget_other_machine", key=node.key, machine=machine)
    await fetch(connection, "rename_machine", key=node.key, host=node.host, path=node.path, machine=machine)
