"""Random robots.txt files and URLs, judged by rove, by a plain reading of the RFC, and by protego."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from protego import Protego

from rove.policy.robots import Rules
from rove.policy.robots_lines import MAX_SITEMAPS, PRODUCT_TOKEN

ORIGIN = "https://example.com"


# --- RFC 9309, section 2.2, written as plainly as possible. It shares no code with rove.

UNRESERVED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
RESERVED = set(":/?#[]@!$&'()*+,;=")
ANYTHING = "any octets"


@dataclass
class Group:
    agents: list[str] = field(default_factory=list)
    rules: list[tuple[bool, str]] = field(default_factory=list)


def read_groups(text: str) -> list[Group]:
    """Section 2.1 and the grammar of 2.2; other records are skipped (2.2.4)."""
    groups: list[Group] = []
    for line in re.split("\r\n|\r|\n", text):
        key, colon, value = line.split("#")[0].partition(":")
        key, value = key.strip(" \t").lower(), value.strip(" \t")
        if not colon:
            continue
        if key == "user-agent":
            if not groups or groups[-1].rules:
                groups.append(Group())
            groups[-1].agents += re.findall(r"^(?:\*$|[a-z_-]+)", value.lower())
        elif key in ("allow", "disallow") and groups:
            groups[-1].rules.append((key == "allow", value))
    return groups


def rules_for(token: str, groups: list[Group]) -> list[tuple[bool, str]]:
    """Section 2.2.1."""
    mine = [group for group in groups if token in group.agents]
    chosen = mine or [group for group in groups if "*" in group.agents]
    return [rule for group in chosen for rule in group.rules]


def octets(text: str) -> list[str]:
    """Return each octet in the spelling that section 2.2.2 compares."""
    octets = []
    data = text.encode()
    position = 0
    while position < len(data):
        octet, position = data[position], position + 1
        escaped = re.match(rb"[0-9A-Fa-f]{2}", data[position:]) if octet == ord("%") else None
        if escaped:
            octet, position = int(escaped[0], 16), position + 2
            octets.append(chr(octet) if chr(octet) in UNRESERVED else f"%{octet:02X}")
        elif chr(octet) in UNRESERVED or (chr(octet) in RESERVED and chr(octet) not in "*$"):
            octets.append(chr(octet))
        else:
            octets.append(f"%{octet:02X}")
    return octets


def matches(pattern: list[str], path: list[str], exactly: bool) -> bool:
    """Section 2.2.3: follow the pattern octet by octet, with all positions in the path that it may have reached."""
    places = {0}
    for wanted in pattern:
        if wanted == ANYTHING:
            places = set(range(min(places), len(path) + 1))
        else:
            places = {at + 1 for at in places if at < len(path) and path[at] == wanted}
        if not places:
            return False
    return len(path) in places if exactly else True


def reference_allows(text: str, path: str) -> bool:
    """Section 2.2.2: the match with the most octets decides; of equal ones the one that allows."""
    if path == "/robots.txt":
        return True
    best = (0, True)
    for allow, rule in rules_for(PRODUCT_TOKEN, read_groups(text)):
        if not rule.startswith(("/", "*")):
            continue
        exactly = rule.endswith("$")
        pattern: list[str] = []
        for number, piece in enumerate(rule.removesuffix("$").split("*")):
            pattern += [ANYTHING] if number else []
            pattern += octets(piece)
        length = sum(1 if part == ANYTHING else len(part) for part in pattern) + exactly
        if matches(pattern, octets(path), exactly):
            best = max(best, (length, allow))
    return best[1]


# --- Generated cases. Escapes in a query (the second line of the RFC's table) have a test of their own.

PIECES = ["/", "a", "b", "ab", "~", "%7E", "%7e", "%61", "é", "%C3%A9", "%c3%a9", "%2A", "%24"]
ODD_PIECES = ["$", " ", "%20", "|", "%7c", "%", "%25", "ツ", "=", "%3D", ";", "!", "[", "index.html"]
IN_PATHS = ["%2F", "%2f", "%3F", "%3a", ":", "@", "%40"]
IN_QUERIES = ["?", "&", "%26", "a=b", "%23"]
RULE_KEYS = ["Allow: ", "Disallow: ", "disallow:", "ALLOW :\t"]


def joined(pieces: list[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=most).map("".join)


@st.composite
def cases(
    draw: st.DrawFn, pieces: list[str], *, others: list[str], agents: list[str], keys: list[str]
) -> tuple[str, list[str]]:
    """Generate a robots.txt with rules for a path and similar ones, and these paths."""
    path = draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=6))
    like_it = st.lists(st.sampled_from([*path, *path, *pieces, "*", "*"]), max_size=3)
    patterns = st.builds(
        lambda start, length, more, end: "".join([start, *path[:length], *more, end]),
        st.sampled_from(["/", "/", "/", "/", "*", "/*", "/**", ""]),
        st.integers(0, len(path)),
        like_it,
        st.sampled_from(["", "", "", "$", "*", "*$"]),
    )
    rules = st.builds(
        lambda key, pattern, tail: key + pattern + tail,
        st.sampled_from(keys),
        patterns,
        st.sampled_from(["", "", "", " # why", "#why"]),
    )
    agent_lines = st.sampled_from(agents).map("User-agent: ".__add__)
    others_too = rules | rules | rules | agent_lines | st.sampled_from(others)
    first = draw(st.sampled_from(["User-agent: *", f"User-agent: {PRODUCT_TOKEN}"]))
    lines = [first, draw(rules), *draw(st.lists(others_too, max_size=8))]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    tails = [path[:length] for length in range(len(path) + 1)] + [path[1:], path + path[:1]]
    return end.join(lines), ["/" + "".join(tail) for tail in tails]


AGENTS = ["rove", "ROVE", "Rove/1.2", "*", "*", "other", "rover", "rove-images", "ro"]
OTHERS = [
    "",
    "# a comment",
    "Sitemap: https://example.com/s",
    "Crawl-delay: 3",
    "AllowAITraining: /",
    "Noindex: /",
    "junk",
]
PATH_PIECES = PIECES + ODD_PIECES + IN_PATHS
QUERY_PIECES = PIECES + ODD_PIECES + IN_QUERIES
path_cases = cases(PIECES + ODD_PIECES + IN_PATHS, others=OTHERS, agents=AGENTS, keys=RULE_KEYS)
query_cases = cases(PIECES + ODD_PIECES + IN_QUERIES, others=OTHERS, agents=AGENTS, keys=RULE_KEYS)


def check_against_the_reference(text: str, paths: list[str]) -> None:
    rules = Rules(text.encode())
    for path in paths:
        assert rules.allows(ORIGIN + path) is reference_allows(text, path), path


@settings(max_examples=400, deadline=None)
@given(case=path_cases | query_cases)
@example(case=("User-agent: rove\n\nUser-agent: *\nDisallow: /", ["/a"]))
@example(case=("User-agent: *\nDisallow: /a%2F\nAllow: /a", ["/a%2Fb"]))
@example(case=("User-agent: *\nDisallow: /*ab*ab$", ["/ab"]))
@example(case=("User-agent: *\nDisallow: /index.html", ["/"]))
@example(case=("User-agent: *\nDisallow: /$$", ["/$"]))
def test_a_plain_reading_of_the_rfc_agrees(case: tuple[str, list[str]]) -> None:
    check_against_the_reference(*case)


@pytest.mark.long
@settings(max_examples=10_000, deadline=None)
@given(case=path_cases | query_cases)
def test_a_plain_reading_of_the_rfc_agrees_for_long(case: tuple[str, list[str]]) -> None:
    check_against_the_reference(*case)


@settings(max_examples=200, deadline=None)
@given(
    rule=joined(["/", ":", "@", "?", "a", "=", "&", "*"], 6).map("/a?".__add__),
    query=joined(["/", ":", "@", "?", "a", "=", "&"], 8),
    escaped=st.sets(st.sampled_from("/:@?")),
)
def test_what_is_data_in_a_query_may_be_escaped(rule: str, query: str, escaped: set[str]) -> None:
    def spelt(text: str) -> str:
        return "".join(f"%{ord(char):02x}" if char in escaped else char for char in text)

    text = f"User-agent: *\nDisallow: {rule}\n"
    verdict = reference_allows(text, f"/a?{query}")
    assert Rules(text.encode()).allows(f"{ORIGIN}/a?{query}") is verdict
    assert Rules(text.encode()).allows(f"{ORIGIN}/a?{spelt(query)}") is verdict
    text = f"User-agent: *\nDisallow: /a?{spelt(rule[3:])}\n"
    assert Rules(text.encode()).allows(f"{ORIGIN}/a?{query}") is verdict
    assert Rules(text.encode()).allows(f"{ORIGIN}/a?{spelt(query)}") is verdict


# --- protego departs from RFC 9309 in the following cases, which are left out here:
# - an agent that begins like ours ('ro') counts as ours;
# - a Crawl-delay between agents ends their group;
# - a '$' also counts as itself, and '/index.html' as '/': '$' only ends a rule, and no path has it;
# - '%3F' is '?', other escapes of reserved characters are those characters, and '?' counts as three octets;
# - a byte order mark hides the first line.
protego_cases = cases(
    [*PIECES[:-2], "%2F", "%2f"],
    others=["", "# a comment", "Sitemap: https://example.com/s", "junk"],
    agents=["rove", "ROVE", "*", "other", "rover"],
    keys=[*RULE_KEYS, "Dissallow: "],
)


def check_against_protego(text: str, paths: list[str]) -> None:
    logging.getLogger("protego").setLevel(logging.WARNING)
    theirs, ours = Protego.parse(text), Rules(text.encode())
    for path in paths:
        expected = theirs.can_fetch(ORIGIN + path, PRODUCT_TOKEN)
        assert ours.allows(ORIGIN + path) is expected, path


@settings(max_examples=200, deadline=None)
@given(case=protego_cases)
def test_protego_agrees(case: tuple[str, list[str]]) -> None:
    check_against_protego(*case)


@pytest.mark.long
@settings(max_examples=5_000, deadline=None)
@given(case=protego_cases)
def test_protego_agrees_for_long(case: tuple[str, list[str]]) -> None:
    check_against_protego(*case)


# --- Properties of any text.


@settings(max_examples=200, deadline=None)
@given(case=path_cases | query_cases)
def test_the_rule_that_is_shown_is_the_one_that_decides(case: tuple[str, list[str]]) -> None:
    text, (*_, path) = case
    rules = Rules(text.encode())
    rule = rules.deciding_rule(ORIGIN + path)
    if rule is None:
        assert rules.allows(ORIGIN + path)
        return
    line = re.split("\r\n|\r|\n", text)[rule.line - 1]
    assert rule.text == line.strip()[:200]
    assert rules.allows(ORIGIN + path) is line.lower().startswith("allow")
    owners = [group.agents for group in read_groups(text)]
    assert any(rule.group in agents for agents in owners)
    # Alone in its group, the rule decides too.
    alone = Rules(f"User-agent: *\n{line}".encode()).deciding_rule(ORIGIN + path)
    assert alone is not None


@settings(max_examples=200, deadline=None)
@given(
    body=st.binary(max_size=300)
    | path_cases.map(lambda case: case[0].encode())
    | st.lists(
        st.sampled_from([b"User-agent: *", b"\n", b"\0", b"Disallow: ", b"/", b"*", b"$", b"\xff", b"%4", b"<!--"])
    ).map(b"".join),
    path=joined(PIECES + ODD_PIECES + IN_QUERIES, 6).map("/".__add__),
)
def test_no_body_raises(body: bytes, path: str) -> None:
    rules = Rules(body)
    rules.allows(ORIGIN + path)
    assert 0 <= rules.crawl_delay <= 864_000
    rule = rules.deciding_rule(ORIGIN + path)
    assert rule is None or (1 <= rule.line <= len(body) + 1 and len(rule.text) <= 200)
    assert len(rules.sitemaps) <= MAX_SITEMAPS
