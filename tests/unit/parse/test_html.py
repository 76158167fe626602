"""Title and robots directives of a page, and that any bytes can be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.parse.html import Document, PageSource, read_html
from rove.parse.whatwg import MAX_TAGS
from tests.urls import FORM

URL = "https://site.example/dir/page"


def read(html: str | bytes, content_type: str | None = "text/html; charset=utf-8") -> Document:
    body = html.encode() if isinstance(html, str) else html
    return read_html(PageSource(body=body, url=URL, content_type=content_type), FORM)


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>t</title>", "t"),
        ("<title> a \n b\t&amp;&nbsp;c </title>", "a b & c"),
        ("<title>a <b>b</b></title>", "a <b>b</b>"),
        ("<title>one</title><title>two</title>", "one"),
        ("<TITLE>t</TITLE>", "t"),
        ("<title></title>", ""),
        ("<title>", ""),
        ("<title>t", "t"),
        ("<p>none", ""),
        ("", ""),
        ("<svg><title>s</title></svg>", ""),
        ("<svg><title>s</title></svg><title>t</title>", "t"),
        ("<body><svg><g><title>s</title></g></svg><p><title>t</title>", "t"),
        ("<head><img><title>t</title></head>", "t"),
        ("<head><noscript><img></noscript><title>t</title></head>", "t"),
        ("<title>a\x00\x07b&#1;</title>", "a\ufffdb"),
        ("<title>" + "x" * 2_000 + "</title>", "x" * 1_000),
        ("<title>" + "x " * 1_000_000, ("x " * 500).strip()),
    ],
)
def test_title(html: str, title: str) -> None:
    assert read(html).title == title


@pytest.mark.parametrize(
    ("metas", "noindex", "nofollow"),
    [
        ("", False, False),
        ("<meta name=robots content=noindex>", True, False),
        ("<meta name=robots content=nofollow>", False, True),
        ("<meta name=robots content='noindex,nofollow'>", True, True),
        ("<meta name=robots content='noindex nofollow'>", True, True),
        ("<meta name=robots content=' noarchive , NoIndex '>", True, False),
        ("<meta name=robots content=none>", True, True),
        ("<meta name=robots content='index, follow'>", False, False),
        ("<meta name=robots content=all>", False, False),
        ("<meta name=robots content=''>", False, False),
        ("<meta name=robots>", False, False),
        ("<meta name=robots content='max-snippet:-1, nofollow'>", False, True),
        ("<META NAME=' ROBOTS ' CONTENT=NOINDEX>", True, False),
        ("<meta name=Rove content=nofollow>", False, True),
        ("<meta name=robots content=noindex><meta name=rove content=nofollow>", True, True),
        ("<meta name=robots content=noindex><meta name=rove content=all>", True, False),
        ("<meta name=robots content=noindex><meta name=robots content=nofollow>", True, True),
        ("<meta name=googlebot content=none>", False, False),
        ("<meta property=robots content=none>", False, False),
        ("<meta name=description content='noindex'>", False, False),
        ("<body><meta name=robots content=noindex>", True, False),
        ("<noscript><img></noscript><meta name=robots content=noindex>", True, False),
        ("<!-- <meta name=robots content=none> -->", False, False),
    ],
)
def test_robots(metas: str, noindex: bool, nofollow: bool) -> None:
    document = read(f"{metas}<a href=x>t</a>")
    assert (document.noindex, document.nofollow) == (noindex, nofollow)
    assert [link.text for link in document.links] == ([] if nofollow else ["https://site.example/dir/x"])
    assert document.text == "t"


def test_the_declared_encoding_is_used() -> None:
    html = "<meta charset=koi8-r><title>Привет</title><p>мир<a href=мир>"
    document = read(html.encode("koi8-r"), None)
    assert (document.title, document.text) == ("Привет", "мир")
    assert document.links[0].text == "https://site.example/dir/%D0%BC%D0%B8%D1%80"


def test_invalid_bytes_become_replacement_characters() -> None:
    document = read(b"<title>a\xffb</title>c\xe2\x82<b>d</b><a href='e\xff'>")
    assert (document.title, document.text) == ("a\ufffdb", "c\ufffdd")
    assert document.links[0].text == "https://site.example/dir/e%EF%BF%BD"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (b"", ""),
        (b"text", "text"),
        (b"<html>", ""),
        (b"<body>", ""),
        (b"\x00", ""),
        (b"<", "<"),
        (b"</", "</"),
        (b"<!", ""),
        (b"<!--", ""),
        (b"<p", ""),
        (b"&", "&"),
        (b"&#", "&#"),
        (b"<frameset><frame src=x></frameset><noframes><p>n</noframes>", "n"),
        (b"<html><frameset></frameset></html>after", ""),
        (b"<" * 1_000_000, "<" * MAX_TAGS),
        (b"\x00" * 1_000_000, ""),
        (b"<a" * 500_000, ""),
        (b"<div>" * 5_000 + b"x", "x"),
        (b"<b>" * 5_000 + b"x", "x"),
        (b"<pre>" * 5_000 + b"x", "x"),
        (b"<div hidden>" * 2_000 + b"x", ""),
        (b"<table>" * 5_000 + b"x", "x"),
        (b"<svg>" * 5_000 + b"x", ""),
        (b"<select>" + b"<option>" * 5_000 + b"x", ""),
        (b"<b>x</b>" * 50_000, "x" * (MAX_TAGS // 2)),
        (b"x<!-- -->" * 50_000, "x" * 50_000),
        (b"<p>x" * 50_000, "x\n" * 49_999 + "x"),
    ],
)
def test_strange_pages(html: bytes, text: str) -> None:
    assert read(html).text == text


BLOCKS = "body br col div frame frameset head hr html li mi option p table tbody td tr ul x-y"
INLINE = "a abbr area b base bdo big cite code em font i img input ins link meta nobr rb ruby s span sub title tt u wbr"
DROPPED = "applet canvas iframe math noframes noscript object rp rt rtc script select style svg template textarea"
PREFORMATTED = "listing plaintext pre xmp"
NAMES = st.sampled_from(f"{BLOCKS} {INLINE} {DROPPED} {PREFORMATTED}".split())
ATTRIBUTES = st.sampled_from(
    [
        "",
        " href",
        " href=x",
        ' href="javascript:x"',
        ' href="http://a..b/"',
        ' href="http://[::"',
        ' href="//h./x"',
        ' href="http://u:p@h.example/%zz#f"',
        " rel=nofollow",
        " hidden",
        " hidden=until-found",
        " name=robots content=noindex",
        ' http-equiv=refresh content="0;url=x"',
        " charset=gb2312",
        ' "<',
    ]
)
PIECES = st.one_of(
    st.builds("<{}{}>".format, NAMES, ATTRIBUTES),
    st.builds("</{}>".format, NAMES),
    st.sampled_from(["<!--", "-->", "<!-- c -->", "<![CDATA[", "&#1;", "&#x85;", "&nbsp;", "\r\n"]),
    st.text(max_size=6),
)


def check(document: Document) -> None:
    assert document.text.encode("utf-8").decode("utf-8") == document.text
    assert document.title == " ".join(document.title.split())
    for line in document.text.split("\n") if document.text else []:
        assert line == line.rstrip() != ""
        assert not any(c < " " or "\x7f" <= c <= "\x9f" for c in line)
    assert len({link.fingerprint for link in document.links}) == len(document.links)
    assert not (document.nofollow and document.links)


def preformats(piece: str) -> bool:
    return any(name in piece.lower() for name in ("pre", "xmp", "listing", "plaintext"))


@given(st.lists(PIECES, max_size=40))
def test_tag_soup(pieces: list[str]) -> None:
    document = read("".join(pieces))
    check(document)
    if not any(preformats(piece) or "\ufdd0" in piece for piece in pieces):
        assert all(line == line.lstrip() for line in document.text.split("\n"))


@given(st.lists(PIECES, max_size=20), st.sampled_from(["pre", "xmp", "listing"]))
def test_tag_soup_with_preformatted_text(pieces: list[str], tag: str) -> None:
    check(read(f"<{tag}>{''.join(pieces)}</{tag}>  x"))


@given(st.binary(max_size=400), st.sampled_from([None, "text/html; charset=utf-8"]))
def test_any_bytes(body: bytes, content_type: str | None) -> None:
    check(read(body, content_type))
