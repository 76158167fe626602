"""robots.txt as RFC 9309 and the documentation of the large search engines define it, section by section."""

from __future__ import annotations

import pytest

from rove.policy.robots import Rules
from rove.policy.robots_lines import MAX_ROBOTS_BYTES

YES, NO = True, False
ORIGIN = "https://www.example.com"


def allows(text: str | bytes, path: str) -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return Rules(body).allows(ORIGIN + path)


# RFC 9309, section 2.1: a group is one or more user-agent lines and the rules that follow.
@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("user-agent: rove\ndisallow: /a", "/a", NO),
        ("user-agent: rove\ndisallow: /a", "/b", YES),
        ("user-agent: x\nuser-agent: rove\nuser-agent: y\ndisallow: /a", "/a", NO),
        ("user-agent: x\ndisallow: /b\nuser-agent: rove\ndisallow: /a", "/b", YES),
        ("user-agent: x\ndisallow: /b\nuser-agent: rove\ndisallow: /a", "/a", NO),
        ("user-agent: rove\ndisallow: /a\n\n\n\ndisallow: /b", "/b", NO),
        ("user-agent: rove\nallow: /a/b\ndisallow: /a\nuser-agent: x\nallow: /", "/a/c", NO),
        ("user-agent: rove\nallow: /a/b\ndisallow: /a\nuser-agent: x\nallow: /", "/a/b", YES),
        ("\n\n\nuser-agent: rove\n\n\n\ndisallow: /a\n\n", "/a", NO),
    ],
)
def test_section_2_1_groups(text: str, path: str, allowed: bool) -> None:
    assert allows(text, path) is allowed


# Section 2.2: the grammar. Blanks are spaces and tabs, lines end with CR, LF or both, keys have no case.
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("user-agent:rove\ndisallow:/a", NO),
        ("user-agent: rove\ndisallow: /a", NO),
        ("\tuser-agent\t:\trove\t\n\tdisallow\t:\t/a\t", NO),
        ("   user-agent   :   rove   \n   disallow   :   /a   ", NO),
        ("UsEr-AgEnT: rove\nDiSaLlOw: /a", NO),
        ("user-agent: rove\rdisallow: /a", NO),
        ("user-agent: rove\ndisallow: /a", NO),
        ("user-agent: rove\r\ndisallow: /a", NO),
        ("user-agent: rove\r\n\ndisallow: /a\r", NO),
        ("user-agent: rove#comment\ndisallow: /a#comment", NO),
        ("user-agent: rove # a # b\ndisallow: /a # c # d", NO),
        ("# user-agent: rove\ndisallow: /a", YES),
        ("user-agent: rove\n# disallow: /a", YES),
        ("user-agent: rove\n#\n ##\t\ndisallow: /a", NO),
        ("user-agent: rove\ndisallow: # /a", YES),
        ("user-agent: rove\ndisallow:\t\t", YES),
        ("user-agent: rove\ndisallow", YES),
        ("user-agent: rove\n: /a", YES),
        ("user-agent: rove\ndisallow:: /a", YES),
        ("user-agent: rove\ndisallow: /a\x0b", NO),
        ("\ufeffuser-agent: rove\ndisallow: /a", NO),
        ("user-agent: rove\n\ufeffdisallow: /a", NO),
        ("user-agent: rove\n\xa0disallow:\xa0/a", NO),
        ("user-agent: rove\xa0\ndisallow: /a\xa0", NO),
        ("user-agent: rove\xa0# a\ndisallow: /a \xa0 # b", NO),
        ("user-agent: x\x85user-agent: rove\ndisallow: /a", YES),
    ],
)
def test_section_2_2_lines(text: str, allowed: bool) -> None:
    assert allows(text, "/a") is allowed
    if "\xa0" in text:
        assert Rules(text.encode("latin-1")).allows("https://a.test/a") is allowed, "a no-break space in Latin-1"


@pytest.mark.parametrize("end", ["", " ", "\xa0", " \xa0\t"])
def test_an_accented_letter_is_no_no_break_space(end: str) -> None:
    """The letter à ends with the byte of a no-break space."""
    rules = Rules(f"user-agent: *\ndisallow: /voilà{end}\n".encode())
    assert not rules.allows("https://a.test/voil%C3%A0")
    assert rules.allows("https://a.test/voil%C3")


def test_a_no_break_space_within_a_rule_belongs_to_it() -> None:
    for body in (b"user-agent: *\ndisallow: /a\xc2\xa0b", b"user-agent: *\ndisallow: /a%C2%A0b"):
        assert Rules(body).allows("https://a.test/a")
        assert not Rules(body).allows("https://a.test/a%C2%A0b")


@pytest.mark.parametrize("blank", [b"\xa0", b"\xc2\xa0"])
def test_a_no_break_space_ends_the_address_of_a_sitemap(blank: bytes) -> None:
    body = b"sitemap:" + blank + b"https://a.test/m.xml" + blank + b"\nsitemap: https://a.test/\xc3\xa0\xc3\xa0"
    assert Rules(body).sitemaps == ["https://a.test/m.xml", "https://a.test/àà"]


# Section 2.2.1: the token ignores case; all groups that name it form one; '*' applies to all other agents.
@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("user-agent: ROVE\ndisallow: /a", "/a", NO),
        ("user-agent: RoVe\ndisallow: /a", "/a", NO),
        ("user-agent: Rove/0.1\ndisallow: /a", "/a", NO),
        ("user-agent: rove-bot\ndisallow: /a", "/a", YES),
        ("user-agent: rove_bot\ndisallow: /a", "/a", YES),
        ("user-agent: rove2\ndisallow: /a", "/a", YES),
        ("user-agent: drove\ndisallow: /a", "/a", YES),
        ("user-agent: ro\ndisallow: /a", "/a", YES),
        ("user-agent: Mozilla/5.0 (compatible; rove/0.1)\ndisallow: /a", "/a", YES),
        ("user-agent: rove\ndisallow: /a\nuser-agent: rove\ndisallow: /b", "/a", NO),
        ("user-agent: rove\ndisallow: /a\nuser-agent: rove\ndisallow: /b", "/b", NO),
        ("user-agent: rove\ndisallow: /a\nuser-agent: *\nallow: /a/b\nuser-agent: ROVE/2\ndisallow: /c", "/a/b", NO),
        ("user-agent: rove\ndisallow: /a\nuser-agent: x\nuser-agent: rove\nallow: /a/b", "/a/b", YES),
        ("user-agent: *\ndisallow: /a\nuser-agent: rove\ndisallow: /b", "/a", YES),
        ("user-agent: rove\ndisallow: /b\nuser-agent: *\ndisallow: /a", "/a", YES),
        ("user-agent: *\nuser-agent: rove\ndisallow: /a", "/a", NO),
        ("user-agent: *\ndisallow: /a\nuser-agent: *\ndisallow: /b", "/b", NO),
        ("user-agent: *\ndisallow: /a\nuser-agent: x\ndisallow: /b", "/b", YES),
        ("user-agent: x\ndisallow: /\nuser-agent: y\ndisallow: /", "/a", YES),
        ("user-agent: *\ndisallow: /\nuser-agent: rove\n", "/a", YES),
        ("user-agent: *x\ndisallow: /a", "/a", YES),
        ("user-agent: **\ndisallow: /a", "/a", YES),
        ("user-agent: *\xa0\ndisallow: /a", "/a", NO),
        ("user-agent:\ndisallow: /a", "/a", YES),
        ("user-agent: x, rove\ndisallow: /a", "/a", NO),
        ("user-agent: rove, x\ndisallow: /a", "/a", NO),
        ("user-agent: x,y,\xa0Rove/2 ,z\ndisallow: /a", "/a", NO),
        ("user-agent: x, rover, my rove\ndisallow: /a", "/a", YES),
        ("user-agent: x, rove\ndisallow: /b\nuser-agent: *\ndisallow: /a", "/a", YES),
        ("user-agent: x, y\ndisallow: /b\nuser-agent: *\ndisallow: /a", "/a", NO),
        ("user-agent: x, *\ndisallow: /a", "/a", NO),
        ("user-agent: *, x\ndisallow: /a", "/a", NO),
        ("user-agent: *, rove\nuser-agent: y\ndisallow: /a", "/a", NO),
        ("user-agent: *rove*\ndisallow: /a", "/a", NO),
        ("user-agent: rove*\ndisallow: /a", "/a", NO),
        ("user-agent: x, *rove\ndisallow: /a", "/a", NO),
        ("user-agent: *rover*\ndisallow: /a", "/a", YES),
        ("user-agent: *bot*\ndisallow: /a", "/a", YES),
        ("user-agent: r*\ndisallow: /a", "/a", YES),
        ("user-agent: *rove*\ndisallow: /b\nuser-agent: *\ndisallow: /a", "/a", YES),
    ],
)
def test_section_2_2_1_the_user_agent_line(text: str, path: str, allowed: bool) -> None:
    assert allows(text, path) is allowed


# Section 2.2.2: the match with the most octets wins, of equal ones the one that allows; no match allows.
@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("disallow: /a", "/", YES),
        ("disallow: /a", "/a", NO),
        ("disallow: /a", "/A", YES),
        ("disallow: /a", "/b/a", YES),
        ("disallow: /a/", "/a", YES),
        ("disallow: /", "/robots.txt", YES),
        ("disallow: /robots.txt", "/robots.txt", YES),
        ("disallow: /robots.txt", "/robots.txt.bak", NO),
        ("allow: /a\ndisallow: /a", "/a", YES),
        ("disallow: /a\nallow: /a", "/a", YES),
        ("disallow: /a\nallow: /*", "/ab", YES),
        ("disallow: /ab\nallow: /a*", "/abc", YES),
        ("disallow: /ab\nallow: /a", "/abc", NO),
        ("allow: /ab\ndisallow: /a", "/abc", YES),
        ("disallow: /a\ndisallow: /a\nallow: /a", "/a", YES),
        ("disallow: /a/b/c/\nallow: /a/b/\ndisallow: /a/", "/a/b/c/d", NO),
        ("disallow: /a/b/c/\nallow: /a/b/\ndisallow: /a/", "/a/b/d", YES),
        ("disallow: *\nallow: /", "/a", YES),
        ("disallow: /a$\nallow: /a", "/a", NO),
        ("disallow: /a*\nallow: /a", "/ab", NO),
        ("allow:\ndisallow: /", "/a", NO),
        ("disallow:\nallow:", "/a", YES),
        ("disallow: a", "/a", YES),
    ],
)
def test_section_2_2_2_the_most_specific_rule(rules: str, path: str, allowed: bool) -> None:
    assert allows(f"user-agent: *\n{rules}", path) is allowed


# Section 2.2.2: the table and its consequences, with every spelling against every other.
@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", YES),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", YES),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", YES),
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar", YES),
        ("/foo/bar?baz=https:%2F/foo", "/foo/bar?baz=https%3A/%2Ffoo.bar", YES),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84", YES),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84", YES),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", YES),
        ("/voilà", "/voil%C3%A0", YES),
        ("/voilà", "/voil%C3%A1", NO),
        ("/Å", "/%C3%85", YES),
        ("/Å", "/%C3%86", NO),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", YES),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A", YES),
        # reserved octets outside the query, and separators inside it, differ from their escapes
        ("/a%2Fb", "/a/b", NO),
        ("/a/b", "/a%2Fb", NO),
        ("/a%3Fb", "/a?b", NO),
        ("/a?b%26c", "/a?b&c", NO),
        ("/a?b%3Dc", "/a?b=c", NO),
        ("/a?b+c", "/a?b%2Bc", NO),
        ("/a;b", "/a%3Bb", NO),
        ("/a%3Bb", "/a%3bb", YES),
        ("/*%2F", "/a?b=%2F", YES),
        ("/*=/", "/a?b=%2F", YES),
        # octets that are neither reserved nor unreserved equal their escapes
        ("/a<b>", "/a%3Cb%3E", YES),
        ("/a%3cb%3e", "/a<b>", YES),
        ('/a"b"', "/a%22b%22", YES),
        ("/a b", "/a%20b", YES),
        ("/a{b}|c^d`e\\f", "/a%7Bb%7D%7Cc%5Ed%60e%5Cf", YES),
        ("/50%", "/50%25", YES),
        ("/50%25", "/50%25", YES),
        ("/%zz", "/%25zz", YES),
    ],
)
def test_section_2_2_2_percent_encoding(rule: str, path: str, matches: bool) -> None:
    assert allows(f"user-agent: *\ndisallow: {rule}", path) is not matches
    assert allows(f"user-agent: *\ndisallow: /\nallow: {rule}*", path) is matches


# Section 2.2.3: '#', '$' and '*', and how to write them literally.
@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/ # comment in line", "/a", YES),
        ("/this/path/exactly$", "/this/path/exactly", YES),
        ("/this/path/exactly$", "/this/path/exactly/", NO),
        ("/this/path/exactly$", "/this/path/exactly?", NO),
        ("/this/*/exactly", "/this/path/exactly", YES),
        ("/this/*/exactly", "/this//exactly", YES),
        ("/this/*/exactly", "/this/a/b/c/exactly/and/more", YES),
        ("/this/*/exactly", "/this/exactly", NO),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", YES),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", YES),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", NO),
        ("/path/foo-%24", "/path/foo-$", YES),
        ("/path/foo-%24", "/path/foo-%24", YES),
        ("/path/foo-%24", "/path/foo-", NO),
        ("/path/foo-%23", "/path/foo-%23", YES),
        ("/a$b", "/a$b", YES),
        ("/a$b", "/a%24b", YES),
        ("/a$$", "/a$", YES),
        ("/a$$", "/a", NO),
        ("/a*$", "/a", YES),
        ("/*a$", "/ba/ca", YES),
        ("/*a$", "/ba/c", NO),
        ("/a*a$", "/a", NO),
        ("/ab*ba$", "/aba", NO),
        ("/ab*ba$", "/abba", YES),
        ("/*ab*ab$", "/ab", NO),
        ("/*/a*b*/c$", "/x/aab/b/c", YES),
        ("/***a", "/xa", YES),
        ("*", "/", YES),
        ("*$", "/", YES),
        ("$", "/", NO),
        ("/$", "/", YES),
    ],
)
def test_section_2_2_3_special_characters(rule: str, path: str, matches: bool) -> None:
    assert allows(f"user-agent: *\ndisallow: {rule}", path) is not matches


# Section 2.2.4: other records neither end a group nor count as rules.
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("user-agent: rove\nsitemap: https://e.test/s.xml\nuser-agent: x\ndisallow: /a", NO),
        ("user-agent: rove\nsitemaps: https://e.test/s.xml\ndisallow: /a", NO),
        ("user-agent: rove\nhost: e.test\nclean-param: a /b\ndisallow: /a", NO),
        ("user-agent: rove\ncrawl-delay: 1\nuser-agent: x\ndisallow: /a", NO),
        ("user-agent: rove\nnoindex: /a", YES),
        ("user-agent: rove\ndisallowaitraining: /a", YES),
        ("user-agent: rove\ndisallow: /a\nallowaitraining: /a", NO),
        ("user-agent: rove\ndisallow: /a\nallowed: /a", NO),
        ("user-agents: rove\ndisallow: /a", YES),
        ("user-agent: rove\ndisallow-not: /a", YES),
        ("user-agent: rove\ndisallow: /a\nuser-agent-x: other\ndisallow: /b", NO),
        ("user-agent: rove\ncontent-signal: search=yes\ndisallow: /a", NO),
    ],
)
def test_section_2_2_4_other_records(text: str, allowed: bool) -> None:
    assert allows(text, "/a") is allowed


# Section 2.3: UTF-8; a text that is no robots.txt has no rules.
RULES = b"User-agent: *\nDisallow: /a\n"


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        (b"", YES),
        (RULES, NO),
        (b"\xef\xbb\xbf" + RULES, NO),
        (b"\xef\xbb" + RULES, NO),
        (b"\xef\xbb\xbf\xef\xbb\xbf" + RULES, NO),
        (RULES.decode().encode("utf-16"), NO),
        (b"\xfe\xff" + RULES.decode().encode("utf-16-be"), NO),
        (b"\0" + RULES + b"\0", NO),
        (b"\x01\x02\x03\n" + RULES, NO),
        (b"\xff\xfe\xfd\n" + RULES, NO),
        (b"# caf\xe9\n" + RULES, NO),
        (b"<!DOCTYPE html>\n<pre>\n" + RULES, YES),
        (b"<!doctype HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'>\n" + RULES, YES),
        (b"<html>\n" + RULES, YES),
        (b"<HTML lang=de>\n" + RULES, YES),
        (b"\xef\xbb\xbf\r\n \t<head>\r\n" + RULES, YES),
        (b"<body\n>" + RULES, YES),
        (b"<?xml version='1.0'?>\n" + RULES, YES),
        (b"<!-- saved from url=(0014)about:internet -->\n<html>\n" + RULES, YES),
        (b"<!-- never closed\n" + RULES, YES),
        (b"# a comment\n\n# and another\n<html>\n" + RULES, YES),
        (b"<title>404</title>\n" + RULES, YES),
        (b"<script>\n" + RULES, YES),
        (b"<urlset xmlns='x'>\n" + RULES, YES),
        # not a document: the rules count
        (b"<!-- closed -->\n" + RULES, NO),
        (b"<br />\n<b>Warning</b>: Cannot modify header information<br />\n" + RULES, NO),
        (b"<htmlx>\n" + RULES, NO),
        (b"< html>\n" + RULES, NO),
        (RULES + b"<html>", NO),
        (b"# <html>\n" + RULES, NO),
        (b'{"error": 404}\n' + RULES, NO),
    ],
)
def test_section_2_3_access(body: bytes, allowed: bool) -> None:
    assert allows(body, "/a") is allowed


# Section 2.5: rove reads 500 KiB.
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_section_2_5_limits(end: bytes) -> None:
    comment = b"# " + b"x" * 98 + end
    head = b"User-agent: *" + end
    padding = comment * ((MAX_ROBOTS_BYTES - len(head)) // len(comment) - 1)
    inside = head + padding + b"Disallow: /a" + end
    assert len(inside) < MAX_ROBOTS_BYTES
    assert not allows(inside, "/a")
    outside = head + padding + comment * 2 + b"Disallow: /a" + end
    assert len(outside) > MAX_ROBOTS_BYTES
    assert allows(outside, "/a")


# Sections 5.1 (several groups) and 5.2 (the longest match), rewritten with our token.
GROUPS = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: rove
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: x
User-Agent: y
Disallow: /example/page.html
"""


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        (GROUPS, "/example/page.html", YES),
        (GROUPS, "/example/allowed.gif", YES),
        (GROUPS, "/example/", NO),
        (GROUPS, "/publications/", NO),
        (GROUPS.replace("rove", "z"), "/a.gif", NO),
        (GROUPS.replace("rove", "z"), "/a.gif?x", YES),
        (GROUPS.replace("rove", "z"), "/example/page.html", NO),
        (GROUPS.replace("rove", "z"), "/publications/", YES),
        (GROUPS.replace("rove", "z"), "/publications/a.gif", YES),
        (GROUPS.replace("rove", "z").replace("x", "rove", 1), "/", YES),
        (
            "User-Agent: rove\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif",
            "/example/page/disallowed.gif",
            NO,
        ),
        ("User-Agent: rove\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/x", YES),
    ],
)
def test_section_5_examples(text: str, path: str, allowed: bool) -> None:
    assert allows(text, path) is allowed


# Google's documentation: how its crawlers match paths and choose between rules.
GOOGLE_PATHS = {
    "/": ["/", "/fish", "/fish.html?x"],
    "/*": ["/", "/fish", "/fish.html?x"],
    "/$": ["/"],
    "/fish": [
        "/fish",
        "/fish.html",
        "/fish/salmon.html",
        "/fishheads",
        "/fishheads/yummy.html",
        "/fish.php?id=anything",
    ],
    "/fish*": ["/fish", "/fish.html", "/fishheads/yummy.html", "/fish.php?id=anything"],
    "/fish/": ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
    "/*.php": [
        "/index.php",
        "/filename.php",
        "/folder/filename.php",
        "/folder/filename.php?parameters",
        "/folder/any.php.file.html",
        "/filename.php/",
    ],
    "/*.php$": ["/filename.php", "/folder/filename.php"],
    "/fish*.php": ["/fish.php", "/fishheads/catfish.php?parameters"],
}
GOOGLE_OTHERS = {
    "/$": ["/fish", "/?"],
    "/fish": ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    "/fish*": ["/Fish.asp", "/catfish", "/?id=fish"],
    "/fish/": ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    "/*.php": ["/", "/windows.PHP"],
    "/*.php$": ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    "/fish*.php": ["/Fish.PHP"],
}


@pytest.mark.parametrize(("rule", "path"), [(rule, path) for rule, paths in GOOGLE_PATHS.items() for path in paths])
def test_google_matches(rule: str, path: str) -> None:
    assert not allows(f"User-agent: *\nDisallow: {rule}", path)


@pytest.mark.parametrize(("rule", "path"), [(rule, path) for rule, paths in GOOGLE_OTHERS.items() for path in paths])
def test_google_does_not_match(rule: str, path: str) -> None:
    assert allows(f"User-agent: *\nDisallow: {rule}", path)


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("allow: /p\ndisallow: /", "/page", YES),
        ("allow: /folder\ndisallow: /folder", "/folder/page", YES),
        ("allow: /page\ndisallow: /*.htm", "/page.htm", NO),
        ("allow: /page\ndisallow: /*.ph", "/page.php5", YES),
        ("allow: /$\ndisallow: /", "/", YES),
        ("allow: /$\ndisallow: /", "/page.htm", NO),
        # a sitemap line between two agents does not split their group
        ("disallow: /b\nuser-agent: x\nsitemap: https://e.test/s\nuser-agent: rove\ndisallow: /a", "/a", NO),
        ("disallow: /b\nuser-agent: x\nsitemap: https://e.test/s\nuser-agent: rove\ndisallow: /a", "/b", YES),
    ],
)
def test_google_precedence(rules: str, path: str, allowed: bool) -> None:
    assert allows(f"user-agent: *\n{rules}", path) is allowed


# Bing: a specific group replaces the one for all agents, and a Crawl-delay is obeyed.
@pytest.mark.parametrize(
    ("text", "path", "allowed", "delay"),
    [
        ("User-agent: *\nDisallow: /private/\nCrawl-delay: 5", "/private/", NO, 5.0),
        ("User-agent: *\nDisallow: /\n\nUser-agent: rove\nDisallow:\nCrawl-delay: 1", "/", YES, 1.0),
        ("User-agent: rove\nCrawl-delay: 10\n\nUser-agent: *\nCrawl-delay: 1", "/", YES, 10.0),
        ("User-agent: rove\nAllow: /public/\nDisallow: /", "/public/x", YES, 0.0),
        ("User-agent: rove\nAllow: /public/\nDisallow: /", "/x", NO, 0.0),
    ],
)
def test_bing(text: str, path: str, allowed: bool, delay: float) -> None:
    assert allows(text, path) is allowed
    assert Rules(text.encode()).crawl_delay == delay


# Yandex: rules are sorted by length, and end with an implied '*' unless they end with '$'.
@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Disallow: /catalogue", "/catalogue", NO),
        ("Disallow: /catalogue", "/catalogues/1", NO),
        ("Disallow: /page?", "/page?id=1", NO),
        ("Disallow: /page?", "/page", YES),
        ("Allow: /cgi-bin\nDisallow: /", "/cgi-bin/x", YES),
        ("Allow: /cgi-bin\nDisallow: /", "/x", NO),
        ("Allow: /\nAllow: /catalog/auto\nDisallow: /catalog", "/catalog/auto/1", YES),
        ("Allow: /\nAllow: /catalog/auto\nDisallow: /catalog", "/catalog/1", NO),
        ("Disallow:", "/", YES),
        ("Allow:", "/", YES),
        ("Disallow: /cgi-bin/*.aspx", "/cgi-bin/example.aspx", NO),
        ("Disallow: /cgi-bin/*.aspx", "/cgi-bin/private/test.aspx", NO),
        ("Disallow: /*private", "/private", NO),
        ("Disallow: /*private", "/cgi-bin/private", NO),
        ("Disallow: /cgi-bin*", "/cgi-bin/x", NO),
        ("Disallow: /example$", "/example", NO),
        ("Disallow: /example$", "/example.html", YES),
        ("Disallow: /example$\nDisallow: /example", "/example.html", NO),
        ("Disallow: /example*$", "/example.html", NO),
        ("Disallow: /корзина", "/%D0%BA%D0%BE%D1%80%D0%B7%D0%B8%D0%BD%D0%B0", NO),
        ("Disallow: /%D0%BA%D0%BE%D1%80", "/%D0%BA%D0%BE%D1%80%D0%B7%D0%B8%D0%BD%D0%B0", NO),
    ],
)
def test_yandex(rules: str, path: str, allowed: bool) -> None:
    assert allows(f"User-agent: *\n{rules}", path) is allowed
