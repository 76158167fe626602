"""A process with too many open files can still open those that it writes to."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rove.resources.spare_files import SpareFiles

OUT_OF_FILES = """
import asyncio, os, resource, sys
from pathlib import Path
from rove.errors import StoreError
from rove.resources.spare_files import SpareFiles
from rove.crawl.inflight_log import Note, InflightLog
from rove.model.ledger import RequestKind, RequestRow
from rove.store.contract import Keep, Page
from rove.store.warc import WarcStore

def note(log):
    row = RequestRow(visit=1, seq=0, domain=2, kind=RequestKind.PAGE, url="http://a.test/", fingerprint=3, started=0.0,
                     began=0, ended=0)
    log.note(Note(row=row))

async def store(store):
    page = Page(url="http://a.test/", fetched_at=0.0, text=b"words", source=None)
    try:
        stored = await store.write([page])
    finally:
        await store.close()
    assert stored[0].text is not None

folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
loop = asyncio.new_event_loop()
spare = SpareFiles()
made = {}
for name, given in [("with", spare), ("without", None)]:
    made[name] = (
        InflightLog(folder / f"in-flight-{name}", 1, given),
        WarcStore(folder / f"warc-{name}", keep=Keep.TEXT, name="w", software="rove", spare=given),
    )

def take_all():
    try:
        while True:
            os.open("/dev/null", os.O_RDONLY)
    except OSError:
        pass

take_all()
note(made["with"][0])
made["with"][0].close()
loop.run_until_complete(store(made["with"][1]))
for attempt in (lambda: note(made["without"][0]),
                lambda: loop.run_until_complete(store(made["without"][1]))):
    take_all()
    try:
        attempt()
    except StoreError as error:
        print(error)
print("written")
"""


@pytest.mark.system
def test_a_crawl_opens_its_files_when_nothing_else_can_be_opened(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", OUT_OF_FILES, str(tmp_path)], capture_output=True, text=True)
    assert result.stdout.endswith("written\n"), result.stderr
    assert result.stdout.count("open files") == 2, "there were open files left"
    assert len(list((tmp_path / "warc-with").glob("*.warc.gz"))) == 1


def test_other_errors_are_raised_unchanged() -> None:
    spare, calls = SpareFiles(), 0

    def refuse() -> None:
        nonlocal calls
        calls += 1
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(PermissionError):
        spare.opened(refuse)
    assert calls == 1
    spare.close()
