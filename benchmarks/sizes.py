"""Measure how much disk a crawl needs: per million pending URLs, per million pages in the ledger, and per stored page.

    python -m benchmarks.sizes                     # the frontiers on SQLite and PostgreSQL
    python -m benchmarks.sizes --pages FOLDER      # also WARC files, from real pages (*.html.gz) in a folder

The URLs are added, and the visits are settled, through the frontier itself, so that tables and indexes are as full as
they are in a crawl.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path

from tests.postgres import own_server

from benchmarks.frontier_backends import Backend, Postgres, Sqlite, new_url, policy
from benchmarks.frontier_load import visited
from rove.parse.html import PageSource, read_html
from rove.store.contract import Keep, Page
from rove.store.warc import WarcStore
from rove.urls.canonical import NO_IDS

DOMAINS = 10_000
URLS_PER_DOMAIN = 40
VISITS = 100_000
ADD_BATCH = 4_096
CLAIM_BATCH = 256
MILLION = 1_000_000


async def frontier_sizes(backend: Backend, size: Callable[[], Awaitable[int]]) -> str:
    """Fill a frontier, visit a part of it, and return what URLs and pages cost."""
    async with backend.opened(policy()) as frontier:
        empty = await size()
        urls = [new_url(domain, page) for page in range(URLS_PER_DOMAIN) for domain in range(DOMAINS)]
        for start in range(0, len(urls), ADD_BATCH):
            await frontier.add(urls[start : start + ADD_BATCH])
        filled = await size()
        settled = 0
        while settled < VISITS:
            leases = await frontier.claim(CLAIM_BATCH)
            settled += await frontier.settle([visited(lease, with_requests=True) for lease in leases])
        visited_size = await size()
    per_url, per_page = (filled - empty) / len(urls), (visited_size - filled) / settled
    return (
        f"{backend.name}: {per_url * MILLION / 1e6:,.0f} MB per million pending URLs, "
        f"{per_page * MILLION / 1e6:,.0f} MB more per million pages in the ledger"
    )


async def sqlite_sizes(folder: Path) -> str:
    """Return what a frontier on SQLite costs, without the write-ahead log, which does not grow with it."""
    path = folder / "frontier.sqlite"

    async def size() -> int:
        with closing(sqlite3.connect(path)) as base:
            query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            return int(base.execute(query).fetchone()[0])

    return await frontier_sizes(Sqlite(str(path)), size)


async def postgres_sizes(url: str) -> str:
    """Return what a frontier on PostgreSQL costs, indexes included."""
    backend = Postgres(url, "sizes")

    async def size() -> int:
        async with backend.connected() as connection:
            query = "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE schemaname = 'sizes'"
            return int(await connection.fetchval(query))

    return await frontier_sizes(backend, size)


async def store_sizes(folder: Path, files: Sequence[Path]) -> str:
    """Return what the text of real pages takes in WARC files."""
    store = WarcStore(folder, keep=Keep.TEXT, name="sizes", software="benchmark")
    texts, received = 0, 0
    for number, file in enumerate(files):
        body = gzip.decompress(file.read_bytes())
        url = f"https://site{number}.test/"
        document = read_html(PageSource(body=body, url=url, content_type="text/html"), NO_IDS)
        await store.write([Page(url=url, fetched_at=0.0, text=document.utf8, source=None)])
        texts, received = texts + len(document.utf8), received + len(body)
    await store.close()
    stored = sum(entry.stat().st_size for entry in os.scandir(folder))
    count = len(files)
    return (
        f"WARC, text only: {stored / count / 1e3:.1f} KB per page "
        f"({count} pages, mean HTML {received / count / 1e3:.0f} KB, mean text {texts / count / 1e3:.1f} KB)"
    )


def main() -> None:
    """Print one line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="folder of real pages, *.html.gz")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(sqlite_sizes(Path(folder))), flush=True)
        with own_server() as server:
            print(asyncio.run(postgres_sizes(server.url)), flush=True)
        if options.pages is not None:
            print(asyncio.run(store_sizes(Path(folder, "warc"), sorted(options.pages.glob("*.html.gz")))), flush=True)


if __name__ == "__main__":
    main()
