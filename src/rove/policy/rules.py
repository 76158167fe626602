"""The rules of a crawl: which links it takes, which pages it stores, and whose links it follows. Pure.

A URL is taken if one of the `accept` rules holds, or if there is none, and if no `reject` rule holds. A page is stored
if one of the `store-if` rules holds, or if there is none; so are its links followed by the `follow-if` rules. Each rule
has a number that it keeps as long as the crawl lasts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rove.errors import UsageError
from rove.model.reasons import rejected_by_rules
from rove.policy.expressions.expression import Test, compiled, facts_in
from rove.policy.expressions.facts import SOURCE_FACTS, Place, Subject
from rove.policy.expressions.tokens import shown

MAX_RULES = 200
"""Rules of one crawl. Each costs time for every link or page."""


class RuleKind(enum.StrEnum):
    """What a rule decides; the values are the names of the options."""

    ACCEPT = "accept"
    REJECT = "reject"
    STORE_IF = "store-if"
    FOLLOW_IF = "follow-if"

    @property
    def setting(self) -> str:
        """The field of the settings that holds the rules of this kind."""
        return self.value.replace("-", "_")

    @property
    def place(self) -> Place:
        """Where rules of this kind are used."""
        return Place.LINK if self in (RuleKind.ACCEPT, RuleKind.REJECT) else Place.PAGE


class Rule(NamedTuple):
    """One rule."""

    number: int
    kind: RuleKind
    expression: str

    @property
    def decides_links(self) -> bool:
        """Whether it decides about links, and about URLs of the queue."""
        return self.kind.place is Place.LINK

    def __str__(self) -> str:
        """Return the rule as a line of a rules file has it."""
        return f"{self.kind} {self.expression}"


class RuledOut(NamedTuple):
    """Why rules decide against a URL or a page."""

    numbers: tuple[int, ...]
    """The rule that decides; several `accept` rules if none of them holds."""
    what: str
    """The expression that decides, for people."""

    @property
    def counter(self) -> str:
        """The name under which it is counted: `rule-2`, or `rules-1-3` if none of several rules holds."""
        return f"rule{'s' if len(self.numbers) > 1 else ''}-{'-'.join(map(str, self.numbers))}"

    @property
    def reason(self) -> str:
        """The reason with which a pending URL is blocked."""
        return rejected_by_rules(self.rules)

    @property
    def rules(self) -> str:
        """The rules by number, and what they say."""
        return f"rule{'s' if len(self.numbers) > 1 else ''} {', '.join(map(str, self.numbers))}: {self.what}"


_ONLY = {
    RuleKind.ACCEPT: "accept only",
    RuleKind.STORE_IF: "store only if",
    RuleKind.FOLLOW_IF: "follow only if",
}


class _OneOf:
    """Rules of which one must hold, unless there is none."""

    def __init__(self, rules: Sequence[Rule], *, is_forgotten: bool = False) -> None:
        """With `is_forgotten`, the page that links to the URL is not known any more. Then a rule may hold."""
        forgotten = SOURCE_FACTS if is_forgotten else ()
        self._tests = [
            compiled(rule.expression, rule.kind.place, forgotten=forgotten, if_forgotten=True) for rule in rules
        ]
        self._otherwise = _none_of(rules) if rules else None

    def against(self, subject: Subject) -> RuledOut | None:
        """Return why the rules decide against something, None if they do not."""
        for test in self._tests:
            if test(subject):
                return None
        return self._otherwise


class _NoneOf:
    """Rules of which none may hold."""

    def __init__(self, rules: Sequence[Rule], *, is_forgotten: bool = False) -> None:
        """With `is_forgotten`, the page that links to the URL is not known any more. Then a rule must surely hold."""
        forgotten = SOURCE_FACTS if is_forgotten else ()
        self._tests: list[tuple[Test, RuledOut]] = [
            (
                compiled(rule.expression, rule.kind.place, forgotten=forgotten),
                RuledOut((rule.number,), rule.expression),
            )
            for rule in rules
        ]

    def against(self, subject: Subject) -> RuledOut | None:
        """Return why the rules decide against something, None if they do not."""
        for test, ruled_out in self._tests:
            if test(subject):
                return ruled_out
        return None


class Rules:
    """The rules of a crawl, compiled."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.rules = rules
        of_kind = {kind: [rule for rule in rules if rule.kind is kind] for kind in RuleKind}
        accept, reject = of_kind[RuleKind.ACCEPT], of_kind[RuleKind.REJECT]
        self.about_links = bool(accept or reject)
        """Whether a rule decides about links."""
        self.about_pages = bool(of_kind[RuleKind.STORE_IF] or of_kind[RuleKind.FOLLOW_IF])
        """Whether a rule decides about pages."""
        self._accept, self._reject = _OneOf(accept), _NoneOf(reject)
        self._accept_known, self._reject_known = _OneOf(accept, is_forgotten=True), _NoneOf(reject, is_forgotten=True)
        self._store, self._follow = _OneOf(of_kind[RuleKind.STORE_IF]), _OneOf(of_kind[RuleKind.FOLLOW_IF])

    def against_link(self, link: Subject) -> RuledOut | None:
        """Return why a link is not taken, None if it is."""
        return self._accept.against(link) or self._reject.against(link)

    def against_known(self, url: str, depth: int) -> RuledOut | None:
        """Return why a URL of the frontier is not fetched, None if it is.

        The frontier does not know which page linked to it. A rule that needs to know that does not decide.
        """
        known = Subject(url, depth=depth)
        return self._accept_known.against(known) or self._reject_known.against(known)

    def against_storing(self, page: Subject) -> RuledOut | None:
        """Return why a page is not stored, None if it is."""
        return self._store.against(page)

    def against_following(self, page: Subject) -> RuledOut | None:
        """Return why the links of a page are not followed, None if they are."""
        return self._follow.against(page)


NO_RULES = Rules()


@lru_cache(maxsize=16)
def rules_with(rules: tuple[Rule, ...]) -> Rules:
    """Return rules, compiled once."""
    return Rules(rules)


def needs_source(rule: Rule) -> bool:
    """Whether a rule depends on the page that links to a URL."""
    return not SOURCE_FACTS.isdisjoint(facts_in(rule.expression))


def check_rule(kind: RuleKind, expression: str) -> str:
    """Return the expression of a rule without spaces around it; raise UsageError if it means nothing."""
    compiled(expression.strip(), kind.place)
    return expression.strip()


def parse_rules(lines: Iterable[str], name: str) -> Mapping[RuleKind, tuple[str, ...]]:
    """Return the rules in a file, by kind; each line has a kind and an expression, or a comment."""
    rules: dict[RuleKind, tuple[str, ...]] = dict.fromkeys(RuleKind, ())
    for number, line in enumerate(lines, start=1):
        text = line.lstrip("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        word, _, expression = text.partition(" ")
        if word not in {*RuleKind}:
            expected = f"expected {', '.join(RuleKind)} or '#' at its beginning, found {shown(word)}"
            raise UsageError(f"{name}, line {number}: {expected}")
        kind = RuleKind(word)
        try:
            rules[kind] += (check_rule(kind, expression),)
        except UsageError as error:
            raise UsageError(f"{name}, line {number}, after {word}: {error}") from error
    return rules


def _none_of(rules: Sequence[Rule]) -> RuledOut:
    numbers = tuple(rule.number for rule in rules)
    if len(rules) == 1:
        return RuledOut(numbers, f"{_ONLY[rules[0].kind]} {rules[0].expression}")
    return RuledOut(numbers, f"none of these {rules[0].kind} rules holds")
