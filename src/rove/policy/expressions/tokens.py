"""Splits the text of an expression into words, texts, numbers and symbols, each with its column."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from rove.errors import UsageError

MAX_LENGTH = 10_000
"""Characters of one expression: a list of some hundred hosts fits."""
_SHOWN = 40

_TOKEN = re.compile(
    r"""(?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>[0-9]{1,12}(?![A-Za-z0-9_.]))
      | (?P<symbol>==|!=|<=|>=|[()<>~,])
      | (?P<quote>["'])""",
    re.VERBOSE,
)
_SPACES = re.compile(r"\s*")
_UNSTORABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and bytes of the command line that are not UTF-8."""


class ExpressionError(UsageError):
    """An expression that means nothing. Its text says where, and what was expected."""

    def __init__(self, expression: str, column: int, problem: str) -> None:
        super().__init__(f"column {column} of {shown(expression)}: {problem}")
        self.column = column


class TokenKind(enum.Enum):
    """The kinds of tokens."""

    WORD = enum.auto()
    TEXT = enum.auto()
    NUMBER = enum.auto()
    SYMBOL = enum.auto()
    END = enum.auto()


class Token(NamedTuple):
    """One token, and the column at which it begins, from 1 on."""

    kind: TokenKind
    text: str
    column: int

    def __str__(self) -> str:
        """Say for an error message what was found."""
        match self.kind:
            case TokenKind.END:
                return "the end"
            case TokenKind.TEXT:
                return f"the text {shown(self.text)}"
            case _:
                return shown(self.text)


def tokens_of(expression: str) -> list[Token]:
    """Return the tokens of an expression, with one for its end."""
    if len(expression) > MAX_LENGTH:
        problem = f"the expression has {len(expression):,} characters, but at most {MAX_LENGTH:,} are allowed"
        raise ExpressionError(expression, MAX_LENGTH + 1, problem)
    tokens: list[Token] = []
    position = _after_spaces(expression, 0)
    while position < len(expression):
        found = _TOKEN.match(expression, position)
        if found is None:
            raise ExpressionError(expression, position + 1, _unknown(expression[position:]))
        if found["quote"]:
            text, end = _quoted(expression, position)
            tokens.append(Token(TokenKind.TEXT, text, position + 1))
        else:
            kind = TokenKind.WORD if found["word"] else TokenKind.NUMBER if found["number"] else TokenKind.SYMBOL
            tokens.append(Token(kind, found.group(), position + 1))
            end = found.end()
        position = _after_spaces(expression, end)
    return [*tokens, Token(TokenKind.END, "", len(expression) + 1)]


def shown(text: str) -> str:
    """Return a text in quotes, shortened for an error message."""
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return repr(short)


def _after_spaces(expression: str, position: int) -> int:
    spaces = _SPACES.match(expression, position)
    assert spaces is not None, "it matches nothing, too"
    return spaces.end()


def _quoted(expression: str, start: int) -> tuple[str, int]:
    """Return a text in quotes and the position after it. A backslash before the quote makes it a part of the text.

    Any other backslash stays, because most backslashes are in patterns.
    """
    quote = expression[start]
    parts: list[str] = []
    position = start + 1
    while (end := expression.find(quote, position)) >= 0:
        if expression[end - 1] != "\\" or end - 1 < position:
            text = "".join((*parts, expression[position:end]))
            bad = _UNSTORABLE.search(text)
            if bad is not None:
                raise ExpressionError(expression, start + 1, f"the text holds {bad.group()!r}, which is not allowed")
            return text, end + 1
        parts += (expression[position : end - 1], quote)
        position = end + 1
    raise ExpressionError(expression, start + 1, f"the text that begins here does not end; add the closing {quote}")


def _unknown(rest: str) -> str:
    if rest[0] == "=":
        return "expected '==', found '='"
    if rest[:2] in ("&&", "||") or rest[0] in "&|!":
        word = {"&": "and", "|": "or", "!": "not"}[rest[0]]
        return f"expected the word {word}, found {shown(rest[:2] if rest[:2] in ('&&', '||') else rest[0])}"
    if rest[0].isdigit():
        return "expected a whole number of at most 12 digits"
    return f"expected a fact, a text in quotes or a number, found {shown(rest[0])}"
