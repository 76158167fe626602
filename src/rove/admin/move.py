"""`rove move`: copy a stopped crawl to PostgreSQL, then point its data directory at the copy.

`rove.frontier.move` copies the rows. This module locks the data directory around that and switches it over.
"""

from __future__ import annotations

from collections.abc import Callable

from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import node_of, remote_for_move
from rove.frontier.move.mover import move


async def move_to_postgres(
    data: DataDir, url: str, crawl_name: str | None, *, say: Callable[[str], None]
) -> dict[str, int]:
    """Copy the frontier and let the data directory use the copy. If it is killed, the next call resumes it."""
    if not data.frontier.exists() and data.moved.exists():
        raise UsageError(f"{data.root} was moved already; continue it with 'rove crawl --resume'")
    if not data.frontier.exists():
        raise UsageError(f"{data.root} holds no crawl in SQLite to move")
    with data.held():
        await data.wait_for_workers(say)
        remote = remote_for_move(data, url, crawl_name)
        moved = await move(data.frontier, remote.url, remote.crawl_name, node_of(data, remote), say=say)
        data.remember(remote)
        data.set_frontier_aside()
    return moved
