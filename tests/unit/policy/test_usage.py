"""What headers and robots.txt lines state about the use of pages, one source at a time and combined."""

from __future__ import annotations

from itertools import permutations

import pytest

from rove.errors import UsageError
from rove.model.usage import Category, Purpose, Statement, Usage, UsageSource
from rove.policy.robots import Rules
from rove.policy.robots_lines import MAX_USAGE_LENGTH, MAX_USAGE_LINES
from rove.policy.usage import (
    combine,
    content_signal,
    content_usage,
    header_statements,
    parse_purpose,
    parse_use,
    tdm,
)

A = "https://a.test"
GROUP = "User-agent: *\n"


def values(*statements: Statement) -> str:
    """Return the combined values."""
    return " ".join(combine(statements).values)


def stated(robots: str, path: str = "/x") -> str:
    """Return what a robots.txt states about a path."""
    return values(*Rules(robots.encode()).usage_of(A + path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train-ai=n", "train-ai=n"),
        ("train-ai=y, search=n", "search=n train-ai=y"),
        (" Train-AI = N ;x=1 , search", "train-ai=n"),
        ('train-ai="n"', "train-ai=n"),
        ("train-ai=?0", "train-ai=n"),
        ("train-ai=n, train-ai=y", "train-ai=y"),
        ("train-ai=maybe, other=n, =, ,", ""),
        ("ai-train=no", ""),
        ("", ""),
        ("x" * 5_000 + ",train-ai=n", ""),
    ],
)
def test_content_usage(text: str, expected: str) -> None:
    assert values(*content_usage(text, UsageSource.CONTENT_USAGE)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search=yes, ai-train=no, ai-input=no", "ai-input=n search=y train-ai=n"),
        ("search=yes,ai-train=no", "search=y train-ai=n"),
        ("AI-TRAIN=YES", "train-ai=y"),
        ("train-ai=n", ""),
    ],
)
def test_content_signal(text: str, expected: str) -> None:
    assert values(*content_signal(text, UsageSource.CONTENT_SIGNAL)) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tdm-reservation", "1", "train-ai=n"),
        ("tdm-reservation", " 0 ", "train-ai=y"),
        ("tdm-reservation", "yes", ""),
        ("tdm-policy", "https://a.test/policy.json", "tdm-policy=https://a.test/policy.json"),
        ("tdm-policy", "/policy.json", ""),
        ("tdm-policy", "https://a.test/x y\x1b", "tdm-policy=https://a.test/x"),
    ],
)
def test_tdm(name: str, value: str, expected: str) -> None:
    assert values(*tdm(name, value, UsageSource.TDM_HEADER)) == expected


def test_headers_in_any_case_and_number() -> None:
    headers = [
        ("Content-Type", "text/html"),
        ("CONTENT-USAGE", "search=y"),
        ("Content-Usage", "train-ai=n"),
        ("content-signal", "ai-input=no"),
        ("TDM-Reservation", "1"),
        ("tdm-policy", "https://a.test/p"),
    ]
    usage = combine(header_statements(headers))
    assert usage.values == ("ai-input=n", "search=y", "tdm-policy=https://a.test/p", "train-ai=n")
    assert usage.sources == ("content-signal", "content-usage", "tdm-header")


def test_no_wins_over_yes_whatever_the_order() -> None:
    statements = [
        Statement(Category.TRAIN_AI, "y", UsageSource.CONTENT_USAGE),
        Statement(Category.TRAIN_AI, "n", UsageSource.TDM_META),
        Statement(Category.SEARCH, "y", UsageSource.ROBOTS_CONTENT_SIGNAL),
    ]
    for order in permutations(statements):
        usage = combine(order)
        assert usage.values == ("search=y", "train-ai=n")
        assert usage.sources == ("content-usage", "robots-content-signal", "tdm-meta")
        assert usage.forbids(Purpose.TRAINING) and not usage.forbids(Purpose.SEARCH)


def test_what_speaks_against_a_purpose() -> None:
    assert not any(Usage().forbids(purpose) for purpose in (None, *Purpose)), "unknown means allowed"
    assert Usage(("search=n",)).forbids(Purpose.SEARCH) and not Usage(("search=n",)).forbids(Purpose.TRAINING)
    everything = Usage(("ai-input=n", "search=n", "train-ai=n", "train-ai-images=n", "license=https://a.test/"))
    assert [purpose for purpose in (None, *Purpose) if everything.forbids(purpose)] == ["search", "training"]
    assert not Usage(("train-ai-images=n", "train-ai=y", "license=https://a.test/")).forbids(Purpose.TRAINING)


@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        (GROUP + "Content-Usage: train-ai=n", "train-ai=n"),
        (GROUP + "content usage: train-ai=n # a comment\nDisallow: /private", "train-ai=n"),
        (GROUP + "Content-Signal: search=yes,ai-train=no\nAllow: /", "search=y train-ai=n"),
        (GROUP + "Content-Signals: search=yes, ai-train=no", "search=y train-ai=n"),
        ("Content-Signal: ai-train=no\nUser-agent: rove\nAllow: /", "train-ai=n"),
        ("User-agent: other\nContent-Usage: train-ai=n", ""),
        ("User-agent: other\nContent-Usage: train-ai=n\nUser-agent: rove\nContent-Usage: train-ai=y", "train-ai=y"),
        ("User-agent: other\nUser-agent: rove\nContent-Usage: train-ai=n\n", "train-ai=n"),
        (GROUP + "Content-Usage: train-ai=n\nUser-agent: rove\nAllow: /\n", ""),
        (GROUP + "Content-Usage: train-ai=y\nContent-Usage: train-ai=n\n", "train-ai=n"),
        (GROUP + "Content-Usage: train-ai=y\nContent-Signal: ai-train=no\n", "train-ai=n"),
        ("License: https://a.test/license.xml\n", "license=https://a.test/license.xml"),
        ("User-agent: other\nDisallow: /\nLicence: https://a.test/l\n", "license=https://a.test/l"),
        ("License: a.test/license.xml\nLicense: MIT", ""),
        (GROUP + "Disallow: /private\nAllowAITraining: n", ""),
        ("<html>Content-Usage: train-ai=n", ""),
    ],
)
def test_lines_of_a_robots_txt(robots: str, expected: str) -> None:
    assert stated(robots) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "train-ai=y"),
        ("/a", "search=y train-ai=n"),
        ("/a/b", "train-ai=y"),
        ("/a/b/c.pdf", "train-ai=n"),
        ("/a/b/c.pdf?x", "train-ai=y"),
        ("/%C3%BC", "search=n"),
        ("/same", "search=n train-ai=n"),
    ],
)
def test_the_longest_path_wins_and_equal_ones_combine(path: str, expected: str) -> None:
    lines = [
        *("train-ai=y", "/a train-ai=n, search=y", "/a/b/ train-ai=y", "/a/b train-ai=y", "/a/b/*.pdf$ train-ai=n"),
        *("/ü search=n", "/same train-ai=y", "/same train-ai=n", "/same search=n", "/a nonsense"),
    ]
    assert stated(GROUP + "".join(f"Content-Usage: {line}\n" for line in lines), path) == expected


def test_a_path_of_one_kind_of_line_does_not_hide_another_kind() -> None:
    robots = GROUP + "Content-Usage: /x search=y\nContent-Signal: ai-train=no\n"
    assert stated(robots, "/x") == "search=y train-ai=n"


def test_lines_about_use_neither_forbid_anything_nor_set_a_delay() -> None:
    rules = Rules(b"User-agent: rove\nContent-Usage: / train-ai=n\nLicense: https://a.test/\nDisallow: /private\n")
    assert rules.allows(f"{A}/x") and not rules.allows(f"{A}/private")
    rule = rules.deciding_rule(f"{A}/private")
    assert rule is not None and (rule.line, rule.text) == (4, "Disallow: /private")
    assert (rules.crawl_delay, rules.sitemaps, rules.is_cut) == (0.0, [], False)


def test_the_lines_that_count_are_bounded() -> None:
    many = "".join(f"Content-Usage: /{number:04} train-ai=n\n" for number in range(MAX_USAGE_LINES + 1))
    assert Rules((GROUP + many).encode()).is_cut
    assert stated(GROUP + many, f"/{MAX_USAGE_LINES - 1:04}") == "train-ai=n"
    assert stated(GROUP + many, f"/{MAX_USAGE_LINES:04}") == ""
    long = Rules(f"{GROUP}Content-Usage: /{'x' * MAX_USAGE_LENGTH} train-ai=n\n".encode())
    assert long.is_cut and not long.usage_of(f"{A}/")


def test_purposes() -> None:
    assert parse_purpose(" Training") is Purpose.TRAINING
    with pytest.raises(UsageError, match="'selling' is not a purpose; choose one of search, research"):
        parse_purpose("selling")
    assert parse_use("search") is Purpose.SEARCH
    with pytest.raises(UsageError, match="no preference about archive; choose one of training, search"):
        parse_use("archive")
