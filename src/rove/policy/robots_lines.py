"""Reads the lines of a robots.txt that apply to rove, and reduces a long file to them. Pure.

A site may send half a megabyte of rules. Only the lines of our own groups count, and only MAX_RULES of them, so that
neither parsing a file nor checking a URL can take long. A file over LONG_ROBOTS is read in slices (`reducing`), and
only what applies to rove is kept of it.
"""

from __future__ import annotations

import codecs
import enum
import re
from collections.abc import Generator, Iterable
from typing import NamedTuple

from rove.policy.constants import DAY

PRODUCT_TOKEN = "rove"
MAX_ROBOTS_BYTES = 500 * 1024
"""Maximum size of a robots.txt; RFC 9309, section 2.5, asks for at least this much."""
LONG_ROBOTS = 32 * 1024
"""Larger files are read in slices."""
MAX_RULES = 2_000
"""Rules of our group that count, in the order of the file. A rule with a wildcard or an escape counts as two."""
MAX_RULE_BYTES = 64 * 1024
"""Length of those rules in all."""
MAX_CRAWL_DELAY = DAY
"""A domain whose Crawl-delay is longer is not visited at all."""
MAX_SITEMAPS = 100
"""Sitemaps taken from one robots.txt."""
MAX_USAGE_LINES = 200
"""Content-Usage and Content-Signal lines that count, in the order of the file."""
MAX_USAGE_LENGTH = 1_000
"""Characters of the longest such line that counts."""
MAX_LICENSES = 5
PLAIN = r"[\w\-.~:/?\[\]@!&'()+,;=]"
"""Characters that a rule and a URL spell alike; neither `*` nor `$`."""

_SLICE = 8 * 1024
_LONGEST_LIST = 8 * 1024
"""How many characters of a list of agents are read."""
_ENDLESS_DELAY = 10 * MAX_CRAWL_DELAY
"""Longer delays are cut to this, so that they can be stored."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKUP = re.compile(
    r"(?: \s++ | \#[^\n]*+ | <!--.*?--> )*+"
    r"< (?: !-- | !doctype\b | \?xml\b"
    r"  | (?: html|head|body|title|meta|link|script|style|base|frameset|center"
    r"      | svg|rss|feed|urlset|sitemapindex ) [\s/>] )",
    re.IGNORECASE | re.ASCII | re.DOTALL | re.VERBOSE,
)
_BLANKS = r"(?:[ \t\v\f\xa0]|\xc2\xa0|\xef\xbb\xbf)*+"
"""Includes no-break spaces, in Latin-1 and UTF-8, and byte order marks, because the text is decoded as latin-1."""
RECORD = re.compile(
    rf"\n{_BLANKS}"
    r"( user[-_\ ]?agent | allow | disallow | crawl[-_\ ]?delay | site[-_\ ]?map"
    r"| content[-_\ ]?usage | content[-_\ ]?signals? | licen[cs]e"
    r"| dissallow | dissalow | disalow | diasllow | disallaw )"
    rf"(?: {_BLANKS} : {_BLANKS} | [ \t]++ (?=[^\s:\#][^\s\#]*+[ \t]*+(?:[\n\#]|\Z)) )"
    rf"(?: ({PLAIN}*+)[ \t]*+(?=[\n\#]|\Z) | ([^\n\#]*+) )",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
"""A line that matters: its key, then its value, in group 2 if it is plain and else in group 3.

All quantifiers are possessive, so that a line of half a million blanks does not take quadratic time.
"""


def _in_list(token: str) -> re.Pattern[str]:
    """Return a pattern that matches a list of agents, separated by commas, up to the one that matches `token`."""
    return re.compile(rf"(?:(?!{token})[^,]*+,{_BLANKS})*+{token}", re.IGNORECASE | re.ASCII)


_OUR_TOKEN = _in_list(rf"\**+{PRODUCT_TOKEN}(?!(?!\xc2?\xa0)[\w\x80-\xff-])")
_ALL_AGENTS = _in_list(r"\*(?:[\s,]|\xc2?\xa0|\Z)")
_NUMBER = re.compile(r"\+?((?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?|inf)", re.IGNORECASE | re.ASCII)
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]\S*+", re.IGNORECASE | re.ASCII)

Record = tuple[str, str, str]
"""Key, plain value and other value of a line; one of the values is ''."""


class UsageKind(enum.Enum):
    """The kind of a line about the use of pages."""

    CONTENT_USAGE = "Content-Usage"
    CONTENT_SIGNAL = "Content-Signal"


class UsageLine(NamedTuple):
    """A line about the use of pages, for rove or for everyone."""

    kind: UsageKind
    value: str


class RuleLine(NamedTuple):
    """A line that allows or forbids something to rove."""

    number: int
    """Among the lines that matter."""
    forbids: bool
    plain: str
    """The value, if a URL would spell it alike."""
    other: str
    """The value, if it has to be put into the normal spelling first."""


class Groups:
    """Collects the rules and the Crawl-delay of all groups of one agent, as far as they count (section 2.2.1).

    Lines about the use of pages before the first group are taken to be for everyone.
    """

    __slots__ = (
        *("_after_delay", "_after_rule", "_bytes", "_count", "_in_group", "_ours", "_ours_for_delays", "_token"),
        *("crawl_delay", "exist", "is_cut", "rules", "says_more", "usage"),
    )

    def __init__(self, token: re.Pattern[str]) -> None:
        self._token = token
        self._bytes = self._count = 0
        self._in_group = self._ours = self._ours_for_delays = False
        self._after_rule = self._after_delay = False
        self.rules: list[RuleLine] = []
        self.crawl_delay = 0.0
        """Seconds between visits: the longest value. May exceed MAX_CRAWL_DELAY, but is finite."""
        self.exist = False
        """Whether the agent is named."""
        self.is_cut = False
        """Whether there are more rules than count."""
        self.usage: list[UsageLine] = []
        self.says_more = False
        """Whether the file has any line about the use of pages or a license."""

    def read(self, records: Iterable[Record], first: int = 0) -> None:
        """Read the next lines; `first` is the number of the first of them."""
        ours, ours_for_delays = self._ours, self._ours_for_delays
        after_rule, after_delay = self._after_rule, self._after_delay
        for number, (key, plain, other) in enumerate(records, first):
            kind = key[0]
            if kind in "dDaA":
                after_rule = True
                if ours:
                    self._add(number, kind in "dD", plain, other)
            elif kind in "uU":
                named = self._token.match(plain or other, 0, _LONGEST_LIST) is not None
                self.exist = self.exist or named
                # Only a rule ends the agents of a group; other records do not (section 2.2.4).
                ours = named or (ours and not after_rule)
                # For the Crawl-delay and the use of pages, which are no part of the RFC, such a line ends them too.
                ours_for_delays = named or (ours_for_delays and not (after_rule or after_delay))
                self._in_group = True
                after_rule = after_delay = False
            elif kind in "cC":
                after_delay = True
                if key[1] in "oO":
                    self.says_more = True
                    if ours_for_delays or not self._in_group:
                        self._add_usage(key, plain or other)
                elif ours_for_delays:
                    self.crawl_delay = max(self.crawl_delay, _seconds(plain or other))
            elif kind in "lL":
                self.says_more = True
        self._ours, self._ours_for_delays = ours, ours_for_delays
        self._after_rule, self._after_delay = after_rule, after_delay

    def _add_usage(self, key: str, value: str) -> None:
        """Add a line about the use of pages."""
        value = value[: MAX_USAGE_LENGTH + 1].strip(" \t\v\f\xa0")
        if len(value) > MAX_USAGE_LENGTH or len(self.usage) == MAX_USAGE_LINES:
            self.is_cut = True
            return
        kind = UsageKind.CONTENT_USAGE if key[-1] in "eE" else UsageKind.CONTENT_SIGNAL
        self.usage.append(UsageLine(kind, value))

    def _add(self, number: int, forbids: bool, plain: str, other: str) -> None:
        """Add a rule; one that is empty or not a path matches nothing and is dropped."""
        if plain[:1] != "/" and other[:1] not in ("/", "*"):
            return
        size, count = self._bytes + len(plain) + len(other), self._count + (1 if plain else 2)
        if count > MAX_RULES or size > MAX_RULE_BYTES:
            self.is_cut = True
            return
        self._bytes, self._count = size, count
        self.rules.append(RuleLine(number, forbids, plain, _trimmed(other)))


def our_groups() -> tuple[Groups, Groups]:
    """Return the groups for rove and the groups for all agents, which count if the former do not exist."""
    return Groups(_OUR_TOKEN), Groups(_ALL_AGENTS)


def names_us(records: Iterable[Record]) -> bool:
    """Whether a group is for rove."""
    return any(key[0] in "uU" and _OUR_TOKEN.match(plain or other, 0, _LONGEST_LIST) for key, plain, other in records)


def sitemaps_in(records: Iterable[Record], known: dict[str, None]) -> None:
    """Add the absolute URLs of sitemaps to those that are known, up to MAX_SITEMAPS."""
    for key, plain, other in records:
        if len(known) >= MAX_SITEMAPS:
            return
        address = _WEB_ADDRESS.match(plain or other) if key[0] in "sS" else None
        if address is not None:
            known[as_sent(_trimmed(address[0]))] = None


def licenses_in(records: Iterable[Record], known: dict[str, None]) -> None:
    """Add the absolute URLs of licenses to those that are known, up to MAX_LICENSES."""
    for key, plain, other in records:
        if len(known) >= MAX_LICENSES:
            return
        address = _WEB_ADDRESS.match(plain or other, 0, MAX_USAGE_LENGTH) if key[0] in "lL" else None
        if address is not None:
            known[as_sent(_trimmed(address[0]))] = None


class Reduced(NamedTuple):
    """A long robots.txt, reduced to what applies to rove."""

    body: bytes
    is_cut: bool
    """Whether it has more rules than count."""


def reducing(body: bytes) -> Generator[None, None, Reduced]:
    """Reduce a robots.txt; pause after each slice.

    The result means the same to rove as the whole: the rules that count, the Crawl-delay, the sitemaps, and what is
    stated about the use of pages.
    """
    text = readable(body)
    groups = our_groups()
    sitemaps: dict[str, None] = {}
    licenses: dict[str, None] = {}
    position, number = 0, 0
    while position < len(text):
        yield
        end = text.find("\n", position + _SLICE)
        records = RECORD.findall(text, position, end if end >= 0 else len(text))
        for group in groups:
            group.read(records, number)
        sitemaps_in(records, sitemaps)
        licenses_in(records, licenses)
        number += len(records)
        position = end if end >= 0 else len(text)
    own, all_agents = groups
    counts = own if own.exist else all_agents
    lines = [f"# {len(body)} bytes, of which these apply to rove:"]
    lines += [f"{kind.value}: {value}" for kind, value in counts.usage]
    if counts.exist:
        lines.append(f"User-agent: {PRODUCT_TOKEN if own.exist else '*'}")
        lines += [f"{'Disallow' if rule.forbids else 'Allow'}: {rule.plain or rule.other}" for rule in counts.rules]
        if counts.crawl_delay:
            lines.append(f"Crawl-delay: {counts.crawl_delay!r}")
    encoded = "".join(f"{line}\n" for line in lines).encode("latin-1")
    encoded += "".join(f"Sitemap: {url}\n" for url in sitemaps).encode()
    encoded += "".join(f"License: {url}\n" for url in licenses).encode()
    return Reduced(encoded, counts.is_cut)


def readable(body: bytes) -> str:
    """Return the whole lines of a body in latin-1, each after a line feed; '' for markup. Lines keep their numbers."""
    if len(body) >= MAX_ROBOTS_BYTES:
        within = body[: MAX_ROBOTS_BYTES + 1]
        body = within[: max(within.rfind(b"\n"), within.rfind(b"\r")) + 1]
    if body.startswith(_UTF16) and b"\0" in body[:80]:
        body = body.decode("utf-16", "replace").encode()
    # lstrip also removes partial and repeated byte order marks, which occur.
    body = body.lstrip(codecs.BOM_UTF8).replace(b"\0", b"")
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("latin-1")
    return "" if _MARKUP.match(text) else "\n" + text


def as_sent(text: str) -> str:
    """Decode a part of a readable text as UTF-8."""
    return text.encode("latin-1").decode("utf-8", "replace")


def _trimmed(value: str) -> str:
    """Remove blanks from the end of a value; one that is too long to count stays as it is."""
    if len(value) > MAX_RULE_BYTES:
        return value
    end = len(value)
    while end:
        if value[end - 1] in " \t\v\f":
            end -= 1
            continue
        start = end
        while start and value[start - 1] == "\xa0":
            start -= 1
        before = value[start - 1 : start]
        if start == end or (before > "\x7f" and before != "\xc2"):
            return value[:end]  # there is no blank, or its byte ends a letter in UTF-8, such as 'à'
        end = start - (before == "\xc2")
    return ""


def _seconds(value: str) -> float:
    number = _NUMBER.match(value)
    return min(float(number[1]), _ENDLESS_DELAY) if number else 0.0
