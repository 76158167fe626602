"""The numbers of a crawl that runs in other processes, read from its database for `rove watch`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace

import msgspec

from rove.app.panel_view import View, left_text
from rove.crawl.progress import Counters, ceiling_share
from rove.errors import RoveError
from rove.inspect.open_crawl import Archive
from rove.inspect.pauses import pause_text
from rove.inspect.status import Status, read_status
from rove.model.reasons import PauseCause
from rove.model.request_counts import counters_of

PATIENCE = 5.0
"""Seconds after which a database that does not answer is said to be away."""
COPY_SECONDS = 10.0
COPY_SHARE = 20
"""A temporary copy of a database is replaced after COPY_SECONDS, and after this many times as long as it took."""
SILENT = "the database does not answer; the numbers are those of a moment ago"

Opening = Callable[[Callable[[str], None]], AbstractAsyncContextManager[Archive]]
"""Opens the crawl; the argument is told what the user should know."""


class WatchedCrawl:
    """Collects the view of a crawl from its database alone."""

    def __init__(
        self,
        opening: Opening,
        *,
        on_news: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        """`on_news` shows a sentence to the user."""
        self._opening = opening
        self._on_news = on_news
        self._clock = clock
        self._patience = patience
        self._stack = AsyncExitStack()
        self._archive: Archive | None = None
        self._last: View | None = None
        self._has_news = False
        self._reopen_at = float("inf")
        self.status: Status | None = None
        """The state of the crawl at the last look."""

    async def close(self) -> None:
        """Close the database."""
        await self._stack.aclose()

    async def view(self) -> View | None:
        """Return the current numbers; None if the crawl does not run (any more)."""
        try:
            archive = await self._opened()
            async with asyncio.timeout(self._patience):
                view = await self._read(archive)
        except TimeoutError as error:
            if self._last is None:
                raise RoveError("the database does not answer") from error
            return _with_trouble(self._last, PauseCause.DATABASE, SILENT)
        except RoveError as error:
            if self._last is None:
                raise
            return _with_trouble(self._last, PauseCause.DATABASE, str(error))
        self._last = view
        return view

    async def _read(self, archive: Archive) -> View | None:
        told = await archive.instructions()
        status = self.status = await read_status(archive.reader, archive.catalog, in_use=archive.in_use, told=told)
        if not status.running:
            return None
        counts = status.counts
        limits = (await archive.settings()).limits
        pauses = "; ".join(pause_text(pause, scope) for scope, pause in status.pauses.items())
        is_waiting = not (status.in_flight or counts.domains["ready"] or counts.domains["leased"])
        return View(
            counters=Counters(
                pages=counts.pages,
                bytes=counts.bytes,
                visits=counts.leases,
                in_flight=status.in_flight,
                at_once=status.at_once,
                held_by=Counter(status.held_by),
                request_counters=counters_of(counts.request_counts),
                troubles={PauseCause.OPERATOR: pauses} if pauses else {},
            ),
            counts=counts,
            rate=status.rate,
            average=counts.pages / status.elapsed if status.elapsed else 0.0,
            share=ceiling_share(counts.domains),
            next_visit=await archive.reader.next_due() if is_waiting else None,
            left=left_text(
                seconds=limits.seconds_left(status.elapsed), pages=limits.pages_left(counts.pages), rate=status.rate
            ),
            seconds=max((process.since for process in status.alive), default=0.0),
            is_whole_crawl=True,
            limiting=status.limiting,
        )

    async def _opened(self) -> Archive:
        """Return the crawl, opened once; a temporary copy, which shows one moment only, again from time to time."""
        if self._archive is None or self._clock() >= self._reopen_at:
            self._archive = None
            await self._stack.aclose()
            began, self._has_news = self._clock(), False
            self._archive = await self._stack.enter_async_context(self._opening(self._note))
            took = self._clock() - began
            # A reader that has something to say when it opens has made a copy.
            self._reopen_at = began + max(COPY_SECONDS, COPY_SHARE * took) if self._has_news else float("inf")
        return self._archive

    def _note(self, sentence: str) -> None:
        self._has_news = True
        if self._last is None:  # a copy that replaces another one is no news
            self._on_news(sentence)


def _with_trouble(view: View, cause: str, sentence: str) -> View:
    troubles = view.counters.troubles | {cause: sentence}
    return replace(view, counters=msgspec.structs.replace(view.counters, troubles=troubles))
