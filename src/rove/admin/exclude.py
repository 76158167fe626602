"""`rove exclude` and `rove include`: record an exclusion or lift it, and apply that to the frontier."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rove.admin.apply_exclusions import POLL_SECONDS, block_covered, reopen_covered
from rove.config import settings_from_json
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import opened_backend, policy_of
from rove.frontier.contract import Backend, Frontier
from rove.frontier.records import Exclusion
from rove.inspect.nodes import is_running
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


async def exclude(data_dir: Path, patterns: Sequence[str], reason: str) -> Excluded:
    """Stop fetching the hosts that patterns cover, on all machines, and take their pending URLs out of the queue."""
    data = DataDir(data_dir)
    async with opened_backend(data) as backend:
        new = await backend.catalog.add_exclusions(patterns, who=current_user(), reason=reason)
        frontier = await _opened_frontier(backend)
        urls = await block_covered(frontier, patterns)
        running = await is_running(data, backend.reader)
        if running:
            # Until they have read the exclusion, the processes of the crawl may still add URLs.
            await asyncio.sleep(SPREAD_SECONDS)
            urls += await block_covered(frontier, patterns)
        return Excluded(new=new, urls=urls, is_running=running)


async def include(data_dir: Path, patterns: Sequence[str]) -> int:
    """Lift exclusions; return how many URLs are pending again."""
    data = DataDir(data_dir)
    async with opened_backend(data) as backend:
        known = set(await backend.catalog.exclusions())
        unknown = [pattern for pattern in patterns if pattern not in known]
        if unknown:
            raise UsageError(_not_excluded(unknown[0], Exclusions(known)))
        await backend.catalog.lift_exclusions(patterns, who=current_user())
        frontier = await _opened_frontier(backend)
        remaining = Exclusions(await backend.catalog.exclusions())
        running = await is_running(data, backend.reader)
        if running:
            # A process that still knows the exclusion would block the URLs again.
            await asyncio.sleep(SPREAD_SECONDS)
        reopened = await reopen_covered(frontier, patterns, remaining)
        if running:
            await asyncio.sleep(SPREAD_SECONDS)
            await reopen_covered(frontier, patterns, remaining)
        return reopened


async def exclusion_history(data_dir: Path) -> list[Exclusion]:
    """Return all exclusions of a crawl, lifted ones too."""
    async with opened_backend(DataDir(data_dir), read_only=True) as backend:
        return await backend.catalog.exclusion_history()


def current_user() -> str:
    """Return who runs this command and where, to be recorded with an exclusion."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


async def _opened_frontier(backend: Backend) -> Frontier:
    settings = await backend.catalog.settings()
    assert settings is not None, "a crawl that was opened has settings"
    return await backend.begin(policy_of(settings_from_json(settings)), None)


def _not_excluded(pattern: str, known: Exclusions) -> str:
    covering = known.covering(pattern.removeprefix("="))
    if covering is not None:
        return f"{pattern} is excluded by the pattern {covering}; include that instead"
    return f"{pattern} is not excluded; see 'rove exclude --list'"
