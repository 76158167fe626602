"""Lines of seed files: which are seeds, and for which https is a guess."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rove.urls.seed import parse_any_seed, parse_seed, why_not_a_seed
from tests.unit.urls.test_canonical import LIKE_URLS
from tests.urls import FORM

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
    seed = parse_seed(text, FORM)
    assert seed is not None
    assert (seed[0].text, seed[1]) == (expected, is_bare)


@pytest.mark.parametrize("text", BAD_SEEDS)
def test_a_bad_seed(text: str) -> None:
    assert parse_seed(text, FORM) is None


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
    assert parse_seed(text, FORM) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a.test b.test", "names several domains; put each on a line of its own"),
        ("a.test; http://b.test/", "names several domains; put each on a line of its own"),
        ("see a.test", "is not a domain or URL: it has a space in it"),
        ("ftp://a.test/", "is not a domain or URL that rove can fetch: only http and https are"),
        ("me@a.test", "is not a domain or URL: it looks like an e-mail address"),
        ("localhosts", "is not a domain or URL: it has no dot"),
        ("1.2.3", "is not a domain or URL"),
    ],
)
def test_the_reason_why_a_line_is_no_seed(text: str, reason: str) -> None:
    assert why_not_a_seed(text) == reason


@settings(max_examples=300, deadline=None)
@given(LIKE_URLS)
@example("example.org\\path")
@example("example.org//")
def test_a_bare_seed_is_the_front_page_of_a_host(text: str) -> None:
    for given_text in (text, text.removeprefix("http://")):
        seed = parse_seed(given_text, FORM)
        if seed is not None and seed[1]:
            assert seed[0].text == f"https://{seed[0].host}/"


@settings(max_examples=1_000)
@given(
    st.sampled_from(["", "http://", "https://", "HTTP://"]),
    st.text("abx09-._:/", min_size=1, max_size=12),
    st.sampled_from(["", "/", ".test", ".test/", "." + 250 * "a", ".xn--a", ".0x1", "-.com"]),
)
def test_plain_seeds_equal_parsed_ones(scheme: str, host: str, end: str) -> None:
    text = scheme + host + end
    assert parse_seed(text, FORM) == parse_any_seed(text, FORM)
