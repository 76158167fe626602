"""The file in which a data directory remembers its database. No error in writing it stops the crawl."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from rove.frontier.clock import steady_seconds
from rove.frontier.eras import Era, Remembered

WRITE_SECONDS = 10.0
"""Minimum interval between two writes of the visit number."""

log = logging.getLogger(__name__)


class EraFile:
    """What this process and its data directory remember. Without a path, only the process does."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = steady_seconds) -> None:
        self._path = path
        self._clock = clock
        self._written_at = float("-inf")
        self._must_write = False
        self.known = self._read()

    def reread(self) -> None:
        """Learn of an era that another process of the directory has seen."""
        saved = self._read()
        if saved.crawl == self.known.crawl and saved.timeline > self.known.timeline:
            visits = max(saved.visits, self.known.visits)
            self.known = msgspec.structs.replace(saved, visits=visits)

    def note_era(self, era: Era, *, crawl: str) -> None:
        """Remember the era of the database; `crawl` is its first one. `save` writes it to the file."""
        known = self.known if self.known.crawl in ("", crawl) else Remembered()
        if era.id != known.era:
            system, timeline = era.server
            self._must_write = True
            self.known = Remembered(crawl=crawl, era=era.id, system=system, timeline=timeline, visits=known.visits)

    def note_visits(self, visits: int) -> None:
        """Remember a visit number that is committed; `save` writes it to the file."""
        if visits > self.known.visits:
            self.known = msgspec.structs.replace(self.known, visits=visits)

    def save(self, *, at_once: bool = False) -> None:
        """Write the file if the era has changed, if the last write is long enough ago, or `at_once`."""
        if at_once or self._must_write or self._clock() - self._written_at >= WRITE_SECONDS:
            self._write()

    def _read(self) -> Remembered:
        if self._path is None:
            return Remembered()
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Remembered)
        except FileNotFoundError:
            return Remembered()
        except (OSError, ValueError) as error:
            # Without this file only an old database is not recognised.
            log.warning("could not read %s, which tells an old database from the current one: %s", self._path, error)
            return Remembered()

    def _write(self) -> None:
        """Replace the file. Other processes of the same directory may have seen later visits."""
        self._written_at, self._must_write = self._clock(), False
        if self._path is None:
            return
        saved, known = self._read(), self.known
        if saved.crawl == known.crawl:
            known = msgspec.structs.replace(known, visits=max(saved.visits, known.visits))
        if saved == known:
            return
        partial = self._path.with_suffix(f".{os.getpid()}")
        try:
            partial.write_bytes(msgspec.json.encode(known))
            partial.rename(self._path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            log.warning("could not write %s, which tells an old database from the current one: %s", self._path, error)
