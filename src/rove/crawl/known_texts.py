"""Which texts were stored before, so that each is stored once; and which of them their domain had given before.

Between the writer, the store and the frontier: a group's texts are looked up before it is stored, and where the new
ones lie is told to the frontier as its visits are settled. The group before may be on its way there at that time: what
it stored is remembered here until it has arrived. A visit always brings with it what its pages rely on, unless that
came from the frontier, so that a text is never lost with a visit that turns out not to count. Two processes that meet
a text in the same moment both store it; that does no harm.

Whether a domain repeats itself is known from the frontier where its own page was the first with that text, and else
from a bounded memory of this process: short texts and copies of other domains' texts have no row that would tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rove.crawl.seen import SeenSet
from rove.frontier.contract import Frontier
from rove.model.ledger import Content
from rove.model.visits import Lease
from rove.store.contract import Page, Stored

REMEMBERED = 200_000
"""Pairs of a domain and a text that a process remembers, in about 15 MB."""


class BatchTexts:
    """The texts of one group of pages."""

    def __init__(
        self, stored: Mapping[int, Content], on_their_way: Mapping[int, Content], given: SeenSet
    ) -> None:
        self._fresh = dict(on_their_way)
        self.known = {**stored, **on_their_way}
        """What the store need not store again."""
        self._given = given

    def content_of(self, lease: Lease, page: Page, stored: Stored) -> Content | None:
        """What the frontier has to know for the text of a page to be found, None if it does."""
        hash = page.content_hash
        if hash is None or stored.checked is None:
            return None
        if stored.is_copy or hash in self._fresh:
            return self._fresh.get(hash) if stored.is_copy else None
        if hash in self.known or stored.text is None:
            return None  # another text of this hash was first
        content = Content(
            hash=hash,
            checked=stored.checked,
            domain=lease.domain,
            visit=lease.token,
            where=stored.text,
            url=page.url,
            fetched_at=page.fetched_at,
        )
        self._fresh[hash] = content
        return content

    def is_repeat(self, lease: Lease, page: Page, stored: Stored) -> bool:
        """Whether the domain had given the text of a page before; from now on it has."""
        if page.content_hash is None:
            return False
        pair = hash((lease.domain, page.content_hash))
        first = self.known.get(page.content_hash) if stored.is_copy else None
        repeats = pair in self._given or (first is not None and first.domain == lease.domain)
        self._given.update([pair])
        return repeats


class KnownTexts:
    """What one process knows of texts that are stored."""

    def __init__(self, frontier: Frontier, *, remembered: int = REMEMBERED) -> None:
        self._frontier = frontier
        self._on_their_way: dict[int, Content] = {}
        self._given = SeenSet(remembered)

    async def look_up(self, pages: Sequence[Page]) -> BatchTexts:
        """What is known of the texts of a group."""
        hashes = {page.content_hash for page in pages if page.content_hash is not None}
        on_their_way = {
            hash: self._on_their_way[hash] for hash in hashes & self._on_their_way.keys()
        }
        stored = await self._frontier.known_contents(hashes - on_their_way.keys())
        return BatchTexts(stored, on_their_way, self._given)

    def sent(self, contents: Iterable[Content]) -> None:
        """These are on their way to the frontier."""
        for content in contents:
            self._on_their_way[content.hash] = content

    def arrived(self, contents: Iterable[Content]) -> None:
        """The frontier has seen these."""
        for content in contents:
            self._on_their_way.pop(content.hash, None)
