"""A text is stored once. Later pages with the same text have a revisit record, which other tools understand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rove.errors import StoreError
from rove.model.ledger import Content, Location
from rove.model.text_hash import text_hash
from rove.store.contract import Keep, Page, Stored
from rove.store.reader import WarcReader
from rove.store.record import decompress, sha1_64, sha1_of, unreferring_record
from rove.store.warc import SHORTEST_SHARED
from tests.unit.store.pages import (
    DATE,
    FETCHED_AT,
    FastWarcIterator,
    member,
    page,
    passes_warcio_check,
    store,
    warcio_records,
    whole_file,
)

LONG = "A text that is worth to be stored only once. " * 20
PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


def known_page(number: int, text: str = LONG, **more: Any) -> Page:
    return replace(page(number, text, **more), content_hash=text_hash(text.encode()))


def write(
    directory: Path, pages: Sequence[Page], keep: Keep = Keep.TEXT, known: Mapping[int, Content] | None = None
) -> list[Stored]:
    async def run() -> list[Stored]:
        writer = store(directory, keep)
        stored = await writer.write(pages, known)
        await writer.close()
        return stored

    return asyncio.run(run())


def content(text: str = LONG, **more: Any) -> Content:
    values: dict[str, Any] = {
        "hash": text_hash(text.encode()),
        "sha1_64": sha1_64(sha1_of(text.encode())),
        "domain": 1,
        "visit": 2,
        "where": Location(file="other.warc.gz", offset=0, length=1),
        "url": "https://first.example/",
        "fetched_at": FETCHED_AT - 86_400,
    }
    return Content(**{**values, **more})


def kinds(directory: Path) -> list[str]:
    return [record.rec_type for record, _ in warcio_records(whole_file(directory))][1:]


def test_within_a_batch_later_copies_refer_to_the_first(tmp_path: Path) -> None:
    stored = write(tmp_path, [known_page(1), known_page(2, LONG + "!"), known_page(3)])
    path = whole_file(tmp_path)
    assert kinds(tmp_path) == ["conversion", "conversion", "revisit"]
    assert [where.is_copy for where in stored] == [False, False, True]
    assert stored[0].sha1_64 == stored[2].sha1_64 == sha1_64(sha1_of(LONG.encode()))
    first, _, copy = [record for record, _ in warcio_records(path)][1:]
    headers = copy.rec_headers
    assert headers.get_header("WARC-Target-URI") == "https://example.com/3"
    assert headers.get_header("WARC-Date") == DATE
    assert headers.get_header("WARC-Profile") == PROFILE
    assert headers.get_header("WARC-Refers-To-Target-URI") == "https://example.com/1"
    assert headers.get_header("WARC-Refers-To-Date") == DATE
    digest = first.rec_headers.get_header("WARC-Block-Digest")
    assert headers.get_header("WARC-Payload-Digest") == digest
    assert headers.get_header("Content-Length") == "0"
    assert passes_warcio_check(path)
    assert stored[2].text is not None
    assert decompress(member(path, stored[2].text)).headers["warc-type"] == "revisit"
    assert len(member(path, stored[2].text)) < 400
    with path.open("rb") as file:
        read = [record.headers["WARC-Type"] for record in FastWarcIterator(file)]
    assert read == ["warcinfo", "conversion", "conversion", "revisit"]


def test_a_known_text_is_not_stored_again(tmp_path: Path) -> None:
    (stored,) = write(tmp_path, [known_page(1)], known={content().hash: content()})
    assert stored.is_copy and kinds(tmp_path) == ["revisit"]
    headers = warcio_records(whole_file(tmp_path))[1][0].rec_headers
    assert headers.get_header("WARC-Refers-To-Target-URI") == "https://first.example/"
    assert headers.get_header("WARC-Refers-To-Date") == "2023-11-13T22:13:20Z"


def test_another_text_with_the_same_hash_is_stored(tmp_path: Path) -> None:
    """An attacker can find a text with a given 64-bit hash, but not with a given SHA-1 digest as well."""
    other = content(sha1_64=sha1_64(sha1_of(b"another")))
    pages = [known_page(1), known_page(2)]
    stored = write(tmp_path, pages, known={other.hash: other})
    assert [where.is_copy for where in stored] == [False, False]
    assert kinds(tmp_path) == ["conversion", "conversion"]


@pytest.mark.parametrize(("text", "is_copy"), [("x" * SHORTEST_SHARED, True), ("x" * (SHORTEST_SHARED - 1), False)])
def test_short_texts_are_always_stored(tmp_path: Path, text: str, is_copy: bool) -> None:
    first, second = write(tmp_path, [known_page(1, text), known_page(2, text)])
    assert second.is_copy is is_copy and (first.sha1_64 is not None) is is_copy
    if not is_copy:
        assert second.text is not None
        assert WarcReader(tmp_path).read_text(second.text) == text


def test_a_page_without_a_hash_is_always_stored(tmp_path: Path) -> None:
    stored = write(tmp_path, [page(1, LONG), page(2, LONG)])
    assert not any(where.is_copy or where.sha1_64 for where in stored)


def test_raw_responses_are_always_stored(tmp_path: Path) -> None:
    first, second = write(tmp_path / "raw", [known_page(1), known_page(2)], Keep.RAW)
    assert kinds(tmp_path / "raw") == ["response", "response"]
    assert not second.is_copy and first.sha1_64 is None
    write(tmp_path / "both", [known_page(1), known_page(2)], Keep.BOTH)
    raw, text = (whole_file(tmp_path / "both", kind) for kind in ("raw", "text"))
    assert [r.rec_type for r, _ in warcio_records(raw)] == ["warcinfo", "response", "response"]
    assert [r.rec_type for r, _ in warcio_records(text)] == ["warcinfo", "conversion", "revisit"]
    response, copy = (warcio_records(path)[-1][0].rec_headers for path in (raw, text))
    assert copy.get_header("WARC-Concurrent-To") == response.get_header("WARC-Record-ID")
    assert passes_warcio_check(raw) and passes_warcio_check(text)


def test_a_shared_text_is_read_and_its_digest_compared(tmp_path: Path) -> None:
    (stored,) = write(tmp_path, [known_page(1)])
    reader = WarcReader(tmp_path)
    assert stored.text is not None
    assert reader.read_content(content(where=stored.text)) == LONG
    with pytest.raises(StoreError, match="is another text"):
        reader.read_content(content(where=stored.text, sha1_64=1))
    (copy,) = write(tmp_path / "copy", [known_page(1)], known={content().hash: content()})
    assert copy.text is not None
    with pytest.raises(StoreError, match="'revisit' record, not a 'conversion'"):
        WarcReader(tmp_path / "copy").read_text(copy.text)


def test_a_revisit_record_can_lose_its_reference(tmp_path: Path) -> None:
    pages = [known_page(1), known_page(2)]
    stored = write(tmp_path, pages, Keep.BOTH)[1]
    assert stored.text is not None
    before = decompress(member(whole_file(tmp_path, "text"), stored.text))
    after = unreferring_record(before)
    assert b"Refers-To" not in after and b"example.com/1" not in after
    expected = {name: value for name, value in before.headers.items() if "refers-to" not in name}
    lines = after.decode().split("\r\n\r\n")[0].split("\r\n")[1:]
    assert {n.lower(): v for n, v in (line.split(": ", 1) for line in lines)} == expected
