"""A bounded set of URLs that are certainly in the frontier.

Most links of a page are known, and dropping them here spares the database. The set has no false positives, which would
lose pages: a fingerprint enters only after the commit that put its URL into the frontier. The frontier is correct
without the set.

Two kinds of URLs stay in the set although the frontier does not hold them. A URL that was evicted for lack of room is
hardly worth a visit; if a redirect leads to it, the writer adds it nevertheless. With --seeds-only, links out of scope
enter too, and this process ignores them even if another machine adds their domain to the seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rove.model.urls import NewUrl
from rove.urls.canonical import CrawlUrl

DEFAULT_LIMIT = 400_000

Url = TypeVar("Url", CrawlUrl, NewUrl)


class SeenSet:
    """A set in two generations: when the young one is full it becomes the old one, and the old one is dropped."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._half = max(1, limit // 2)
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __contains__(self, fingerprint: int) -> bool:
        return fingerprint in self._young or fingerprint in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def unseen(self, urls: Iterable[Url]) -> list[Url]:
        """Return the URLs that may be new. One call for many takes half the time of `in` for each."""
        young, old = self._young, self._old
        return [url for url in urls if (fingerprint := url.fingerprint) not in young and fingerprint not in old]

    def update(self, fingerprints: Sequence[int]) -> None:
        """Add URLs that are committed to the frontier."""
        start = 0
        while start < len(fingerprints):
            if len(self._young) >= self._half:
                self._old, self._young = self._young, set()
            end = start + self._half - len(self._young)
            self._young.update(fingerprints[start:end])
            start = end
