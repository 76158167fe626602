"""Open files are counted by kind."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from rove.resources.open_files import FileKind, files_by_kind


def test_each_kind_is_counted(tmp_path: Path) -> None:
    database = tmp_path / "frontier"
    before = files_by_kind(database, connections=0)
    ours, theirs = socket.socketpair()
    pipe = os.pipe()
    with (
        ours,
        theirs,
        (tmp_path / "frontier.sqlite").open("w"),
        (tmp_path / "frontier.sqlite-wal").open("w"),
        (tmp_path / "a.warc.gz").open("w"),
    ):
        more = files_by_kind(database, connections=0) - before
        with_server = files_by_kind(database, connections=1)
        most = files_by_kind(database, connections=1_000_000)
    for end in pipe:
        os.close(end)
    assert more == {FileKind.WEB: 2, FileKind.DATABASE: 2, FileKind.FILES: 1, FileKind.OTHER: 2}
    assert with_server[FileKind.WEB] == before[FileKind.WEB] + 1
    assert with_server[FileKind.DATABASE] == before[FileKind.DATABASE] + 3
    assert most[FileKind.WEB] == 0
    assert files_by_kind(database, connections=0) == before
