"""The rules of a crawl, and how often each of them decided."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rove.model.counts import Counts
from rove.model.reasons import is_not_stored_by_rules, is_rejected_by_rules
from rove.policy.rules import Rule

_COUNTER = re.compile(r"rules?-(\d+(?:-\d+)*)")
_REASON = re.compile(r"\w+ (?:stored )?by rules? (\d+(?:, \d+)*):")


def is_rule_counter(name: str) -> bool:
    """Whether links that rules decide against are counted under a name."""
    return _COUNTER.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRule:
    """A rule in force, and what it has decided in the whole crawl."""

    rule: Rule
    not_taken: int
    """Links that were not taken because of it. If none of several rules held, they count for each."""
    blocked: int
    """URLs that are blocked because of it."""
    not_stored: int
    """Pages that are not stored because of it."""


def listed_rules(rules: Sequence[Rule], counts: Counts) -> list[ListedRule]:
    """Return the rules in the order of their numbers."""
    not_taken = _by_rule(counts.not_accepted, _COUNTER)
    blocked = _by_rule({why: n for why, n in counts.blocked.items() if is_rejected_by_rules(why)}, _REASON)
    not_stored = _by_rule({why: n for why, n in counts.blocked.items() if is_not_stored_by_rules(why)}, _REASON)
    return [
        ListedRule(
            rule=rule,
            not_taken=not_taken[rule.number],
            blocked=blocked[rule.number],
            not_stored=not_stored[rule.number],
        )
        for rule in sorted(rules)
    ]


def as_line(listed: ListedRule) -> str:
    """Return the line of a rule for people."""
    parts = {"not taken": listed.not_taken, "blocked": listed.blocked, "not stored": listed.not_stored}
    decided = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"{listed.rule.number:>3}  {listed.rule}  ({decided or 'has decided nothing yet'})"


def as_json(listed: ListedRule) -> dict[str, Any]:
    """Return the JSON object of a rule."""
    return {
        "number": listed.rule.number,
        "kind": listed.rule.kind.value,
        "expression": listed.rule.expression,
        "not_taken": listed.not_taken,
        "blocked": listed.blocked,
        "not_stored": listed.not_stored,
    }


def _by_rule(counts: Mapping[str, int], numbers: re.Pattern[str]) -> Counter[int]:
    """Add up counters that name rules by their numbers."""
    found: Counter[int] = Counter()
    for name, count in counts.items():
        match = numbers.match(name)
        if match is not None:
            for number in re.findall(r"\d+", match[1]):
                found[int(number)] += count
    return found
