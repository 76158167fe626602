"""Which texts a process knows to be stored, and which to be repeated by their domain."""

from __future__ import annotations

from collections.abc import Iterable

from rove.crawl.known_texts import BatchTexts, KnownTexts
from rove.model.ledger import Content, Location
from rove.model.visits import Lease
from rove.store.contract import Page, Stored

PLACE = Location(file="a.warc.gz", offset=1, length=2)


class Known:
    """A frontier that knows some texts."""

    def __init__(self, *contents: Content) -> None:
        self.contents = {content.hash: content for content in contents}
        self.looked_up: list[set[int]] = []

    async def known_contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        self.looked_up.append(set(hashes))
        return {hash: self.contents[hash] for hash in hashes if hash in self.contents}


def lease(domain: int, token: int = 1) -> Lease:
    return Lease(domain=domain, name=f"d{domain}.test", token=token, crawl_delay=0.0, urls=())


def page(hash: int | None, name: str = "") -> Page:
    url = f"http://a.test/{name}"
    return Page(url=url, fetched_at=5.0, text=b"", source=None, content_hash=hash)


def content(hash: int, *, domain: int = 1, visit: int = 1, sha1_64: int = 7) -> Content:
    return Content(
        hash=hash, sha1_64=sha1_64, domain=domain, visit=visit, where=PLACE, url="http://a.test/", fetched_at=5.0
    )


def known_texts(*contents: Content) -> KnownTexts:
    return KnownTexts(Known(*contents))  # type: ignore[arg-type]


NEW = Stored(text=PLACE, raw=None, sha1_64=7)
COPY = Stored(text=PLACE, raw=None, is_copy=True, sha1_64=7)
SHORT = Stored(text=PLACE, raw=None)


async def test_the_frontier_is_told_of_new_texts_only() -> None:
    texts = await known_texts(content(2)).look_up([page(1), page(2), page(3)])
    assert set(texts.known) == {2}
    assert texts.content_of(lease(1), page(1), NEW) == content(1)
    assert texts.content_of(lease(1), page(2), COPY) is None
    assert texts.content_of(lease(1), page(3), SHORT) is None
    assert texts.content_of(lease(1), page(None), NEW) is None


async def test_a_second_text_with_a_known_hash_is_ignored() -> None:
    texts = await known_texts(content(2, sha1_64=8)).look_up([page(2)])
    assert texts.content_of(lease(1), page(2), NEW) is None


async def test_a_copy_carries_the_location_of_its_text() -> None:
    """The visit that stored the text may turn out not to count."""
    texts = await known_texts().look_up([page(1), page(1)])
    first = texts.content_of(lease(1, token=10), page(1), NEW)
    assert first is not None and first.visit == 10
    assert texts.content_of(lease(2, token=11), page(1), COPY) == first


async def test_the_batch_before_is_remembered_until_it_is_settled() -> None:
    known = Known()
    process = KnownTexts(known)  # type: ignore[arg-type]
    process.sent([content(1)])
    texts = await process.look_up([page(1), page(2)])
    assert known.looked_up == [{2}] and set(texts.known) == {1}
    process.arrived([content(1)])
    assert texts.content_of(lease(2), page(1), COPY) == content(1)
    assert (await process.look_up([page(1)])).known == {}


def is_repeat(texts: BatchTexts, domain: int, hash: int, stored: Stored) -> bool:
    return texts.is_repeat(lease(domain), page(hash), stored)


async def test_a_domain_repeats_only_its_own_texts() -> None:
    process = known_texts(content(1, domain=1))
    texts = await process.look_up([page(1), page(2)])
    assert is_repeat(texts, 1, 1, COPY), "the domain had the text first"
    assert not is_repeat(texts, 2, 1, COPY), "another domain had the text first"
    assert is_repeat(texts, 2, 1, COPY), "the domain has given it by now"
    assert not is_repeat(texts, 1, 2, NEW)
    assert is_repeat(texts, 1, 2, COPY), "within the batch"
    later = await process.look_up([page(2), page(3)])
    assert is_repeat(later, 1, 2, SHORT), "over batches, even for a short text"
    assert not is_repeat(later, 3, 2, SHORT)
    assert not texts.is_repeat(lease(1), page(None), NEW)


async def test_a_second_text_with_the_same_hash_is_not_a_repeat() -> None:
    texts = await known_texts(content(1, sha1_64=8)).look_up([page(1)])
    assert not is_repeat(texts, 1, 1, NEW)


async def test_what_is_remembered_is_bounded() -> None:
    process = KnownTexts(Known(), max_remembered=100)  # type: ignore[arg-type]
    texts = await process.look_up([])
    for number in range(1_000):
        assert not is_repeat(texts, 1, number, SHORT)
    assert is_repeat(texts, 1, 999, SHORT) and not is_repeat(texts, 1, 0, SHORT)
