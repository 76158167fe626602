"""Reading a response never raises, whatever the server sends. The result is of bounded size and there soon.

Random bytes find few errors, so most inputs are put together from the words of each language.
"""

from __future__ import annotations

import gzip
import math
import time
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rove.crawl.robots_answer import ROBOTS_LEAST_VALID_SECONDS, valid_for
from rove.fetch.body import Decoded, Undecodable, decode, parse_codings
from rove.fetch.head import ReadBody, judge, parse_head, parse_status
from rove.model.outcomes import Failed, Redirected, Refused, WrongType
from rove.model.text_hash import text_hash
from rove.parse.charset import decode as to_text
from rove.parse.html import MAX_TITLE_LENGTH, Document, PageSource, read_html, read_plain
from rove.parse.labels import CODECS
from rove.parse.sitemap import MAX_CHILD_SITEMAPS, MAX_SITEMAP_URLS, read_sitemap
from rove.policy.constants import DAY, ROBOTS_VALID_SECONDS
from rove.policy.pacing import retry_after
from rove.policy.robots import Rules
from rove.policy.robots_lines import MAX_SITEMAPS
from rove.urls.canonical import MAX_URL_LENGTH, parse_base
from rove.urls.seed import parse_seed
from tests.urls import FORM, canonical

URL = "https://site.example/dir/page?q#f"
SECONDS = 2.0
"""CPU time allowed for one input, hundreds of times more than it needs."""


def made_of(words: str, more: st.SearchStrategy[bytes] | None = None) -> st.SearchStrategy[bytes]:
    """Return bytes put together from words and other pieces, some of them repeated."""
    word = st.sampled_from([word.encode("latin-1") for word in words.split(" ")])
    piece = word | st.binary(max_size=6) | st.sampled_from([b" ", b"\n", b"\0", b"\xff", b"\xc3"])
    if more is not None:
        piece |= more
    repeated = st.tuples(piece, st.integers(1, 60)).map(lambda pair: pair[0] * pair[1])
    return st.lists(piece | repeated, max_size=25).map(b"".join)


def latin(inputs: st.SearchStrategy[bytes]) -> st.SearchStrategy[str]:
    return inputs.map(lambda raw: raw.decode("latin-1"))


def wide(inputs: st.SearchStrategy[bytes]) -> st.SearchStrategy[str]:
    """Return text with letters of all scripts, and with lone surrogates."""
    return (
        latin(inputs)
        | st.text(st.characters(), max_size=60)
        | inputs.map(lambda raw: raw.decode("utf-8", "surrogateescape"))
    )


html = made_of(
    "<p> <div <a href= href=/x href='//h.example/' > /> </a> </p> <b> <b\ta=1> </b> <table> <td> <tr> <svg> <math> "
    "<title> </title> <template> </template> <select> <option> <pre> <plaintext> <textarea> <script> </script> <!-- "
    "--> <![CDATA[ ]]> & &amp; &#0; &#xD800; &#99999999; &notin; <meta name=robots content= 'noindex,nofollow' "
    "<base\thref=http://x.example/y> <meta\thttp-equiv=refresh\tcontent='0;url=z'> <body> <html> <head> <frameset> "
    '<form> <button> <li> <noscript> <iframe> hidden <link\trel=next\thref= rel="nofollow" javascript: # ? http:// é '
    "\ufdd0".encode("utf-8", "ignore").decode("latin-1")
)
charsets = made_of(
    "<meta charset= content='text/html;charset= utf-8 utf-16 gbk shift_jis iso-2022-jp x-user-defined hz-gb-2312 > ' "
    '<?xml encoding= ?> <!-- --> http-equiv=content-type \xef\xbb\xbf \xff\xfe \xfe\xff \x1b$B \x82\xa0 "'
)
robots_txt = made_of(
    "User-agent: Disallow: Allow: Crawl-delay: Sitemap: rove * / /a $ *$ % %2F %zz # : "
    "http://x.example/s.xml 1e999 inf nan -1 0.5 99999999999999999999 \xef\xbb\xbf \xff\xfe "
    "<html> <!-- --> Dissallow user\tagent"
)
dates = (
    "Sun, 06 Nov 1994 08:49:37 GMT 99999 +9999 -9999 00:00:00 31 Feb 0000 1e9 -1 0 ; max-age= max-age=1 no-cache "
    'no-store , = " s-maxage=99999999999999999999 2038 60 \xb2 \u0661'.encode("utf-8").decode("latin-1")
)
header_values = latin(
    made_of(
        dates + " noindex nofollow none rove: otherbot: unavailable_after: max-snippet: 2024-01-01 25-Jun-2010 gzip br "
        "deflate identity x-gzip text/html charset= http://x.example/ //y ../z chunked"
    )
)
header_names = st.sampled_from(
    [
        *("Retry-After", "Date", "Expires", "Cache-Control", "Age", "X-Robots-Tag", "Content-Type"),
        *("Content-Encoding", "content-encoding", "Location", "Transfer-Encoding", "Content-Length"),
    ]
)
heads = st.tuples(
    st.sampled_from([200, 204, 206, 301, 302, 304, 399, 404, 429, 503, 599, 999, 100]),
    st.lists(st.tuples(header_names, header_values), max_size=8),
)
xml = made_of(
    "<?xml version='1.0'?> <urlset> <url> <loc> </loc> </url> <sitemapindex> <sitemap> <rss> <link> </link> <feed> "
    "<link\thref= /> <!DOCTYPE [ ]> <!ENTITY lol 'lol'> &lol; &amp; &#x41; &#xD800; &#1114112; <![CDATA[ ]]> <!-- --> "
    "http://site.example/a https://other.example/ a:loc xmlns= > < \" '"
)
packed = st.builds(
    lambda raw, cut, junk: gzip.compress(raw)[: -cut or None] + junk, xml, st.integers(0, 12), st.binary(max_size=10)
)
urls = wide(
    made_of(
        "http:// https:// // / \\ : @ . .. ./ ../ ? # % %2e %2F %zz %C3%A9 [ ] [::1] 127.1 0x7f.1 xn-- xn--a \xc3\xbc "
        "\xe3\x80\x82 \xc2\xad \xef\xbc\x8e example.com co.uk localhost :80 :0 :99999 user:pw@ a= & + \t \r "
        "javascript: data: file: %00 \x7f"
    )
)


def source(body: bytes, content_type: str | None = None) -> PageSource:
    return PageSource(body=body, url=URL, content_type=content_type, max_links=50, max_text=500)


def check_document(document: Document) -> None:
    assert len(document.title) <= MAX_TITLE_LENGTH
    assert len(document.text) <= 500 and len(document.links) <= 50
    for link in document.links:
        assert canonical(link.text) == link
    msgspec.msgpack.encode(document)  # it passes between processes and into a database
    text_hash(document.utf8)


def check_html(body: bytes) -> None:
    check_document(read_html(source(body), FORM))


def check_plain(body: bytes) -> None:
    check_document(read_plain(source(body)))


def check_charset(given_: tuple[bytes, str]) -> None:
    body, content_type = given_
    for label in (None, content_type):
        text, encoding = to_text(body, label)
        assert encoding in CODECS
        assert len(text) <= len(body) + 1
        text.encode()


def check_robots(given_: tuple[bytes, str]) -> None:
    body, path = given_
    rules = Rules(body)
    assert 0 <= rules.crawl_delay < math.inf
    assert len(rules.sitemaps) <= MAX_SITEMAPS
    for url in (URL, "https://site.example/" + path):
        assert rules.allows(url) in (True, False)
        rules.deciding_rule(url)


def check_head(given_: tuple[int, list[tuple[str, str]]]) -> None:
    status, headers = given_
    lines = [b"HTTP/1.1 200 OK", *(f"{key}: {value}".encode("latin-1") for key, value in headers)]
    read = parse_head(lines, url=URL, address="192.0.2.1", status=status)
    for response in (read, replace(read, headers=headers)):
        decision = judge(response, frozenset({"text/html"}))
        assert isinstance(decision, ReadBody | Redirected | Refused | WrongType | Failed)
        for now in (0.0, 1.7e9, None):
            wait = retry_after(response, now)
            assert wait is None or 0 <= wait <= DAY
            assert ROBOTS_LEAST_VALID_SECONDS <= valid_for(response, now) <= ROBOTS_VALID_SECONDS
        tags = response.all_headers("x-robots-tag")
        check_document(read_plain(PageSource(body=b"", url=URL, content_type=None, robots_tags=tags, now=1.7e9)))


def check_head_lines(lines: list[bytes]) -> None:
    parse_head([b"", *lines], url=URL, address="", status=200)
    for line in lines:
        status = parse_status(line)
        assert status is None or 0 <= status <= 999


def check_codings(given_: tuple[list[str], bytes, bool]) -> None:
    values, wire, is_cut = given_
    codings = parse_codings(values)
    if isinstance(codings, tuple):
        decoded = decode(wire, codings, limit=100, wire_cut=is_cut)
        assert isinstance(decoded, Undecodable) or len(decoded.body) <= 100 or not codings
        assert isinstance(decoded, Decoded | Undecodable)


def check_sitemap(body: bytes) -> None:
    slices = list(read_sitemap(body, url=URL, host="site.example", form=FORM.in_full))
    assert sum(len(listed.sitemaps) for listed in slices) <= MAX_CHILD_SITEMAPS
    assert sum(len(listed.urls) for listed in slices) <= MAX_SITEMAP_URLS
    for listed in slices:
        assert all(url.host == "site.example" and canonical(url.text) == url for url in listed.urls)


def check_url(text: str) -> None:
    for base in (None, parse_base(URL), parse_base(text)):
        url = canonical(text, base)
        if url is not None:
            assert canonical(url.text) == url
            assert len(url.text) <= MAX_URL_LENGTH and url.text.isascii()
            assert url.text.startswith(url.origin + "/")
    parse_seed(text, FORM)


wires = st.binary(max_size=40) | st.builds(
    lambda raw, pack, cut: pack(raw)[: -cut or None],
    st.binary(max_size=60) | st.integers(0, 100_000).map(lambda size: b"0" * size),
    st.sampled_from([gzip.compress, zlib.compress, brotli.compress, lambda raw: gzip.compress(raw) * 3]),
    st.integers(0, 9),
)
coding_values = st.lists(
    st.sampled_from(["gzip", "br", "deflate", "x-gzip", "identity", "gzip, br", "", ","]) | header_values, max_size=4
)
CHECKS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "html": (html, check_html),
    "html-charsets": (charsets, check_html),
    "plain": (html | charsets | robots_txt, check_plain),
    "charset": (st.tuples(charsets | st.binary(max_size=300), header_values), check_charset),
    "robots": (st.tuples(robots_txt, latin(robots_txt)), check_robots),
    "head": (heads, check_head),
    "head-lines": (st.lists(robots_txt | st.binary(max_size=40), max_size=6), check_head_lines),
    "codings": (st.tuples(coding_values, wires, st.booleans()), check_codings),
    "sitemap": (xml | packed, check_sitemap),
    "url": (urls, check_url),
}


def run(name: str, examples: int) -> None:
    inputs, check = CHECKS[name]
    # The charset detector and the public suffixes load at their first use, which must not count as time of an input.
    read_html(source("Текст <a href=http://a.example/>".encode("cp1251")), FORM)

    def checked(value: Any) -> None:
        started = time.process_time()
        check(value)
        assert time.process_time() - started < SECONDS

    few = settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )
    few(given(inputs)(checked))()


@pytest.mark.parametrize("name", CHECKS)
def test_anything_is_read(name: str) -> None:
    run(name, 40)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", CHECKS)
def test_anything_is_read_for_long(name: str) -> None:
    run(name, 20_000)
