"""What a robots.txt allows, to the letter of RFC 9309. Pure.

Most files are parsed to check a single URL, so parsing must be quick: one regular expression finds the lines that
matter, and only those of our own groups are read. A rule without `*` is a path prefix, found by lookup. The pieces of
a rule with `*` are searched one after the other. MAX_RULES and MAX_RULE_BYTES bound the time of both.

Rules and URLs are compared in one spelling (section 2.2.2): octets that are neither reserved nor unreserved are
escaped, unreserved ones are not, and other escapes have upper-case digits. `%2F` differs from `/` in a path. In a
query `: / ? @` are plain data and equal their escapes (the second line of the RFC's table). `*` and `$` in a URL, and
a `$` inside a rule, match `%2A` and `%24` (section 2.2.3).

Where the RFC leaves room or is silent, rove reads what the author most likely meant:

- Common slips count: a missing colon, `Dissallow`, `User agent`, no-break spaces in UTF-8 or Latin-1. Other keys never
  do, however they begin: `AllowAITraining: /` allows nothing.
- `rove/1.0` is our product token with a version; `rover`, `rove2` and `rove-images` are other crawlers.
- `User-agent: other, rove` names both, and `*rove*` names rove. A `*` in any other place, as in `*bot*`, means nothing.
- A rule may begin with `*`. A rule that begins with neither `*` nor `/` matches nothing.
- UTF-16 is decoded, NULs are ignored, and bytes that are not UTF-8 stand for themselves.
- Of a file over MAX_ROBOTS_BYTES only whole lines count, because half a rule forbids or allows too much.
- HTML or XML is an error page or a home page and contains no rules. rove recognises it by its beginning, after blanks
  and comments: a document type, `<html>`, `<head>`, `<?xml` and the like. A fragment before real rules (the warning of
  a script, `<br />`) does not hide them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from rove.model.usage import Statement
from rove.policy.robots_lines import (
    LONG_ROBOTS,
    PRODUCT_TOKEN,
    RECORD,
    RuleLine,
    as_sent,
    licenses_in,
    names_us,
    our_groups,
    readable,
    sitemaps_in,
)
from rove.policy.robots_paths import Pattern, Weight, path_of, path_spellings, spellings
from rove.policy.usage_robots import UsageRules

_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Rule:
    """The line that decides about a URL."""

    line: int
    """Its number in the body as sent, counted from 1."""
    text: str
    """The line as sent, stripped, at most 200 characters."""
    group: str
    """The agent of its group: our own token, or '*'."""


class Rules:
    """The rules of one robots.txt, as they apply to rove."""

    __slots__ = ("_group", "_lengths", "_patterns", "_prefixes", "_text", "crawl_delay", "is_cut", "usage")

    def __init__(self, body: bytes) -> None:
        """Parse a body as sent, which the fetch may have cut at MAX_ROBOTS_BYTES."""
        self._text = readable(body)
        self._group = "*"
        self.crawl_delay = 0.0
        """Seconds between visits: the longest value for our group. May exceed MAX_CRAWL_DELAY, but is finite."""
        self.is_cut = False
        """Whether our group has more rules than MAX_RULES or MAX_RULE_BYTES. The others are ignored."""
        self.usage: UsageRules | None = None
        """What is stated about the use of pages; None if nothing is."""
        self._prefixes: dict[str, Weight] = {}
        self._patterns: list[Pattern] = []
        self._read()
        self._patterns.sort()
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)

    def allows(self, url: str) -> bool:
        """Whether a canonical URL may be fetched; /robots.txt always may."""
        rule = self._deciding(url)
        return rule is None or not rule.forbids

    def deciding_rule(self, url: str) -> Rule | None:
        """Return the line that decides about a canonical URL; None if no line applies, which allows the URL."""
        decisive = self._deciding(url)
        if decisive is None:
            return None
        record = next(islice(RECORD.finditer(self._text), decisive.record, None))
        begin = record.start() + 1
        line = self._text[begin:].partition("\n")[0]
        return Rule(
            line=self._text.count("\n", 0, begin),
            text=as_sent(line).strip("\ufeff\xa0 \t\v\f")[:_MAX_SHOWN],
            group=self._group,
        )

    @property
    def sitemaps(self) -> list[str]:
        """The distinct absolute URLs of all sitemaps named anywhere in the file."""
        urls: dict[str, None] = {}
        sitemaps_in(RECORD.findall(self._text), urls)
        return list(urls)

    def usage_of(self, url: str) -> Sequence[Statement]:
        """Return what is stated about the use of the page at a canonical URL."""
        return [] if self.usage is None else self.usage.statements(url)

    def _deciding(self, url: str) -> Weight | None:
        if path_of(url) == "/robots.txt":
            return None
        weights = [self._weight(spelling) for spelling in path_spellings(url)]
        return weights[0] if len(weights) == 1 else min(filter(None, weights), default=None)

    def _weight(self, path: str) -> Weight | None:
        """Return the weight of the rule that decides about a path; None if none matches."""
        best = self._longest_prefix(path)
        for pattern in self._patterns:
            if best is not None and best < pattern.weight:
                break
            if pattern.matches(path):
                return pattern.weight
        return best

    def _longest_prefix(self, path: str) -> Weight | None:
        for length in self._lengths:
            weight = self._prefixes.get(path[:length])
            if weight is not None:
                return weight
        return None

    def _read(self) -> None:
        """Read the rules of our groups or, if there are none, of the groups for all agents (section 2.2.1)."""
        records = RECORD.findall(self._text)
        own, groups = our_groups()
        if names_us(records):
            groups = own
            self._group = PRODUCT_TOKEN
        groups.read(records)
        self.crawl_delay, self.is_cut = groups.crawl_delay, groups.is_cut
        if groups.says_more:
            licenses: dict[str, None] = {}
            licenses_in(records, licenses)
            self.usage = UsageRules(groups.usage, licenses)
        for rule in groups.rules:
            self._add(rule)

    def _add(self, rule: RuleLine) -> None:
        number, forbids, plain, other = rule
        if plain:
            self._add_prefix(plain, Weight(-len(plain), forbids, number))
            return
        ends = other.endswith("$")
        spelt = spellings(other[:-1] if ends else other)
        weight = Weight(-len(spelt[-1]) - ends, forbids, number)
        for spelling in spelt:
            if ends or "*" in spelling:
                self._patterns.append(Pattern.of(spelling, ends=ends, weight=weight))
            else:
                self._add_prefix(spelling, weight)

    def _add_prefix(self, prefix: str, weight: Weight) -> None:
        known = self._prefixes.get(prefix)
        if known is None or weight < known:
            self._prefixes[prefix] = weight


def rules_of(body: bytes) -> Rules:
    """Return the parsed rules of a body, from a cache: a visit may check thousands of URLs against the same file."""
    return _of_long(body) if len(body) > LONG_ROBOTS else _of_short(body)


@lru_cache(maxsize=256)
def _of_short(body: bytes) -> Rules:
    return Rules(body)


@lru_cache(maxsize=8)
def _of_long(body: bytes) -> Rules:
    return Rules(body)
