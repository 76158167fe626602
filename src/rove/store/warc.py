"""The page store: standard WARC files, durable before the frontier refers to them.

When `write` returns, the batch and the name of its file are on the disk. A batch is stored completely or not at all.
Only a crash can leave part of one. Recovery then preserves its whole records (recovery.py). Nothing refers to them, so
they do no harm.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from rove.model.ledger import Content, Location
from rove.resources.spare_files import SpareFiles, at_once
from rove.store.contract import Keep, Page, Stored
from rove.store.files import FileChanged, OpenFile, store_error, sync_directory
from rove.store.record import (
    compress,
    new_record_id,
    response_record,
    revisit_record,
    sha1_64,
    sha1_of,
    text_record,
    warcinfo_record,
)

DEFAULT_MAX_FILE_BYTES = 1 << 30
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
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        spare: SpareFiles | None = None,
    ) -> None:
        """`name` is the prefix of file names; `software` and `info` go into the warcinfo record of each file."""
        self._opened = at_once if spare is None else spare.opened
        self._directory = directory
        self._keep = keep
        self._name = name
        self._info = {
            "software": software,
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            **(info or {}),
        }
        self._max_file_bytes = max_file_bytes
        self._serial = 0
        self._file: OpenFile | None = None
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
        before = self._file
        size_before = before.size if before else 0
        touched = [before] if before else []
        try:
            stored = [self._append(page, touched, texts) for page in pages]
            self._commit(touched, has_new=touched[-1] is not before)
        except FileChanged:
            # Neither the end nor the name of the file is known any more, so the next batch starts a new one.
            self._file = None
            for file in touched:
                if not file.closed:
                    file.close()
            raise
        except BaseException:
            self._roll_back(before, size_before, touched)
            raise
        return stored

    def _append(self, page: Page, touched: list[OpenFile], texts: dict[int, _KnownText]) -> Stored:
        """Append a page's records to one file; start a new one if the last is full."""
        if not touched or touched[-1].size >= self._max_file_bytes:
            touched.append(self._begin_file())
        file = touched[-1]
        raw = raw_id = None
        if self._keep is not Keep.TEXT:
            raw_id = new_record_id()
            raw = self._append_record(file, response_record(page, record_id=raw_id))
        if self._keep is Keep.RAW:
            return Stored(text=None, raw=raw)
        sha1 = sha1_of(page.text)
        short_hash = None
        if page.content_hash is not None and len(page.text) >= SHORTEST_SHARED:
            short_hash = sha1_64(sha1)
            own = _KnownText(short_hash, page.url, page.fetched_at)
            first = texts.setdefault(page.content_hash, own)
            if first is not own and first.sha1_64 == short_hash:
                record = revisit_record(page, sha1=sha1, url=first.url, fetched_at=first.fetched_at, beside=raw_id)
                text = self._append_record(file, record)
                return Stored(text=text, raw=raw, is_copy=True, sha1_64=short_hash)
        text = self._append_record(file, text_record(page, sha1=sha1, refers_to=raw_id))
        return Stored(text=text, raw=raw, sha1_64=short_hash)

    def _append_record(self, file: OpenFile, record: bytes) -> Location:
        member = compress(record)
        return Location(file=file.name, offset=file.append(member), length=len(member))

    def _commit(self, touched: Sequence[OpenFile], *, has_new: bool) -> None:
        """Sync the batch, then finish all its files except the last."""
        for file in touched:
            file.sync()
        for file in touched[:-1]:
            file.finish()
        if has_new:
            self._opened(lambda: sync_directory(self._directory))
        self._file = touched[-1]

    def _roll_back(self, before: OpenFile | None, size_before: int, touched: Sequence[OpenFile]) -> None:
        """Restore the files as they were before the batch, as far as possible."""
        self._file = None
        for file in touched:
            if file.closed:
                continue
            if file is not before:
                with suppress(OSError):  # the next recovery cuts it
                    file.discard()
                continue
            try:
                file.cut(size_before)
                self._file = file
            except OSError:
                file.close()

    def _begin_file(self) -> OpenFile:
        now = time.time()
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
        if not self._directory.exists():
            self._directory.mkdir(parents=True, exist_ok=True)
            sync_directory(self._directory.parent)
        while True:
            path = self._directory / f"{self._name}-{stamp}-{self._serial:05d}.warc.gz"
            self._serial += 1
            try:
                file = self._opened(partial(OpenFile.create, path))
                break
            except FileExistsError:
                continue  # another store used this name in the same second
        opening = warcinfo_record(filename=path.name, created_at=now, fields=self._info)
        file.append(compress(opening))
        return file

    def _finish(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.finish()
        except OSError:
            file.close()
            raise
        self._opened(lambda: sync_directory(self._directory))
