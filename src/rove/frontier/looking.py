"""What people look at in a crawl: a part of the contract of a FrontierReader."""

from __future__ import annotations

from typing import Protocol

from rove.frontier.domain_list import DomainCursor, DomainPage, DomainQuery
from rove.frontier.url_queue import QueuedUrl
from rove.model.skipped import SkippedLink


class Looking(Protocol):
    """The queries whose results may be long, and those about the queries themselves.

    Each reads in slices, within bounded memory.
    """

    async def domains(self, query: DomainQuery, *, limit: int, after: DomainCursor | None = None) -> DomainPage:
        """Return up to `limit` domains, at most domain_list.MOST_LISTED, that follow the last one of the page before.

        Unless an index has the domains in this order, all of them are read once: a million in seconds.
        """

    async def queue(self, *, delay: float, limit: int, domain: int | None = None) -> list[QueuedUrl]:
        """Return pending URLs of a domain or of all, in the order in which they will be requested.

        They are up to `limit`, at most url_queue.MOST_QUEUED. `delay` is the operator's delay.
        """

    async def skipped(self) -> list[SkippedLink]:
        """Return examples of links that were not taken, by reason: at most model.skipped.SAMPLED of each.

        They are a random choice among the URLs, whatever number of times each was found. Left out are seeds, and URLs
        that were accepted and deleted later.
        """

    def query_names(self) -> list[str]:
        """Return the names of rove's own statements that `explain_query` knows."""

    async def explain_query(self, name: str) -> list[str]:
        """Return how the database executes one of rove's own statements; UsageError if there is none of this name.

        Nothing is changed, and nothing is locked for long.
        """
