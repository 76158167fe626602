"""Where the text of a page is found, its own or another's, here or on another machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import rove.inspect.open_crawl
from rove.inspect.open_crawl import Archive
from rove.inspect.pages import copy_json, page_json
from rove.model.ledger import (
    Content,
    Location,
    RequestKind,
    RequestRow,
)
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
TEXT = Content(
    hash=7, checked=8, domain=2, visit=2, where=SHARED, url="http://b.test/", fetched_at=1.0
)


class Reader:
    """A crawl that knows some texts."""

    def __init__(self, *contents: Content) -> None:
        self.contents_of = {content.hash: content for content in contents}
        self.asked = 0

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        self.asked += 1
        return {hash: self.contents_of[hash] for hash in hashes if hash in self.contents_of}


def archive(*contents: Content) -> tuple[Archive, Reader]:
    reader = Reader(*contents)
    nothing: Any = None
    pages = WarcReader(Path("none"))
    made: Any = reader
    return Archive(data=nothing, place="", reader=made, catalog=nothing, pages=pages), reader


async def test_a_page_with_a_text_of_its_own_is_where_its_row_says() -> None:
    found, reader = archive(TEXT)
    stored = await found.text_of(ROW.replace(node="m2:/data"))
    assert (stored.where, stored.place, stored.copy_of) == (OWN, "m2:/data", "")
    assert not reader.asked
    assert copy_json(stored.content, ROW) == {} and "text_record" in page_json(ROW)
    assert found.read(await found.text_of(ROW.replace(text=None))) is None


@pytest.mark.parametrize(("of_row", "of_text"), [("", "m2:/data"), ("m2:/data", "")])
async def test_a_copy_is_where_its_text_is(of_row: str, of_text: str) -> None:
    found, reader = archive(TEXT.replace(node=of_text))
    row = ROW.replace(is_copy=True, node=of_row)
    for _ in range(2):
        stored = await found.text_of(row)
        assert (stored.where, stored.place, stored.copy_of) == (SHARED, of_text, "http://b.test/")
    assert reader.asked == 1
    record = {**page_json(row), **copy_json(stored.content, row)}
    assert record["text_record"]["file"] == "shared.warc.gz"
    assert record["revisit_record"]["file"] == "own.warc.gz"
    assert record["copy_of"] == "http://b.test/"


async def test_a_page_that_has_inherited_a_text_is_nobodys_copy() -> None:
    found, _ = archive(TEXT.replace(url=ROW.url))
    stored = await found.text_of(ROW.replace(is_copy=True))
    assert (stored.where, stored.copy_of) == (SHARED, "")
    assert "copy_of" not in copy_json(stored.content, ROW)


async def test_a_copy_of_what_was_deleted_has_no_text() -> None:
    found, _ = archive()
    stored = await found.text_of(ROW.replace(is_copy=True))
    assert stored.where is None and found.read(stored) is None


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rove.inspect.open_crawl, "CONTENTS_REMEMBERED", 3)
    found, reader = archive(*(TEXT.replace(hash=n) for n in range(10)))
    for number in range(10):
        await found.text_of(ROW.replace(is_copy=True, content_hash=number))
        assert len(found._contents) <= 3
    assert reader.asked == 10
