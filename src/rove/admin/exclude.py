"""`rove exclude` and `rove include`: record an exclusion or lift it, and apply that to the frontier."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rove.admin.apply_exclusions import POLL_SECONDS, block_covered, reopen_covered
from rove.admin.maintenance import CrawlNamed, maintained
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import opened_backend, remote_to_read
from rove.frontier.records import Exclusion
from rove.frontier.sanitize import storable
from rove.policy.exclusions import Exclusions

SPREAD_SECONDS = 2 * POLL_SECONDS
"""After this time every process of a running crawl has read the new exclusions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """The result of `exclude`."""

    new: Sequence[str]
    """The patterns that were not excluded before."""
    urls: int
    """URLs that left the queue."""
    is_running: bool


async def exclude(crawl: CrawlNamed, patterns: Sequence[str], reason: str) -> Excluded:
    """Stop fetching the hosts that patterns cover, on all machines, and take their pending URLs out of the queue."""
    async with maintained(crawl) as opened:
        new = await opened.backend.catalog.add_exclusions(patterns, who=current_user(), reason=reason)
        urls = await block_covered(opened.frontier, patterns, opened.form)
        running = await opened.is_running()
        if running:
            # Until they have read the exclusion, the processes of the crawl may still add URLs.
            await asyncio.sleep(SPREAD_SECONDS)
            urls += await block_covered(opened.frontier, patterns, opened.form)
        return Excluded(new=new, urls=urls, is_running=running)


async def include(crawl: CrawlNamed, patterns: Sequence[str]) -> int:
    """Lift exclusions; return how many URLs are pending again."""
    async with maintained(crawl) as opened:
        catalog = opened.backend.catalog
        known = set(await catalog.exclusions())
        unknown = [pattern for pattern in patterns if pattern not in known]
        if unknown:
            raise UsageError(_not_excluded(unknown[0], Exclusions(known)))
        await catalog.lift_exclusions(patterns, who=current_user())
        remaining = Exclusions(await catalog.exclusions())
        running = await opened.is_running()
        if running:
            # A process that still knows the exclusion would block the URLs again.
            await asyncio.sleep(SPREAD_SECONDS)
        reopened = await reopen_covered(opened.frontier, patterns, remaining, opened.form)
        if running:
            await asyncio.sleep(SPREAD_SECONDS)
            await reopen_covered(opened.frontier, patterns, remaining, opened.form)
        return reopened


async def exclusion_history(crawl: CrawlNamed, *, on_news: Callable[[str], None]) -> list[Exclusion]:
    """Return all exclusions of a crawl, lifted ones too."""
    data = DataDir(crawl.data_dir)
    remote = remote_to_read(data, crawl.frontier, crawl.crawl_name)
    async with opened_backend(data, remote=remote, read_only=True, on_news=on_news) as backend:
        return await backend.catalog.exclusion_history()


def current_user() -> str:
    """Return who runs this command and where, to be recorded with an exclusion."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return storable(f"{name}@{socket.gethostname()}")


def _not_excluded(pattern: str, known: Exclusions) -> str:
    covering = known.covering(pattern.removeprefix("="))
    if covering is not None:
        return f"{pattern} is excluded by the pattern {covering}; include that instead"
    return f"{pattern} is not excluded; see 'rove exclude --list'"
