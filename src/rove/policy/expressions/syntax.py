"""Parses the tokens of an expression into a tree. Depth and size are bounded.

expression = conjunction { "or" conjunction }
conjunction = negation { "and" negation }
negation = "not" negation | "(" expression ")" | comparison
comparison = FACT [ operator VALUE | "in" "(" VALUE { "," VALUE } ")" ]
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from rove.policy.expressions.tokens import ExpressionError, Token, TokenKind, tokens_of

MAX_DEPTH = 50
"""How deep parentheses and `not` may be nested."""
KEYWORDS = frozenset({"and", "or", "not", "in", "startswith", "endswith"})


class Operator(enum.StrEnum):
    """What compares a fact with a value."""

    IS = "=="
    IS_NOT = "!="
    IN = "in"
    MATCHES = "~"
    STARTS = "startswith"
    ENDS = "endswith"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Comparison:
    """A fact, compared with values. A fact that is true or false stands alone, without an operator."""

    fact: Token
    operator: Operator | None = None
    values: tuple[Token, ...] = ()
    column: int = 0
    """Where the operator is."""


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of an expression."""

    inner: Node


@dataclass(frozen=True, slots=True)
class All:
    """Expressions joined by `and`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Expressions joined by `or`."""

    parts: tuple[Node, ...]


Node = Comparison | Not | All | AnyOf


def parse(expression: str) -> Node:
    """Return the tree of an expression; raise ExpressionError if it has none."""
    return _Parser(expression, tokens_of(expression)).whole()


class _Parser:
    def __init__(self, expression: str, tokens: Sequence[Token]) -> None:
        self._expression = expression
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._any()
        if self._token.kind is not TokenKind.END:
            raise self._expected("'and', 'or' or the end")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _takes(self, kind: TokenKind, text: str) -> bool:
        """Take the next token if it is this one."""
        if self._token.kind is not kind or self._token.text != text:
            return False
        self._next += 1
        return True

    def _any(self) -> Node:
        parts = [self._all()]
        while self._takes(TokenKind.WORD, "or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self) -> Node:
        parts = [self._negation()]
        while self._takes(TokenKind.WORD, "and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _negation(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} parentheses and 'not' inside each other")
        try:
            if self._takes(TokenKind.WORD, "not"):
                return Not(self._negation())
            if self._takes(TokenKind.SYMBOL, "("):
                node = self._any()
                if not self._takes(TokenKind.SYMBOL, ")"):
                    raise self._expected("')', 'and' or 'or'")
                return node
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Comparison:
        if self._token.kind is not TokenKind.WORD or self._token.text in KEYWORDS:
            raise self._expected("a fact such as host, 'not' or '('")
        fact = self._take()
        token = self._token
        if token.kind not in (TokenKind.WORD, TokenKind.SYMBOL) or token.text not in {*Operator}:
            if (token.kind is TokenKind.WORD and token.text not in KEYWORDS) or token.kind is TokenKind.TEXT:
                raise self._expected(f"an operator after {fact.text}")
            return Comparison(fact)
        operator = Operator(self._take().text)
        values = self._values() if operator is Operator.IN else (self._value(),)
        return Comparison(fact, operator, values, token.column)

    def _values(self) -> tuple[Token, ...]:
        if not self._takes(TokenKind.SYMBOL, "("):
            raise self._expected("'(' after in")
        values = [self._value()]
        while self._takes(TokenKind.SYMBOL, ","):
            values.append(self._value())
        if not self._takes(TokenKind.SYMBOL, ")"):
            raise self._expected("',' or ')'")
        return tuple(values)

    def _value(self) -> Token:
        if self._token.kind not in (TokenKind.TEXT, TokenKind.NUMBER):
            raise self._expected("a text in quotes or a number")
        return self._take()

    def _expected(self, what: str) -> ExpressionError:
        return self._error(f"expected {what}, found {self._token}")

    def _error(self, problem: str) -> ExpressionError:
        return ExpressionError(self._expression, self._token.column, problem)
