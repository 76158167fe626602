"""Loads seed files line by line into the frontier, with a bookmark that survives a kill.

Each file is a copy in the data directory. A batch of seeds is added before the bookmark moves. After a kill in between,
some lines are added again, and the frontier knows them already.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from rove.admin.apply_exclusions import follow_exclusions
from rove.config import Settings
from rove.errors import StoreError
from rove.frontier.contract import Catalog, Frontier, SeedSource
from rove.humanize import counted
from rove.model.urls import NewUrl
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.urls.ignored_params import IgnoredParams
from rove.urls.seed import parse_seed

LINES_PER_TURN = 500
"""Lines read before other tasks get a turn."""
EARLY_BATCH = 4_000
EARLY_SECONDS = 0.8
"""While the crawling processes start, batches stay small: on SQLite the first claim waits for a batch to end."""
LONGEST_LINE = 4_096
MAX_BAD_LINES_SHOWN = 5
BYTE_ORDER_MARK = "\ufeff"
_COMMENT = re.compile(r"(?:^|\s)#.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """How many lines are added in one transaction: batches double from the first size to the largest."""

    first: int = 1_000
    largest: int = 30_000
    """Seeds touch pages all over the indexes. The larger the batch, the fewer times each page is written."""


def read_lines(file: BinaryIO) -> Iterator[tuple[int, str | None]]:
    """Yield the length in bytes and the text of each line, without comments; None for a line that is not text."""
    while raw := file.readline(LONGEST_LINE):
        size = len(raw)
        if size == LONGEST_LINE and not raw.endswith(b"\n"):
            while rest := file.readline(LONGEST_LINE):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield size, None
            continue
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            yield size, None
            continue
        if text[0] == BYTE_ORDER_MARK:
            text = text[1:]
        yield size, (_COMMENT.sub("", text) if "#" in text else text).strip()


def has_good_line(path: Path) -> bool:
    """Whether a file contains a seed; reads only up to the first."""
    with path.open("rb") as file:
        return any(text and parse_seed(text) for _, text in read_lines(file))


async def all_seeds_loaded(catalog: Catalog, settings: Settings) -> bool:
    """Whether the frontier has all seeds that it will ever get."""
    # Seeds on a machine that has left are not waited for. With --seeds-only they are, because they define the scope.
    return all(
        source.finished or (source.is_abandoned and not settings.seeds_only) for source in await catalog.seed_sources()
    )


@dataclass(slots=True)
class _Batch:
    """Seeds that were read but not added yet, and the bookmark after them."""

    end: SeedSource
    urls: list[NewUrl] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class SeedLoader:
    """Loads the seed files of this machine from where loading stopped."""

    def __init__(
        self,
        *,
        frontier: Frontier,
        catalog: Catalog,
        gate: Gate,
        directory: Path,
        ignored_params: IgnoredParams | None,
        say: Callable[[str], None],
        sizes: BatchSizes | None = None,
    ) -> None:
        """`directory`: the data directory, which holds the files; `say` shows a sentence to the user."""
        self._frontier = frontier
        self._catalog = catalog
        self._gate = gate
        self._directory = directory
        self._ignored_params = ignored_params
        self._say = say
        self._sizes = sizes or BatchSizes()
        self._bad_lines = 0

    async def run(self, on_added: Callable[[], None] = lambda: None) -> None:
        """Load all files that are left; call `on_added` after each batch."""
        following = asyncio.create_task(follow_exclusions(self._catalog, self._exclude))
        try:
            for source in await self._catalog.seed_sources():
                if not source.finished and source.is_here:
                    loaded = await self._load(source, on_added)
                    bad = f", {counted(loaded.bad, 'bad line')} skipped" if loaded.bad else ""
                    self._say(f"{loaded.name}: {counted(loaded.good, 'seed')}{bad}")
        finally:
            following.cancel()

    def _exclude(self, exclusions: Exclusions) -> None:
        self._gate.exclusions = exclusions

    async def _load(self, source: SeedSource, on_added: Callable[[], None]) -> SeedSource:
        """Load the rest of a file; return its bookmark at the end. One batch is read while the one before is added."""
        path = self._directory / source.path
        try:
            file = path.open("rb")
        except OSError as error:
            raise StoreError(
                f"could not read {path}, the copy of {source.name} with seeds that are not loaded yet: {error.strerror}"
            ) from error
        with file:
            file.seek(source.offset)
            lines = read_lines(file)
            size = self._sizes.first
            started = time.monotonic()
            adding: asyncio.Task[None] | None = None
            try:
                while not source.finished:
                    batch = await self._read(source, lines, size)
                    if adding is not None:
                        await adding
                    adding = asyncio.create_task(self._add(batch, on_added))
                    source = batch.end
                    is_early = time.monotonic() - started < EARLY_SECONDS
                    largest = self._sizes.largest
                    size = min(2 * size, min(EARLY_BATCH, largest) if is_early else largest)
            finally:
                if adding is not None:
                    await adding
        return source

    async def _read(self, source: SeedSource, lines: Iterator[tuple[int, str | None]], size: int) -> _Batch:
        """Read a batch of lines in slices, so that other tasks get their turns in between."""
        batch = _Batch(end=source)
        while batch.end.lines - source.lines < size and not batch.end.finished:
            count = min(LINES_PER_TURN, size - (batch.end.lines - source.lines))
            self._read_slice(batch, list(islice(lines, count)), count)
            await asyncio.sleep(0)
        return batch

    def _read_slice(self, batch: _Batch, lines: Sequence[tuple[int, str | None]], count: int) -> None:
        before = batch.end
        good = bad = 0
        for number, (_, text) in enumerate(lines, start=before.lines + 1):
            if text == "":
                continue
            seed = None if text is None else parse_seed(text, self._ignored_params)
            if seed is None:
                bad += 1
                self._show_bad_line(before, number, text)
                continue
            good += 1
            url, is_bare = seed
            refusal = self._gate.refuses(url, depth=0)
            if refusal is None:
                batch.urls.append(url.new_url(depth=0, assume_https=is_bare))
            else:
                batch.refused[f"not_accepted.{refusal}"] += 1
        batch.end = replace(
            before,
            offset=before.offset + sum(length for length, _ in lines),
            lines=before.lines + len(lines),
            good=before.good + good,
            bad=before.bad + bad,
            finished=len(lines) < count,
        )

    def _show_bad_line(self, source: SeedSource, number: int, text: str | None) -> None:
        self._bad_lines += 1
        if self._bad_lines <= MAX_BAD_LINES_SHOWN:
            problem = "is not UTF-8 text, or too long" if text is None else f"{text[:80]!r} is not a domain or URL"
            self._say(f"{source.name}, line {number}: {problem}")

    async def _add(self, batch: _Batch, on_added: Callable[[], None]) -> None:
        await self._frontier.add(batch.urls)
        if batch.refused:
            await self._frontier.count(batch.refused)
        await self._catalog.save_progress(batch.end)
        on_added()
