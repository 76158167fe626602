"""A bounded memory of URLs that are in the frontier for certain.

Most links of a page are known already; dropping them here spares the database. It has no false positives (that
would be a lost page): a fingerprint enters only after the commit that put it into the frontier. One that is taken out
later, as its domain has better ones, may stay here for a while: it was not worth a visit, and is hardly so now; the
writer offers it all the same where a redirect has led there. With --seeds-only, links out of scope enter too, and stay
so for this process if another machine adds their domain to the seeds. The frontier is correct without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

DEFAULT_LIMIT = 400_000


class Fingerprinted(Protocol):
    """A URL, however much of it is known."""

    @property
    def fingerprint(self) -> int:
        """What it is known by."""


Url = TypeVar("Url", bound=Fingerprinted)


class SeenSet:
    """Two generations: when the young one is full it becomes the old one, and the old one is dropped."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._half = max(1, limit // 2)
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __contains__(self, fingerprint: int) -> bool:
        return fingerprint in self._young or fingerprint in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def unseen(self, urls: Iterable[Url]) -> list[Url]:
        """Those that may be new; asked once for many, at half the cost."""
        young, old = self._young, self._old
        return [
            url
            for url in urls
            if (fingerprint := url.fingerprint) not in young and fingerprint not in old
        ]

    def update(self, fingerprints: Sequence[int]) -> None:
        """Remember these: they are committed."""
        start = 0
        while start < len(fingerprints):
            if len(self._young) >= self._half:
                self._old, self._young = self._young, set()
            end = start + self._half - len(self._young)
            self._young.update(fingerprints[start:end])
            start = end
