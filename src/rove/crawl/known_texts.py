"""Knows which texts are stored already, so that each is stored once, and which texts a domain repeats.

The texts of a batch are looked up in the frontier before the batch is stored. The frontier learns where new texts are
when the visits of the batch are settled. Until then they are remembered here, because the next batch may be stored
first. Every visit carries the locations of all texts that its pages refer to, unless the frontier knows them. So no
text is lost with a visit that turns out not to count. Two processes that fetch the same text at the same moment both
store it, which does no harm.

If a domain was the first with a text, the frontier tells that the domain repeats it. For short texts, and for texts
that another domain had first, a bounded memory of this process tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rove.crawl.seen import SeenSet, seen_key
from rove.frontier.contract import Frontier
from rove.model.ledger import Content
from rove.model.visits import Lease
from rove.store.contract import Page, Stored

MAX_REMEMBERED = 200_000
"""Pairs of a domain and a text that a process remembers; they take about 15 MB."""


class BatchTexts:
    """The texts of one batch of pages."""

    def __init__(self, stored: Mapping[int, Content], in_transit: Mapping[int, Content], served: SeenSet) -> None:
        self._fresh = dict(in_transit)
        """Texts that the frontier does not know yet."""
        self.known = {**stored, **in_transit}
        """Texts that need not be stored again, by hash."""
        self._served = served

    def content_of(self, lease: Lease, page: Page, stored: Stored) -> Content | None:
        """Return the location of a page's text if the visit must tell the frontier, None if it need not."""
        hash = page.content_hash
        if hash is None or stored.sha1_64 is None:
            return None
        if stored.is_copy:
            return self._fresh.get(hash)
        if hash in self.known or hash in self._fresh or stored.text is None:
            return None  # the hash belongs to another text
        content = Content(
            hash=hash,
            sha1_64=stored.sha1_64,
            domain=lease.domain,
            visit=lease.token,
            where=stored.text,
            url=page.url,
            fetched_at=page.fetched_at,
        )
        self._fresh[hash] = content
        return content

    def is_repeat(self, lease: Lease, page: Page, stored: Stored) -> bool:
        """Return whether the domain has served this text before, and remember that it has now."""
        if page.content_hash is None:
            return False
        pair = seen_key(lease.domain, page.content_hash)
        first = self.known.get(page.content_hash) if stored.is_copy else None
        is_repeat = pair in self._served or (first is not None and first.domain == lease.domain)
        self._served.update([pair])
        return is_repeat


class KnownTexts:
    """The stored texts that one process knows of."""

    def __init__(self, frontier: Frontier, *, max_remembered: int = MAX_REMEMBERED) -> None:
        self._frontier = frontier
        self._in_transit: dict[int, Content] = {}
        """New texts whose visits are not settled yet."""
        self._served = SeenSet(max_remembered)

    @property
    def remembered(self) -> int:
        """How many pairs of a domain and a text are remembered."""
        return len(self._served)

    @property
    def in_transit(self) -> int:
        """How many new texts the frontier does not know yet."""
        return len(self._in_transit)

    @property
    def bytes(self) -> int:
        """About how much memory the remembered pairs take."""
        return self._served.bytes

    async def look_up(self, pages: Sequence[Page]) -> BatchTexts:
        """Look up the texts of a batch of pages."""
        hashes = {page.content_hash for page in pages if page.content_hash is not None}
        in_transit = {hash: self._in_transit[hash] for hash in hashes & self._in_transit.keys()}
        stored = await self._frontier.known_contents(hashes - in_transit.keys())
        return BatchTexts(stored, in_transit, self._served)

    def sent(self, contents: Iterable[Content]) -> None:
        """Remember new texts until the frontier knows them."""
        for content in contents:
            self._in_transit[content.hash] = content

    def arrived(self, contents: Iterable[Content]) -> None:
        """Forget texts that the frontier knows now."""
        for content in contents:
            self._in_transit.pop(content.hash, None)
