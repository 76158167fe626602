"""Records of WARC files in an index: which ones, what it says of them, and what it leaves out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from rove.errors import UsageError
from rove.export.captures import Capture, CaptureChoice, Kind, WarcFiles, capture_of, status_of
from rove.export.cdxj import Block, cdxj_line, write_blocks, zipnum_line
from rove.policy.exclusions import Exclusions
from rove.store.contract import Keep
from rove.store.scan import ScannedRecord
from tests.unit.store.pages import DATE, FETCHED_AT, page, whole_file, write

TEXT = "A text that is long enough to be stored only once. " * 10


def captures(*directories: Path, **choice: Any) -> list[Capture]:
    chosen = CaptureChoice(**choice)
    files = WarcFiles(directories, on_damage=pytest.fail)
    return [capture for capture in files.captures(lambda size: None) if chosen.takes(capture)]


def made(kind: str, block: bytes = b"", **headers: str) -> Capture:
    """Return the capture of a record with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    values = {"warc-type": kind, "warc-target-uri": "http://a.test/", "warc-date": DATE, **named}
    capture = capture_of(ScannedRecord(7, 9, values, block=block), "f.warc.gz")
    assert capture is not None
    return capture


def fields(capture: Capture) -> dict[str, str]:
    line = cdxj_line(capture).decode()
    return {**json.loads(line[line.index("{") :]), "key": line[: line.index("{")].strip()}


def test_an_index_has_responses_and_on_request_texts(tmp_path: Path) -> None:
    pages = [structs.replace(page(number, TEXT), content_hash=5) for number in (1, 2)]
    write(tmp_path, pages, Keep.BOTH)
    assert [c.kind for c in captures(tmp_path)] == [Kind.RESPONSE] * 2
    kinds = [c.kind for c in captures(tmp_path, texts=True)]
    assert kinds == [Kind.RESPONSE, Kind.RESPONSE, Kind.TEXT, Kind.TEXT_REVISIT], "responses have files of their own"
    response, _, text, revisit = captures(tmp_path, texts=True)
    assert fields(response) == {
        "key": "com,example)/1 20231114221320",
        "url": "https://example.com/1",
        "mime": "text/html",
        "status": "200",
        "digest": response.record.headers["warc-payload-digest"],
        "length": str(response.record.length),
        "offset": str(response.record.offset),
        "filename": response.file,
    }
    assert fields(text)["mime"] == "text/plain" and "status" not in fields(text)
    assert fields(text)["digest"] == text.record.headers["warc-block-digest"]
    assert fields(revisit)["mime"] == "warc/revisit"
    assert fields(revisit)["digest"] == fields(text)["digest"]


def test_a_choice(tmp_path: Path) -> None:
    write(tmp_path, [page(1)], Keep.RAW)
    for choice in (
        {"domain": "example.com"},
        {"status": 200},
        {"since": FETCHED_AT - 1, "until": FETCHED_AT + 1},
        {"exclusions": Exclusions(["example.org"])},
    ):
        assert len(captures(tmp_path, **choice)) == 1, choice
    for choice in (
        {"domain": "example.org"},
        {"status": 404},
        {"since": FETCHED_AT + 1},
        {"until": FETCHED_AT - 1},
        {"exclusions": Exclusions(["example.com"])},
    ):
        assert captures(tmp_path, **choice) == [], choice


@pytest.mark.parametrize(
    ("block", "status", "number", "media_type"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html; charset=x\r\n\r\nbody", "404", 404, "text/html"),
        (b"HTTP/2 200\r\ncontent-type:image/png\r\nContent-Type: text/html\r\n\r\n", "200", 200, "image/png"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "20", -1, None),
        (b"HTTP/1.1", None, -1, None),
        (b"", None, -1, None),
        (b"\xff\xfe \x00", "\x00", -1, None),
    ],
)
def test_the_head_of_a_response(block: bytes, status: str | None, number: int, media_type: str | None) -> None:
    capture = made("response", block, content_type="application/http;msgtype=response")
    assert (capture.status, status_of(capture), capture.media_type) == (status, number, media_type)


def test_other_kinds_of_records() -> None:
    assert made("revisit", b"HTTP/1.1 304 x\r\n\r\n", content_type="application/http").kind is Kind.REVISIT
    assert made("resource", content_type="image/png").media_type == "image/png"
    for headers in ({"warc-type": "warcinfo"}, {"warc-type": "response", "warc-target-uri": "dns:a.test"}, {}):
        assert capture_of(ScannedRecord(0, 1, headers), "f") is None


def test_a_damaged_file_is_read_up_to_the_damage(tmp_path: Path) -> None:
    write(tmp_path, [page(1), page(2)], Keep.RAW)
    path = whole_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-10])
    said: list[str] = []
    files = WarcFiles([tmp_path], on_damage=said.append)
    assert len(list(files.captures(lambda size: None))) == 1
    assert files.damaged == 1 and "is damaged at byte" in said[0]


def test_files_of_several_directories(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "2.warc.gz").write_bytes(b"")
    (tmp_path / "b" / "1.warc.gz").write_bytes(b"")
    (tmp_path / "b" / "3.warc.gz.open").write_bytes(b"")
    files = WarcFiles([tmp_path / "a", tmp_path / "b"], on_damage=pytest.fail)
    assert [path.name for path in files.paths] == ["1.warc.gz", "2.warc.gz"]
    assert (files.unfinished, files.size) == (1, 0)
    (tmp_path / "b" / "2.warc.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="have the same name"):
        WarcFiles([tmp_path / "a", tmp_path / "b"], on_damage=pytest.fail)


def test_blocks_of_lines(tmp_path: Path) -> None:
    lines = [f"k,{number:02} 2023 {{}}".encode() for number in range(7)]
    blocks: list[Block] = []
    path = tmp_path / "x.gz"
    with path.open("wb") as file:
        assert write_blocks(lines, file, blocks.append, block_lines=3) == 7
    data = path.read_bytes()
    assert gzip.decompress(data).splitlines() == lines
    assert [block.key for block in blocks] == ["k,00 2023", "k,03 2023", "k,06 2023"]
    for number, block in enumerate(blocks):
        member = gzip.decompress(data[block.offset : block.offset + block.length])
        assert member.splitlines() == lines[3 * number : 3 * number + 3]
    expected = f"k,00 2023\tx.gz\t0\t{blocks[0].length}\t1\n"
    assert zipnum_line(blocks[0], 1, "x.gz") == expected.encode()
