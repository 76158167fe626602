"""The URLs in a sitemap, and which of them it may list."""

from __future__ import annotations

import codecs
import gzip
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.parse.sitemap import (
    MAX_CHILD_SITEMAPS,
    MAX_SITEMAP_BYTES,
    MAX_SITEMAP_URLS,
    is_named_like_a_sitemap,
)
from rove.urls.canonical import MAX_URL_LENGTH
from tests.unit.parse.sitemaps import Sitemap, as_written, decompressed, permitted
from tests.urls import FORM

URL = "https://site.example/maps/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
A, B, C = (f"https://site.example/{name}" for name in "abc")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def read(body: str | bytes) -> Sitemap:
    return as_written(body.encode() if isinstance(body, str) else body, url=URL)


def urlset(*locs: str) -> str:
    urls = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
    return f"{HEAD}<urlset {NAMESPACE}>{urls}</urlset>"


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (urlset(), ()),
        (urlset(A), (A,)),
        (urlset(B, A, C), (B, A, C)),
        (urlset(A, B, A), (A, B)),
        (urlset(f"\n  {A}\t ", B), (A, B)),
        (urlset("", " ", A), (A,)),
        (f"<urlset><url><loc>{A}</loc></url></urlset>", (A,)),
        (f"<urlset><loc>{A}</loc></urlset>", (A,)),
        (f"\n\n <urlset><url><loc>{A}</loc></url></urlset>", (A,)),
        (f"<!-- a\n --><?xsl b?><urlset><url><loc>{A}</loc></url></urlset>", (A,)),
        (f"{HEAD}<s:urlset xmlns:s='x'><s:url><s:loc>{A}</s:loc></s:url></s:urlset>", (A,)),
        (f"<urlset><url><loc >{A}</loc ></url></urlset>", (A,)),
        (f"<urlset><url><loc a='b'\n>{A}</loc></url></urlset>", (A,)),
        ("<urlset><url><loc/></url><url><loc></loc></url></urlset>", ()),
        (f"<urlset><url><locale>{A}</locale><lastmod>{B}</lastmod></url></urlset>", ()),
        (f"<urlset><url><loc>{A}</loc><image:loc>{B}</image:loc></url></urlset>", (A,)),
        (f"<urlset><url><xhtml:link rel='alternate' href='{B}'/><loc>{A}</loc></url>", (A,)),
        (urlset(f"{A}?x=1&amp;y=2"), (f"{A}?x=1&y=2",)),
        (urlset(f"{A}?x=1&y=2&copy=3"), (f"{A}?x=1&y=2&copy=3",)),
        (urlset(f"{A}?&lt;&gt;&quot;&apos;&#38;&#x26;&#X2f;"), (f"{A}?<>\"'&&/",)),
        (urlset(f"{A}?&amp;lt;"), (f"{A}?&lt;",)),
        (urlset(f"{A}?&amp;lt;&lt;"), (f"{A}?&lt;<",)),
        (urlset(f"{A}?&#0;&#xD800;&#x110000;&no;"), (f"{A}?&#0;&#xD800;&#x110000;&no;",)),
        (urlset(f"<![CDATA[{A}?x=1&y=2]]>", B), (f"{A}?x=1&y=2", B)),
        (urlset(f" <![CDATA[ {A}?x=]&amp; ]]> ", B), (f"{A}?x=]&amp;", B)),
        (urlset(f"<![CDATA[{A}]]>x", B), (f"{A}x", B)),
        (urlset(f" {A}?<![CDATA[x=1&amp;y=]]>&amp;<![CDATA[]>]]> ", B), (f"{A}?x=1&amp;y=&]>", B)),
        (urlset(f"\n<![CDATA[{A}]]>\n<!-- <loc> -->", B), (A, B)),
        (urlset(f"{A}<!-- x -->/1"), (f"{A}/1",)),
        (urlset(f"<![CDATA[{A}]]><b/>", B), (B,)),
        (urlset(A + "<!---->" * 20_000, B), (B,)),
        (urlset(f"{A}<b>c</b>", B), (B,)),
        (urlset("https://site.example/ü/日本"), ("https://site.example/ü/日本",)),
        (f"<urlset><!-- <loc>{A}</loc> --><url><loc>{B}</loc></url></urlset>", (B,)),
        (f"<urlset><!-- -- > <loc>{A}</loc> --><url><loc>{B}</loc></url></urlset>", (B,)),
        (f"<urlset><x><![CDATA[<loc>{A}</loc> ]]]></x><loc>{B}</loc></urlset>", (B,)),
        (f"<!DOCTYPE urlset><urlset><loc>{A}</loc></urlset>", (A,)),
        (f"<!DOCTYPE urlset SYSTEM 'a>[.dtd'><urlset><loc>{A}</loc></urlset>", (A,)),
        (f"<html><body><loc>{A}</loc></body></html>", ()),
        (f"<!doctype html><html><loc>{A}</loc></html>", ()),
        (f"<URLSET><loc>{A}</loc></URLSET>", ()),
        ("<", ()),
        ("<urlset", ()),
        ("<urlset>", ()),
        ("", ()),
    ],
)
def test_urlset(body: str, urls: tuple[str, ...]) -> None:
    assert read(body) == Sitemap(urls=urls)


def test_index() -> None:
    body = f"{HEAD}<sitemapindex {NAMESPACE}><sitemap><loc>{A}</loc></sitemap>"
    body += f"<sitemap><loc>{B}</loc><lastmod>2024-01-01</lastmod></sitemap></sitemapindex>"
    assert read(body) == Sitemap(sitemaps=(A, B))


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (f"<urlset><url><loc>{A}</loc></url><url><loc>{B[:-3]}", (A,)),
        (f"<urlset><url><loc>{A}</loc></url><url><loc>{B}<", (A,)),
        (f"<urlset><url><loc>{A}</loc></url><url><loc><![CDATA[{B}", (A,)),
        (f"<urlset><url><loc>{A}</loc></url><url><loc><![CDATA[{B}]]", (A,)),
        (f"<urlset><url><loc>{A}</loc></url><url><loc>{B}<![CDATA[/x</loc>", (A,)),
        (f"<urlset><url><loc>{A}</loc></url><url><loc>{B}<!-- </loc>", (A,)),
        (f"<urlset><url><loc>{A}</loc></url><!-- <loc>{B}</loc>", (A,)),
        (f"<urlset><url><loc>{A}</loc></wrong></urlset><urlset><loc>{B}</loc>", (A, B)),
        (f"<urlset><url><loc>{A}<loc>{B}</loc>", (B,)),
    ],
)
def test_broken_and_cut(body: str, urls: tuple[str, ...]) -> None:
    assert read(body).urls == urls


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_cut_sitemap_lists_whole_urls_only(cut: int) -> None:
    whole = urlset(*(f"<![CDATA[{A}/{n}]]>" if n % 2 else f"{A}/{n}" for n in range(8)))
    all_urls = read(whole).urls
    assert len(all_urls) == 8
    urls = read(whole[:cut]).urls
    assert urls == all_urls[: len(urls)]
    packed = gzip.compress(whole.encode())
    urls = read(packed[: len(packed) * cut // 400]).urls
    assert urls == all_urls[: len(urls)]


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{LAUGHS}]>',
        '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE urlset PUBLIC "-//x" "http://evil.example/x.dtd" [ ]>',
        "<!DOCTYPE urlset [",
        "<!DOCTYPE urlset",
        "<!DOCTYPE urlset '",
        "<!DOCTYPE urlset <!ENTITY x 'y'>>",
    ],
)
def test_documents_that_declare_entities_are_ignored(doctype: str) -> None:
    assert read(f"{HEAD}{doctype}<urlset><loc>{A}</loc><loc>&l9;&x;</loc></urlset>") == Sitemap()


@pytest.mark.parametrize(
    "body",
    [
        codecs.BOM_UTF8 + urlset(A, "https://site.example/ü").encode(),
        urlset(A, "https://site.example/ü").encode("utf-16"),
        codecs.BOM_UTF16_BE + urlset(A, "https://site.example/ü").encode("utf-16-be"),
        urlset(A, "https://site.example/ü").replace("UTF-8", "UTF-16").encode("utf-16-le"),
        urlset(A, "https://site.example/ü").replace("UTF-8", "iso-8859-1").encode("latin-1"),
        gzip.compress(urlset(A, "https://site.example/ü").encode("utf-16")),
        f"{A}\nhttps://site.example/ü".encode("utf-8-sig"),
        f"{A}\nhttps://site.example/ü".encode("utf-16"),
    ],
)
def test_encodings(body: bytes) -> None:
    assert read(body).urls == (A, "https://site.example/ü")


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (A, (A,)),
        (f"{A}\n{B}\n", (A, B)),
        (f"{A}\r\n{B}\r\n\r\n{C}", (A, B, C)),
        (f"{A}\r{B}", (A, B)),
        (f"{A} \n{B}\t\n{A}", (A, B)),
        (f"# a list\n{A}\nsee {B}\nx{C}\nftp://site.example/\n/d\n", (A,)),
        ("http\nhttps:\nhttp://\nhttpx://a", ()),
        ("http://site.example/a\nhttps://site.example/a", ("http://site.example/a", A)),
        ("User-agent: *\nDisallow: /", ()),
        ('{"urls": ["https://site.example/a"]}', ()),
    ],
)
def test_plain_text(body: str, urls: tuple[str, ...]) -> None:
    assert read(body) == Sitemap(urls=urls)


RSS = (
    f"{HEAD}<rss version='2.0'><channel><title>t</title><link>{A}</link>"
    f"<atom:link href='{URL}' rel='self'/><item><link>{B}?x=1&amp;y=2</link>"
    f"<guid>{C}</guid><description>&lt;link>{C}&lt;/link></description></item>"
    f"<item><link><![CDATA[{C}]]></link></item></channel></rss>"
)
RSS_WITH_ODDITIES = (
    f"<rss><item><content:encoded><![CDATA[<link>{A}</link>]]></content:encoded>"
    "<link>/b</link><link>//[</link><link/></item></rss>"
)
ATOM = (
    f"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='{URL}'/>"
    f'<link href=\'{A}?x=1&amp;y=2\'/><entry><link href="{B}" rel="alternate" /></entry>'
    "<entry><link rel='enclosure' href='/d.mp3'/><link\n rel = 'alternate' href='/c'></link>"
    "<link/><link rel='alternate'/><link href='//['/></entry></feed>"
)
ATOM_NOT_READ = f"<!-- <link href='{A}'/> --><![CDATA[<link href='{A}'/>]]>"


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (RSS, (A, f"{B}?x=1&y=2", C)),
        (RSS_WITH_ODDITIES, (B,)),
        (f"<rdf:RDF xmlns='x'><item rdf:about='{B}'><link>{A}</link></item></rdf:RDF>", (A,)),
        (ATOM, (f"{A}?x=1&y=2", B, C)),
        (f"<a:feed xmlns:a='x'><a:link href='{A}'/><link href='{B}'/></a:feed>", (A,)),
        (f"<feed>{ATOM_NOT_READ}<link href='{B}'/>", (B,)),
    ],
)
def test_feeds(body: str, urls: tuple[str, ...]) -> None:
    assert read(body) == Sitemap(urls=urls)


def test_gzip() -> None:
    plain = urlset(A, B).encode()
    whole = gzip.compress(plain)
    assert read(whole) == read(plain) == Sitemap(urls=(A, B))
    assert decompressed(gzip.compress(plain[:50]) + gzip.compress(plain[50:])) == plain
    assert decompressed(whole + b"garbage") == plain
    assert decompressed(b"\x1f\x8b garbage") == b""
    assert decompressed(b"\x1f\x8b") == b""
    assert decompressed(whole[:-8]) == decompressed(whole[:-1]) == plain
    assert decompressed(gzip.compress(whole)) == whole


def test_a_damaged_gzip_file_is_read_up_to_the_damage() -> None:
    plain = urlset(*(f"{A}/{n * 7919}" for n in range(40_000))).encode()
    packed = bytearray(gzip.compress(plain))
    packed[len(packed) // 2] ^= 0xFF
    urls = read(bytes(packed)).urls
    assert urls[:1_000] == tuple(f"{A}/{n * 7919}" for n in range(1_000))


def test_a_bomb_costs_nothing() -> None:
    packer = zlib.compressobj(9, wbits=31)
    megabyte = b" " * 1_048_576
    packed = b"".join(packer.compress(megabyte) for _ in range(300)) + packer.flush()
    started = time.process_time()
    assert len(decompressed(packed)) == MAX_SITEMAP_BYTES
    assert read(packed) == Sitemap()
    assert time.process_time() - started < 3
    assert len(decompressed(gzip.compress(b"") * 50_000 + packed)) == 0


def test_a_long_sitemap_is_cut() -> None:
    padding = " " * (MAX_SITEMAP_BYTES - len(urlset(A)))
    body = urlset(A).replace("</urlset>", padding + f"<loc>{B}</loc></urlset>")
    assert len(body) > MAX_SITEMAP_BYTES
    assert read(body).urls == read(gzip.compress(body.encode(), 1)).urls == (A,)


def test_the_number_of_urls_is_limited() -> None:
    locs = [f"{A}/{n}" for n in range(MAX_SITEMAP_URLS + 10)]
    assert read(urlset(*locs)).urls == tuple(locs[:MAX_SITEMAP_URLS])
    assert read("\n".join(locs)).urls == tuple(locs[:MAX_SITEMAP_URLS])
    index = urlset(*locs).replace("urlset", "sitemapindex")
    assert read(index).sitemaps == tuple(locs[:MAX_CHILD_SITEMAPS])


def test_long_urls_are_dropped() -> None:
    fits = A + "/" + "x" * (MAX_URL_LENGTH - len(A) - 1)
    assert read(urlset(f"{fits}x", fits, B)).urls == (fits, B)
    assert read(f"{fits}x\n{fits}\n{B}").urls == (fits, B)
    assert read(f"<rss><link>{fits}x</link><link>{fits}</link></rss>").urls == (fits,)
    assert read(urlset(f"{A}?{'&amp;' * 1_900}")).urls == (f"{A}?{'&' * 1_900}",)


def test_a_full_sitemap_is_read_quickly_and_in_a_thread() -> None:
    """Allow ten times the usual time. Four run at once, to show that they share no state."""
    body = urlset(*(f"{A}/{n}?x=1&amp;y=2" for n in range(MAX_SITEMAP_URLS)))
    started = time.process_time()
    with ThreadPoolExecutor(4) as pool:
        sitemaps = list(pool.map(read, [body] * 4))
    assert time.process_time() - started < 4
    assert all(len(sitemap.urls) == MAX_SITEMAP_URLS for sitemap in sitemaps)


@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        ("<urlset>", "<"),
        ("<urlset>", "<loc"),
        ("<urlset>", "<loc "),
        ("<urlset>", "<loc>"),
        ("<urlset>", "<loc><![CDATA["),
        ("<urlset>", "<loc><![CDATA[]]>"),
        ("<urlset>", "<loc>a<![CDATA["),
        ("<urlset>", "<loc>a<!--"),
        ("<urlset><loc>", "<![CDATA[]]>"),
        ("<urlset><loc>", "a<!---->"),
        ("<urlset>", "<loc>a</loc>"),
        ("<urlset>", "<loc>&lt;</loc>"),
        ("<urlset><loc", " "),
        ("<urlset><loc>", " "),
        ("<urlset><loc>", "&"),
        ("<urlset><loc><![CDATA[", "]"),
        ("<urlset>", "<!--"),
        ("<urlset>", "<!---->"),
        ("<urlset><!--", "-"),
        ("<urlset>", "<![CDATA["),
        ("<", "a"),
        ("<", "a:"),
        ("", "<?"),
        ("", "<?a?>"),
        ("", "<!DOCTYPE "),
        ("<!DOCTYPE ", "a"),
        ("<!DOCTYPE ", '"'),
        ("<feed>", "<link "),
        ("<feed>", "<link a='' "),
        ("<feed>", "<link href='/a'/>"),
        ("<feed><link ", "a='"),
        ("<feed><link ", "a"),
        ("<rss>", "<link>/a</link>"),
        ("", " "),
        ("", "\n"),
        ("", "http"),
        ("", "http://a\n"),
        ("", "\0"),
        ("", "\xff"),
    ],
)
def test_hostile_sitemaps_take_linear_time(start: str, repeated: str) -> None:
    body = (start + repeated * (MAX_SITEMAP_BYTES // len(repeated))).encode("latin-1")
    started = time.process_time()
    read(body)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("https://www.site.example/a", "https://www.site.example/a"),
        ("http://www.site.example/a", "http://www.site.example/a"),
        ("https://WWW.Site.Example:443/a/../%7eb?q#c", "https://www.site.example/~b?q"),
        ("https://www.site.example:8443/a", "https://www.site.example:8443/a"),
        ("https://maps.example/other/dir/a", "https://maps.example/other/dir/a"),
        ("http://maps.example/", "http://maps.example/"),
        ("https://site.example/a", None),
        ("https://sub.www.site.example/a", None),
        ("https://sub.maps.example/a", None),
        ("https://www.site.example.evil.example/a", None),
        ("https://www.site.example@evil.example/a", None),
        ("https://evil.example/?https://www.site.example/a", None),
        ("//www.site.example/a", None),
        ("/a", None),
        ("a", None),
        ("ftp://www.site.example/a", None),
        ("javascript:x", None),
        ("https://[", None),
        ("", None),
        ("https://maps.example/for/site.xml", None),
        ("https://maps.example/for/site.xml#x", None),
    ],
)
def test_hosts(text: str, allowed: str | None) -> None:
    """The robots.txt of www.site.example names a sitemap on maps.example."""
    url, host = "https://maps.example/for/site.xml", "www.site.example"
    expected = [] if allowed is None else [allowed]
    assert [item.text for item in permitted([text], url=url, host=host, form=FORM.in_full)] == expected


def test_listed_urls_are_canonical_in_order_each_once() -> None:
    sitemap = Sitemap(urls=(f"{B}#x", A, f"{A}?", B, "https://site.example:443/a", C))
    assert [url.text for url in permitted(sitemap.urls, url=URL, host="site.example", form=FORM.in_full)] == [B, A, C]
    assert [url.text for url in permitted(sitemap.urls, url="nonsense", host="site.example", form=FORM.in_full)] == [
        B,
        A,
        C,
    ]
    assert permitted(sitemap.urls, url="nonsense", host="other.example", form=FORM.in_full) == []


LOC = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)


@given(st.lists(LOC, max_size=10), st.booleans())
def test_the_scan_agrees_with_an_xml_parser(locs: list[str], verbatim: bool) -> None:
    half = [(loc[: len(loc) // 2], loc[len(loc) // 2 :].replace(">", "")) for loc in locs]
    wrapped = [f"{escape(a)}<![CDATA[{b}]]>{escape(a)}" if verbatim else escape(a + b) for a, b in half]
    # XML 1.0 does not allow U+FFFE and U+FFFF, not even as references.
    body = urlset(*wrapped).replace("\ufffe", "").replace("\uffff", "")
    root = ElementTree.fromstring(body.encode())
    texts = [(element.text or "").strip() for element in root.iter() if element.tag.endswith("}loc")]
    assert read(body).urls == tuple(dict.fromkeys(text for text in texts if text))


PIECES = st.one_of(
    st.sampled_from(
        [
            *("<urlset>", "<sitemapindex>", "<rss>", "<feed>", "<x:urlset>", "<?xml ?>", "<!DOCTYPE x"),
            *("<loc>", "</loc>", "<link>", "</link>", "<link href='", "'/>", "<x:loc>", "</x:loc>"),
            *("<!--", "-->", "<![CDATA[", "]]>", "[", ">", "<", "&", "&amp;", "&#55555;", "\n"),
            *("http://", A, "https://[", "//h", "\ufeff"),
        ]
    ),
    st.text(max_size=5),
)


def check(sitemap: Sitemap) -> None:
    for texts in (sitemap.urls, sitemap.sitemaps):
        assert len(set(texts)) == len(texts)
        assert all(text == text.strip() and 0 < len(text) <= MAX_URL_LENGTH for text in texts)
    for item in permitted(sitemap.urls + sitemap.sitemaps, url=URL, host="h", form=FORM.in_full):
        assert item.host in ("h", "site.example")


@given(st.sampled_from(["<urlset>", "<sitemapindex>", "<rss>", "<feed>", ""]), st.lists(PIECES))
def test_any_pieces(root: str, pieces: list[str]) -> None:
    check(read(root + "".join(pieces)))


@given(st.sampled_from([b"", b"<urlset>", b"<feed>", b"\x1f\x8b", b"\xff\xfe"]), st.binary())
def test_any_bytes(start: bytes, body: bytes) -> None:
    check(read(start + body))
    check(read(gzip.compress(start + body)))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.test/sitemap.xml", True),
        ("http://a.test/maps/1.xml.gz?v=2", True),
        ("http://a.test/article", False),
        ("http://a.test/list.txt", False),
        ("http://a.test/?x=.xml", False),
    ],
)
def test_only_some_names_are_those_of_sitemaps(url: str, expected: bool) -> None:
    assert is_named_like_a_sitemap(url) is expected
