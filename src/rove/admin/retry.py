"""`rove retry`: make failed URLs pending again, in a running or a stopped crawl.

Ten million URLs may have failed. They are read and changed in slices, each a transaction of its own, so that no claim
waits for long. If the command is killed, run it again: what is pending by then is left alone.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from rove.admin.exclude import current_user
from rove.admin.maintenance import CrawlNamed, Maintained, maintained
from rove.frontier.contract import FrontierReader
from rove.frontier.retries import KnownUrl
from rove.inspect.seed_outcomes import outcomes_of, urls_to_retry
from rove.policy.exclusions import Exclusions
from rove.policy.retry_filter import RetryFilter
from rove.urls.canonical import UrlForm

PROGRESS_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """The result of a retry."""

    urls: int
    """URLs that are pending and due."""
    excluded: int
    """URLs that were left alone because they are excluded."""
    is_running: bool


async def retry(crawl: CrawlNamed, filter: RetryFilter, *, say: Callable[[str], None]) -> Retried:
    """Make the failed URLs that a filter covers pending again; `say` shows progress.

    A filter for one domain needs only its name.
    """
    async with maintained(crawl) as opened:
        if filter.domain_name:
            filter = replace(filter, domain=opened.form.domain_id(filter.domain_name))
        urls, excluded = await retry_all(opened, filter, say=say)
        return Retried(urls=urls, excluded=excluded, is_running=await opened.is_running())


async def retry_all(opened: Maintained, filter: RetryFilter, *, say: Callable[[str], None]) -> tuple[int, int]:
    """Do the work of `retry`; return how many URLs are tried again, and how many are excluded."""
    catalog, number, retried, excluded = opened.backend.catalog, None, 0, 0
    exclusions = Exclusions(await catalog.exclusions())
    shown_at = time.monotonic()
    async for failed in _failed(opened.backend.reader, filter, opened.form):
        matching = [url for url in failed if filter.matches(url.reason)]
        allowed = [url for url in matching if not exclusions.covers_url(url.url)]
        excluded += len(matching) - len(allowed)
        if not allowed:
            continue
        if number is None:
            number = await catalog.begin_retry(filter, who=current_user(), delay=opened.settings.delay)
        retried += await opened.frontier.retry(allowed, number)
        if time.monotonic() - shown_at >= PROGRESS_SECONDS:
            shown_at = time.monotonic()
            say(f"{retried:,} URLs so far")
    return retried, excluded


async def _failed(reader: FrontierReader, filter: RetryFilter, form: UrlForm) -> AsyncIterator[list[KnownUrl]]:
    """Iterate over the failed URLs that may match, in slices."""
    if not filter.only_seeds:
        async for urls in reader.troubled(filter.domain):
            yield urls
        return
    async for seeds in reader.seeds():
        wanted = [seed for seed in seeds if filter.domain in (None, seed.domain)]
        outcomes = await outcomes_of(wanted, reader.known_urls, form)
        yield urls_to_retry(outcome for outcome in outcomes if filter.matches(outcome.final.reason))
