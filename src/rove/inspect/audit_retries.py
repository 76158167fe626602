"""The retries that a person asked for, as an audit needs them."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.retries import Retry


class AskedRetries:
    """Finds the retries that excuse a request."""

    def __init__(self, retries: Sequence[Retry]) -> None:
        self._retries = retries

    def between(self, domain: int, since: int, until: int) -> list[Retry]:
        """Return the retries of a domain that took place between two moments of the crawl's clock."""
        return [
            retry
            for retry in self._retries
            if retry.filter.domain in (None, domain) and retry.ended >= since and retry.at <= until
        ]
