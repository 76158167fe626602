"""Passes on what the owner tells a crawl, by a signal or by a command, while it is prepared and while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from rove.app.runner import Runner
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir
from rove.errors import RoveError
from rove.frontier.contract import Catalog
from rove.inspect.pauses import Scope, pause_text
from rove.model.instructions import Instruction, Instructions

FILE_SECONDS = 0.5
"""How often a crawl looks for instructions in its data directory."""
CATALOG_SECONDS = 1.0
"""How often a crawl looks for instructions in its database."""

log = logging.getLogger(__name__)


class StoppedInPreparation(Exception):
    """The owner has stopped the crawl before it ran."""


@dataclass(slots=True)
class _Source:
    """The instructions of one scope."""

    options: str
    """The options of `rove unpause` that end a pause of this scope."""
    first_stop: Instruction | None = None
    """The stop that was there before this start: it was meant for an earlier one."""
    pause: Instruction | None = None


class Control:
    """What the owner wants of one start of a crawl."""

    def __init__(
        self,
        data: DataDir,
        options: dict[Scope, str],
        *,
        say: Callable[[str], None],
        file_seconds: float = FILE_SECONDS,
        catalog_seconds: float = CATALOG_SECONDS,
    ) -> None:
        """Note which stop is in the data directory already; `options` are those that choose a scope.

        Call this before the directory is locked. A command that sees the lock then knows that a new stop is obeyed.
        """
        self._data = data
        self._say = say
        self._file_seconds = file_seconds
        self._catalog_seconds = catalog_seconds
        self._sources = {scope: _Source(text) for scope, text in options.items()}
        self._runner: Runner | None = None
        self._preparation: asyncio.Task[Any] | None = None
        self.ending: Ending | None = None
        """Why the owner has stopped the crawl; None if nobody has."""
        self._begin(Scope.HERE, self._read_file())

    @property
    def is_paused(self) -> bool:
        """Whether no new visit may start."""
        return any(source.pause is not None for source in self._sources.values())

    def stop(self, ending: Ending = Ending.STOPPED) -> bool:
        """Stop the crawl or give up its preparation; only the first call counts. Return whether the crawl runs."""
        if self.ending is None:
            self.ending = ending
            if self._runner is not None:
                self._runner.stop(ending)
            elif self._preparation is not None:
                self._preparation.cancel()
        return self._runner is not None

    def kill(self) -> None:
        """Kill the worker processes, if there are any."""
        if self._runner is not None:
            self._runner.kill()

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Raise StoppedInPreparation if the crawl is stopped before or during this block."""
        if self._is_stopped():
            raise StoppedInPreparation
        task = self._preparation = asyncio.current_task()
        assert task is not None, "a crawl is prepared by a task"
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_stopped():
                raise
            task.uncancel()
            raise StoppedInPreparation from None
        finally:
            self._preparation = None

    @contextmanager
    def running(self, runner: Runner) -> Iterator[None]:
        """Let the runner obey during this block."""
        self._runner = runner
        runner.set_paused(self.is_paused)
        if self.ending is not None:
            runner.stop(self.ending)
        try:
            yield
        finally:
            self._runner = None

    async def begin_everywhere(self, catalog: Catalog) -> None:
        """Note what all machines were told before this start; call this before others can see its processes."""
        self._begin(Scope.EVERYWHERE, await catalog.instructions())

    async def follow_file(self) -> None:
        """Obey the instructions in the data directory until cancelled, whether the database can be reached or not."""
        while True:
            self._obey(Scope.HERE, self._read_file())
            await asyncio.sleep(self._file_seconds)

    async def follow_catalog(self, catalog: Catalog) -> None:
        """Obey the instructions in the database until cancelled."""
        while True:
            await asyncio.sleep(self._catalog_seconds)
            try:
                self._obey(Scope.EVERYWHERE, await catalog.instructions())
            except RoveError as error:
                log.warning("could not check for a stop or a pause: %s", error)

    def _is_stopped(self) -> bool:
        return self.ending is not None

    def _read_file(self) -> Instructions | None:
        try:
            return self._data.instructions()
        except RoveError as error:
            log.warning("could not check for a stop or a pause: %s", error)
            return None

    def _begin(self, scope: Scope, told: Instructions | None) -> None:
        source = self._sources[scope]
        source.first_stop = told.stop if told else None
        self._obey(scope, told)

    def _obey(self, scope: Scope, told: Instructions | None) -> None:
        if told is None:
            return
        source, was_paused = self._sources[scope], self.is_paused
        before, source.pause = source.pause, told.pause
        if told.pause is not None and before != told.pause:
            self._tell(f"{pause_text(told.pause, scope)}: no new visit starts until 'rove unpause {source.options}'")
        if self.is_paused is not was_paused:
            if was_paused:
                self._tell("no longer paused: visits start again")
            if self._runner is not None:
                self._runner.set_paused(self.is_paused)
        if told.stop is not None and told.stop != source.first_stop and self.ending is None:
            log.info("%s has stopped the crawl with 'rove stop'", told.stop.who)
            self.stop(Ending.TOLD_TO_STOP)

    def _tell(self, sentence: str) -> None:
        log.info("%s", sentence)
        self._say(sentence)


@asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines during a block, and cancel them at its end."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
