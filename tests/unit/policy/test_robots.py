"""How rove reads a robots.txt, and that no text makes it slow."""

from __future__ import annotations

import math
import time

import pytest

from rove.policy.robots import Rule, Rules
from rove.policy.robots_lines import MAX_ROBOTS_BYTES, MAX_SITEMAPS

ORIGIN = "https://example.com"


def allows(text: str | bytes, path: str) -> bool:
    return Rules(text if isinstance(text, bytes) else text.encode()).allows(ORIGIN + path)


YES, NO = True, False


@pytest.mark.parametrize(
    ("agent", "ours"),
    [
        ("rove", YES),
        ("Rove", YES),
        ("ROVE", YES),
        ("  rove  ", YES),
        ("rove/1.0", YES),
        ("rove # that one", YES),
        ("*", YES),
        ("* # all", YES),
        ("rover", NO),
        ("rov", NO),
        ("Rove-Images", NO),
        ("rove_news", NO),
        ("a rove", NO),
        ("other", NO),
        ("", NO),
        ("röve", NO),
    ],
)
def test_a_group_is_ours_by_the_whole_product_token(agent: str, ours: bool) -> None:
    assert allows(f"User-agent: {agent}\nDisallow: /", "/x") is not ours


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        # prefixes
        ("/", "/", YES),
        ("/", "/any?q", YES),
        ("", "/x", NO),
        ("/a", "/a", YES),
        ("/a", "/ab", YES),
        ("/a", "/b/a", NO),
        ("/a/", "/a", NO),
        ("/A", "/a", NO),
        ("a", "/a", NO),
        ("/a?q=1", "/a?q=1&r", YES),
        ("/a?q=1", "/a", NO),
        ("/a;b", "/a;b", YES),
        ("/a//b", "/a//b", YES),
        ("/a//b", "/a/b", NO),
        ("https://example.com/a", "/a", NO),
        ("/a # comment", "/a", YES),
        ("/a#b", "/a", YES),
        # * and $
        ("*", "/x", YES),
        ("/*", "/x", YES),
        ("*x", "/a/x", YES),
        ("/a*c", "/abc", YES),
        ("/a*c", "/ac", YES),
        ("/a**c", "/abbc", YES),
        ("/a*c", "/ab", NO),
        ("/*.php", "/d/a.php?x", YES),
        ("/*.php$", "/d/a.php", YES),
        ("/*.php$", "/d/a.php?x", NO),
        ("/a$", "/a", YES),
        ("/a$", "/ab", NO),
        ("/$", "/", YES),
        ("/$", "/a", NO),
        ("/a$b", "/a$b", YES),
        ("/a$b", "/a", NO),
        ("/a*$", "/abc", YES),
        # percent-encoding: RFC 9309, section 2.2.2 and 2.2.3
        ("/~u", "/%7Eu", YES),
        ("/%7Eu", "/~u", YES),
        ("/%7eu", "/~u", YES),
        ("/%62%61%7A", "/baz", YES),
        ("/baz", "/%62%61%7A", YES),
        ("/a%2Fb", "/a%2Fb", YES),
        ("/a%2fb", "/a%2Fb", YES),
        ("/a%2Fb", "/a%2fb", YES),
        ("/a%2Fb", "/a/b", NO),
        ("/a/b", "/a%2Fb", NO),
        ("/a%3Fb", "/a?b", NO),
        ("/a?b", "/a%3Fb", NO),
        ("/a?b=%26", "/a?b=&", NO),
        ("/a%23b", "/a%23b", YES),
        ("/a%2520", "/a%2520b", YES),
        ("/a%2520", "/a%20b", NO),
        ("/é", "/%C3%A9", YES),
        ("/é", "/%c3%a9", YES),
        ("/%c3%a9", "/%C3%A9", YES),
        ("/é", "/%E9", NO),
        ("/ツ/*x", "/%E3%83%84/yx", YES),
        ("/a b", "/a%20b", YES),
        ("/a%20b", "/a%20b", YES),
        ("/a|b", "/a%7Cb", YES),
        ("/a%7Cb", "/a|b", YES),
        ("/a-%2A.html", "/a-*.html", YES),
        ("/a-%2A.html", "/a-b.html", NO),
        ("/a-%24", "/a-$", YES),
        ("/a-%24", "/a-", NO),
        ("/100%", "/100%", YES),
    ],
)
def test_a_rule_matches_as_the_rfc_says(rule: str, path: str, matches: bool) -> None:
    assert allows(f"User-agent: *\nDisallow: {rule}", path) is not matches
    assert allows(f"User-agent: *\nDisallow: /\nAllow: {rule}", path) is matches


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Allow: /p\nDisallow: /", "/page", YES),
        ("Disallow: /\nAllow: /p", "/page", YES),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", YES),
        ("Disallow: /folder\nAllow: /folder", "/folder/page", YES),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", NO),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", YES),
        ("Allow: /$\nDisallow: /", "/", YES),
        ("Allow: /$\nDisallow: /", "/page.htm", NO),
        ("Disallow: /a/b/c\nAllow: /a/b\nDisallow: /a", "/a/b/c/d", NO),
        ("Disallow: /a/b/c\nAllow: /a/b\nDisallow: /a", "/a/b/d", YES),
        ("Disallow: /a/b/c\nAllow: /a/b\nDisallow: /a", "/a/d", NO),
        # the length of a rule does not depend on its spelling
        ("Disallow: /abc\nAllow: /%61%62", "/abcd", NO),
        ("Disallow: /%61%62\nAllow: /abc", "/abcd", YES),
        ("Disallow: /é\nAllow: /%C3%A9", "/%C3%A9", YES),
        ("Disallow: /a*bcde\nAllow: /a%2Fb", "/a%2Fbcde", NO),
        # index.html is a page like any other
        ("Disallow: /\nAllow: /index.html", "/index.html", YES),
        ("Disallow: /\nAllow: /index.html", "/", NO),
        ("Disallow: /a\nAllow: /a/index.htm", "/a/", NO),
        ("Disallow: /a\nAllow: /a/index.htm", "/a/index.html", YES),
        ("Disallow: /index.html?\nAllow: /index.html", "/index.html?x", NO),
        ("Disallow: /index.html", "/", YES),
    ],
)
def test_the_longest_rule_wins_and_allow_wins_ties(rules: str, path: str, allowed: bool) -> None:
    assert allows(f"User-agent: *\n{rules}", path) is allowed


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", YES),
        ("\n\n# nothing\n", YES),
        ("Disallow: /", YES),
        ("Disallow: /\nUser-agent: *", YES),
        ("User-agent: *", YES),
        ("User-agent: *\nDisallow:", YES),
        ("User-agent: *\nDisallow: /", NO),
        # '*' applies to agents without a group of their own
        ("User-agent: *\nDisallow: /\n\nUser-agent: rove\nDisallow:", YES),
        ("User-agent: rove\nDisallow:\n\nUser-agent: *\nDisallow: /", YES),
        ("User-agent: *\nDisallow: /\n\nUser-agent: rove", YES),
        ("User-agent: *\nAllow: /\n\nUser-agent: rove\nDisallow: /", NO),
        ("User-agent: other\nDisallow: /", YES),
        # several agents, several groups
        ("User-agent: other\nUser-agent: rove\nDisallow: /", NO),
        ("User-agent: rove\nUser-agent: other\nDisallow: /", NO),
        ("User-agent: rove\nDisallow: /a\nUser-agent: other\nDisallow: /x", YES),
        ("User-agent: rove\nDisallow: /a\nUser-agent: o\n\nUser-agent: rove\nDisallow: /x", NO),
        ("User-agent: *\nDisallow: /a\nUser-agent: o\nDisallow:\nUser-agent: *\nDisallow: /x", NO),
        # blank lines, comments and other records do not end a group
        ("User-agent: *\n\n\nDisallow: /", NO),
        ("User-agent: rove\n\nUser-agent: other\n\nDisallow: /", NO),
        ("# a\nUser-agent: * # b\n# c\nDisallow: / # d", NO),
        ("User-agent: rove\nSitemap: https://e.com/s\nUser-agent: other\nDisallow: /", NO),
        ("User-agent: rove\nCrawl-delay: 3\nUser-agent: other\nDisallow: /", NO),
        ("User-agent: *\nNoindex: /y\nDisallow: /", NO),
        # spelling
        ("USER-AGENT: *\nDISALLOW: /", NO),
        ("  user-agent :  *\n\tdisallow :/", NO),
        ("User-agent:*\nDisallow:/", NO),
        ("User-agent *\nDisallow /", NO),
        ("User agent: *\nDissallow: /", NO),
        ("Useragent: *\nDisalow: /", NO),
        ("User-agent: *\nNotdisallow: /", YES),
        # line ends
        ("User-agent: *\r\nDisallow: /\r\n", NO),
        ("User-agent: *\rDisallow: /\r", NO),
        ("User-agent: *\n\r\n\rDisallow: /", NO),
        ("User-agent: *\u2028Disallow: /", YES),
        # an overlong line
        ("User-agent: *\nDisallow: /" + "y" * 100_000 + "\nDisallow: /x", NO),
        ("# " + "y" * 100_000 + "\nUser-agent: *\nDisallow: /x", NO),
        # texts that are not a robots.txt
        ("<!doctype html>\n<html><body>\n<p>User-agent: *</p>\n<p>Disallow: /</p>\n</html>", YES),
        ('{"user-agent": "*",\n"disallow": "/"}', YES),
    ],
)
def test_groups_and_lines_are_read_as_the_rfc_says(text: str, allowed: bool) -> None:
    assert allows(text, "/x") is allowed


@pytest.mark.parametrize(
    ("body", "path", "allowed"),
    [
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /", "/x", NO),
        (b"\xef\xbb\xbf\r\nUser-agent: *\nDisallow: /", "/x", NO),
        (b"\0User-agent: *\nDisallow: /", "/x", NO),
        (b"User-agent: *\n\0\0\nDisallow: /x", "/x", NO),
        (b"User-agent: *\nDisallow: /a\0\nDisallow: /x", "/x", NO),
        (b"User-agent: *\nDisallow: /\xff\xfe\nDisallow: /x", "/x", NO),
        (b"# \xe9\xe8\nUser-agent: *\nDisallow: /x", "/x", NO),
        (b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9", NO),
        (b"User-agent: *\nDisallow: /caf\xe9", "/caf%C3%A9", YES),
        (b"User-agent: *\nDisallow: /caf\xc3\xa9", "/caf%C3%A9", NO),
        (b"\x1f\x8b\x08\x00\x00", "/x", YES),
        (bytes(range(256)) * 50, "/x", YES),
    ],
)
def test_odd_bytes_do_not_hide_the_rules_around_them(body: bytes, path: str, allowed: bool) -> None:
    assert allows(body, path) is allowed


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allows("User-agent: *\nDisallow: /", "/robots.txt")
    assert not allows("User-agent: *\nDisallow: /", "/robots.txt?x")
    assert not allows("User-agent: *\nDisallow: /", "/a/robots.txt")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "http://[::1]", "http://xn--a", "http://a_b.example:1"])
def test_the_host_makes_no_difference(origin: str) -> None:
    assert not Rules(b"User-agent: *\nDisallow: /x").allows(origin + "/x")


def test_the_empty_rules_allow_everything() -> None:
    assert Rules(b"").allows(ORIGIN + "/x")
    assert Rules(b"").crawl_delay == 0
    assert Rules(b"").sitemaps == []
    assert Rules(b"").deciding_rule(ORIGIN + "/x") is None


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_large_body_is_cut_before_the_line_that_is_not_whole(end: bytes) -> None:
    head = end.join([b"User-agent: *", b"Disallow: /first", b"# "])
    last = end + b"Disallow: /private" + end + b"Disallow: /later"
    for over in range(1, 16):
        # The limit falls inside '/private': no prefix of it may become a rule.
        padding = b"x" * (MAX_ROBOTS_BYTES - len(head) - len(end) - len(b"Disallow: /private") + over)
        for body in (head + padding + last, (head + padding + last)[:MAX_ROBOTS_BYTES]):
            assert not allows(body, "/first")
            assert allows(body, "/p")
            assert allows(body, "/private")
            assert allows(body, "/later")


def test_a_body_that_fits_is_read_to_its_last_byte() -> None:
    head, last = b"User-agent: *\n# ", b"\nDisallow: /last"
    body = head + b"x" * (MAX_ROBOTS_BYTES - len(head) - len(last)) + last
    assert len(body) == MAX_ROBOTS_BYTES
    assert not allows(body + b"\nDisallow: /", "/last")
    assert not allows(body[: -len(last)][:-1] + last, "/last")
    assert allows(body + b"\nDisallow: /", "/x")


def test_a_line_longer_than_the_limit_is_no_rule() -> None:
    assert allows(b"User-agent: *" + b" " * MAX_ROBOTS_BYTES, "/x")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("10", 10),
        ("2.5", 2.5),
        (".5", 0.5),
        ("10 # seconds", 10),
        ("0", 0),
        ("-5", 0),
        ("nan", 0),
        ("soon", 0),
        ("", 0),
        ("10s", 10),
        ("+3", 3),
        ("1,5", 1),
        ("0.25", 0.25),
        ("1e2", 100),
        ("-1e999", 0),
        ("--", 0),
        ("٣", 0),
        ("86400", 86_400),
        ("86400.5", 86_400.5),
        ("604800", 604_800),
    ],
)
def test_the_crawl_delay_is_a_sane_number(value: str, seconds: float) -> None:
    assert Rules(f"User-agent: *\nCrawl-delay: {value}".encode()).crawl_delay == seconds


@pytest.mark.parametrize("value", ["1000000", "1e400", "1e999", "inf", "Infinity", "9" * 5000])
def test_an_endless_crawl_delay_can_be_stored(value: str) -> None:
    seconds = Rules(f"User-agent: *\nCrawl-delay: {value}".encode()).crawl_delay
    assert 86_400 < seconds < 1e7
    assert math.isfinite(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Crawl-delay: 7", 0),
        ("User-agent: *\nCrawl-delay: 7\nCrawl-delay: 9\nCrawl-delay: 8", 9),
        ("User-agent: *\nCrawl-delay: 7\nCrawl-delay: soon", 7),
        ("User-agent: *\nCrawl delay: 7", 7),
        ("User-agent: *\nCrawl-delay 7", 7),
        ("User-agent: *\nCrawl-delayed: 7", 0),
        ("User-agent: *\nDisallow: /\nCrawl-delay: 7", 7),
        ("User-agent: *\n\nCRAWL-DELAY: 7\nDisallow: /", 7),
        ("User-agent: *\rCrawl-delay: 7\r", 7),
        ("User-agent: rove\nCrawl-delay: 7", 7),
        ("User-agent: other\nCrawl-delay: 7", 0),
        ("User-agent: other\nUser-agent: rove\nCrawl-delay: 7", 7),
        ("User-agent: rove\nCrawl-delay: 7\nUser-agent: other\nDisallow: /", 7),
        ("User-agent: other\nCrawl-delay: 7\nUser-agent: rove\nDisallow: /", 0),
        ("User-agent: *\nCrawl-delay: 7\n\nUser-agent: rove\nCrawl-delay: 2", 2),
        ("User-agent: rove\nCrawl-delay: 2\n\nUser-agent: *\nCrawl-delay: 7", 2),
        ("User-agent: *\nCrawl-delay: 7\n\nUser-agent: rove\nDisallow: /y", 0),
        ("User-agent:*\nCrawl-delay: 7\n\nUser-agent: rove\nDisallow:", 0),
        ("User agent *\nCrawl-delay: 7\n\nUser-agent: rove\nDisallow:", 0),
        ("User-agent: rove\nUser-agent: *\nCrawl-delay: 7", 7),
        ("User-agent: rove\nDisallow: /a\n\nUser-agent: rove\nCrawl-delay: 7", 7),
    ],
)
def test_the_crawl_delay_is_that_of_our_group(text: str, seconds: float) -> None:
    assert Rules(text.encode()).crawl_delay == seconds


@pytest.mark.parametrize(
    "line", ["User-agent", "User-agent: x", "Sitemap", "Sitemap:", "", "Disallow: /", "Disallow /", "/", "<!--"]
)
@pytest.mark.parametrize(
    "filler", [" ", "\t", "/", ":", "*", "%", "%7E", "é", "\xa0", "user-agent ", "<!--", ",", "*,"]
)
def test_a_crafted_line_takes_no_quadratic_time(line: str, filler: str) -> None:
    text = f"User-agent: rove\n{line}{filler * (250_000 // len(filler.encode()))}\nDisallow: /x"
    rules = Rules(text.encode())
    assert not rules.allows(ORIGIN + "/x")
    assert rules.crawl_delay == 0
    assert len(rules.sitemaps) <= 1


@pytest.mark.parametrize(
    ("stars", "rules"),
    [
        ("*a" * 240_000, 1),
        ("*a" * 900 + "b", 270),
        ("*" * 1800 + "b", 270),
        ("*" + "a" * 900 + "b", 500),
        ("*" + "ab" * 400 + "a", 600),
        ("*a*b", 31_000),
        ("*a*a*a*a$", 31_000),
        ("*%61" * 100 + "b", 1200),
        ("a?*%2F" * 50, 1500),
    ],
)
def test_a_crafted_rule_takes_little_time(stars: str, rules: int) -> None:
    text = "User-agent: *\n" + f"Disallow: /{stars}\n" * rules
    rules_read = Rules(text.encode())
    for path in ("a" * 2000, "ab" * 1000, "a?" + "a/" * 1000):
        began = time.process_time()
        rules_read.allows(f"{ORIGIN}/{path}")
        assert time.process_time() - began < 0.5


def test_sitemaps_are_listed() -> None:
    text = (
        "Sitemap: https://example.com/a.xml\r\n"
        "User-agent: *\r\nDisallow: /\r\n"
        "  SITEMAP :https://example.com/b.xml?x=%2F&y=~ # the second\r\n"
        "# Sitemap: https://example.com/no.xml\r\n"
        "Sitemap:\r\n"
        "Sitemap: /relative.xml\r\n"
        "Sitemap: //example.com/relative.xml\r\n"
        "Sitemap: ftp://example.com/c.xml\r\n"
        "Sitemap: https:///c.xml\r\n"
        "User-agent: other\r\nsitemap: HTTP://other.test/à/é.xml trailing\r\n"
        "Site-map: https://example.com/a.xml\r\n"
        "Sitemaps: https://example.com/no.xml"
    )
    assert Rules(text.encode()).sitemaps == [
        "https://example.com/a.xml",
        "https://example.com/b.xml?x=%2F&y=~",
        "HTTP://other.test/à/é.xml",
    ]


def test_the_number_of_sitemaps_is_limited() -> None:
    lines = [f"Sitemap: https://example.com/{n}.xml" for n in range(MAX_SITEMAPS + 5)]
    sitemaps = Rules("\n".join(lines * 2).encode()).sitemaps
    assert sitemaps == [f"https://example.com/{n}.xml" for n in range(MAX_SITEMAPS)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_line_that_decides_is_found(end: str) -> None:
    lines = [
        "\ufeff# all",
        "User-agent: *",
        "",
        "Disallow: /a",
        " \tALLOW : /a/b # but this\t",
        "Sitemap: https://example.com/s.xml",
        "Disallow: /%7Ec",
        "",
        "User-agent: other",
        "Disallow: /d",
        "User-agent: *",
        "Disallow:/é$",
    ]
    rules = Rules(end.join(lines).encode())
    assert rules.deciding_rule(ORIGIN + "/a") == Rule(4, "Disallow: /a", "*")
    assert rules.deciding_rule(ORIGIN + "/a/b") == Rule(5, "ALLOW : /a/b # but this", "*")
    assert rules.deciding_rule(ORIGIN + "/~c") == Rule(7, "Disallow: /%7Ec", "*")
    assert rules.deciding_rule(ORIGIN + "/%C3%A9") == Rule(12, "Disallow:/é$", "*")
    assert rules.deciding_rule(ORIGIN + "/d") is None


def test_the_line_that_decides_is_one_of_our_own_group() -> None:
    text = "User-agent: *\nDisallow: /\n\nUser-agent: ROVE/2\nDisallow: /a\nDisallow:\n"
    rules = Rules(text.encode())
    assert rules.deciding_rule(ORIGIN + "/a") == Rule(5, "Disallow: /a", "rove")
    assert rules.deciding_rule(ORIGIN + "/b") is None, "an empty rule decides nothing"


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        (b"\xef\xbb\xbf User-agent: *\nDisallow: /\n", "/robots.txt", None),
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/", Rule(2, "Disallow: /", "*")),
        (b"User-agent: *\nDis\0allow: /\xff\0\n", "/%FF", Rule(2, "Disallow: /\ufffd", "*")),
        (b"User-agent: *\nDisallow: /" + b"x" * 900, "/" + "x" * 900, Rule(2, "Disallow: /" + "x" * 189, "*")),
        # of equal rules the first one, and the one that allows
        (b"User-agent: *\nDisallow: /a\nDisallow: /a", "/a", Rule(2, "Disallow: /a", "*")),
        (b"User-agent: *\nDisallow: /a\nAllow: /a", "/a", Rule(3, "Allow: /a", "*")),
        (b"User-agent: *\nDisallow: /*\nAllow: /a", "/a", Rule(3, "Allow: /a", "*")),
        (b"\n\r\n\rUser-agent: *\r\r\nDisallow: /", "/", Rule(6, "Disallow: /", "*")),
    ],
)
def test_the_line_is_shown_as_it_was_sent(body: bytes, path: str, expected: Rule | None) -> None:
    assert Rules(body).deciding_rule(ORIGIN + path) == expected


def test_one_text_says_nothing_about_the_next() -> None:
    strict, lax = Rules(b"User-agent: *\nDisallow: /\nCrawl-delay: 9"), Rules(b"User-agent: *")
    for _ in range(2):
        assert not strict.allows(ORIGIN + "/x")
        assert lax.allows(ORIGIN + "/x")
        assert lax.crawl_delay == 0
        assert strict.crawl_delay == 9
