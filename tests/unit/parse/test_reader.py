"""Long pages are read in another process, so that the event loop is never blocked and no process is left behind."""

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


def source(body: bytes, **more: object) -> PageSource:
    url = "https://e.example/"
    return PageSource(body=body, url=url, content_type="text/html; charset=utf-8", **more)  # type: ignore[arg-type]


@asynccontextmanager
async def reading(max_cpu_seconds: float = 2.0, max_queue_seconds: float = 120.0) -> AsyncIterator[PageReader]:
    reader = PageReader(max_cpu_seconds=max_cpu_seconds, max_queue_seconds=max_queue_seconds)
    try:
        yield reader
    finally:
        await reader.close()


async def apart(reader: PageReader, body: bytes) -> Document | Unread:
    return await reader.read_apart(source(body), is_plain_text=False)


async def test_both_ways_of_reading_give_the_same_document() -> None:
    cut = source(LONG, max_links=0, max_text=30, robots_tags=["noindex"])
    async with reading() as reader:
        assert reader.read_at_once(cut, is_plain_text=False) is None
        result = await reader.read_apart(cut, is_plain_text=False)
        assert result == read_html(cut)
        assert isinstance(result, Document) and result.marks == ("text-cut", "links-cut")
        assert await apart(reader, LONG) == read_html(source(LONG))
        assert await apart(reader, b"") == read_html_at_once(source(b""))
        strange = "\ud800é\x00".encode("utf-8", "surrogatepass") * 50_000
        assert reader.read_at_once(source(strange), is_plain_text=True) is None
        result = await reader.read_apart(source(strange), is_plain_text=True)
        assert result == read_plain(source(strange))


async def test_a_long_sitemap_is_read_apart() -> None:
    url = "http://e.example/map.xml"
    locs = "".join(f"<loc>http://e.example/{number}</loc>" for number in range(1_200))
    body = gzip.compress(f"<urlset>{locs}</urlset>".encode())
    async with reading() as reader:
        result = await reader.list_sitemap(body, url=url, host="e.example")
        assert isinstance(result, Listing) and result.sitemaps == () and reader.process_id is not None
        pieces = list(result.urls())
        assert [len(piece) for piece in pieces] == [500, 500, 200]
        assert pieces[2][-1] == canonical("http://e.example/1199")
        index = b"<sitemapindex><loc>http://e.example/a.xml</loc></sitemapindex>"
        result = await reader.list_sitemap(index, url=url, host="e.example")
        assert isinstance(result, Listing) and list(result.urls()) == []
        assert result.sitemaps == (canonical("http://e.example/a.xml"),)


async def test_short_pages_do_not_start_the_process() -> None:
    async with reading() as reader:
        short = source(b"<p>x")
        assert reader.read_at_once(short, is_plain_text=False) == read_html(short)
        assert reader.read_at_once(short, is_plain_text=True) == read_plain(short)
        assert reader.process_id is None


async def test_an_evil_page_kills_its_process_and_does_not_block_the_event_loop() -> None:
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
            assert reader.process_id is None
        result = await apart(reader, LONG)
        assert isinstance(result, Document) and result.title == "t"
        ticking.cancel()
    assert longest < 0.3


async def test_a_page_that_takes_too_much_memory_is_too_complex(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_module, "MAX_MEMORY", 200 * 1024 * 1024)
    async with reading(max_cpu_seconds=20) as reader:
        assert await apart(reader, EVIL_PAGES["<p><b a#>|<p>x"](100_000)) is Unread.TOO_COMPLEX
        assert isinstance(await apart(reader, LONG), Document)


async def test_the_reply_of_a_cancelled_page_is_not_used_for_the_next() -> None:
    async with reading() as reader:
        await apart(reader, b"")
        task = asyncio.create_task(apart(reader, LONG))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        result = await apart(reader, b"<title>next</title>")
        assert isinstance(result, Document) and result.title == "next"


async def test_pages_wait_for_their_turn() -> None:
    async with reading() as reader:
        documents = await asyncio.gather(*(apart(reader, LONG) for _ in range(3)))
        assert all(isinstance(document, Document) for document in documents)


async def test_a_page_does_not_wait_for_ever() -> None:
    async with reading(max_queue_seconds=0.01) as reader:
        await apart(reader, b"")
        assert reader.process_id is not None
        os.kill(reader.process_id, signal.SIGSTOP)
        first = asyncio.create_task(apart(reader, LONG))
        await asyncio.sleep(0)  # lets it take its turn
        assert await apart(reader, LONG) is Unread.BUSY
        os.kill(reader.process_id, signal.SIGCONT)
        assert isinstance(await first, Document)


async def test_if_the_process_cannot_start_the_page_is_tried_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with reading() as reader:
        assert await apart(reader, LONG) is Unread.BUSY


async def test_the_process_ignores_ctrl_c_and_inherits_no_connection() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server, reading() as reader:
        await apart(reader, b"")
        assert reader.process_id is not None
        pid = reader.process_id
        assert os.getpgid(pid) == pid != os.getpgrp()
        os.kill(pid, signal.SIGINT)
        assert isinstance(await apart(reader, LONG), Document)
        assert reader.process_id == pid
        assert not psutil.Process(pid).net_connections("inet")
    assert not psutil.pid_exists(pid)


PARENT = """
import asyncio
from rove.parse.html import PageSource
from rove.parse.reader import PageReader

async def main():
    reader = PageReader()
    await reader.read_apart(PageSource(body=b"", url="", content_type=None), is_plain_text=False)
    print(reader.process_id, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_the_process_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(timeout=60)


async def test_a_process_killed_between_pages_is_replaced() -> None:
    async with reading() as reader:
        for _ in range(3):
            assert isinstance(await apart(reader, LONG), Document)
            assert reader.process_id is not None
            os.kill(reader.process_id, signal.SIGKILL)
            while psutil.pid_exists(reader.process_id):  # noqa: ASYNC110 - until asyncio has reaped it
                await asyncio.sleep(0.01)
        assert isinstance(await apart(reader, LONG), Document)


async def test_a_page_whose_process_is_killed_is_read_again() -> None:
    async with reading() as reader:
        assert isinstance(await apart(reader, b"warm"), Document)
        assert reader.process_id is not None
        os.kill(reader.process_id, signal.SIGSTOP)
        page = asyncio.create_task(apart(reader, LONG))
        await asyncio.sleep(0.05)
        os.kill(reader.process_id, signal.SIGKILL)
        assert isinstance(await page, Document)


async def test_if_the_process_exits_at_once_the_page_is_tried_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    async with reading() as reader:
        assert await apart(reader, LONG) is Unread.BUSY
    assert "could not start the process that reads long pages" in caplog.text


def test_a_lower_memory_limit_of_the_system_stays() -> None:
    """A process cannot raise its hard limit."""
    script = (
        "import asyncio, resource; from tests.unit.parse.test_reader import LONG, source, PageReader\n"
        "resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))\n"
        "async def main():\n"
        "    reader = PageReader()\n"
        "    print(type(await reader.read_apart(source(LONG), is_plain_text=False)).__name__)\n"
        "    await reader.close()\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "Document\n", done.stderr


def test_modules_in_the_working_directory_are_not_imported(tmp_path: Path) -> None:
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
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "Document\n", done.stderr
