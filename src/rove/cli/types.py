"""The types of option values, which check them for the command line and for --config alike."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rove.config import AUTO
from rove.errors import UsageError
from rove.notation.quantities import parse_duration, parse_positive_duration, parse_size

if TYPE_CHECKING:
    ValueType = click.ParamType[Any]
else:
    ValueType = click.ParamType  # older versions of click cannot subscript it


_LIKE_LIFTING = frozenset({"none", "default", "no", "off", "unlimited"})
"""Words that somebody may write who wants to lift an option; only one of them is right."""


class Lift(enum.Enum):
    """The value of an option that lifts what the crawl remembers."""

    LIFT = "lift"


class Parsed(ValueType):
    """A value that a function parses; its UsageError becomes the message of the option."""

    def __init__(self, name: str, parse: Callable[[str], Any], *, any_word: bool = False) -> None:
        """`any_word`: words such as 'no' and 'off' may be values."""
        self.name = name
        self._parse = parse
        self.any_word = any_word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except UsageError as error:
            self.fail(str(error), param, ctx)


class Checked(Parsed):
    """A text that a function checks."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        super().__init__(name, parse, any_word=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text itself."""
        super().convert(value, param, ctx)
        return value


class WholeNumber(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number{_range_text(self)}", param, ctx)


class Number(click.FloatRange):
    """A number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number{_range_text(self)}", param, ctx)
        return number


def _range_text(range: click.IntRange | click.FloatRange) -> str:
    if range.max is not None:
        return f" from {range.min:,} to {range.max:,}"
    return f" above {range.min:,}" if range.min_open else f" of at least {range.min:,}"


class Liftable(ValueType):
    """A value of another type, or a word that lifts the value which the crawl remembers."""

    def __init__(self, inner: click.ParamType[Any], word: str) -> None:
        """`word`: 'none' for an option that is off by default, 'default' for one that has a default."""
        self.name = inner.name
        self.inner = inner
        self.word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value, or LIFT."""
        if value is Lift.LIFT or (isinstance(value, str) and value.strip().lower() == self.word):
            return Lift.LIFT
        is_text = self.inner is click.STRING or (isinstance(self.inner, Parsed) and self.inner.any_word)
        if not is_text and isinstance(value, str) and value.strip().lower() in _LIKE_LIFTING:
            advice = f"to lift what the crawl remembers, write '{self.word}'"
            self.fail(f"{value!r} means nothing here; {advice}", param, ctx)
        return self.inner.convert(value, param, ctx)


def parse_concurrency(text: str) -> int | str:
    """Parse a number of fetches in flight, or 'auto'."""
    word = text.strip().lower()
    if word == AUTO:
        return AUTO
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise UsageError(f"{text!r} is neither 'auto' nor a whole number of at least 1")
    return int(word)


class Concurrency(Parsed):
    """A number of fetches in flight, or 'auto'."""

    def __init__(self) -> None:
        super().__init__("number", parse_concurrency)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value; numbers in a configuration file are checked like texts."""
        return super().convert(str(value), param, ctx)


CONCURRENCY = Concurrency()
DURATION = Parsed("duration", parse_duration)
POSITIVE_DURATION = Parsed("duration", parse_positive_duration)
SIZE = Parsed("size", parse_size)


def or_none(inner: click.ParamType[Any], metavar: str) -> dict[str, Any]:
    """Return the attributes of an option that the crawl remembers until it is given as 'none'."""
    return {"type": Liftable(inner, "none"), "metavar": f"{metavar}|none"}


def or_default(inner: click.ParamType[Any], metavar: str) -> dict[str, Any]:
    """Return the attributes of an option that the crawl remembers until it is given as 'default'."""
    return {"type": Liftable(inner, "default"), "metavar": metavar}
