"""Long robots.txt files: which rules count, and what is kept of a file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.policy.robots import Rules
from rove.policy.robots_lines import LONG_ROBOTS, MAX_ROBOTS_BYTES, MAX_RULE_BYTES, MAX_RULES, Reduced, reducing

A = "https://a.test"


def reduced(body: bytes) -> tuple[Reduced, int]:
    """Return a reduced file, and the number of slices that it took."""
    work, slices = reducing(body), 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, slices
        slices += 1


def test_a_file_is_reduced_to_what_applies_to_rove() -> None:
    body = (
        b"# a comment\nUser-agent: other\nDisallow: /other\nCrawl-delay: 9\n"
        b"User-agent: *\nDisallow: /all\nSitemap: https://a.test/1.xml\n"
        b"User-agent: Rove/2.0\nDissallow /private\nAllow: /priv\xc3\xa4te$ # yes\nDisallow:\nCrawl-delay: 2.5\n"
        b"License: https://a.test/terms.xml\nContent-Signal: ai-train=no\n"
        b"User-agent: other\nContent-Usage: train-ai=n\n"
    )
    result, _ = reduced(body)
    first, *lines = result.body.decode().splitlines()
    assert first == f"# {len(body)} bytes, of which these apply to rove:"
    assert lines == [
        "Content-Signal: ai-train=no",
        "User-agent: rove",
        "Disallow: /private",
        "Allow: /priväte$",
        "Crawl-delay: 2.5",
        "Sitemap: https://a.test/1.xml",
        "License: https://a.test/terms.xml",
    ]
    assert not result.is_cut


def test_a_file_without_our_group_has_no_rules() -> None:
    result, _ = reduced(b"User-agent: other\nDisallow: /\n" * 3_000)
    assert result.body.count(b"\n") == 1
    assert Rules(result.body).allows(f"{A}/x")


LINES = st.sampled_from(
    [
        *("User-agent: *", "User-agent: rove", "user-agent:other", "User agent rove", "# comment", "", "nonsense"),
        *("Disallow: /a", "Allow: /a/b", "Disallow: /*c$", "Disallow:", "disallow: /%7ea?x=%3a", "Dissalow: /ü"),
        *("Crawl-delay: 3", "Crawl-delay: .5", "Sitemap: https://a.test/s", "Allow : *d", "\tDisallow:\t/e # no"),
        *("Content-Usage: train-ai=n", "Content-usage: /a/ü train-ai=y # no", "Content-Signal: /a search=no"),
        *("content signal: ai-train=no, search=yes", "License: https://a.test/l", "Licence: nowhere"),
    ]
)
PATHS = ("/", "/a", "/a/b", "/a/bc", "/xc", "/~a?x=:", "/%C3%BC", "/yd", "/e", "/robots.txt")


@given(st.lists(LINES, max_size=30), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_reduced_file_means_the_same(lines: list[str], line_end: str, is_utf16: bool) -> None:
    text = line_end.join([*lines, "#" + "-" * 5_000, *lines, "#" + "-" * 5_000, *lines])
    body = text.encode("utf-16" if is_utf16 else "utf-8")
    whole, kept = Rules(body), Rules(reduced(body)[0].body)
    assert [whole.allows(A + path) for path in PATHS] == [kept.allows(A + path) for path in PATHS]
    assert (whole.crawl_delay, whole.sitemaps) == (kept.crawl_delay, kept.sitemaps)
    assert [whole.usage_of(A + path) for path in PATHS] == [kept.usage_of(A + path) for path in PATHS]


@pytest.mark.parametrize(
    ("rule", "counted"),
    [("Disallow: /{}", MAX_RULES), ("Disallow: /*{}", MAX_RULES // 2), ("Disallow: /%20{}", MAX_RULES // 2)],
)
def test_only_some_rules_count(rule: str, counted: int) -> None:
    lines = ["User-agent: *", *(rule.format(f"{n:05}") for n in range(10_000))]
    body = "\n".join(lines).encode()
    result, slices = reduced(body)
    assert slices > 10, "others get a turn"
    assert result.is_cut and result.body.count(b"Disallow") == counted
    for rules in (Rules(body), Rules(result.body)):
        value = rule.format("{}").removeprefix("Disallow: ").replace("*", "")
        assert not rules.allows(A + value.format(f"{counted - 1:05}"))
        assert rules.allows(A + value.format(f"{counted:05}"))
    assert Rules(body).is_cut and not Rules(result.body).is_cut


def test_few_rules_are_not_cut() -> None:
    body = b"User-agent: *\n" + b"Disallow: /a\n" * MAX_RULES
    assert not Rules(body).is_cut and not reduced(body)[0].is_cut
    assert Rules(body + b"Disallow: /b\n").is_cut


def test_rules_of_others_do_not_count() -> None:
    body = b"User-agent: other\n" + b"Disallow: /a\n" * 20_000 + b"User-agent: *\nDisallow: /b\n"
    result, _ = reduced(body)
    assert not result.is_cut
    assert not Rules(result.body).allows(f"{A}/b")


def test_a_rule_that_is_too_long_leaves_the_others_in_force() -> None:
    body = b"User-agent: *\nDisallow: /" + b"*a" * MAX_RULE_BYTES + b"\nDisallow: /b\n"
    result, _ = reduced(body)
    assert result.is_cut and len(result.body) < 200
    assert not Rules(result.body).allows(f"{A}/b")


@pytest.mark.parametrize(
    "line", [b"\n", b"Allow:/\n", b"User-agent:a\n", b"Disallow: /*x%3A?%3A\n", b"Crawl-delay: 1\n"]
)
def test_what_is_kept_is_short(line: bytes) -> None:
    body = (b"User-agent: *\n" + line * (MAX_ROBOTS_BYTES // len(line)))[:MAX_ROBOTS_BYTES]
    result, slices = reduced(body)
    assert len(result.body) < MAX_RULE_BYTES + 16 * MAX_RULES
    assert slices >= len(body) // LONG_ROBOTS
