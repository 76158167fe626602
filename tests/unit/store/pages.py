"""Pages for the tests of the store, and readers of WARC files by other tools."""

from __future__ import annotations

import asyncio
import io
import resource
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.cli import main as warcio_main

from rove.model.ledger import Location
from rove.model.outcomes import Fetched, Response
from rove.store.contract import Keep, Page, Stored
from rove.store.warc import WarcStore

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it warns of itself as it is imported
    from fastwarc.warc import ArchiveIterator

FastWarcIterator = ArchiveIterator

FETCHED_AT = 1_700_000_000.5
DATE = "2023-11-14T22:13:20Z"


def page(
    number: int = 0,
    text: str = "Some text.",
    *,
    body: bytes = b"<p>Some text.</p>",
    headers: Sequence[tuple[str, str]] = (("Content-Type", "text/html"),),
    status_line: str = "HTTP/1.1 200 OK",
    truncated: bool = False,
) -> Page:
    """Make a page with its number in its URL."""
    url = f"https://example.com/{number}"
    response = Response(url=url, status=200, status_line=status_line, headers=headers, address="192.0.2.7")
    source = Fetched(response=response, body=body, wire_body=body, truncated=truncated)
    return Page(url=url, fetched_at=FETCHED_AT, text=text.encode(), source=source)


def store(directory: Path, keep: Keep = Keep.TEXT, **options: Any) -> WarcStore:
    """Open a store in a directory."""
    return WarcStore(directory, keep=keep, name="crawl", software="rove/test", **options)


def write(directory: Path, pages: Sequence[Page], keep: Keep = Keep.TEXT) -> list[Stored]:
    """Write one batch and close the store."""

    async def run() -> list[Stored]:
        writer = store(directory, keep)
        stored = await writer.write(pages)
        await writer.close()
        return stored

    return asyncio.run(run())


def files(directory: Path) -> list[str]:
    """Return the names in a directory."""
    return sorted(path.name for path in directory.iterdir())


def whole_file(directory: Path, kind: str = "") -> Path:
    """Return the only file of a kind in a directory: 'text', 'raw', or any."""
    (path,) = directory.glob(f"*-{kind}-*" if kind else "*")
    return path


def texts(data: bytes) -> list[str]:
    """Read all texts of a WARC file with fastwarc."""
    return [
        record.reader.read().decode()
        for record in FastWarcIterator(io.BytesIO(data))
        if record.headers["WARC-Type"] == "conversion"
    ]


def warcio_records(path: Path) -> list[tuple[Any, bytes]]:
    """Read all records of a WARC file with warcio, which verifies their digests."""
    with path.open("rb") as stream:
        records = []
        for record in WarcioIterator(stream, check_digests="raise"):
            content = record.content_stream().read()
            records.append((record, content))
        return records


def member(path: Path, location: Location) -> bytes:
    """Return the bytes at a location."""
    return path.read_bytes()[location.offset : location.offset + location.length]


def passes_warcio_check(path: Path) -> bool:
    """Return the output of `warcio check` for a file."""
    try:
        warcio_main(["check", str(path)])
    except SystemExit as end:
        return not end.code
    return True


@contextmanager
def max_file_size(size: int) -> Iterator[None]:
    """Limit the size of files, which fails like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
