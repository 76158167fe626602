"""Where the text of a page is stored: in its own record or in another's, here or on another machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rove.inspect.open_crawl import Archive
from rove.inspect.request_rows import page_with_records
from rove.model.ledger import Content, Location, RequestKind, RequestRow
from rove.store.reader import WarcReader

OWN = Location(file="own.warc.gz", offset=1, length=2)
SHARED = Location(file="shared.warc.gz", offset=3, length=4)
ROW = RequestRow(
    visit=1,
    seq=0,
    domain=1,
    kind=RequestKind.PAGE,
    url="http://a.test/",
    fingerprint=1,
    started=1.0,
    began=0,
    ended=0,
    content_hash=7,
    text=OWN,
)
TEXT = Content(hash=7, sha1_64=8, domain=2, visit=2, where=SHARED, url="http://b.test/", fetched_at=1.0)


class Reader:
    """A crawl that knows some texts."""

    def __init__(self, *contents: Content) -> None:
        self.contents_of = {content.hash: content for content in contents}
        self.asked = 0

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        self.asked += 1
        return {hash: self.contents_of[hash] for hash in hashes if hash in self.contents_of}


def archive(*contents: Content, cache_size: int = 100) -> tuple[Archive, Reader]:
    reader = Reader(*contents)
    nothing: Any = None
    pages = WarcReader(Path("none"))
    made: Any = reader
    crawl = Archive(data=nothing, reader=made, catalog=nothing, pages=pages, cache_size=cache_size)
    return crawl, reader


async def test_a_page_with_a_text_of_its_own_is_where_its_row_says() -> None:
    crawl, reader = archive(TEXT)
    stored = await crawl.text_of(ROW.replace(node="m2:/data"))
    assert (stored.where, stored.node, stored.copy_of) == (OWN, "m2:/data", "")
    assert not reader.asked
    record = page_with_records(stored)
    assert record["text_record"]["file"] == "own.warc.gz"
    assert (record["revisit_record"], record["copy_of"]) == (None, None)
    assert crawl.read(await crawl.text_of(ROW.replace(text=None))) is None


@pytest.mark.parametrize(("of_row", "of_text"), [("", "m2:/data"), ("m2:/data", "")])
async def test_a_copy_is_where_its_text_is(of_row: str, of_text: str) -> None:
    crawl, reader = archive(TEXT.replace(node=of_text))
    row = ROW.replace(is_copy=True, node=of_row)
    for _ in range(2):
        stored = await crawl.text_of(row)
        assert (stored.where, stored.node, stored.copy_of) == (SHARED, of_text, "http://b.test/")
    assert reader.asked == 1
    record = page_with_records(stored)
    assert record["text_record"]["file"] == "shared.warc.gz"
    assert record["revisit_record"]["file"] == "own.warc.gz"
    assert record["copy_of"] == "http://b.test/"


async def test_a_page_that_has_inherited_a_text_is_nobodys_copy() -> None:
    crawl, _ = archive(TEXT.replace(url=ROW.url))
    stored = await crawl.text_of(ROW.replace(is_copy=True))
    assert (stored.where, stored.copy_of) == (SHARED, "")
    assert page_with_records(stored)["copy_of"] is None


async def test_a_copy_of_what_was_deleted_has_no_text() -> None:
    crawl, _ = archive()
    stored = await crawl.text_of(ROW.replace(is_copy=True))
    assert stored.where is None and crawl.read(stored) is None


async def test_the_cache_of_texts_is_bounded() -> None:
    crawl, reader = archive(*(TEXT.replace(hash=n) for n in range(4)), cache_size=3)
    for number in (0, 1, 2, 0):
        await crawl.text_of(ROW.replace(is_copy=True, content_hash=number))
    assert reader.asked == 3, "three texts fit"
    for number in (3, 0):
        await crawl.text_of(ROW.replace(is_copy=True, content_hash=number))
    assert reader.asked == 5, "the fourth displaced the others"
