"""Explains a URL of a crawl that is open for reading."""

from __future__ import annotations

from rove.inspect.explain import Explanation, explain_url
from rove.inspect.lookup import url_known
from rove.inspect.open_crawl import Archive
from rove.inspect.url_facts import read_url_facts


async def explained(archive: Archive, url: str, *, now: float) -> Explanation:
    """Return whether a URL would be fetched, and why; `now` is wall-clock seconds."""
    form = await archive.form()
    wanted = await url_known(archive.reader, url, form)
    facts = await read_url_facts(
        archive.reader,
        wanted,
        form,
        settings=await archive.settings(),
        exclusions=await archive.catalog.exclusion_history(),
        retries=await archive.catalog.retries(),
        is_running=await archive.is_running(),
    )
    return explain_url(url, wanted, facts, now=now)
