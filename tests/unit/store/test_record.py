"""Records are read back by warcio and fastwarc, whatever headers the server sent."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from rove.store.contract import Keep
from rove.store.record import NotARecord, compress, decompress, response_record, text_record, warcinfo_record
from tests.unit.store.pages import DATE, FastWarcIterator, page, passes_warcio_check, warcio_records, whole_file, write

ID = "<urn:uuid:00000000-0000-4000-8000-000000000000>"


def http_head(**options: Any) -> list[str]:
    """Return the lines of the stored response's head."""
    block = decompress(compress(response_record(page(**options), record_id=ID))).block
    return block.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


def test_a_text_record_is_as_in_a_wet_file() -> None:
    head, _, rest = text_record(page(7, "Grüße"), refers_to=ID).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "WARC/1.1"
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert headers.pop("WARC-Record-ID").startswith("<urn:uuid:")
    assert headers == {
        "WARC-Type": "conversion",
        "WARC-Target-URI": "https://example.com/7",
        "WARC-Date": DATE,
        "WARC-Refers-To": ID,
        "WARC-Identified-Payload-Type": "text/plain",
        "WARC-Block-Digest": "sha1:6ZEXKHLODO2G7DEGVDQDAARXYM67A4DU",
        "Content-Type": "text/plain",
        "Content-Length": "7",
    }
    assert rest == "Grüße\r\n\r\n".encode()


def test_a_text_without_a_response_refers_to_nothing() -> None:
    assert b"WARC-Refers-To" not in text_record(page(), refers_to=None)


def test_the_headers_of_a_response_record() -> None:
    record = decompress(compress(response_record(page(truncated=True), record_id=ID)))
    assert record.headers["warc-type"] == "response"
    assert record.headers["warc-record-id"] == ID
    assert record.headers["warc-ip-address"] == "192.0.2.7"
    assert record.headers["warc-truncated"] == "length"
    assert record.headers["warc-identified-payload-type"] == "text/html"
    assert record.headers["content-type"] == "application/http;msgtype=response"
    assert record.headers["warc-payload-digest"] != record.headers["warc-block-digest"]


def test_a_complete_response_is_not_marked_truncated() -> None:
    assert b"WARC-Truncated" not in response_record(page(), record_id=ID)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ([], ["Content-Length: 5"]),
        ([("Content-Length", "5")], ["Content-Length: 5"]),
        ([("content-length", "5")], ["content-length: 5"]),
        ([("Content-Length", "99")], ["X-Crawler-Content-Length: 99", "Content-Length: 5"]),
        (
            [("Transfer-Encoding", "chunked"), ("Via", "x")],
            ["X-Crawler-Transfer-Encoding: chunked", "Via: x", "Content-Length: 5"],
        ),
        (
            [("Transfer-Encoding", "chunked"), ("Content-Length", "5")],
            ["X-Crawler-Transfer-Encoding: chunked", "Content-Length: 5"],
        ),
        ([("Content-Length", "4"), ("Content-Length", "5")], ["X-Crawler-Content-Length: 4", "Content-Length: 5"]),
        ([("Content-Encoding", "br")], ["Content-Encoding: br", "Content-Length: 5"]),
    ],
)
def test_the_head_fits_the_stored_body(sent: list[tuple[str, str]], stored: list[str]) -> None:
    assert http_head(headers=sent, body=b"12345") == ["HTTP/1.1 200 OK", *stored]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("HTTP/1.1 200 OK", "HTTP/1.1 200 OK"),
        ("HTTP/2 200 ", "HTTP/2 200"),
        ("http/1.0 200", "http/1.0 200"),
        ("", "HTTP/1.1 200"),
        ("\x1f", "HTTP/1.1 200"),
        ("ICY 200 OK", "HTTP/1.1 200"),
        ("HTTP/1.1 200 O\r\n\r\nK", "HTTP/1.1 200 O    K"),
    ],
)
def test_the_status_line_is_one_line(sent: str, stored: str) -> None:
    assert http_head(status_line=sent)[0] == stored


def test_a_header_cannot_end_the_head() -> None:
    sent = [("A\r\n\r\nB", "1\r\n\r\n2\x003"), (" C", "4"), ("", "5"), ("D", "\u20ac")]
    assert http_head(headers=sent)[1:-1] == ["A    B: 1    2 3", "C: 4", ": 5", "D: ?"]


def test_the_first_record_describes_the_crawl() -> None:
    fields = {"software": "rove", "operator": "a\r\nb"}
    record = decompress(compress(warcinfo_record(filename="x.warc.gz", created_at=0, fields=fields)))
    assert record.headers["warc-type"] == "warcinfo"
    assert record.headers["warc-filename"] == "x.warc.gz"
    assert record.headers["content-type"] == "application/warc-fields"
    assert record.block == b"software: rove\r\noperator: a  b\r\n"


latin1 = st.text(st.characters(max_codepoint=255), max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    headers=st.lists(st.tuples(latin1, latin1), max_size=4),
    status_line=latin1 | latin1.map("HTTP/1.1 200 ".__add__),
    body=st.binary(max_size=60),
)
def test_no_head_can_break_a_record(
    tmp_path_factory: pytest.TempPathFactory, headers: list[tuple[str, str]], status_line: str, body: bytes
) -> None:
    directory = tmp_path_factory.mktemp("hostile")
    # Readers decode a declared content coding and may fail at that.
    headers = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
    source = page(headers=headers, status_line=status_line, body=body)
    write(directory, [source, page(1)], Keep.BOTH)
    path = whole_file(directory, "raw")
    records = warcio_records(path)
    assert [record.rec_type for record, _ in records] == ["warcinfo", "response", "response"]
    assert passes_warcio_check(whole_file(directory, "text"))
    assert records[1][1] == body
    assert passes_warcio_check(path)
    with path.open("rb") as stream:
        fast = [bytes(record.reader.read()) for record in FastWarcIterator(stream, parse_http=False)]
    assert fast[1].endswith(b"\r\n\r\n" + body)
    assert len(fast) == 3


def test_both_readers_agree_on_a_response_with_a_content_coding(tmp_path: Path) -> None:
    coded = gzip.compress(b"<p>Hello</p>" * 50)
    headers = [("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")]
    write(tmp_path, [page(headers=headers, body=coded, status_line="HTTP/2 200")], Keep.RAW)
    path = whole_file(tmp_path)
    (_, (record, content)) = warcio_records(path)
    assert record.http_headers.get_statuscode() == "200"
    assert content == b"<p>Hello</p>" * 50
    with path.open("rb") as stream:
        (fast,) = [r for r in FastWarcIterator(stream, auto_decode="none", verify_digests=True) if r.is_http]
        assert fast.http_headers.status_code == 200
        assert fast.reader.read() == coded


GOOD = text_record(page(), refers_to=None)


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"plain",
        compress(GOOD)[:-1],
        compress(GOOD) + b"x",
        compress(GOOD) + compress(GOOD),
        zlib.compress(GOOD),
        compress(GOOD[:-1]),
        compress(GOOD + b"x"),
        compress(GOOD[:-4] + b"abcd"),
        compress(GOOD.replace(b"WARC/1.1", b"WAVE/1.1")),
        compress(GOOD.replace(b"Content-Length: 10", b"Content-Length: 11")),
        compress(GOOD.replace(b"Content-Length: 10", b"Content-Length: -1")),
        compress(GOOD.replace(b"Content-Length: 10", b"Content-Size: 10")),
        compress(GOOD.partition(b"\r\n\r\n")[0]),
    ],
)
def test_anything_but_one_whole_record_is_rejected(member: bytes) -> None:
    with pytest.raises(NotARecord):
        decompress(member)


def test_a_flipped_bit_is_noticed() -> None:
    member = bytearray(compress(GOOD))
    member[len(member) // 2] ^= 1
    with pytest.raises(NotARecord):
        decompress(bytes(member))


def test_a_member_is_a_gzip_file_of_its_own() -> None:
    assert gzip.GzipFile(fileobj=io.BytesIO(compress(GOOD))).read() == GOOD


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("text/html; charset=utf-8", "text/html"),
        ("TEXT/PLAIN", "text/plain"),
        ("application/xhtml+xml", "application/xhtml+xml"),
        (None, "text/html"),
    ],
)
def test_a_response_names_the_type_as_which_it_was_read(sent: str | None, expected: str) -> None:
    headers = () if sent is None else (("Content-Type", sent),)
    record = decompress(compress(response_record(page(headers=headers), record_id=ID)))
    assert record.headers["warc-identified-payload-type"] == expected


def test_the_languages_of_a_text_are_named() -> None:
    record = decompress(compress(text_record(structs.replace(page(), languages=("deu", "eng")), refers_to=None)))
    assert record.headers["warc-identified-content-language"] == "deu,eng"
    assert record.languages == ("deu", "eng")
    assert decompress(compress(text_record(page(), refers_to=None))).languages == ()
