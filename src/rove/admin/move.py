"""Taking a stopped crawl from its data directory's SQLite file to a PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import machine_of, remote_for_move
from rove.frontier.move.mover import Moved, move


async def relocate(
    data: DataDir, url: str, crawl_name: str | None, *, say: Callable[[str], None]
) -> Moved:
    """Copy the frontier, then have the data directory belong to the copy; may be killed and done again."""
    if not data.frontier.exists() and data.moved.exists():
        raise UsageError(f"{data.root} was moved already; go on with 'rove crawl --resume'")
    if not data.frontier.exists():
        raise UsageError(f"{data.root} holds no crawl in SQLite to move")
    with data.held():
        await data.wait_for_workers(say)
        remote = remote_for_move(data, url, crawl_name)
        moved = await move(
            data.frontier, remote.url, remote.crawl_name, machine_of(data, remote), say=say
        )
        data.remember(remote)
        data.set_frontier_aside()
    return moved
