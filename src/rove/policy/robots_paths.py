"""How robots.txt compares paths: the normal spelling of rules and URLs, and patterns with `*` and `$`. Pure.

Octets that are neither reserved nor unreserved are escaped, unreserved ones are not, and other escapes have upper-case
digits (RFC 9309, section 2.2.2).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rove.policy.robots_lines import PLAIN

PLAIN_PATH = re.compile(rf"{PLAIN}*+", re.ASCII)
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_RESERVED = ":/?#[]@!&'()+,;=*"
"""Without `$`, which is escaped for comparison because it is special at the end of a rule."""
_ESCAPED = {octet: f"%{octet:02X}" for octet in range(256) if chr(octet) not in f"{_UNRESERVED}{_RESERVED}%"}
_UNSPELT = re.compile(rf"[^{re.escape(_UNRESERVED + _RESERVED)}%]")
"""Finds an octet that has to be escaped. Most rules have none, and looking is quicker than translating."""
_PERCENT = re.compile(r"%(?:[0-9A-Fa-f]{2})?")
_DIGITS = "0123456789ABCDEFabcdef"
_SPELT = {"%": "%25"} | {
    f"%{a}{b}": octet if (octet := chr(int(a + b, 16))) in _UNRESERVED else f"%{a}{b}".upper()
    for a in _DIGITS
    for b in _DIGITS
}
"""The normal spelling of each escape, and of a percent sign that begins none."""
_QUERY_DATA = re.compile(r"%(3A|2F|3F|40)")


class Weight(NamedTuple):
    """The sort key of rules: the first one that matches decides. A tuple, because a file has hundreds."""

    length: int
    """In octets, negated, so that the longest rule sorts first."""
    forbids: bool
    """Of two equally long rules the one that allows sorts first."""
    record: int
    """Its number among the lines that matter."""


class Pattern(NamedTuple):
    """A rule that is not just a path prefix."""

    weight: Weight
    start: str
    middle: list[str]
    """The pieces between its first and its last `*`, in order."""
    last: str | None
    """The piece after its last `*`; None if it has no `*`."""
    ends: bool
    """The rule ended with `$`, so the path must end with it."""

    @classmethod
    def of(cls, rule: str, *, ends: bool, weight: Weight) -> Pattern:
        """Split a rule in its normal spelling, without a final `$`."""
        start, *pieces = rule.split("*")
        last = pieces.pop() if pieces else None
        return cls(weight, start, [piece for piece in pieces if piece], last, ends)

    def matches(self, path: str) -> bool:
        """Whether the rule applies to a path."""
        if not path.startswith(self.start):
            return False
        position = len(self.start)
        if self.last is None:
            return not self.ends or position == len(path)
        for piece in self.middle:
            # The first match is as good as any later one: it leaves the most text for the pieces that follow.
            position = path.find(piece, position)
            if position < 0:
                return False
            position += len(piece)
        if self.ends:
            return path.endswith(self.last, position)
        return path.find(self.last, position) >= 0


def spellings(path: str) -> tuple[str, ...]:
    """Return the normal spelling of a path or rule; a query with escaped data has a second, shorter one."""
    if "%" in path:
        path = _PERCENT.sub(lambda escape: _SPELT[escape[0]], path)
    strict = path.translate(_ESCAPED) if _UNSPELT.search(path) else path
    head, mark, query = strict.partition("?")
    if "%" not in query:
        return (strict,)
    plain = head + mark + _QUERY_DATA.sub(lambda escape: chr(int(escape[1], 16)), query)
    return (strict,) if plain == strict else (strict, plain)


def path_spellings(url: str) -> tuple[str, ...]:
    """Return the normal spellings of the path and query of a canonical URL, as rules are compared with them."""
    path = path_of(url)
    if PLAIN_PATH.fullmatch(path):
        return (path,)
    if not path.isascii():
        path = path.encode("utf-8", "replace").decode("latin-1")
    return tuple(spelling.replace("*", "%2A") for spelling in spellings(path))


def path_of(url: str) -> str:
    """Return the path and query of a canonical URL."""
    return url[url.index("/", url.index("://") + 3) :]
