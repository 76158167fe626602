"""Pages that are read in the event loop take little time, even crafted ones."""

from __future__ import annotations

import time

import pytest

from rove.parse.guard import MAX_PLAIN_BYTES, MAX_PLAIN_TAGS, is_plain
from rove.parse.html import PageSource, read_html_at_once
from tests.unit.parse.evil_pages import EVIL_PAGES

MOST_SECONDS = 0.3
"""Three times the promised time, because CPU time also varies with the load of the machine."""
SIZES = (4_096, 8_000, 16_000, 48_000, MAX_PLAIN_BYTES)


def answer(body: bytes) -> PageSource:
    return PageSource(body=body, url="https://e.example/", content_type="text/html; charset=utf-8")


@pytest.fixture(scope="module", autouse=True)
def domains_are_known() -> None:
    """Load the public suffix list before the measurements."""
    read_html_at_once(answer(b"<a href=http://a.example/>"))


def seconds_for(body: bytes) -> float:
    """Return the CPU time of the thread, the shorter of two attempts."""
    taken = []
    for _ in range(2):
        started = time.thread_time()
        read_html_at_once(answer(body))
        taken.append(time.thread_time() - started)
        if taken[0] <= MOST_SECONDS:
            break
    return min(taken)


def test_no_evil_page_blocks_the_event_loop() -> None:
    slow = {
        (name, size): taken
        for name, page in EVIL_PAGES.items()
        for size in SIZES
        if (taken := seconds_for(page(size)[:size])) > MOST_SECONDS
    }
    assert not slow


@pytest.mark.parametrize(
    "name",
    [
        *("<div>", "<p><b a#>|<p>x", "<p><a a# 1/8", '<p><b a#=">"1/8', "<html a# 1/1"),
        *("long link 0.5", "long link of tags 0.9"),
    ],
)
def test_evil_pages_are_not_plain(name: str) -> None:
    assert not is_plain(EVIL_PAGES[name](60_000))


def ordinary(size: int, tags: str) -> bytes:
    return (tags * (size // len(tags) + 1)).encode()[:size]


@pytest.mark.parametrize(
    "tags",
    [
        "<div class=\"card wide\"><p>Some words, it's enough.</p><a href='/x' title=\"It's\">a</a></div>\n",
        "<li><a href=/x?a=b&c=d class=item>words</a> and some more of them <b>here</b></li>\n",
        "<p>" + "Plain prose of many words, in which nobody says a thing. " * 30 + "</p>\n",
        "<style>" + ".a{color:red;margin:0 1px}" * 100 + "</style><p>Text</p>",
        "<script>for(var i=0;i<n;i++){a[i]='<b>'+i;}</script><p class='x'>" + "Some text. " * 50,
        '<img src="data:image/png;base64,' + "iVBORw0KGgo" * 300 + '" alt="A picture"><p>Text</p>',
        '<i class="icon"></i><p>Some text of a page with icons in it, and not too many.</p>' + "words " * 50,
    ],
)
@pytest.mark.parametrize("size", [4_000, 20_000, 25_000])
def test_ordinary_pages_are_plain(tags: str, size: int) -> None:
    body = ordinary(size, tags)
    assert is_plain(body)
    document = read_html_at_once(answer(body))
    assert document is not None and document.marks == ()


def test_long_pages_are_not_plain() -> None:
    assert is_plain(b"x" * 4_000) and not is_plain(b"x" * (MAX_PLAIN_BYTES + 1))
    assert is_plain(b"<br>" * MAX_PLAIN_TAGS) and not is_plain(b"<br>" * (MAX_PLAIN_TAGS + 1))
    assert read_html_at_once(answer(b"x" * (MAX_PLAIN_BYTES + 1))) is None


def test_a_page_with_too_many_nodes_is_not_read_at_once() -> None:
    """Open formatting elements are created again in every block."""
    body = EVIL_PAGES["formatting"](6_000)
    assert is_plain(body) and read_html_at_once(answer(body)) is None
