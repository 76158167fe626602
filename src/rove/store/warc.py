"""The page store: standard WARC files, durable before the frontier refers to them.

When `write` returns, the batch and the name of its file are on the disk. A batch is stored completely or not at all.
Only a crash can leave part of one. Recovery then preserves its whole records (recovery.py). Nothing refers to them, so
they do no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, TypeVar

from rove.model.ledger import Content, Location
from rove.resources.spare_files import SpareFiles
from rove.store.contract import Keep, Page, Stored
from rove.store.files import FileChanged, store_error
from rove.store.record import new_record_id, response_record, revisit_record, sha1_64, sha1_of, text_record
from rove.store.series import Series

SHORTEST_SHARED = 256
"""Shorter texts, in bytes, are always stored, because a record that refers to another is as large."""

_T = TypeVar("_T")


class _KnownText(NamedTuple):
    """A stored text and the page that has it, as revisit records name it."""

    sha1_64: int
    url: str
    fetched_at: float


class WarcStore:
    """Appends batches of pages to WARC files in a directory, in its own thread."""

    def __init__(
        self,
        directory: Path,
        *,
        keep: Keep,
        name: str,
        software: str,
        info: Mapping[str, str] | None = None,
        max_file_bytes: int = 1 << 30,
        spare: SpareFiles | None = None,
    ) -> None:
        """`name` is the prefix of file names; `software` and `info` go into the warcinfo record of each file.

        Texts and responses go into files of their own, because replay tools take the first record of a page that they
        find.
        """
        self._directory = directory
        info = {
            "software": software,
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            **(info or {}),
        }

        def series(kind: str) -> Series:
            return Series(directory, f"{name}-{kind}", info, max_file_bytes, spare)

        self._raw = None if keep is Keep.TEXT else series(Keep.RAW)
        self._text = None if keep is Keep.RAW else series(Keep.TEXT)
        self._series = [kind for kind in (self._raw, self._text) if kind is not None]
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def write(self, pages: Sequence[Page], known: Mapping[int, Content] | None = None) -> list[Stored]:
        """Store a batch of pages, in order. When this returns, they survive a power cut.

        For a known or repeated text, only a record that refers to the first one is written. Raw responses are always
        stored, because hardly two are identical. After a DiskFull or StoreError nothing of the batch is stored, and it
        may be tried again.
        """
        if not pages:
            return []
        texts = {
            hash: _KnownText(content.sha1_64, content.url, content.fetched_at)
            for hash, content in (known or {}).items()
        }
        return await self._in_thread(self._write, tuple(pages), texts)

    async def close(self) -> None:
        """Finish the open file."""
        try:
            await self._in_thread(self._finish)
        finally:
            self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[..., _T], *args: object) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
        except OSError as error:
            raise store_error(error, f"write pages to {self._directory}") from error

    def _write(self, pages: Sequence[Page], texts: dict[int, _KnownText]) -> list[Stored]:
        for series in self._series:
            series.begin()
        try:
            stored = self._append_all(pages, texts)
            for series in self._series:
                series.end()
        except FileChanged:
            for series in self._series:
                series.abandon()
            raise
        except BaseException:
            for series in self._series:
                series.roll_back()
            raise
        return stored

    def _append_all(self, pages: Sequence[Page], texts: dict[int, _KnownText]) -> list[Stored]:
        """Append the records of a batch and make them durable.

        The responses are durable before the first text is written: so whatever a crash leaves of the batch, no text
        refers to a response that is missing.
        """
        raws: list[tuple[Location | None, str | None]] = [(None, None)] * len(pages)
        if self._raw is not None:
            raws = [self._append_raw(self._raw, page) for page in pages]
            self._raw.sync()
        if self._text is None:
            return [Stored(text=None, raw=raw) for raw, _ in raws]
        stored = [self._append_text(self._text, page, *raw, texts) for page, raw in zip(pages, raws, strict=True)]
        self._text.sync()
        return stored

    def _append_raw(self, series: Series, page: Page) -> tuple[Location, str]:
        record_id = new_record_id()
        return series.append(response_record(page, record_id=record_id)), record_id

    def _append_text(
        self, series: Series, page: Page, raw: Location | None, raw_id: str | None, texts: dict[int, _KnownText]
    ) -> Stored:
        """Append the text of a page, or a record that refers to the page that had it first."""
        sha1 = sha1_of(page.text)
        short_hash = None
        if page.content_hash is not None and len(page.text) >= SHORTEST_SHARED:
            short_hash = sha1_64(sha1)
            own = _KnownText(short_hash, page.url, page.fetched_at)
            first = texts.setdefault(page.content_hash, own)
            if first is not own and first.sha1_64 == short_hash:
                record = revisit_record(page, sha1=sha1, url=first.url, fetched_at=first.fetched_at, beside=raw_id)
                return Stored(text=series.append(record), raw=raw, is_copy=True, sha1_64=short_hash)
        text = series.append(text_record(page, sha1=sha1, refers_to=raw_id))
        return Stored(text=text, raw=raw, sha1_64=short_hash)

    def _finish(self) -> None:
        with ExitStack() as stack:
            for series in self._series:
                stack.callback(series.finish)
