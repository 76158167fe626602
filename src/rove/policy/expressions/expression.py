"""Checks the types of an expression and compiles it to closures.

>>> is_wanted = compiled('tld in ("de", "at") and not path ~ "^/tag/"', Place.LINK)
>>> is_wanted(Subject("https://a.de/tag/1")), is_wanted(Subject("https://a.de/b/tag/1"))
(False, True)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from typing import Any, assert_never

from rove.policy.expressions.facts import FACTS, Fact, FactKind, Place, Subject
from rove.policy.expressions.pattern import PatternError, searcher
from rove.policy.expressions.syntax import All, AnyOf, Comparison, Node, Not, Operator, parse
from rove.policy.expressions.tokens import ExpressionError, Token, TokenKind

Test = Callable[[Subject], bool]

_OF_TEXTS = (Operator.IS, Operator.IS_NOT, Operator.IN, Operator.MATCHES, Operator.STARTS, Operator.ENDS)
_OF_NUMBERS = (
    *(Operator.IS, Operator.IS_NOT, Operator.IN),
    *(Operator.LESS, Operator.AT_MOST, Operator.MORE, Operator.AT_LEAST),
)
_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.IS: operator.eq,
    Operator.IS_NOT: operator.ne,
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.MORE: operator.gt,
    Operator.AT_LEAST: operator.ge,
}


def compiled(expression: str, place: Place, *, forgotten: Collection[str] = (), if_forgotten: bool = False) -> Test:
    """Return a function that says whether an expression holds; raise ExpressionError if it means nothing.

    Facts in `forgotten` are allowed but not known any more. Where the result depends on one of them, it is
    `if_forgotten`.
    """
    return _Compiler(expression, place, forgotten).test(parse(expression), if_forgotten)


def facts_in(expression: str) -> frozenset[str]:
    """Return the names of the facts in a valid expression."""
    return frozenset(comparison.fact.text for comparison in _comparisons(parse(expression)))


def _comparisons(node: Node) -> Iterator[Comparison]:
    match node:
        case Comparison():
            yield node
        case Not(inner=inner):
            yield from _comparisons(inner)
        case All(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _comparisons(part)
        case _:
            assert_never(node)


class _Compiler:
    def __init__(self, expression: str, place: Place, forgotten: Collection[str]) -> None:
        self._expression = expression
        self._place = place
        self._forgotten = forgotten

    def test(self, node: Node, unknown: bool) -> Test:
        """Compile a part; a comparison with a forgotten fact has the result `unknown`."""
        match node:
            case Comparison():
                test = self._comparison(node)
                return (lambda _: unknown) if node.fact.text in self._forgotten else test
            case Not(inner=inner):
                # Inside a negation, the opposite leads to the result that is asked for.
                opposite = self.test(inner, not unknown)
                return lambda subject: not opposite(subject)
            case All(parts=parts):
                return _all([self.test(part, unknown) for part in parts])
            case AnyOf(parts=parts):
                return _any([self.test(part, unknown) for part in parts])
            case _:
                assert_never(node)

    def _comparison(self, node: Comparison) -> Test:
        fact, name = self._fact(node.fact), node.fact.text
        if fact.kind is FactKind.FLAG:
            if node.operator is not None:
                problem = f"{name} is true or false by itself: write {name} or not {name}"
                raise self._error(node.column, problem)
            return fact.read  # type: ignore[return-value]  # a flag is a bool
        allowed = _OF_TEXTS if fact.kind is FactKind.TEXT else _OF_NUMBERS
        if node.operator is None or node.operator not in allowed:
            found = f", found '{node.operator}'" if node.operator else ""
            column = node.column if node.operator else node.fact.column + len(name)
            raise self._error(column, f"expected one of {' '.join(allowed)} after {name}, a {fact.kind}{found}")
        values = [self._value(fact, name, token) for token in node.values]
        return self._operation(fact.read, node.operator, values, node)

    def _operation(self, read: Callable[[Subject], Any], kind: Operator, values: list[Any], node: Comparison) -> Test:
        value = values[0]
        match kind:
            case Operator.IN:
                chosen = frozenset(values)
                return lambda subject: read(subject) in chosen
            case Operator.STARTS:
                return lambda subject: read(subject).startswith(value)
            case Operator.ENDS:
                return lambda subject: read(subject).endswith(value)
            case Operator.MATCHES:
                try:
                    search = searcher(value)
                except PatternError as error:
                    raise self._error(node.values[0].column, str(error)) from error
                return lambda subject: search(read(subject))
            case _:
                compare = _COMPARE[kind]
                return lambda subject: compare(read(subject), value)

    def _fact(self, token: Token) -> Fact:
        fact = FACTS.get(token.text)
        if fact is None:
            close = get_close_matches(token.text, FACTS, 1)
            hint = f"did you mean {close[0]}?" if close else f"the facts are {', '.join(FACTS)}"
            raise self._error(token.column, f"there is no fact {token.text[:40]}; {hint}")
        if self._place not in fact.known:
            others = " and ".join(place for place in Place if place in fact.known)
            raise self._error(token.column, f"{token.text} is not known in {self._place}, only in {others}")
        return fact

    def _value(self, fact: Fact, name: str, token: Token) -> str | int:
        wanted = TokenKind.TEXT if fact.kind is FactKind.TEXT else TokenKind.NUMBER
        if token.kind is not wanted:
            expected = "a text in quotes" if wanted is TokenKind.TEXT else "a number without quotes"
            raise self._error(token.column, f"expected {expected}, because {name} is a {fact.kind}, found {token}")
        return token.text if wanted is TokenKind.TEXT else int(token.text)

    def _error(self, column: int, problem: str) -> ExpressionError:
        return ExpressionError(self._expression, column, problem)


def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda subject: first(subject) and second(subject)
    return lambda subject: all(test(subject) for test in tests)


def _any(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda subject: first(subject) or second(subject)
    return lambda subject: any(test(subject) for test in tests)
