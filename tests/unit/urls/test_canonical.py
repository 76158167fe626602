"""The canonical form, and what follows from it."""

from __future__ import annotations

import doctest
import ipaddress
import itertools
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rove.urls.canonical
from rove.urls.canonical import (
    MAX_URL_LENGTH,
    Base,
    canonical,
    domain_of,
    fingerprint,
    http_twin,
    is_address,
    origin_of,
    parse_base,
    parse_seed,
    registrable,
    restored,
)
from rove.urls.ignored_params import drops_of

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
    ("mailto:x@a.test", "other", None),
    ("data:text/html,x", "//a.test/", None),
    ("data:text/html,x", "http://a.test/", "http://a.test/"),
]


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_the_canonical_form(text: str, expected: str) -> None:
    found = canonical(text)
    assert found is not None
    assert found.text == expected


@pytest.mark.parametrize("text", [expected for _, expected in CANONICAL])
def test_a_canonical_form_stays_as_it_is(text: str) -> None:
    found = canonical(text)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize("text", NOT_FETCHED)
def test_what_is_not_fetched(text: str) -> None:
    assert canonical(text) is None


@pytest.mark.parametrize(("base", "text", "expected"), JOINED)
def test_links_are_joined_to_their_base(base: str, text: str, expected: str | None) -> None:
    found = canonical(text, parse_base(base))
    assert (None if found is None else found.text) == expected


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
def test_an_odd_url_comes_to_rest_at_once(text: str) -> None:
    """The frontier keeps the text alone: what is not the same when it is read again is never settled."""
    found = canonical(text)
    assert found is not None
    assert canonical(found.text) == found


@pytest.mark.parametrize(
    "host", ["foo.1..", "a.0x7..", "1.2.3.4.5..", "256..", "a.test.1...", "08..", "1.2.3.4.."]
)
def test_a_number_behind_dots_is_an_address_or_nothing(host: str) -> None:
    found = canonical(f"http://{host}/")
    if found is not None:
        assert is_address(found.host)
        assert found.text == f"http://{found.host}/"


@pytest.mark.parametrize("host", ["1..", "0x7f.1..", "127.1..", "0x7f000001...", "%30x7f.1.."])
def test_an_address_behind_dots_is_the_address(host: str) -> None:
    """Its domain is the unit of politeness and of exclusions: it must be that of the address which is asked."""
    found = canonical(f"http://{host}/")
    plain = canonical(f"http://{host.rstrip('.')}/")
    assert plain is not None
    assert found == plain


def test_lone_surrogates_make_no_url() -> None:
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
    assert canonical(stem + "é" * 332) is None, "what is sent counts"


def test_what_follows_from_a_url() -> None:
    found = canonical("https://User@Www.Example.co.uk.:8443/a?b#c")
    assert found is not None
    assert found.text == "https://www.example.co.uk:8443/a?b"
    assert found.host == "www.example.co.uk"
    assert found.origin == "https://www.example.co.uk:8443"
    assert found.domain_name == "example.co.uk"
    assert found.domain == fingerprint("example.co.uk")
    assert found.fingerprint == fingerprint(found.text)


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
    found = canonical(text)
    assert found is not None
    assert found.origin == origin
    robots = canonical(f"{origin}/robots.txt")
    assert robots is not None
    assert robots.origin == origin


def test_an_offer_carries_what_the_frontier_needs() -> None:
    found = canonical("http://www.a.test/x")
    assert found is not None
    offer = found.new_url(depth=3, hops=2, assume_https=True)
    assert (offer.url, offer.fingerprint) == (found.text, found.fingerprint)
    assert (offer.domain, offer.domain_name) == (fingerprint("a.test"), "a.test")
    assert (offer.depth, offer.hops, offer.assume_https) == (3, 2, True)
    assert (found.new_url(depth=1).hops, found.new_url(depth=1).assume_https) == (0, False)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("a.b.c.example.com", "example.com"),
        ("com", "com"),
        ("example.co.uk", "example.co.uk"),
        ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("user.github.io", "user.github.io"),
        ("www.user.github.io", "user.github.io"),
        ("github.io", "github.io"),
        ("me.blogspot.com", "me.blogspot.com"),
        ("a.me.blogspot.com", "me.blogspot.com"),
        ("foo.ck", "foo.ck"),
        ("www.foo.ck", "www.foo.ck"),
        ("a.www.foo.ck", "www.foo.ck"),
        ("a.www.ck", "www.ck"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
        ("b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("www.xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        ("h1.test", "h1.test"),
        ("www.h1.test", "h1.test"),
        ("a.b.h1.test", "h1.test"),
        ("test", "test"),
        ("localhost", "localhost"),
        ("intranet", "intranet"),
        ("1.2.3.4", "1.2.3.4"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[2001:db8::a]", "[2001:db8::a]"),
    ],
)
def test_the_domain_is_the_registrable_one(host: str, name: str) -> None:
    assert domain_of(host) == (name, fingerprint(name))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("1.2.3.4", True),
        ("[::1]", True),
        ("a.test", False),
        ("1.2.3.4.test", False),
        ("localhost", False),
    ],
)
def test_addresses_are_told_from_names(host: str, expected: bool) -> None:
    assert is_address(host) is expected


def test_fingerprints_are_signed_64_bit_numbers_that_stay_the_same() -> None:
    # They are stored: another value would part a crawl from what it knows.
    assert fingerprint("") == 3244421341483603138
    assert fingerprint("a") == -1817709641818812897
    assert fingerprint("http://example.com/") == -5081748069831205333


@settings(deadline=None)
@given(st.text())
def test_a_fingerprint_fits_a_database(text: str) -> None:
    assert -(1 << 63) <= fingerprint(text) < 1 << 63


def test_fingerprints_of_either_sign_occur() -> None:
    signs = {fingerprint(str(number)) < 0 for number in range(50)}
    assert signs == {True, False}


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
    found = canonical(text)
    assert found is not None
    twin = http_twin(found)
    assert twin == canonical(expected)
    assert (twin.domain, twin.host) == (found.domain, found.host)


SEEDS = [
    # A bare domain: https is a guess.
    ("example.org", "https://example.org/", True),
    ("Example.ORG", "https://example.org/", True),
    ("example.org/", "https://example.org/", True),
    ("example.org.", "https://example.org/", True),
    ("www.example.org", "https://www.example.org/", True),
    ("münchen.test", "https://xn--mnchen-3ya.test/", True),
    ("xn--mnchen-3ya.test", "https://xn--mnchen-3ya.test/", True),
    ("localhost", "https://localhost/", True),
    ("192.0.2.1", "https://192.0.2.1/", True),
    ("my_host.example.org", "https://my_host.example.org/", True),
    ("[::1]", "https://[::1]/", True),
    ("[2001:DB8::A]", "https://[2001:db8::a]/", True),
    # More than a domain: the user knows what is there.
    ("example.org/path", "https://example.org/path", False),
    ("example.org/path/", "https://example.org/path/", False),
    ("example.org?q=1", "https://example.org/?q=1", False),
    ("example.org:443", "https://example.org/", False),
    ("example.org:8080", "https://example.org:8080/", False),
    ("localhost:8080", "https://localhost:8080/", False),
    ("192.0.2.1:81/x", "https://192.0.2.1:81/x", False),
    ("[::1]:8080", "https://[::1]:8080/", False),
    ("example.org/@someone", "https://example.org/@someone", False),
    ("example.org/a:b", "https://example.org/a:b", False),
    # A URL
    ("https://example.org", "https://example.org/", False),
    ("http://example.org", "http://example.org/", False),
    ("HTTP://Example.org:80/A#b", "http://example.org/A", False),
    ("http://intranet/", "http://intranet/", False),
    ("http://[::1]:8080/", "http://[::1]:8080/", False),
    ("http://user:secret@example.org/", "http://example.org/", False),
    ("http://example.org/a b", "http://example.org/a%20b", False),
]

BAD_SEEDS = [
    "example",
    "-",
    "...",
    ".example.org",
    "/path",
    "//example.org/",
    "?x",
    "#x",
    ":80",
    "@example.org",
    "someone@example.org",
    "user:secret@example.org/",
    "mailto:someone@example.org",
    "two words.test",
    "example.org and more",
    "example.org/a b",
    "example.org\tx",
    "ftp://example.org/",
    "file:///etc/hosts",
    "https://",
    "http://a.test:99999/",
    "http:/example.org",
    "http:example.org",
    "javascript:alert(1)",
    "data:text/html,x.y",
    r"C:\seeds.txt",
    "example.org:99999",
    "example.org:x",
    "<example.org>",
    "a|b.test",
    "300.1.1.1",
    "1.2.3.4.5",
    "x" * 3000 + ".test",
]


@pytest.mark.parametrize(("text", "expected", "is_bare"), SEEDS)
def test_a_seed(text: str, expected: str, is_bare: bool) -> None:
    seed = parse_seed(text)
    assert seed is not None
    assert (seed[0].text, seed[1]) == (expected, is_bare)


@pytest.mark.parametrize("text", BAD_SEEDS)
def test_a_bad_seed(text: str) -> None:
    assert parse_seed(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "1,google.com",
        '"example.org"',
        "(example.org)",
        "example.org;",
        "example.org,",
        "*.example.org",
        "a..test",
        "12345",
        "1.5",
    ],
)
def test_a_line_of_some_other_format_is_no_seed(text: str) -> None:
    """Lists of domains come with ranks and quotes: the person hears of it rather than of a thousand DNS failures."""
    assert parse_seed(text) is None


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
BASES = st.sampled_from(
    ["http://a.test/", "https://a.test/dir/page?x#y", "mailto:x@a.test", "data:,x", "file:///x/y"]
)


@settings(max_examples=500, deadline=None)
@given(LIKE_URLS)
@example("http://a.test/%%341")
@example("http://a.test/a??")
@example("http://1../")
@example("http://foo.1../")
def test_canonical_is_idempotent(text: str) -> None:
    found = canonical(text)
    if found is not None:
        assert canonical(found.text) == found


@settings(max_examples=300, deadline=None)
@given(LIKE_URLS, st.one_of(st.none(), BASES))
def test_a_canonical_url_keeps_its_promises(text: str, base: str | None) -> None:
    found = canonical(text, None if base is None else parse_base(base))
    if found is None:
        return
    assert found.text.isascii() and found.text.isprintable()
    assert len(found.text) <= MAX_URL_LENGTH
    assert "#" not in found.text and " " not in found.text
    assert found.text.startswith((f"{found.origin}/",))
    assert found.host in found.origin
    assert found.domain == fingerprint(found.domain_name)
    assert found.host == found.domain_name or found.host.endswith(f".{found.domain_name}")
    assert found.domain_name == domain_of(found.host)[0]


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


@settings(max_examples=500, deadline=None)
@given(st.one_of(PATHS, LIKE_URLS), st.one_of(BASES, ODD_BASES), st.sampled_from([1, 2]))
@example("/", "http://a.test/", 2)
@example("/a?", "http://a.test/", 2)
@example("/a??", "http://a.test/", 2)
@example("/a?b'c", "http://a.test/", 2)
@example("/a#b", "http://a.test/", 2)
@example("/a\n", "http://a.test/", 2)
@example("/a\u212a", "http://a.test/", 2)
@example("/" + "x" * (MAX_URL_LENGTH - len("http://a.test/")), "http://a.test/", 2)
@example("/" + "x" * (MAX_URL_LENGTH - len("http://a.test/") + 1), "http://a.test/", 2)
def test_links_that_are_not_parsed_are_what_the_parser_makes_of_them(
    text: str, base: str, version: int
) -> None:
    url, drops = parse_base(base), drops_of(version, ())
    assert Base(url, canonical(base), drops).join(text) == canonical(text, url, drops)


def test_escapes_are_changed_that_are_in_lower_case_or_not_needed() -> None:
    for code in range(0x100):
        kept = chr(code) if chr(code) in string.ascii_letters + string.digits + "-._~" else None
        for high, low in itertools.product(
            {f"{code >> 4:X}", f"{code >> 4:x}"}, {f"{code & 15:X}", f"{code & 15:x}"}
        ):
            found = canonical(f"http://a.test/a?%{high}{low}")
            assert found is not None and found.text == f"http://a.test/a?{kept or f'%{code:02X}'}"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters()), st.one_of(st.none(), BASES))
def test_canonical_never_raises(text: str, base: str | None) -> None:
    canonical(text, None if base is None else parse_base(base))
    parse_base(text)


@settings(max_examples=300, deadline=None)
@given(LIKE_URLS)
@example("example.org\\path")
@example("example.org//")
def test_a_bare_seed_is_the_front_page_of_a_host(text: str) -> None:
    for given_text in (text, text.removeprefix("http://")):
        seed = parse_seed(given_text)
        if seed is not None and seed[1]:
            assert seed[0].text == f"https://{seed[0].host}/"


@settings(deadline=None)
@given(st.ip_addresses())
def test_addresses_are_domains_of_their_own(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    found = canonical(f"http://[{address}]/" if address.version == 6 else f"http://{address}/")
    assert found is not None
    assert is_address(found.host)
    assert found.domain_name == found.host


def test_the_examples_in_the_module_hold() -> None:
    assert doctest.testmod(rove.urls.canonical).failed == 0


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
def test_a_url_that_was_kept_is_the_same_again(text: str) -> None:
    found = canonical(text)
    assert found is not None and found.text == text
    assert restored(text, found.fingerprint) == found
    assert origin_of(text) == found.origin


RULES = sorted(rove.urls.canonical._with_rules())
LABELS = st.sampled_from(["a", "www", "b-c", "city", "com", "co", "jp", "kobe", "ck", "X", "1", ""])


@settings(max_examples=1_000)
@given(st.lists(LABELS, max_size=4), st.sampled_from([*RULES, "", "test", "COM"]))
@example(["a"], "www.ck")
@example(["a", "b"], "kobe.jp")
@example(["x"], "kobe.jp")
def test_the_registrable_domain_is_that_of_the_list(labels: list[str], rule: str) -> None:
    name = ".".join([*labels, rule])
    assert registrable(name) == (rove.urls.canonical._suffixes().privatesuffix(name) or name)


@settings(max_examples=1_000)
@given(
    st.sampled_from(["", "http://", "https://", "HTTP://"]),
    st.text("abx09-._:/", min_size=1, max_size=12),
    st.sampled_from(["", "/", ".test", ".test/", "." + 250 * "a", ".xn--a", ".0x1", "-.com"]),
)
def test_plain_seeds_are_what_the_parser_makes_of_them(scheme: str, host: str, end: str) -> None:
    text = scheme + host + end
    found = parse_seed(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rove.urls.canonical, "_PLAIN_SEED", lambda text: None)
        assert found == parse_seed(text)
