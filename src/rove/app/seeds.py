"""Seed files: a line each, streamed into the frontier, with a bookmark that survives a kill.

The file is a copy in the data directory. Batches are added first and the bookmark is moved after, so that a kill in
between only offers some lines again, which the frontier knows already.
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

from rove.errors import StoreError
from rove.frontier.contract import Catalog, Frontier, SeedSource
from rove.model.urls import NewUrl
from rove.policy.gate import Gate
from rove.urls.ignored_params import IgnoredParams
from rove.urls.seed import parse_seed

SLICE = 500
"""Lines read between two looks at what else there is to do."""
FIRST_BATCH = 1_000
LARGEST_BATCH = 30_000
"""Lines added in one transaction. Seeds are of domains all over the indexes, so that each touches pages of its own: the
larger the batch, the fewer times a page is written."""
EARLY_BATCH = 4_000
EARLY_SECONDS = 0.8
"""While the crawling processes begin, batches are small: on SQLite who wants to make the first claim waits for one."""
LONGEST_LINE = 4_096
BYTE_ORDER_MARK = "\ufeff"
_COMMENT = re.compile(r"(?:^|\s)#.*")


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is neither a domain nor a URL."""

    number: int
    text: str


def read_lines(file: BinaryIO) -> Iterator[tuple[int, str | None]]:
    """Each line's length in bytes and its text without comments; None for one that is no text."""
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
    """Whether there is any seed in a file; looks no further than the first."""
    with path.open("rb") as file:
        return any(text and parse_seed(text) for _, text in read_lines(file))


@dataclass(slots=True)
class _Batch:
    """Seeds read and not added yet, and where the file stands after them."""

    end: SeedSource
    offers: list[NewUrl] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class SeedLoader:
    """Loads one seed file from where it was left."""

    def __init__(
        self,
        *,
        frontier: Frontier,
        catalog: Catalog,
        gate: Gate,
        drops: IgnoredParams | None = None,
        on_added: Callable[[], None],
        on_bad: Callable[[SeedSource, BadLine], None],
    ) -> None:
        self._frontier = frontier
        self._catalog = catalog
        self.gate = gate
        self._drops = drops
        self._on_added = on_added
        self._on_bad = on_bad

    async def load(self, source: SeedSource, path: Path) -> SeedSource:
        """Load what is left of a file; return the source as it stands at its end."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise StoreError(
                f"{path}, the copy of {source.name} from which seeds are still to be loaded, cannot be read: "
                f"{error.strerror}"
            ) from error
        with file:
            file.seek(source.offset)
            lines = read_lines(file)
            size = FIRST_BATCH
            started = time.monotonic()
            adding: asyncio.Task[None] | None = None
            try:
                while not source.finished:
                    batch = await self._read(source, lines, size)
                    if adding is not None:
                        await adding
                    adding = asyncio.create_task(self._add(batch))
                    source = batch.end
                    is_early = time.monotonic() - started < EARLY_SECONDS
                    size = min(
                        2 * size, min(EARLY_BATCH, LARGEST_BATCH) if is_early else LARGEST_BATCH
                    )
            finally:
                if adding is not None:
                    await adding
        return source

    async def _read(
        self, source: SeedSource, lines: Iterator[tuple[int, str | None]], size: int
    ) -> _Batch:
        """Read so many lines, in slices: visits go on in between, and the batch before is being added."""
        batch = _Batch(end=source)
        while batch.end.lines - source.lines < size and not batch.end.finished:
            count = min(SLICE, size - (batch.end.lines - source.lines))
            self._read_slice(batch, list(islice(lines, count)), count)
            await asyncio.sleep(0)
        return batch

    def _read_slice(
        self, batch: _Batch, lines: Sequence[tuple[int, str | None]], count: int
    ) -> None:
        at = batch.end
        good = bad = 0
        for number, (_, text) in enumerate(lines, start=at.lines + 1):
            if text == "":
                continue
            seed = None if text is None else parse_seed(text, self._drops)
            if seed is None:
                bad += 1
                self._on_bad(at, BadLine(number, text or "(not UTF-8 text, or too long)"))
                continue
            good += 1
            url, is_bare = seed
            refusal = self.gate.refuses(url, depth=0)
            if refusal is None:
                batch.offers.append(url.new_url(depth=0, assume_https=is_bare))
            else:
                batch.refused[f"not_accepted.{refusal}"] += 1
        batch.end = replace(
            at,
            offset=at.offset + sum(length for length, _ in lines),
            lines=at.lines + len(lines),
            good=at.good + good,
            bad=at.bad + bad,
            finished=len(lines) < count,
        )

    async def _add(self, batch: _Batch) -> None:
        await self._frontier.add(batch.offers)
        if batch.refused:
            await self._frontier.count(batch.refused)
        await self._catalog.save_progress(batch.end)
        self._on_added()
