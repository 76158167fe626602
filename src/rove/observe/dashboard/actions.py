"""What the owner can do from the page. Each action runs the code of the command with its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from rove.admin import control
from rove.admin import exclude as exclusions
from rove.admin import retry as retrying
from rove.admin.control import Machines, Obeyed
from rove.admin.maintenance import CrawlNamed
from rove.admin.preview import preview
from rove.errors import UsageError
from rove.inspect.lookup import domain_given
from rove.notation.humanize import counted
from rove.observe.dashboard.watched import WatchedCrawl
from rove.policy.coverage import coverage_text
from rove.policy.exclusions import is_public_suffix, parse_pattern
from rove.policy.retry_filter import RetryFilter

PATIENCE_SECONDS = 15.0
"""How long an action waits until the crawl has obeyed."""


class Patterns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Domains to exclude or include, as a person wrote them."""

    domains: Sequence[str]
    reason: str = ""
    suffixes: bool = False
    """Accept a public suffix such as `com`, which covers every domain below it."""

    def parsed(self) -> dict[str, str]:
        """Return what was written by its pattern; raise UsageError if that is nothing or too much."""
        given = {parse_pattern(text): text for text in self.domains if text.strip()}
        if not given:
            raise UsageError("no domain is given")
        for pattern in given:
            if is_public_suffix(pattern) and not self.suffixes:
                raise UsageError(f"{pattern} is a public suffix, which covers every domain below it; confirm that")
        return given


class Retry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which failed URLs to try again."""

    error: str = ""
    status: int | None = None
    domain: str = ""
    seeds: bool = False


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which machines to control."""

    all_machines: bool = False


class Actions:
    """The actions on one crawl, one at a time."""

    def __init__(self, crawl: CrawlNamed, watched: WatchedCrawl, *, ending: asyncio.Event) -> None:
        """`ending` is set when the dashboard ends."""
        self._crawl = crawl
        self._watched = watched
        self._ending = ending
        self._turn = asyncio.Lock()

    async def preview(self, given: Patterns) -> dict[str, Any]:
        """Tell what an exclusion would match."""
        patterns = given.parsed()
        async with self._watched.reading() as archive:
            found = await preview(archive.reader, list(patterns), await archive.form())
        return {
            "covers": [coverage_text(pattern, text) for pattern, text in patterns.items()],
            "domains": [
                {"name": match.name, "pending": match.pending, "whole": match.is_whole} for match in found.matches
            ],
            "more": found.has_more,
            "pending": found.pending,
            "note": "Single hosts of other domains may match too." if found.hosts_are_unknown else None,
        }

    async def exclude(self, given: Patterns) -> dict[str, Any]:
        """Never contact some domains again."""
        patterns = given.parsed()
        async with self._turn:
            done = await exclusions.exclude(self._crawl, list(patterns), given.reason)
        says = "; ".join(coverage_text(pattern, text) for pattern, text in patterns.items())
        return {
            "says": f"excluded: {says}; {counted(done.urls, 'URL')} left the queue",
            "new": list(done.new),
            "urls": done.urls,
        }

    async def include(self, given: Patterns) -> dict[str, Any]:
        """Lift exclusions."""
        patterns = given.parsed()
        async with self._turn:
            urls = await exclusions.include(self._crawl, list(patterns))
        says = "; ".join(coverage_text(pattern, text) for pattern, text in patterns.items())
        return {"says": f"included: {says}; {counted(urls, 'URL')} pending again", "urls": urls}

    async def retry(self, given: Retry) -> dict[str, Any]:
        """Make failed URLs pending again."""
        name = domain_given(given.domain) if given.domain else ""
        wanted = RetryFilter(error=given.error, status=given.status, domain_name=name, only_seeds=given.seeds)
        async with self._turn:
            done = await retrying.retry(self._crawl, wanted, say=lambda _: None)
        excluded = f"; {counted(done.excluded, 'URL')} left alone: excluded" if done.excluded else ""
        return {"says": f"{counted(done.urls, 'URL')} to be tried again{excluded}", "urls": done.urls}

    async def pause(self, given: Control) -> dict[str, Any]:
        """Let no new visit start."""

        async def work(machines: Machines) -> str:
            obeyed = await control.pause(machines, patience=PATIENCE_SECONDS)
            flying = counted(obeyed.in_flight, "visit")
            return _obeyed(obeyed, f"paused: no new visit starts; {flying} in flight may finish", "paused")

        return await self._control(given, work)

    async def unpause(self, given: Control) -> dict[str, Any]:
        """End a pause."""

        async def work(machines: Machines) -> str:
            obeyed = await control.unpause(machines, patience=PATIENCE_SECONDS)
            return _obeyed(obeyed, "no longer paused: visits start again", "no longer paused")

        return await self._control(given, work)

    async def stop(self, given: Control) -> dict[str, Any]:
        """Stop the crawl."""

        async def work(machines: Machines) -> str:
            obeyed = await control.stop(machines, patience=PATIENCE_SECONDS, on_told=lambda: None)
            return _obeyed(obeyed, "stopped", "stopped")

        return await self._control(given, work)

    async def _control(self, given: Control, work: Callable[[Machines], Coroutine[Any, Any, str]]) -> dict[str, Any]:
        crawl = self._crawl
        named = control.machines_given(
            crawl.data_dir, crawl.frontier, crawl.crawl_name, all_machines=given.all_machines
        )
        async with self._turn, named as machines:
            return {"says": await self._while_here(work(machines))}

    async def _while_here(self, work: Coroutine[Any, Any, str]) -> str:
        """Return the result of work, but do not wait for it when the dashboard ends: the crawl may wait for that."""
        working, ending = asyncio.create_task(work), asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else "told; this dashboard ends with the crawl"
        finally:
            working.cancel()
            ending.cancel()


def _obeyed(obeyed: Obeyed, sentence: str, state: str) -> str:
    if not obeyed.was_running:
        return f"{state}; the crawl is not running"
    if obeyed.late:
        return f"told; not {state} yet: {', '.join(obeyed.late)}"
    return sentence
