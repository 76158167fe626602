"""A bounded set of URLs that are certainly in the frontier.

Most links of a page are known, and dropping them here spares the database. The set has no false positives, which would
lose pages: a URL enters only after the commit that put it into the frontier. The frontier is correct without the set.

A URL that was added for a foreign domain has a key of its own. When its own domain names it later, it reaches the
frontier once more, which then counts it as the domain's own.

Two kinds of URLs stay in the set although the frontier does not hold them. A URL that was evicted for lack of room is
hardly worth a visit; if a redirect leads to it, the writer adds it nevertheless. With a --scope, links out of scope
enter too, and this process ignores them even if another machine adds their domain to the seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from rove.model.urls import NewUrl
from rove.urls.canonical import CrawlUrl

DEFAULT_LIMIT = 400_000
KEY_BYTES = 48
"""Memory of one key: an integer of 128 bits."""
_ID_BITS = 64
_FOREIGN = 1 << 2 * _ID_BITS
"""Added to the key of a URL that only other domains have named."""


def seen_key(domain: int, number: int) -> int:
    """Return the key of a URL, given by domain and fingerprint. One integer takes half the memory of a tuple."""
    return (domain << _ID_BITS) + number


class SeenSet:
    """A set of keys in two generations: a full young one becomes the old one, and the old one is dropped."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._half = max(1, limit // 2)
        self._young: set[int] = set()
        self._old: set[int] = set()
        self._era = 0

    def __contains__(self, key: int) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def bytes(self) -> int:
        """About how much memory the set takes."""
        return sys.getsizeof(self._young) + sys.getsizeof(self._old) + KEY_BYTES * len(self)

    def unseen(self, urls: Iterable[NewUrl]) -> list[NewUrl]:
        """Return the URLs that may be new. One call for many takes half the time of `in` for each."""
        young, old = self._young, self._old
        return [
            url
            for url in urls
            # seen_key(), inlined
            if (key := (url.domain << _ID_BITS) + url.fingerprint) not in young
            and key not in old
            and not (url.is_foreign and (key + _FOREIGN in young or key + _FOREIGN in old))
        ]

    def unseen_links(self, links: Iterable[CrawlUrl], own_domains: Collection[int]) -> list[CrawlUrl]:
        """Return the links that may be new; those to other domains than `own_domains` are foreign."""
        young, old = self._young, self._old
        return [
            link
            for link in links
            if (key := (link.domain << _ID_BITS) + link.fingerprint) not in young
            and key not in old
            and not (link.domain not in own_domains and (key + _FOREIGN in young or key + _FOREIGN in old))
        ]

    def note(self, urls: Iterable[NewUrl], refused: Collection[tuple[int, int]]) -> None:
        """Add URLs that are committed to the frontier, except refused ones, given by domain and fingerprint."""
        self.update(
            [
                seen_key(url.domain, url.fingerprint) + (_FOREIGN if url.is_foreign else 0)
                for url in urls
                if (url.domain, url.fingerprint) not in refused
            ]
        )

    def update(self, keys: Sequence[int]) -> None:
        """Add the keys of URLs that are committed to the frontier."""
        start = 0
        while start < len(keys):
            if len(self._young) >= self._half:
                self._old, self._young = self._young, set()
            end = start + self._half - len(self._young)
            self._young.update(keys[start:end])
            start = end

    def enter_era(self, era: int) -> None:
        """Forget all URLs if this is a new era of the frontier, which may have lost some of them."""
        if era != self._era:
            self._era = era
            self._young, self._old = set(), set()
