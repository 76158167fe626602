"""The canonical form, and the values derived from it."""

from __future__ import annotations

import ipaddress
import itertools
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rove.urls.canonical import MAX_URL_LENGTH, LinkBase, UrlForm, parse_base
from rove.urls.domain import domain_of, is_address
from rove.urls.origin import origin_of
from tests.urls import FORM, canonical

CANONICAL = [
    # Scheme, host and port
    ("http://a.test/", "http://a.test/"),
    ("HTTP://A.TEST/", "http://a.test/"),
    ("https://A.Test/Path", "https://a.test/Path"),
    ("http://a.test:80/", "http://a.test/"),
    ("https://a.test:443/", "https://a.test/"),
    ("http://a.test:080/", "http://a.test/"),
    ("http://a.test:/x", "http://a.test/x"),
    ("http://a.test:443/", "http://a.test:443/"),
    ("https://a.test:80/", "https://a.test:80/"),
    ("http://a.test:8080/", "http://a.test:8080/"),
    ("http://a.test:0/", "http://a.test:0/"),
    ("http://a.test:65535/", "http://a.test:65535/"),
    ("http:a.test", "http://a.test/"),
    ("http:/a.test", "http://a.test/"),
    ("http:///a.test/x", "http://a.test/x"),
    (r"http:\\a.test\x", "http://a.test/x"),
    ("  http://a.test/ \n", "http://a.test/"),
    ("ht\ntp://a.\ttest/\rx", "http://a.test/x"),
    ("\x00\x1fhttp://a.test/", "http://a.test/"),
    ("http://ex%41mple.test/", "http://example.test/"),
    ("http://a_b.test/", "http://a_b.test/"),
    # Trailing dots
    ("http://a.test./", "http://a.test/"),
    ("http://a.test.../x", "http://a.test/x"),
    ("http://a.test.:8080/", "http://a.test:8080/"),
    ("http://1.2.3.4./", "http://1.2.3.4/"),
    # User information
    ("http://user@a.test/", "http://a.test/"),
    ("http://user:secret@a.test/", "http://a.test/"),
    ("http://:secret@a.test/", "http://a.test/"),
    ("http://@a.test/", "http://a.test/"),
    ("http://:@a.test/", "http://a.test/"),
    ("http://a@b@c.test/", "http://c.test/"),
    ("http://user:secret@a.test.:81/x@y", "http://a.test:81/x@y"),
    ("http://a.test/@x", "http://a.test/@x"),
    ("http://a.test/?q=a@b.test", "http://a.test/?q=a@b.test"),
    # International names
    ("http://münchen.test/", "http://xn--mnchen-3ya.test/"),
    ("http://MÜNCHEN.test/", "http://xn--mnchen-3ya.test/"),
    ("http://xn--mnchen-3ya.test/", "http://xn--mnchen-3ya.test/"),
    ("http://faß.test/", "http://xn--fa-hia.test/"),
    ("http://a。test/", "http://a.test/"),
    ("http://пример.рф/", "http://xn--e1afmkfd.xn--p1ai/"),
    # Addresses
    ("http://127.0.0.1/", "http://127.0.0.1/"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7f000001/", "http://127.0.0.1/"),
    ("http://0x7F.1/", "http://127.0.0.1/"),
    ("http://0177.0.0.01/", "http://127.0.0.1/"),
    ("http://1.2.3/", "http://1.2.0.3/"),
    ("http://%31.2.3.4/", "http://1.2.3.4/"),
    ("http://０x7f.1/", "http://127.0.0.1/"),
    ("http://[::1]/", "http://[::1]/"),
    ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/"),
    ("http://[2001:DB8::A]:8080/x", "http://[2001:db8::a]:8080/x"),
    ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
    # Path
    ("http://a.test", "http://a.test/"),
    ("http://a.test/a/./b/../c", "http://a.test/a/c"),
    ("http://a.test/../../x", "http://a.test/x"),
    ("http://a.test/a/..", "http://a.test/"),
    ("http://a.test/a/.", "http://a.test/a/"),
    ("http://a.test/a/%2e%2E/b", "http://a.test/b"),
    ("http://a.test//a//b/", "http://a.test//a//b/"),
    ("http://a.test/a;b=c", "http://a.test/a;b=c"),
    (r"http://a.test/a\b", "http://a.test/a/b"),
    # Fragment and query
    ("http://a.test/#", "http://a.test/"),
    ("http://a.test/#top", "http://a.test/"),
    ("http://a.test#a?b#c", "http://a.test/"),
    ("http://a.test/x?a=1&b=2#y", "http://a.test/x?a=1&b=2"),
    ("http://a.test?", "http://a.test/"),
    ("http://a.test/x?#y", "http://a.test/x"),
    ("http://a.test?x", "http://a.test/?x"),
    ("http://a.test/?B=2&a=1", "http://a.test/?B=2&a=1"),
    ("http://a.test/?a=/../b", "http://a.test/?a=/../b"),
    ("http://a.test/?x?", "http://a.test/?x?"),
    ("http://a.test/x??", "http://a.test/x??"),
    # Percent-encoding
    ("http://a.test/%7Euser", "http://a.test/~user"),
    ("http://a.test/%7euser", "http://a.test/~user"),
    ("http://a.test/%41%5a%61%7A%30%39", "http://a.test/AZaz09"),
    ("http://a.test/%2D%2e%5F", "http://a.test/-._"),
    ("http://a.test/x%2fy", "http://a.test/x%2Fy"),
    ("http://a.test/%3a%40%21%24", "http://a.test/%3A%40%21%24"),
    ("http://a.test/?q=%c3%a9", "http://a.test/?q=%C3%A9"),
    ("http://a.test/é", "http://a.test/%C3%A9"),
    ("http://a.test/a b", "http://a.test/a%20b"),
    ("http://a.test/?a b'\"<>", "http://a.test/?a%20b%27%22%3C%3E"),
    ("http://a.test/?a+b", "http://a.test/?a+b"),
    ("http://a.test/😀", "http://a.test/%F0%9F%98%80"),
    ("http://a.test/%25", "http://a.test/%25"),
    ("http://a.test/%2541", "http://a.test/%2541"),
    ("http://a.test/%252e%252e/", "http://a.test/%252e%252e/"),
    ("http://a.test/?q=%3D%26", "http://a.test/?q=%3D%26"),
    ("http://a.test/%23x", "http://a.test/%23x"),
]

NOT_FETCHED = [
    "",
    " ",
    "a.test",
    "/path",
    "//a.test/",
    "?x",
    "#x",
    "http://",
    "http:",
    "http:///",
    "https://?x",
    "http://.",
    "http://...",
    "http://.a.test/",
    "http://a.test:65536/",
    "http://a.test:-1/",
    "http://a.test:x/",
    "http://a b.test/",
    "http://a<b.test/",
    "http://a^b.test/",
    "http://a|b.test/",
    "http://a%00b.test/",
    "http://a%2fb.test/",
    "http://xn--a/",
    "http://256.1.1.1/",
    "http://1.2.3.4.5/",
    "http://4294967296/",
    "http://a.test.1/",
    "http://[::1/",
    "http://[::g]/",
    "http://[fe80::1%25eth0]/",
    "http://::1/",
    "ftp://a.test/",
    "file:///etc/passwd",
    "mailto:someone@a.test",
    "javascript:alert(1)",
    "data:text/html,x",
    "ws://a.test/",
    "blob:http://a.test/x",
    "view-source:http://a.test/",
    "about:blank",
    "tel:+123",
    "httpx://a.test/",
]

JOINED = [
    ("http://a.test/dir/page", "other", "http://a.test/dir/other"),
    ("http://a.test/dir/page", "./other", "http://a.test/dir/other"),
    ("http://a.test/dir/page", "../other", "http://a.test/other"),
    ("http://a.test/dir/page", "/other", "http://a.test/other"),
    ("http://a.test/dir/page", "//b.test/x", "http://b.test/x"),
    ("https://a.test/dir/page", "//b.test/x", "https://b.test/x"),
    ("http://a.test/dir/page", "?q=1", "http://a.test/dir/page?q=1"),
    ("http://a.test/dir/page?old", "#x", "http://a.test/dir/page?old"),
    ("http://a.test/dir/page", "", "http://a.test/dir/page"),
    ("http://a.test/dir/page", "https://b.test", "https://b.test/"),
    ("http://a.test/dir/page", r"\other", "http://a.test/other"),
    ("http://a.test/dir/page", "http:other", "http://a.test/dir/other"),
    ("http://a.test/dir/page", "a b", "http://a.test/dir/a%20b"),
    ("http://a.test/dir/page", "mailto:x@a.test", None),
    ("http://a.test/dir/page", "http://", None),
    ("http://a.test/dir/page", "//a.test:99999/", None),
    ("https://a.test/dir/page", "///b.test/x", "https://b.test/x"),
    ("http://a.test/dir/page", " ////b.test/x//y", "http://b.test/x//y"),
    ("http://a.test/dir/page", "/\t//b.test/x", "http://b.test/x"),
    ("http://a.test/dir/page", r"//\b.test/x", "http://b.test/x"),
    ("http://a.test/dir/page", "//", None),
    ("http://a.test/dir/page", "///", None),
    ("http://a.test/dir/page", "///?x", None),
    ("http://a.test/dir/page", "///b.test:99999/", None),
    ("mailto:x@a.test", "///b.test/", None),
    ("mailto:x@a.test", "other", None),
    ("data:text/html,x", "//a.test/", None),
    ("data:text/html,x", "http://a.test/", "http://a.test/"),
]


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_the_canonical_form(text: str, expected: str) -> None:
    url = canonical(text)
    assert url is not None
    assert url.text == expected


@pytest.mark.parametrize("text", [expected for _, expected in CANONICAL])
def test_a_canonical_form_stays_as_it_is(text: str) -> None:
    url = canonical(text)
    assert url is not None
    assert url.text == text


@pytest.mark.parametrize("text", NOT_FETCHED)
def test_urls_that_are_not_fetched(text: str) -> None:
    assert canonical(text) is None


@pytest.mark.parametrize(("base", "text", "expected"), JOINED)
def test_links_are_joined_to_their_base(base: str, text: str, expected: str | None) -> None:
    url = canonical(text, parse_base(base))
    assert (None if url is None else url.text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "http://a.test/%%341",
        "http://a.test/%%37E",
        "http://a.test/?%%34%31",
        "http://a.test/a??",
        "http://a.test/a???#x",
        "http://a.test/?%2%30",
    ],
)
def test_the_form_of_an_odd_url_is_stable(text: str) -> None:
    """The frontier keeps the text alone: what is not the same when it is read again is never settled."""
    url = canonical(text)
    assert url is not None
    assert canonical(url.text) == url


@pytest.mark.parametrize("host", ["foo.1..", "a.0x7..", "1.2.3.4.5..", "256..", "a.test.1...", "08..", "1.2.3.4.."])
def test_a_host_that_ends_in_a_number_is_an_address_or_invalid(host: str) -> None:
    url = canonical(f"http://{host}/")
    if url is not None:
        assert is_address(url.host)
        assert url.text == f"http://{url.host}/"


@pytest.mark.parametrize("host", ["1..", "0x7f.1..", "127.1..", "0x7f000001...", "%30x7f.1.."])
def test_dots_after_an_address_are_removed(host: str) -> None:
    """Politeness and exclusions go by the domain, so it must be that of the address that gets the request."""
    url = canonical(f"http://{host}/")
    plain = canonical(f"http://{host.rstrip('.')}/")
    assert plain is not None
    assert url == plain


def test_lone_surrogates_are_invalid() -> None:
    assert canonical("http://a.test/\ud800") is None
    assert canonical("\udcff", parse_base("http://a.test/")) is None
    assert parse_base("http://a.test/\ud800") is None


def test_the_length_is_bounded() -> None:
    stem = "http://a.test/"
    longest = stem + "x" * (MAX_URL_LENGTH - len(stem))
    assert canonical(longest) is not None
    assert canonical(longest + "x") is None
    assert canonical(longest + "#" + "x" * 100) is not None, "the fragment does not count"
    assert canonical(stem + "é" * 330) is not None
    assert canonical(stem + "é" * 332) is None, "escapes count"


def test_the_derived_values() -> None:
    url = canonical("https://User@Www.Example.co.uk.:8443/a?b#c")
    assert url is not None
    assert url.text == "https://www.example.co.uk:8443/a?b"
    assert url.host == "www.example.co.uk"
    assert url.origin == "https://www.example.co.uk:8443"
    assert url.domain_name == "example.co.uk"
    assert url.domain == FORM.domain_id("example.co.uk")
    assert url.fingerprint == FORM.domain_id(url.text)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://a.test/x", "http://a.test"),
        ("http://a.test:80/x", "http://a.test"),
        ("https://a.test:443/x", "https://a.test"),
        ("https://a.test:80/x", "https://a.test:80"),
        ("http://a.test.:81/x", "http://a.test:81"),
        ("http://[::1]:81/x", "http://[::1]:81"),
        ("http://127.1/x", "http://127.0.0.1"),
    ],
)
def test_the_origin_is_scheme_host_and_port(text: str, origin: str) -> None:
    url = canonical(text)
    assert url is not None
    assert url.origin == origin
    robots = canonical(f"{origin}/robots.txt")
    assert robots is not None
    assert robots.origin == origin


def test_new_url_makes_a_row_for_the_frontier() -> None:
    url = canonical("http://www.a.test/x")
    assert url is not None
    row = url.new_url(depth=3, hops=2, assume_https=True)
    assert (row.url, row.fingerprint) == (url.text, url.fingerprint)
    assert (row.domain, row.domain_name) == (FORM.domain_id("a.test"), "a.test")
    assert (row.depth, row.hops, row.assume_https) == (3, 2, True)
    assert (url.new_url(depth=1).hops, url.new_url(depth=1).assume_https) == (0, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://a.test/", "http://a.test/"),
        ("https://a.test/x?y", "http://a.test/x?y"),
        ("https://a.test:8443/", "http://a.test:8443/"),
        ("https://a.test:80/", "http://a.test/"),
        ("https://[::1]/", "http://[::1]/"),
        ("https://a.test/https://b.test", "http://a.test/https://b.test"),
    ],
)
def test_the_http_twin(text: str, expected: str) -> None:
    url = canonical(text)
    assert url is not None
    twin = FORM.http_twin(url)
    assert twin == canonical(expected)
    assert (twin.domain, twin.host) == (url.domain, url.host)


URL_LETTERS = string.ascii_letters + string.digits + "%/?#@:.\\[]&=~-_ ;,'\"<>|^\t\néß。０"
LIKE_URLS = st.one_of(
    st.text(),
    st.text(URL_LETTERS, max_size=40).map("http://".__add__),
    st.text(URL_LETTERS, max_size=40).map("https://a.test/".__add__),
    st.text("0123456789abcdefx.", max_size=12).map("http://".__add__),
    st.text("0123456789ABCDEFabcdef%/?#", max_size=24).map("http://a.test/".__add__),
    st.builds(
        "{}://{}{}/{}?{}#{}".format,
        st.sampled_from(["http", "HTTPS", "ftp", ""]),
        st.text(URL_LETTERS, max_size=12),
        st.sampled_from(["", ".", "..", ":80", ":x", ":65536"]),
        st.text(URL_LETTERS, max_size=12),
        st.text(URL_LETTERS, max_size=12),
        st.text(URL_LETTERS, max_size=6),
    ),
)
BASES = st.sampled_from(["http://a.test/", "https://a.test/dir/page?x#y", "mailto:x@a.test", "data:,x", "file:///x/y"])


@settings(max_examples=500, deadline=None)
@given(LIKE_URLS)
@example("http://a.test/%%341")
@example("http://a.test/a??")
@example("http://1../")
@example("http://foo.1../")
def test_canonical_is_idempotent(text: str) -> None:
    url = canonical(text)
    if url is not None:
        assert canonical(url.text) == url


@settings(max_examples=300, deadline=None)
@given(LIKE_URLS, st.one_of(st.none(), BASES))
def test_invariants_of_a_canonical_url(text: str, base: str | None) -> None:
    url = canonical(text, None if base is None else parse_base(base))
    if url is None:
        return
    assert url.text.isascii() and url.text.isprintable()
    assert len(url.text) <= MAX_URL_LENGTH
    assert "#" not in url.text and " " not in url.text
    assert url.text.startswith((f"{url.origin}/",))
    assert url.host in url.origin
    assert url.domain == FORM.domain_id(url.domain_name)
    assert url.host == url.domain_name or url.host.endswith(f".{url.domain_name}")
    assert url.domain_name == domain_of(url.host)


ODD_BASES = st.sampled_from(
    [
        "http://a.test:8080/x",
        "HTTPS://me:secret@A.Test:443/dir/",
        "http://a.test../x/./y",
        "http://bücher.test/%7e/?q",
        "http://0x7f.1/",
        "http://[::1]:81/a;b",
        "http://a.test/;sid=0123456789abcdef0123456789abcdef/b",
        "http://.a.test/",
        "no url",
    ]
)
PATHS = st.builds(
    "{}{}".format,
    st.sampled_from(["/", "", "//", "/./", "/..", "/a/", "\\", "/?", ";", "/a.b/.c"]),
    st.lists(
        st.one_of(
            st.sampled_from(["..", ".", "/", "%2e", "%41", "%zz", "utm_source=x", "&", "?", ";"]),
            st.sampled_from([";jsessionid=1", "sid=" + "0" * 32, "x" * 1_990, "^", "|", "`", "{}"]),
            st.text(URL_LETTERS + "!$()*+", max_size=6),
            st.characters(),
        ),
        max_size=6,
    ).map("".join),
)

ORIGINS = st.sampled_from(
    [
        *("http://a.test", "https://www.b.example:8443", "http://[::1]:81", "http://127.0.0.1"),
        *("HTTP://a.test", "http://A.test", "http://a.test:80", "http://u@a.test", "http://a.test.", "http://127.1"),
        *("http:a.test", "http:/a.test", "http:///a.test", "http://bücher.test", "http://a.test?q", "http://a b.test"),
        *("httpx://a.test", "http://", "http", "https://.a.test", "http://a.test:0", "http://a.test:99999"),
    ]
)


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(PATHS, LIKE_URLS, st.builds("{}{}".format, ORIGINS, PATHS)),
    st.one_of(BASES, ODD_BASES),
    st.sampled_from([FORM.in_full, FORM]),
)
@example("/", "http://a.test/", FORM.in_full)
@example("/a?", "http://a.test/", FORM.in_full)
@example("/a??", "http://a.test/", FORM.in_full)
@example("/a?b'c", "http://a.test/", FORM.in_full)
@example("/a#b", "http://a.test/", FORM.in_full)
@example("/a\n", "http://a.test/", FORM.in_full)
@example("http://a.test//b", "http://a.test/", FORM.in_full)
@example("http://a.test/b/../c", "http://a.test/", FORM.in_full)
@example("/a\u212a", "http://a.test/", FORM.in_full)
@example("/" + "x" * (MAX_URL_LENGTH - len("http://a.test/")), "http://a.test/", FORM.in_full)
@example("/" + "x" * (MAX_URL_LENGTH - len("http://a.test/") + 1), "http://a.test/", FORM.in_full)
def test_links_joined_without_the_parser_equal_parsed_ones(text: str, base: str, form: UrlForm) -> None:
    parsed = parse_base(base)
    link = LinkBase(form, parsed, canonical(base)).join(text)
    assert link == form.canonical(text, parsed)


def test_lower_case_and_needless_escapes_are_changed() -> None:
    for code in range(0x100):
        literal = chr(code) if chr(code) in string.ascii_letters + string.digits + "-._~" else None
        for high, low in itertools.product({f"{code >> 4:X}", f"{code >> 4:x}"}, {f"{code & 15:X}", f"{code & 15:x}"}):
            url = canonical(f"http://a.test/a?%{high}{low}")
            assert url is not None and url.text == f"http://a.test/a?{literal or f'%{code:02X}'}"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters()), st.one_of(st.none(), BASES))
def test_canonical_never_raises(text: str, base: str | None) -> None:
    canonical(text, None if base is None else parse_base(base))
    parse_base(text)


@settings(deadline=None)
@given(st.ip_addresses())
def test_addresses_are_domains_of_their_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    url = canonical(f"http://[{address}]/" if address.version == 6 else f"http://{address}/")
    assert url is not None
    assert is_address(url.host)
    assert url.domain_name == url.host


@pytest.mark.parametrize(
    "text",
    [
        "https://www.example.co.uk/a?b=c",
        "http://example.com:8080/",
        "http://[2001:db8::1]:81/x",
        "http://192.0.2.7/",
        "https://xn--mnchen-3ya.de/%C3%BC//x",
    ],
)
def test_a_stored_url_is_restored(text: str) -> None:
    url = canonical(text)
    assert url is not None and url.text == text
    assert FORM.restored(text, url.fingerprint) == url
    assert origin_of(text) == url.origin
