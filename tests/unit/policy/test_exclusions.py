"""The meaning of exclusion patterns."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rove.errors import UsageError
from rove.policy.exclusions import Exclusions, domain_around, parse_exclusions, parse_pattern, whole_domains
from rove.urls.domain import domain_of, is_address
from tests.urls import canonical


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "www.example.com"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("EXAMPLE.Com", "example.com"),
        (" example.com\n", "example.com"),
        ("example.com.", "example.com"),
        ("example.com...", "example.com"),
        ("*.example.com", "example.com"),
        ("*.Example.com.", "example.com"),
        ("*.com", "com"),
        ("=www.example.com", "=www.example.com"),
        ("=WWW.example.com.", "=www.example.com"),
        ("shop*.example.com", "shop*.example.com"),
        ("Shop*.Example.COM", "shop*.example.com"),
        ("*-ads.*", "*-ads.*"),
        ("*.shop*.example.com", "*.shop*.example.com"),
        ("*ads*", "*ads*"),
        ("ads.*", "ads.*"),
        ("a_b*.test", "a_b*.test"),
        ("münchen.de", "xn--mnchen-3ya.de"),
        ("*.MÜNCHEN.de", "xn--mnchen-3ya.de"),
        ("=Bücher.example", "=xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("example。com", "example.com"),
        ("example.com:8080", "example.com"),
        ("=example.com:8080", "=example.com"),
        ("http://example.com:8080/path?query#top", "example.com"),
        ("https://www.example.com", "www.example.com"),
        ("=https://www.example.com/", "=www.example.com"),
        ("192.0.2.1", "192.0.2.1"),
        ("=192.0.2.1", "=192.0.2.1"),
        ("192.0.2.1:81", "192.0.2.1"),
        ("http://127.1/", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("[2001:DB8::1]", "[2001:db8::1]"),
        ("[2001:db8:0:0:0:0:0:1]", "[2001:db8::1]"),
        ("[::1]:8080", "[::1]"),
        ("http://[::1]/", "[::1]"),
        ("192.0.2.*", "192.0.2.*"),
    ],
)
def test_the_normal_form_of_a_pattern(written: str, normal: str) -> None:
    assert parse_pattern(written) == normal
    assert parse_pattern(normal) == normal, "the normal form is stable"


@pytest.mark.parametrize("text", ["*", "**", "*.*", "*.*.*", "*.**", "***.*"])
def test_a_pattern_that_excludes_everything_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="would exclude everything"):
        parse_pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ".", "..", "=", "*.", "*..", "@", "?", "#"),
        *("a b", "a b*", "two words.com", "a|b", "a<b>", "a\0b", "\0", "a\0*", "\0a.test"),
        *("http://", "https://", "ftp://a.test", "://a.test"),
        *("http://*.a.test/", "a*.b/c", "a*.test:80", "=*.a.test", "=a*.test"),
        *("[::1", "::1", "[::*]", "1.2.3.4.5", "256.1.1.1", "a.test:99999", "a.test:x"),
        *("xn--", "a*..b", ".a*", "a*."),
    ],
)
def test_texts_that_are_no_pattern_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a domain"):
        parse_pattern(text)


@pytest.mark.parametrize("text", ["/etc/hosts", "/tmp/list.txt", "a.test\0", "a\ntest", "exa\tmple.com"])
def test_hosts_that_only_a_url_parser_accepts_are_refused(text: str) -> None:
    """A path or a user name would exclude something else than the person meant."""
    with pytest.raises(UsageError, match="is not a domain"):
        parse_pattern(text)


@pytest.mark.parametrize("text", ["%2A", "＊", "%2a.com", "＊.a.test", "http://%2A/", "%3Da.test"])
def test_special_characters_cannot_be_smuggled_in_by_escapes(text: str) -> None:
    """A URL parser resolves escapes and full-width characters; a `*` made this way would exclude everything."""
    with pytest.raises(UsageError):
        parse_pattern(text)


@pytest.mark.parametrize("text", ["a b", "*", "http://"])
def test_an_error_quotes_the_text(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pattern(text)
    assert repr(text) in str(caught.value)


def test_a_file_of_every_form() -> None:
    lines = ["# never\n", "\ufeffa.test\n", "=www.b.test # only this\n", "*-ads.*\n", "\n"]
    assert parse_exclusions(lines, "file") == ["a.test", "=www.b.test", "*-ads.*"]


@pytest.mark.parametrize("line", ["*", "a b*", "=*.a.test"])
def test_a_bad_pattern_in_a_file_is_an_error_that_names_its_line(line: str) -> None:
    with pytest.raises(UsageError, match=r"list\.txt, line 2: '"):
        parse_exclusions(["*-ads.*", line], "list.txt")


@pytest.mark.parametrize(
    ("pattern", "covered", "spared"),
    [
        (
            "example.com",
            ["example.com", "www.example.com", "a.b.example.com"],
            ["notexample.com", "example.com.test", "com", "example.co", "example"],
        ),
        ("com", ["com", "a.com", "www.a.com"], ["com.test", "xcom"]),
        ("=www.example.com", ["www.example.com"], ["example.com", "a.www.example.com", "xwww.example.com"]),
        ("=example.com", ["example.com"], ["www.example.com"]),
        (
            "shop*.example.com",
            ["shop.example.com", "shop1.example.com", "shop.a.example.com", "x.shop2.example.com"],
            ["example.com", "www.example.com", "eshop.example.com", "shop.example.com.test"],
        ),
        (
            "*-ads.*",
            ["x-ads.com", "x-ads.co.uk", "www.x-ads.com", "a.x-ads.b.test", "-ads.com"],
            ["ads.com", "x-ads", "x-adsb.com", "xads.com"],
        ),
        ("*ads*", ["ads", "ads.com", "downloads.test", "a.ads.b"], ["ad.s", "test.com"]),
        ("ads.*", ["ads.com", "ads.co.uk", "x.ads.com"], ["ads", "xads.com", "a-ads.com"]),
        ("*.shop*.example.com", ["a.shop1.example.com"], ["shop1.example.com"]),
        ("a*a.test", ["aa.test", "aba.test", "a.a.test"], ["a.test", "ab.test"]),
        ("a*b*c", ["abc", "axbxc", "a.b.c", "z.abc", "abcbc"], ["ab", "acb", "abcd", "bc"]),
        ("a.b*", ["a.b", "a.bc", "x.a.b.c"], ["axb", "a", "ab"]),
        ("192.0.2.1", ["192.0.2.1"], ["192.0.2.11", "1.192.0.2", "192.0.2.2"]),
        ("=192.0.2.1", ["192.0.2.1"], ["192.0.2.11"]),
        ("192.0.2.*", ["192.0.2.1", "192.0.2.255"], ["192.0.3.1"]),
        ("2.1", [], ["192.0.2.1"]),
        ("[2001:db8::1]", ["[2001:db8::1]"], ["[2001:db8::11]", "[2001:db8::]"]),
    ],
)
def test_what_a_pattern_covers(pattern: str, covered: list[str], spared: list[str]) -> None:
    exclusions = Exclusions([pattern])
    assert {host for host in covered if not exclusions.covers(host)} == set()
    assert {host for host in spared if exclusions.covers(host)} == set()
    assert all(exclusions.covering(host) == pattern for host in covered)
    assert all(exclusions.covering(host) is None for host in spared)


def test_the_pattern_that_covers_is_named() -> None:
    exclusions = Exclusions(["example.com", "=www.example.org", "shop*.test", "www.example.com"])
    assert exclusions.covering("a.example.com") == "example.com"
    assert exclusions.covering("www.example.com") == "www.example.com", "the nearest name"
    assert exclusions.covering("www.example.org") == "=www.example.org"
    assert exclusions.covering("x.shop1.test") == "shop*.test"
    assert exclusions.covering("example.org") is None


LABELS = st.sampled_from(["a", "b", "ab", "ba", "a-b", "www", "com", "co", "uk", "test"])
HOSTS = st.lists(LABELS, min_size=1, max_size=5).map(".".join)
ADDRESSES = st.sampled_from(["1.2.3.4", "10.2.3.4", "192.168.0.1", "[::1]", "[2001:db8::1]"])
GLOBS = (
    st.lists(st.sampled_from(["*", "a", "b", ".", "-", "com", "1", "2.3"]), min_size=2, max_size=8)
    .map("".join)
    .filter(lambda text: "*" in text and text.strip("*."))
    .filter(lambda text: not text.startswith(".") and not text.endswith(".") and ".." not in text)
)
PATTERNS = st.one_of(HOSTS, HOSTS.map("={}".format), GLOBS, ADDRESSES, ADDRESSES.map("={}".format))
ANY_HOST = st.one_of(HOSTS, ADDRESSES)


@given(st.lists(PATTERNS, max_size=8), ANY_HOST)
def test_covers_and_covering_agree(patterns: list[str], host: str) -> None:
    exclusions = Exclusions(patterns)
    pattern = exclusions.covering(host)
    assert exclusions.covers(host) is (pattern is not None)
    assert pattern is None or (pattern in patterns and Exclusions([pattern]).covers(host))
    assert exclusions.covers(host) is any(Exclusions([one]).covers(host) for one in patterns)


def plainly_covers(pattern: str, host: str) -> bool:
    """Return whether a pattern covers a host, by the plainest algorithm."""
    if pattern.startswith("="):
        return host == pattern[1:]
    if is_address(host) and "*" not in pattern:
        return host == pattern
    dots = [number + 1 for number, letter in enumerate(host) if letter == "."]
    return any(_plainly_matches(pattern, host[start:]) for start in (0, *dots))


def _plainly_matches(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_plainly_matches(pattern[1:], text[n:]) for n in range(len(text) + 1))
    return text[:1] == pattern[0] and _plainly_matches(pattern[1:], text[1:])


@given(PATTERNS, ANY_HOST)
def test_a_plain_reading_agrees(pattern: str, host: str) -> None:
    assert Exclusions([pattern]).covers(host) is plainly_covers(pattern, host)


@given(PATTERNS, HOSTS, LABELS)
def test_subdomains_of_a_covered_host_are_covered(pattern: str, host: str, label: str) -> None:
    assume(not pattern.startswith("="))
    exclusions = Exclusions([pattern])
    assert not exclusions.covers(host) or exclusions.covers(f"{label}.{host}")


@given(PATTERNS, ANY_HOST)
def test_the_domain_around_a_pattern_is_that_of_all_its_hosts(pattern: str, host: str) -> None:
    context = domain_around(pattern)
    if context is not None and Exclusions([pattern]).covers(host):
        assert domain_of(host) == context


@given(st.text())
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except UsageError:
        return
    assert parse_pattern(pattern) == pattern
    if "*" not in pattern:
        host = pattern.removeprefix("=")
        url = canonical(f"http://{host}/")
        assert url is not None and url.host == host
        assert Exclusions([pattern]).covers(host)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("=www.example.com", "example.com"),
        ("=example.co.uk", "example.co.uk"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("shop*.example.com", "example.com"),
        ("*.shop*.example.com", "example.com"),
        ("a*b.www.example.com", "example.com"),
        ("*x.example.co.uk", "example.co.uk"),
        ("192.0.2.1", "192.0.2.1"),
        ("=[::1]", "[::1]"),
        ("*ample.com", None),
        ("shop*example.com", None),
        ("shop*.com", None),
        ("shop*.co.uk", None),
        ("*x.github.io", None),
        ("*-ads.*", None),
        ("ads.*", None),
        ("*ads*", None),
        ("com", None),
        ("co.uk", None),
        ("192.0.2.*", None),
        ("192.*.2.1", None),
        ("1*.2.3.4", None),
    ],
)
def test_the_domain_around_a_pattern(pattern: str, expected: str | None) -> None:
    assert domain_around(pattern) == (None if expected is None else domain_of(expected))


def test_the_domains_that_patterns_name() -> None:
    patterns = [
        *("example.com", "www.example.org", "=example.net", "shop*.example.edu", "*-ads.*"),
        *("b.co.uk", "192.0.2.1", "[::1]", "=192.0.2.2", "example.com"),
    ]
    names = ["example.com", "b.co.uk", "192.0.2.1", "[::1]"]
    assert whole_domains(patterns) == names
    assert whole_domains([]) == []


def seconds_for(exclusions: Exclusions, hosts: list[str]) -> float:
    started = time.thread_time()
    for host in hosts:
        exclusions.covers(host)
        exclusions.covering(host)
    return time.thread_time() - started


LONG_HOST = ".".join(["a" * 60] * 4)
LONGEST_HOST = ".".join(["a" * 60] * 31)
"""As long as a canonical URL allows; DNS allows far less."""


def test_a_thousand_patterns_of_each_kind_stay_fast() -> None:
    names = [f"{kind}{n}{rest}" for n in range(1_000) for kind, rest in [("x", ".test"), ("=y", "")]]
    globs = [f"shop{n}*.test{n % 7}.com" for n in range(1_000)]
    exclusions = Exclusions([*names, *globs])
    hosts = [f"www.shop{n}.example{n}.com" for n in range(100)]
    assert seconds_for(exclusions, hosts) < 1.0, "a page has sixty links"


@pytest.mark.parametrize(
    "pattern",
    [
        "*a*a*a*a*a*a*",
        "*a*a*a*a*a*a*b",
        "a*a*a*a*a*a*a*a*a*a*b",
        "*aa*aa*aa*aa*aa*aa*aa*c*",
        "*-ads.*",
        "*.a*.a*.a*.b",
        "********************b",
        "*a" * 60 + "b",
    ],
)
@pytest.mark.parametrize("host", [LONG_HOST, LONGEST_HOST, "a." * 120 + "c", "a." * 900 + "c"])
def test_no_pattern_takes_long_for_any_host(pattern: str, host: str) -> None:
    assert seconds_for(Exclusions([pattern]), [host]) < 0.2


@pytest.mark.parametrize("text", ["!!", "a_b!.test", "a,b.test", "(a).test", "=x!.test"])
def test_a_text_that_no_host_matches_is_no_pattern(text: str) -> None:
    with pytest.raises(UsageError, match="is not a domain"):
        parse_pattern(text)
