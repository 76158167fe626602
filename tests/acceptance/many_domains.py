"""Make a crawl that knows many domains, without crawling them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rove.config import Settings
from rove.datadir import DataDir
from rove.frontier.backends import backend_for, form_of, policy_of
from tests.acceptance.command import EMAIL

BATCH = 10_000


def crawl_of_many_domains(folder: Path, count: int) -> None:
    """Make a crawl on SQLite that knows these many domains: domain 7 is host7.test, and has 7 % 5 + 1 pending URLs."""
    with ThreadPoolExecutor(1) as thread:  # the driver of a browser may have the event loop of this one
        thread.submit(lambda: asyncio.run(_make(DataDir(folder), count))).result()


async def _make(data: DataDir, count: int) -> None:
    data.root.mkdir()
    settings, backend = Settings(email=EMAIL), backend_for(data, None)
    await backend.open(create=True)
    try:
        await backend.catalog.save(settings.to_json(), None)
        form = await form_of(backend.catalog, settings)
        frontier = await backend.begin(policy_of(settings), None)
        for start in range(0, count, BATCH):
            texts = [
                f"http://host{number}.test/{page}"
                for number in range(start, min(start + BATCH, count))
                for page in range(number % 5 + 1)
            ]
            urls = [url for text in texts if (url := form.canonical(text)) is not None]
            await frontier.add([url.new_url(depth=0) for url in urls])
    finally:
        await backend.close()
