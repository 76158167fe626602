"""Loads seed files line by line into the frontier, with a bookmark that survives a kill.

Each file is a copy in the data directory (seed_files.py). A batch of seeds is added before the bookmark moves. After a
kill in between, some lines are added again, and the frontier knows them already. A process locks the copy that it
loads, so that a running crawl takes over the seeds of a `rove seeds add` that was killed.
"""

from __future__ import annotations

import asyncio
import enum
import fcntl
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from rove.admin.apply_exclusions import follow_exclusions
from rove.admin.exclude import current_user
from rove.app.seed_files import without_comment
from rove.config import Settings
from rove.errors import StoreError
from rove.frontier.contract import Catalog, Frontier
from rove.frontier.seed_source import SeedSource
from rove.inspect.seed_outcomes import outcomes_of, urls_to_retry
from rove.model.urls import NewUrl
from rove.notation.humanize import counted
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.retry_filter import RetryFilter
from rove.policy.rules import RuledOut
from rove.policy.scope import SeedScope
from rove.urls.canonical import CrawlUrl, UrlForm
from rove.urls.seed import LONGEST_LINE, is_seed, parse_seed, why_not_a_seed

LINES_PER_TURN = 500
"""Lines read before other tasks get a turn."""
EARLY_BATCH = 4_000
EARLY_SECONDS = 0.8
"""While the crawling processes start, batches stay small: on SQLite the first claim waits for a batch to end."""
URLS_PER_RETRY = 2_000
POLL_SECONDS = 2.0
"""How often a running crawl looks for seed files whose loading was interrupted."""
PROGRESS_SECONDS = 5.0
"""Between two progress lines of a long file."""
MAX_BAD_LINES_SHOWN = MAX_REJECTED_SHOWN = 5
SURVEYED_LINES = 10_000
MOST = 0.5
"""A file with a larger share of bad lines is probably not a seed file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """How many lines are added in one transaction: batches double from the first size to the largest."""

    first: int = 1_000
    largest: int = 30_000
    """Seeds touch pages all over the indexes. The larger the batch, the fewer times each page is written."""


class BadLine(enum.Enum):
    """Why a line cannot be read at all."""

    NOT_TEXT = "not UTF-8 text"
    TOO_LONG = f"longer than {LONGEST_LINE:,} bytes"


Line = tuple[int, str | BadLine]
"""The length of a line in bytes, and its text without comments."""


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of a copy of a seed file."""
    while raw := file.readline(LONGEST_LINE):
        size = len(raw)
        if size == LONGEST_LINE and not raw.endswith(b"\n"):
            while rest := file.readline(LONGEST_LINE):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield size, BadLine.TOO_LONG
            continue
        try:
            yield size, without_comment(raw.decode())
        except UnicodeDecodeError:
            yield size, BadLine.NOT_TEXT


def problem_text(number: int, text: str | BadLine) -> str:
    """Say what is wrong with a line."""
    return f"line {number}: " + (
        text.value if isinstance(text, BadLine) else f"{text[:80]!r} {why_not_a_seed(text[:LONGEST_LINE])}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The first lines of a seed file, up to the first seed at least."""

    good: int
    bad: int
    problems: Sequence[str]
    """What is wrong with the first bad lines."""

    @property
    def is_mostly_bad(self) -> bool:
        """Whether most lines are bad."""
        return self.bad > MOST * (self.good + self.bad)


def survey(path: Path, *, lines: int = SURVEYED_LINES) -> Survey:
    """Read the first lines of a copy of a seed file; go on until there is a seed."""
    good = bad = 0
    problems: list[str] = []
    with path.open("rb") as file:
        for number, (_, text) in enumerate(read_lines(file), start=1):
            if number > lines and good:
                break
            if text == "":
                continue
            if isinstance(text, str) and is_seed(text):
                good += 1
                continue
            bad += 1
            if len(problems) < MAX_BAD_LINES_SHOWN:
                problems.append(problem_text(number, text))
    return Survey(good=good, bad=bad, problems=problems)


async def all_seeds_loaded(catalog: Catalog, settings: Settings) -> bool:
    """Whether the frontier has all seeds that it will ever get."""
    # Seeds on a machine that has left are not waited for. With a --scope they are, because they define it.
    has_scope = settings.scope is not SeedScope.ANYWHERE
    return all(source.finished or (source.is_abandoned and not has_scope) for source in await catalog.seed_sources())


class Bookmarks(Protocol):
    """Where it is saved how far seed files are loaded."""

    async def seed_sources(self) -> list[SeedSource]:
        """Return all seed files."""

    async def save_progress(self, source: SeedSource) -> None:
        """Save how far a seed file has been loaded."""


class SeedLoader:
    """Loads the seed files of this machine from where loading stopped."""

    def __init__(
        self,
        *,
        frontier: Frontier,
        catalog: Catalog,
        gate: Gate,
        directory: Path,
        delay: float,
        form: UrlForm,
        say: Callable[[str], None],
        bookmarks: Bookmarks | None = None,
        sizes: BatchSizes | None = None,
        progress_seconds: float = PROGRESS_SECONDS,
    ) -> None:
        """Prepare to load.

        `directory` is the data directory, which holds the files; `delay` is the operator's; `say` shows a sentence to
        the user. The bookmarks are in the catalog if no others are given.
        """
        self.frontier = frontier
        self.catalog = catalog
        self.bookmarks: Bookmarks = bookmarks or catalog
        self.gate = gate
        self._directory = directory
        self.delay = delay
        self.form = form
        self.say = say
        self.sizes = sizes or BatchSizes()
        self.progress_seconds = progress_seconds
        self.is_loading = False

    async def run(self, on_added: Callable[[], None] = lambda: None) -> None:
        """Load all files that are left, then those that another command leaves unfinished, until cancelled."""
        while True:
            await self.load_all(on_added)
            await asyncio.sleep(POLL_SECONDS)

    async def load_all(self, on_added: Callable[[], None] = lambda: None) -> None:
        """Load all files that are left; call `on_added` after each batch."""
        for source in await self.bookmarks.seed_sources():
            if not source.finished and source.is_here:
                await self.load(source, on_added)

    async def load(self, source: SeedSource, on_added: Callable[[], None] = lambda: None) -> SeedSource | None:
        """Load the rest of a file and say how it went; return its bookmark, None if another process loads it."""
        path = self._directory / source.path
        try:
            file = path.open("rb")
        except OSError as error:
            raise StoreError(
                f"could not read {path}, the copy of {source.name} with seeds that are not loaded yet: {error.strerror}"
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            # Another process may have moved the bookmark before it released the lock.
            (source,) = [known for known in await self.bookmarks.seed_sources() if known.id == source.id]
            if source.finished:
                return None
            following = asyncio.create_task(follow_exclusions(self.catalog, self._exclude))
            self.is_loading = True
            try:
                loaded = None
                while loaded is None:
                    eras = self.frontier.eras
                    loaded = await _Loading(self, source, path.stat().st_size, on_added).run(file)
                    if self.frontier.eras != eras:
                        loaded = None  # the database may have lost some of the seeds, so add them again
            finally:
                self.is_loading = False
                following.cancel()
        self.say(f"{loaded.name}: {loaded_text(loaded)}")
        return loaded

    def _exclude(self, exclusions: Exclusions) -> None:
        self.gate.exclusions = exclusions


def loaded_text(source: SeedSource) -> str:
    """Say what a seed file brought."""
    known = source.good - source.unseen - source.retried - source.refused
    parts = [
        f"{source.unseen:,} new" if source.unseen < source.good else "",
        f"{source.retried:,} tried again" if source.retried else "",
        f"{known:,} known" if known > 0 else "",
        f"{source.refused:,} excluded or rejected by rules" if source.refused else "",
    ]
    details = ", ".join(part for part in parts if part)
    bad = f", {counted(source.bad, 'bad line')} skipped" if source.bad else ""
    return counted(source.good, "seed") + (f": {details}" if details else "") + bad


@dataclass(slots=True)
class _Batch:
    """Seeds that were read but not added yet, and the bookmark after them."""

    end: SeedSource
    urls: list[NewUrl] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class _Loading:
    """One seed file that is being loaded."""

    def __init__(self, loader: SeedLoader, source: SeedSource, size: int, on_added: Callable[[], None]) -> None:
        self._loader = loader
        self._source = source
        self._size = size
        self._on_added = on_added
        self._unseen = source.unseen
        self._retried = source.retried
        self._retry: int | None = None
        """The record of the seeds that are tried again, once there is one."""
        self._bad_lines_shown = self._rejected_shown = 0
        self._shown_at = time.monotonic()

    async def run(self, file: BinaryIO) -> SeedSource:
        """Load the rest of the file; return its bookmark. One batch is read while the one before is added."""
        source, sizes = self._source, self._loader.sizes
        file.seek(source.offset)
        lines = read_lines(file)
        size = sizes.first
        started = time.monotonic()
        adding: asyncio.Task[SeedSource] | None = None
        try:
            while not source.finished:
                batch = await self._read(source, lines, size)
                if adding is not None:
                    await adding
                adding = asyncio.create_task(self._add(batch))
                source = batch.end
                is_early = time.monotonic() - started < EARLY_SECONDS
                size = min(2 * size, min(EARLY_BATCH, sizes.largest) if is_early else sizes.largest)
        finally:
            if adding is not None:
                self._source = await adding
        return self._source

    async def _read(self, source: SeedSource, lines: Iterator[Line], size: int) -> _Batch:
        """Read a batch of lines in slices, so that other tasks get their turns in between."""
        batch = _Batch(end=source)
        while batch.end.lines - source.lines < size and not batch.end.finished:
            count = min(LINES_PER_TURN, size - (batch.end.lines - source.lines))
            self._read_slice(batch, list(islice(lines, count)), count)
            await asyncio.sleep(0)
        return batch

    def _read_slice(self, batch: _Batch, lines: Sequence[Line], count: int) -> None:
        before = batch.end
        good = bad = refused = 0
        for number, (_, text) in enumerate(lines, start=before.lines + 1):
            if text == "":
                continue
            seed = parse_seed(text, self._loader.form) if isinstance(text, str) else None
            if seed is None:
                bad += 1
                self._show_bad_line(number, text)
                continue
            good += 1
            url, is_bare = seed
            refusal = self._loader.gate.refuses(url, depth=0)
            ruled_out = None if refusal else self._loader.gate.rejects_seed(url)
            if ruled_out is not None:
                self._show_rejected(number, url, ruled_out)
                batch.refused[f"not_accepted.{ruled_out.counter}"] += 1
            elif refusal is not None:
                batch.refused[f"not_accepted.{refusal}"] += 1
            else:
                batch.urls.append(url.new_url(depth=0, assume_https=is_bare))
                continue
            refused += 1
        batch.end = replace(
            before,
            offset=before.offset + sum(length for length, _ in lines),
            lines=before.lines + len(lines),
            good=before.good + good,
            bad=before.bad + bad,
            refused=before.refused + refused,
            finished=len(lines) < count,
        )

    def _show_bad_line(self, number: int, text: str | BadLine) -> None:
        self._bad_lines_shown += 1
        if self._bad_lines_shown <= MAX_BAD_LINES_SHOWN:
            self._loader.say(f"{self._source.name}, {problem_text(number, text)}")

    def _show_rejected(self, number: int, url: CrawlUrl, ruled_out: RuledOut) -> None:
        """Name the first seeds that rules reject, because nobody writes a seed that should not be fetched."""
        self._rejected_shown += 1
        if self._rejected_shown <= MAX_REJECTED_SHOWN:
            more = "" if self._rejected_shown < MAX_REJECTED_SHOWN else " (further ones are only counted)"
            self._loader.say(f"{self._source.name}, line {number}: {url.text} is {ruled_out.reason}{more}")

    async def _add(self, batch: _Batch) -> SeedSource:
        """Add a batch, then move the bookmark; return it."""
        frontier = self._loader.frontier
        keys = list({(url.domain, url.fingerprint): None for url in batch.urls})
        added = await frontier.add(batch.urls, as_seeds=True)
        self._unseen += added.unseen
        if added.unseen < len(keys):
            await self._give_again(keys)
        if batch.refused:
            await frontier.count(batch.refused)
        end = replace(batch.end, unseen=self._unseen, retried=self._retried)
        await self._loader.bookmarks.save_progress(end)
        self._on_added()
        self._show_progress(end)
        return end

    async def _give_again(self, keys: Sequence[tuple[int, int]]) -> None:
        """Mark known URLs as seeds, and try those again that failed."""
        frontier = self._loader.frontier
        for start in range(0, len(keys), URLS_PER_RETRY):
            known = await frontier.known_urls(keys[start : start + URLS_PER_RETRY])
            await frontier.mark_seeds([url.key for url in known if url.seed is None])
            outcomes = await outcomes_of(known, frontier.known_urls, self._loader.form)
            failed = [outcome for outcome in outcomes if outcome.has_failed]
            if failed:
                await frontier.retry(urls_to_retry(failed), await self._retry_number())
                self._retried += len(failed)

    async def _retry_number(self) -> int:
        if self._retry is None:
            again = RetryFilter(only_seeds=True, source=self._source.name)
            self._retry = await self._loader.catalog.begin_retry(again, who=current_user(), delay=self._loader.delay)
        return self._retry

    def _show_progress(self, end: SeedSource) -> None:
        now = time.monotonic()
        if now - self._shown_at >= self._loader.progress_seconds and not end.finished:
            self._shown_at = now
            self._loader.say(
                f"{end.name}: {end.good:,} seeds loaded, {end.offset / max(1, self._size):.0%} of the file"
            )
