"""What the lines of a robots.txt state about the use of a page: Content-Usage, Content-Signal and License. Pure.

A rule may begin with a path, and without one it applies to all paths. Of the rules of one kind that match a URL, the
longest path wins, and rules with equally long paths are combined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rove.model.usage import Statement, UsageSource
from rove.policy.robots_lines import UsageKind, UsageLine, as_sent
from rove.policy.robots_paths import Pattern, Weight, path_spellings, spellings
from rove.policy.usage import content_signal, content_usage, license_statement

_PATH = re.compile(r"([/*]\S*+)\s*+")
_READERS: dict[UsageKind, tuple[Callable[[str, UsageSource], list[Statement]], UsageSource]] = {
    UsageKind.CONTENT_USAGE: (content_usage, UsageSource.ROBOTS_CONTENT_USAGE),
    UsageKind.CONTENT_SIGNAL: (content_signal, UsageSource.ROBOTS_CONTENT_SIGNAL),
}


class _UsageRule(NamedTuple):
    """A line, and the patterns of its path in each spelling; none if it applies to all paths."""

    kind: UsageKind
    length: int
    patterns: Sequence[Pattern]
    statements: Sequence[Statement]

    def matches(self, paths: Iterable[str]) -> bool:
        """Whether it applies to a path, given in all its spellings."""
        return not self.patterns or any(pattern.matches(path) for pattern in self.patterns for path in paths)


class UsageRules:
    """What the robots.txt of an origin states."""

    def __init__(self, lines: Iterable[UsageLine], licenses: Iterable[str]) -> None:
        self._rules = [rule for line in lines if (rule := _rule(line)) is not None]
        self._everywhere = [statement for url in licenses for statement in license_statement(url)]

    def statements(self, url: str) -> list[Statement]:
        """Return what is stated about a canonical URL."""
        found = list(self._everywhere)
        if not self._rules:
            return found
        paths = path_spellings(url)
        matching = [rule for rule in self._rules if rule.matches(paths)]
        for kind in UsageKind:
            longest = max((rule.length for rule in matching if rule.kind is kind), default=0)
            for rule in matching:
                if rule.kind is kind and rule.length == longest:
                    found += rule.statements
        return found


def _rule(line: UsageLine) -> _UsageRule | None:
    """Read a line; None if it states nothing that rove knows."""
    read, source = _READERS[line.kind]
    path = _PATH.match(line.value)
    statements = read(as_sent(line.value[path.end() :] if path else line.value), source)
    if not statements:
        return None
    if path is None:
        return _UsageRule(line.kind, 0, (), statements)
    text = path[1]
    ends = text.endswith("$")
    spelt = spellings(text[:-1] if ends else text)
    weight = Weight(-len(spelt[-1]) - ends, False, 0)
    patterns = [Pattern.of(spelling, ends=ends, weight=weight) for spelling in spelt]
    return _UsageRule(line.kind, -weight.length, patterns, statements)
