"""Time, peak memory and size of every output of a large crawl.

    python -m benchmarks.data_out --pages 100000

The crawl is made by a generator: pages of about 3 KB of text in 20 KB of HTML from a few thousand hosts, stored and
entered into the ledger as a crawl does it. A page in fifty repeats an earlier text.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.acceptance.command import crawl_options, rove_alone, write_lines
from tests.acceptance.site import Reply, site

from rove.frontier.rows.requests import REQUEST_COLUMNS, request_values
from rove.model.ledger import RequestKind, RequestRow
from rove.model.outcomes import Fetched, Response
from rove.model.text_hash import text_hash
from rove.store.contract import Keep, Page, Stored
from rove.store.warc import WarcStore
from rove.urls.canonical import NO_IDS

BATCH = 1_000
HOSTS = 4_000
FIRST_AT = 1_790_000_000.0
_MEGABYTE = 1_000_000
_MAXRSS_UNIT = 1_024
"""Linux counts the peak memory in these bytes."""
_HEADERS = (("Content-Type", "text/html; charset=utf-8"), ("Server", "nginx"), ("Cache-Control", "max-age=600"))
_TAG = "<b class='word'>{}</b> "
OUTPUTS = {
    "export --format jsonl": "pages.jsonl",
    "export --format parquet": "parquet",
    "export --format hf": "hf",
    "export --format wacz": "all.wacz",
    "index": "index.cdxj",
    "index --zipnum": "zip.cdxj.gz",
    "index --format parquet": "table",
    "hosts": "hosts",
}


def main() -> int:
    """Make the crawl, write every output, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pages", type=int, default=100_000)
    pages: int = parser.parse_args().pages
    with tempfile.TemporaryDirectory(prefix="rove-data-out-") as name:
        folder = Path(name)
        data = folder / "data"
        began = time.monotonic()
        asyncio.run(make_crawl(data, pages))
        stored = size_of(data / "warc")
        print(f"{pages:,} pages, {stored / _MEGABYTE:,.0f} MB of WARC files, made in {time.monotonic() - began:.0f} s")
        print("| command | time | CPU time | peak memory | size |\n|---|---|---|---|---|")
        for words, output in OUTPUTS.items():
            wall, cpu, peak = measured(words.split(), data, folder / output)
            size = size_of(folder / output)
            row = f"{wall:.0f} s | {cpu:.0f} s | {peak / _MEGABYTE:.0f} MB | {size / _MEGABYTE:,.1f} MB"
            print(f"| `rove {words}` | {row} |", flush=True)
    return 0


async def make_crawl(data: Path, pages: int) -> None:
    """Make a data directory as a crawl would leave it."""
    seeds = write_lines(data.parent / "seeds.txt", "http://seed.test/")
    with site({"seed.test/": Reply("<title>The seed</title>")}) as web:
        rove_alone("crawl", seeds, *crawl_options(data), *web.reach, "--store", "both", check=True)
    store = WarcStore(data / "warc", keep=Keep.BOTH, name="made", software="rove/benchmark")
    with closing(sqlite3.connect(data / "frontier.sqlite", isolation_level=None)) as base:
        base.execute("PRAGMA synchronous = OFF")
        for first in range(0, pages, BATCH):
            batch = list(_pages(first, min(BATCH, pages - first)))
            stored = await store.write([page for page, _ in batch])
            base.execute("BEGIN")
            _enter(base, batch, stored)
            base.execute("COMMIT")
        base.execute("UPDATE counter SET value = value + ? WHERE name = 'pages'", (pages,))
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    await store.close()


def measured(words: list[str], data: Path, output: Path) -> tuple[float, float, int]:
    """Run a command; return its seconds, its CPU seconds and its peak memory in bytes."""
    command = [sys.executable, "-m", "rove", *words, "--data-dir", str(data), "--output", str(output)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _MAXRSS_UNIT


def size_of(path: Path) -> int:
    """Return the bytes of a file or of all files below a directory."""
    files = [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]
    return sum(file.stat().st_size for file in files)


def _pages(first: int, count: int) -> Iterator[tuple[Page, RequestRow]]:
    """Make pages with their rows in the ledger."""
    chance = random.Random(first)
    words = [f"{chance.choice('abcdefghij')}{number:x}" for number in range(3_000)]
    paragraphs = [" ".join(chance.choices(words, k=100)) for _ in range(300)]
    text = ""
    for number in range(first, first + count):
        if not text or number % 50:
            text = "\n\n".join([f"Page {number}", *chance.choices(paragraphs, k=7)])
        url = NO_IDS.canonical(f"https://host{number * 7 % HOSTS}.example{number % 7}.org/articles/{number}?page=1")
        assert url is not None
        html = f"<title>Page {number}</title>" + "".join(_TAG.format(word) for word in text.split())
        body = html.encode()
        at = FIRST_AT + number / 10
        response = Response(
            url=url.text, status=200, status_line="HTTP/1.1 200 OK", headers=_HEADERS, address="192.0.2.1"
        )
        source = Fetched(response=response, body=body, wire_body=body, truncated=False)
        utf8 = text.encode()
        page = Page(url=url.text, fetched_at=at, text=utf8, source=source, content_hash=text_hash(utf8))
        row = RequestRow(
            visit=number + 10,
            seq=0,
            domain=url.domain,
            kind=RequestKind.PAGE,
            url=url.text,
            fingerprint=url.fingerprint,
            started=at,
            began=number * 100,
            ended=number * 100 + 80,
            status=200,
            media_type="text/html",
            size=len(body),
            content_hash=page.content_hash,
            title=f"Page {number}",
        )
        yield page, row


def _enter(base: sqlite3.Connection, batch: list[tuple[Page, RequestRow]], stored: list[Stored]) -> None:
    """Enter pages into the ledger, the URLs and the known texts."""
    requests, urls, contents = [], [], []
    for (_, row), where in zip(batch, stored, strict=True):
        requests.append(request_values(row.replace(text=where.text, raw=where.raw, is_copy=where.is_copy)))
        urls.append((row.domain, row.fingerprint, row.url, row.visit))
        if not where.is_copy and where.text is not None:
            place = (where.text.file, where.text.offset, where.text.length)
            contents.append((row.content_hash, where.sha1_64, row.domain, row.visit, *place))
    marks = ", ".join("?" * len(REQUEST_COLUMNS))
    base.executemany(f"INSERT INTO request ({', '.join(REQUEST_COLUMNS)}) VALUES ({marks})", requests)
    base.executemany(
        "INSERT INTO url (domain, fingerprint, url, visit, state, priority, position, depth) "
        "VALUES (?, ?, ?, ?, 1, 1, 0, 1)",
        urls,
    )
    base.executemany("INSERT OR IGNORE INTO content VALUES (?, ?, ?, ?, ?, ?, ?)", contents)


if __name__ == "__main__":
    sys.exit(main())
