"""What a robots.txt allows, to the letter of RFC 9309: pure, read once, then asked any number of times.

A file is rarely asked more than one question, so reading it must be quick: one regular expression finds the lines
that say something, and only those of our own groups are looked at. A rule is the beginning of a path, looked up, or
its pieces between the `*`, looked for one after the other: against the longest URL, half a megabyte of `*a*a*a` takes
less than a tenth of a second.

What is compared (section 2.2.2) is one spelling of the rule and of the URL's path and query: octets that are neither
reserved nor unreserved are escaped, escapes of unreserved ones are not, other escapes have capital digits. `%2F` is
not `/`, but for the query: there `: / ? @` are data like any other, and their escapes mean the same (the second line
of the RFC's table). `*` and `$` in a URL, and a `$` inside a rule, are met by `%2A` and `%24` (section 2.2.3).

Where the RFC leaves room, or says nothing, the reading is what the person who wrote the file most likely meant:

- common slips count: a missing colon, `Dissallow`, `User agent`, no-break spaces. Other keys never do, however they
  begin: `AllowAITraining: /` allows nothing;
- `rove/1.0` is our token with a version; `rover`, `rove2` and `rove-images` are others;
- a rule that begins with `*` is one; one that begins otherwise than with `*` or `/` matches nothing;
- a text in UTF-16 is read as such; NULs are passed over; what is no UTF-8 stands for its own octets;
- of a text over MAX_ROBOTS_BYTES the whole lines within are read: half a rule forbids or allows too much;
- HTML or XML in the place of a robots.txt says nothing: it is an error page or the home page. That is told by how
  the text begins, after blanks and comments: with a document type, `<html>`, `<head>`, `<?xml` and the like. A
  fragment in front of real rules (the warning of a script, `<br />`) does not hide them.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import ClassVar, NamedTuple

PRODUCT_TOKEN = "rove"
MAX_ROBOTS_BYTES = 500 * 1024
"""What is read of a robots.txt at most; RFC 9309, section 2.5, asks for at least this."""
MAX_CRAWL_DELAY = 86_400.0
"""Seconds; a domain that asks for more is left alone altogether."""
MAX_SITEMAPS = 100
"""Sitemaps that are taken from one robots.txt."""
LONG_ROBOTS = 32 * 1024
"""Bytes from which on a text may take milliseconds to be read: half a megabyte takes up to a seventh of a second."""
_ENDLESS_DELAY = 10 * MAX_CRAWL_DELAY
"""What any longer delay counts as, so that it can be stored."""
_MAX_SHOWN = 200

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKUP = re.compile(
    r"(?: \s++ | \#[^\n]*+ | <!--.*?--> )*+"
    r"< (?: !-- | !doctype\b | \?xml\b"
    r"  | (?: html|head|body|title|meta|link|script|style|base|frameset|center"
    r"      | svg|rss|feed|urlset|sitemapindex ) [\s/>] )",
    re.IGNORECASE | re.ASCII | re.DOTALL | re.VERBOSE,
)
_BLANKS = r"(?:[ \t\v\f]|\xc2\xa0|\xef\xbb\xbf)*+"
"""A no-break space and a byte order mark in UTF-8 too, as the text is read in latin-1."""
_PLAIN = r"[\w\-.~:/?\[\]@!&'()+,;=]"
"""What needs no other spelling in a rule, and is neither `*` nor `$`."""
_PLAIN_PATH = re.compile(rf"{_PLAIN}*+", re.ASCII)
_RECORD = re.compile(
    rf"\n{_BLANKS}"
    r"( user[-_\ ]?agent | allow | disallow | crawl[-_\ ]?delay | site[-_\ ]?map"
    r"| dissallow | dissalow | disalow | diasllow | disallaw )"
    rf"(?: {_BLANKS} : {_BLANKS} | [ \t]++ (?=[^\s:\#][^\s\#]*+[ \t]*+(?:[\n\#]|\Z)) )"
    rf"(?: ({_PLAIN}*+)[ \t]*+(?=[\n\#]|\Z) | ([^\n\#]*+) )",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
"""A line that says something: its key, and its value, in the second place if it is plain and else in the third.

Possessive throughout: a line of half a million blanks must not take quadratic time.
"""
_OUR_TOKEN = re.compile(rf"{PRODUCT_TOKEN}(?![\w\x80-\xff-])", re.IGNORECASE | re.ASCII)
_ALL_AGENTS = re.compile(r"\*(?:\s|\xc2\xa0|\Z)", re.ASCII)
_NUMBER = re.compile(
    r"\+?((?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?|inf)", re.IGNORECASE | re.ASCII
)
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_RESERVED = ":/?#[]@!&'()+,;=*"
"""But for `$`, which is escaped to be compared, as it means something else at the end of a rule."""
_ESCAPED = {
    octet: f"%{octet:02X}" for octet in range(256) if chr(octet) not in f"{_UNRESERVED}{_RESERVED}%"
}
_PERCENT = re.compile(r"%(?:[0-9A-Fa-f]{2})?")
_DIGITS = "0123456789ABCDEFabcdef"
_SPELT = {"%": "%25"} | {
    f"%{a}{b}": octet if (octet := chr(int(a + b, 16))) in _UNRESERVED else f"%{a}{b}".upper()
    for a in _DIGITS
    for b in _DIGITS
}
"""The one spelling of each escape, and of a percent sign that begins none."""
_QUERY_DATA = re.compile(r"%(3A|2F|3F|40)")
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]\S*+", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """The line that decides about a URL."""

    line: int
    """Its number in the body as sent, from 1 on."""
    text: str
    """The line as sent, without the blanks around it, at most 200 characters."""
    group: str
    """The agent of its group: our own token, or '*'."""


class _Weight(NamedTuple):
    """Which rule counts more: they sort by it. Tuples, as a file has hundreds."""

    length: int
    """In octets, and negative: the longest comes first."""
    forbids: bool
    """Of two that are equally long, the one that allows comes first."""
    record: int
    """Its number among the lines that say something."""


class _Pattern(NamedTuple):
    """A rule that is more than the beginning of a path."""

    weight: _Weight
    start: str
    middle: list[str]
    """What comes between its first and its last `*`, in this order."""
    last: str | None
    """What comes after its last `*`; None if it has none."""
    ends: bool
    """The path must end where the rule does."""

    @classmethod
    def of(cls, rule: str, *, ends: bool, weight: _Weight) -> _Pattern:
        """From a rule as it is compared, without the `$` at its end."""
        start, *pieces = rule.split("*")
        last = pieces.pop() if pieces else None
        return cls(weight, start, [piece for piece in pieces if piece], last, ends)

    def matches(self, path: str) -> bool:
        """Whether the rule is about a path."""
        if not path.startswith(self.start):
            return False
        position = len(self.start)
        if self.last is None:
            return not self.ends or position == len(path)
        for piece in self.middle:
            # The first place is as good as any later one: it leaves the most room for what follows.
            position = path.find(piece, position)
            if position < 0:
                return False
            position += len(piece)
        if self.ends:
            return path.endswith(self.last, position)
        return path.find(self.last, position) >= 0


class Rules:
    """The rules of one robots.txt, as they apply to rove."""

    EMPTY: ClassVar[Rules]
    """Allows everything."""
    __slots__ = ("_delay", "_group", "_lengths", "_patterns", "_prefixes", "_text")

    def __init__(self, body: bytes) -> None:
        """From a body as it was sent, perhaps cut by the fetch at MAX_ROBOTS_BYTES."""
        self._text = _readable(body)
        self._group = "*"
        self._delay = 0.0
        self._prefixes: dict[str, _Weight] = {}
        self._patterns: list[_Pattern] = []
        self._read()
        self._patterns.sort()
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)

    def allows(self, url: str) -> bool:
        """Whether a canonical URL may be fetched; /robots.txt always may."""
        found = self._deciding(url)
        return found is None or not found.forbids

    def deciding_rule(self, url: str) -> Rule | None:
        """The line that decides about a canonical URL; None where no line does, and the URL is allowed."""
        found = self._deciding(url)
        if found is None:
            return None
        record = next(islice(_RECORD.finditer(self._text), found.record, None))
        begin = record.start() + 1
        line = self._text[begin:].partition("\n")[0]
        return Rule(
            line=self._text.count("\n", 0, begin),
            text=_as_sent(line).strip("\ufeff\xa0 \t\v\f")[:_MAX_SHOWN],
            group=self._group,
        )

    @property
    def crawl_delay(self) -> float:
        """Seconds that our group asks for between visits, the most if it does so twice; 0 if none or nonsense.

        May be over MAX_CRAWL_DELAY, and is always finite.
        """
        return self._delay

    @property
    def sitemaps(self) -> list[str]:
        """The absolute web addresses of the sitemaps named, wherever in the text, each once."""
        found: dict[str, None] = {}
        for key, plain, other in _RECORD.findall(self._text):
            address = _WEB_ADDRESS.match(plain or other) if key[0] in "sS" else None
            if address is not None:
                found[_as_sent(address[0])] = None
                if len(found) == MAX_SITEMAPS:
                    break
        return list(found)

    def _deciding(self, url: str) -> _Weight | None:
        path = url[url.index("/", url.index("://") + 3) :]
        if path == "/robots.txt":
            return None
        if _PLAIN_PATH.fullmatch(path):
            return self._weight(path)
        if not path.isascii():
            path = path.encode("utf-8", "replace").decode("latin-1")
        weights = [self._weight(spelling) for spelling in _spellings(path)]
        return min(filter(None, weights), default=None)

    def _weight(self, path: str) -> _Weight | None:
        """That of the rule that counts most of those which match."""
        path = path.replace("*", "%2A")
        best = self._longest_prefix(path)
        for pattern in self._patterns:
            if best is not None and best < pattern.weight:
                break
            if pattern.matches(path):
                return pattern.weight
        return best

    def _longest_prefix(self, path: str) -> _Weight | None:
        for length in self._lengths:
            found = self._prefixes.get(path[:length])
            if found is not None:
                return found
        return None

    def _read(self) -> None:
        """Take the rules of our groups or, where there is none, of those for all agents (section 2.2.1)."""
        records = _RECORD.findall(self._text)
        token = _ALL_AGENTS
        if any(
            key[0] in "uU" and _OUR_TOKEN.match(plain or other) for key, plain, other in records
        ):
            token = _OUR_TOKEN
            self._group = PRODUCT_TOKEN
        ours = ours_for_delays = False
        after_rule = after_delay = False
        for number, (key, plain, other) in enumerate(records):
            kind = key[0]
            if kind in "dDaA":
                after_rule = True
                if ours:
                    self._add(plain, other.rstrip(" \t\v\f"), kind in "dD", number)
            elif kind in "uU":
                named = token.match(plain or other) is not None
                # Only a rule ends the agents of a group, no other record does (section 2.2.4).
                ours = named or (ours and not after_rule)
                # To those who obey a Crawl-delay it is like a rule.
                ours_for_delays = named or (ours_for_delays and not (after_rule or after_delay))
                after_rule = after_delay = False
            elif kind in "cC":
                after_delay = True
                if ours_for_delays:
                    self._delay = max(self._delay, _seconds(plain or other))

    def _add(self, plain: str, other: str, forbids: bool, number: int) -> None:
        """Take a rule; one that is empty, or no path, matches nothing."""
        if plain[:1] == "/":
            self._add_prefix(plain, _Weight(-len(plain), forbids, number))
        elif other[:1] in ("/", "*"):
            ends = other.endswith("$")
            spellings = _spellings(other[:-1] if ends else other)
            weight = _Weight(-len(spellings[-1]) - ends, forbids, number)
            for spelling in spellings:
                if ends or "*" in spelling:
                    self._patterns.append(_Pattern.of(spelling, ends=ends, weight=weight))
                else:
                    self._add_prefix(spelling, weight)

    def _add_prefix(self, prefix: str, weight: _Weight) -> None:
        known = self._prefixes.get(prefix)
        if known is None or weight < known:
            self._prefixes[prefix] = weight


def _readable(body: bytes) -> str:
    """The whole lines of a body in latin-1, each after a line feed; '' if it is markup. Lines keep their numbers."""
    if len(body) >= MAX_ROBOTS_BYTES:
        within = body[: MAX_ROBOTS_BYTES + 1]
        body = within[: max(within.rfind(b"\n"), within.rfind(b"\r")) + 1]
    if body.startswith(_UTF16) and b"\0" in body[:80]:
        body = body.decode("utf-16", "replace").encode()
    # Half a byte order mark, or two, are met as well.
    body = body.lstrip(codecs.BOM_UTF8).replace(b"\0", b"")
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("latin-1")
    return "" if _MARKUP.match(text) else "\n" + text


def _as_sent(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")


def _seconds(value: str) -> float:
    number = _NUMBER.match(value)
    return min(float(number[1]), _ENDLESS_DELAY) if number else 0.0


def _spellings(path: str) -> tuple[str, ...]:
    """How a path or rule is spelt to be compared; in a second way too, the shorter, if its query has one."""
    if "%" in path:
        path = _PERCENT.sub(lambda found: _SPELT[found[0]], path)
    strict = path.translate(_ESCAPED)
    head, mark, query = strict.partition("?")
    if "%" not in query:
        return (strict,)
    plain = head + mark + _QUERY_DATA.sub(lambda found: chr(int(found[1], 16)), query)
    return (strict,) if plain == strict else (strict, plain)


Rules.EMPTY = Rules(b"")


def rules_of(body: bytes) -> Rules:
    """The rules of a text, read once for all that ask soon: a visit may put one to thousands of URLs."""
    return _of_long(body) if len(body) > LONG_ROBOTS else _of_short(body)


@lru_cache(maxsize=256)
def _of_short(body: bytes) -> Rules:
    return Rules(body)


@lru_cache(maxsize=8)
def _of_long(body: bytes) -> Rules:
    return Rules(body)
