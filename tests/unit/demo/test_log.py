"""The server's log is read as it was written."""

from __future__ import annotations

from pathlib import Path

from rove.demo.log import LoggedRequest, LogKind, decode, encode, read_log

ENTRIES = [
    LoggedRequest(start=0.0, end=0.1, host="a.test", path="/robots.txt", status=200),
    LoggedRequest(start=0.2, end=0.3, host="a.test", path='/caf\u00e9?q="x"\n', status=302, location="http://a.test/"),
    LoggedRequest(kind=LogKind.NOT_HTTP, start=0.4, end=0.5),
]


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    lines = encode(ENTRIES)
    assert lines.count(b"\n") == len(ENTRIES)
    assert decode(lines) == ENTRIES
    path = tmp_path / "log"
    path.write_bytes(lines)
    assert read_log(path) == ENTRIES


def test_an_incomplete_last_line_is_ignored() -> None:
    assert decode(encode(ENTRIES) + b'{"kind":"requ') == ENTRIES
    assert decode(b"") == []
