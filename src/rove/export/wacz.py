"""WACZ 1.1.1: original pages in one file that a browser can replay, for example with replayweb.page."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO

from rove import __version__
from rove.errors import StoreError
from rove.export.captures import Capture, CaptureChoice, WarcFiles, capture_of
from rove.export.cdxj import Block, cdxj_line, write_blocks
from rove.export.documents import Document
from rove.export.sorting import ExternalSort
from rove.store.scan import ScannedRecord

VERSION = "1.1.1"
INDEX_NAME = "index.cdx.gz"
_COPY_BYTES = 1 << 20
_ENTRY_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all entries, so that the same pages give the same bytes."""


class WaczWriter:
    """Writes one WACZ file: first `add_records`, then `add_pages`, then `finish`."""

    def __init__(self, file: BinaryIO, sort_directory: Path | None = None) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._resources: list[dict[str, Any]] = []
        self._lines = ExternalSort(sort_directory)
        self._latest = ""

    def add_records(self, files: WarcFiles, choice: CaptureChoice, advance: Callable[[int], None]) -> int:
        """Copy the responses that were chosen; return their number."""
        return sum(self._add_file(path, files, choice, advance) for path in files.paths)

    async def add_pages(self, documents: AsyncIterable[Document]) -> int:
        """Write the list of pages and the index; return the number of pages."""
        count = 0
        with self._entry("pages/pages.jsonl") as pages:
            head = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
            pages.write(_json(head) + b"\n")
            async for document in documents:
                if document.stored.row.raw is not None:
                    pages.write(_json(_page(document)) + b"\n")
                    count += 1
        blocks: list[bytes] = [_line("!meta 0", {"format": "cdxj-gzip-1.0", "filename": INDEX_NAME})]

        def note(block: Block) -> None:
            place = {"offset": block.offset, "length": block.length, "digest": f"sha256:{block.sha256}"}
            blocks.append(_line(block.key, place))

        with self._entry(f"indexes/{INDEX_NAME}") as index:
            write_blocks(self._lines.merged(), index, note)
        with self._entry("indexes/index.idx") as index:
            index.writelines(blocks)
        return count

    def finish(self, title: str) -> None:
        """Write the description of the package and complete the file."""
        package = {
            "profile": "data-package",
            "resources": self._resources,
            "title": title,
            "created": self._latest,
            "wacz_version": VERSION,
            "software": f"rove/{__version__}",
        }
        data = json.dumps(package, indent=2).encode()
        with self._entry("datapackage.json") as file:
            file.write(data)
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}
        with self._entry("datapackage-digest.json") as file:
            file.write(json.dumps(digest, indent=2).encode())
        self._zip.close()

    def _add_file(self, path: Path, files: WarcFiles, choice: CaptureChoice, advance: Callable[[int], None]) -> int:
        chosen = _chosen(path, files, choice, advance)
        first = next(chosen, None)
        if first is None:
            return 0
        count = offset = 0
        with path.open("rb") as source, self._entry(f"archive/{path.name}") as copy:
            for record, capture in chain((first,), chosen):
                _copy(source, copy, record, path)
                if capture is not None:
                    moved = record._replace(offset=offset)
                    self._lines.add(cdxj_line(capture._replace(record=moved)))
                    self._latest = max(self._latest, capture.date)
                    count += 1
                offset += record.length
        return count

    @contextmanager
    def _entry(self, name: str) -> Iterator[IO[bytes]]:
        """Open an entry of the ZIP file; note its size and digest."""
        with self._zip.open(zipfile.ZipInfo(name, _ENTRY_DATE), "w", force_zip64=True) as entry:
            counted = _Digested(entry)
            yield counted  # type: ignore[misc]
        self._resources.append(
            {
                "name": name.rpartition("/")[2].lower(),
                "path": name,
                "hash": f"sha256:{counted.sha256.hexdigest()}",
                "bytes": counted.size,
            }
        )


class _Digested:
    """A stream that knows the size and the digest of what was written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._stream.write(data)
        self.sha256.update(data)
        self.size += len(data)

    def writelines(self, lines: list[bytes]) -> None:
        for line in lines:
            self.write(line)


def _chosen(
    path: Path, files: WarcFiles, choice: CaptureChoice, advance: Callable[[int], None]
) -> Iterator[tuple[ScannedRecord, Capture | None]]:
    """Iterate over the responses that were chosen, and the record that says what wrote the file, before the first."""
    info: ScannedRecord | None = None
    for record in files.records(path, advance):
        if record.headers.get("warc-type") == "warcinfo":
            info = record
            continue
        capture = capture_of(record, path.name)
        if capture is None or not choice.takes(capture):
            continue
        if info is not None:
            yield info, None
            info = None
        yield record, capture


def _copy(source: BinaryIO, copy: IO[bytes], record: ScannedRecord, path: Path) -> None:
    source.seek(record.offset)
    left = record.length
    while left:
        data = source.read(min(left, _COPY_BYTES))
        if not data:
            raise StoreError(f"{path} became shorter while it was read; run the command again")
        copy.write(data)
        left -= len(data)


def _page(document: Document) -> dict[str, Any]:
    row = document.stored.row
    values = {
        "id": document.id.strip("<>").rpartition(":")[2],
        "url": row.url,
        "ts": document.date,
        "title": row.title or None,
        "size": row.size,
        "text": document.text,
    }
    return {name: value for name, value in values.items() if value is not None}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _line(key: str, value: dict[str, Any]) -> bytes:
    return f"{key} ".encode() + _json(value) + b"\n"
