"""Pages that may take long are read in a process apart: the event loop goes on, and nothing is left of it."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from rove.parse import reader as reader_module
from rove.parse.html import Document, PageSource, read_html, read_html_at_once, read_plain
from rove.parse.reader import PageReader, Unread
from rove.parse.reading_process import Listing
from rove.urls.canonical import canonical
from tests.unit.parse.evil_pages import EVIL_PAGES

pytestmark = pytest.mark.system

LONG = b"<title>t</title>" + b"<p class=x>Some text and <a href=/y>a link</a>.\n" * 5_000


def answer(body: bytes, **more: object) -> PageSource:
    url = "https://e.example/"
    return PageSource(body=body, url=url, content_type="text/html; charset=utf-8", **more)  # type: ignore[arg-type]


@asynccontextmanager
async def reading(max_cpu_seconds: float = 2.0) -> AsyncIterator[PageReader]:
    reader = PageReader(max_cpu_seconds=max_cpu_seconds)
    try:
        yield reader
    finally:
        await reader.close()


async def apart(reader: PageReader, body: bytes) -> Document | Unread:
    return await reader.read_apart(answer(body), is_plain_text=False)


async def test_what_is_read_apart_is_the_same() -> None:
    cut = answer(LONG, max_links=0, max_text=30, robots_tags=["noindex"])
    async with reading() as reader:
        assert reader.read_at_once(cut, is_plain_text=False) is None
        found = await reader.read_apart(cut, is_plain_text=False)
        assert found == read_html(cut)
        assert isinstance(found, Document) and found.marks == ("text-cut", "links-cut")
        assert await apart(reader, LONG) == read_html(answer(LONG))
        assert await apart(reader, b"") == read_html_at_once(answer(b""))
        strange = "\ud800é\x00".encode("utf-8", "surrogatepass") * 50_000
        assert reader.read_at_once(answer(strange), is_plain_text=True) is None
        found = await reader.read_apart(answer(strange), is_plain_text=True)
        assert found == read_plain(answer(strange))


async def test_a_long_sitemap_is_read_apart() -> None:
    url = "http://e.example/map.xml"
    locs = "".join(f"<loc>http://e.example/{number}</loc>" for number in range(1_200))
    body = gzip.compress(f"<urlset>{locs}</urlset>".encode())
    async with reading() as reader:
        found = await reader.list_sitemap(body, url=url, host="e.example")
        assert isinstance(found, Listing) and found.sitemaps == () and reader._process is not None
        pieces = list(found.urls())
        assert [len(piece) for piece in pieces] == [500, 500, 200]
        assert pieces[2][-1] == canonical("http://e.example/1199")
        index = b"<sitemapindex><loc>http://e.example/a.xml</loc></sitemapindex>"
        found = await reader.list_sitemap(index, url=url, host="e.example")
        assert isinstance(found, Listing) and list(found.urls()) == []
        assert found.sitemaps == (canonical("http://e.example/a.xml"),)


async def test_short_pages_start_no_process() -> None:
    async with reading() as reader:
        short = answer(b"<p>x")
        assert reader.read_at_once(short, is_plain_text=False) == read_html(short)
        assert reader.read_at_once(short, is_plain_text=True) == read_plain(short)
        assert reader._process is None


async def test_an_evil_page_costs_a_process_and_the_event_loop_nothing() -> None:
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            started = time.thread_time()
            await asyncio.sleep(0.01)
            longest = max(longest, time.thread_time() - started)

    async with reading(max_cpu_seconds=0.5) as reader:
        ticking = asyncio.create_task(tick())
        for name in ("<dl><dt>", "<p><b a#>|<p>x"):
            assert await apart(reader, EVIL_PAGES[name](2_000_000)) is Unread.TOO_COMPLEX
            assert reader._process is None
        found = await apart(reader, LONG)
        assert isinstance(found, Document) and found.title == "t"
        ticking.cancel()
    assert longest < 0.3


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_MEMORY", 200 * 1024 * 1024)
    async with reading(max_cpu_seconds=20) as reader:
        assert await apart(reader, EVIL_PAGES["<p><b a#>|<p>x"](100_000)) is Unread.TOO_COMPLEX
        assert isinstance(await apart(reader, LONG), Document)


async def test_a_page_given_up_is_not_taken_for_the_next() -> None:
    async with reading() as reader:
        await apart(reader, b"")
        task = asyncio.create_task(apart(reader, LONG))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = await apart(reader, b"<title>next</title>")
        assert isinstance(found, Document) and found.title == "next"


async def test_pages_wait_for_their_turn_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading() as reader:
        found = await asyncio.gather(*(apart(reader, LONG) for _ in range(3)))
        assert all(isinstance(document, Document) for document in found)
        monkeypatch.setattr(reader_module, "LONGEST_WAIT", 0.01)
        async with reader._turn:
            assert await apart(reader, LONG) is Unread.BUSY


async def test_without_a_process_the_page_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with reading() as reader:
        assert await apart(reader, LONG) is Unread.BUSY


async def test_ctrl_c_does_not_reach_it_and_it_inherits_no_connection() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server, reading() as reader:
        await apart(reader, b"")
        assert reader._process is not None
        pid = reader._process.pid
        assert os.getpgid(pid) == pid != os.getpgrp()
        os.kill(pid, signal.SIGINT)
        assert isinstance(await apart(reader, LONG), Document)
        assert reader._process.pid == pid
        assert not psutil.Process(pid).net_connections("inet")
    assert not psutil.pid_exists(pid)


PARENT = """
import asyncio
from rove.parse.html import PageSource
from rove.parse.reader import PageReader

async def main():
    reader = PageReader()
    await reader.read_apart(PageSource(body=b"", url="", content_type=None), is_plain_text=False)
    print(reader._process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_it_dies_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(timeout=60)


async def test_a_process_that_somebody_killed_is_no_fault_of_a_page() -> None:
    async with reading() as reader:
        for _ in range(3):
            assert isinstance(await apart(reader, LONG), Document)
            assert reader._process is not None
            os.kill(reader._process.pid, signal.SIGKILL)
            await reader._process.wait()
        assert isinstance(await apart(reader, LONG), Document)


async def test_a_page_that_is_being_read_when_its_process_is_killed_is_read_again() -> None:
    async with reading() as reader:
        assert isinstance(await apart(reader, b"warm"), Document)
        assert reader._process is not None
        os.kill(reader._process.pid, signal.SIGSTOP)
        page = asyncio.create_task(apart(reader, LONG))
        await asyncio.sleep(0.05)
        os.kill(reader._process.pid, signal.SIGKILL)
        assert isinstance(await page, Document)


async def test_without_a_process_no_page_is_to_blame(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reader_module.sys, "executable", "/bin/false")
    async with reading() as reader:
        assert await apart(reader, LONG) is Unread.BUSY
    assert "no process to read long pages in" in caplog.text


def test_a_limit_of_the_system_that_is_lower_holds() -> None:
    """The process may not raise its own limit, and lives with the one that it has."""
    script = (
        "import asyncio, resource; from tests.unit.parse.test_reader import LONG, answer, PageReader\n"
        "resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))\n"
        "async def main():\n"
        "    reader = PageReader()\n"
        "    print(type(await reader.read_apart(answer(LONG), is_plain_text=False)).__name__)\n"
        "    await reader.close()\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "Document\n", done.stderr


def test_what_lies_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "resource.py").write_text("raise SystemExit(3)")
    script = (
        "import asyncio\n"
        "from rove.parse.reader import PageReader; from rove.parse.html import PageSource\n"
        "async def main():\n"
        "    reader, body = PageReader(), b'<p>x' * 50_000\n"
        "    answer = PageSource(body=body, url='http://a.test/', content_type=None)\n"
        "    print(type(await reader.read_apart(answer, is_plain_text=False)).__name__)\n"
        "    await reader.close()\n"
        "asyncio.run(main())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "Document\n", done.stderr
