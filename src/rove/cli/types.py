"""The types of option values, which check them for the command line and for --config alike."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rove.errors import UsageError
from rove.quantities import parse_duration, parse_positive_duration, parse_size

if TYPE_CHECKING:
    ValueType = click.ParamType[Any]
else:
    ValueType = click.ParamType  # older versions of click cannot subscript it


class Lift(enum.Enum):
    """The value of an option that lifts what the crawl remembers."""

    LIFT = "lift"


class Parsed(ValueType):
    """A value that a function parses; its UsageError becomes the message of the option."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except UsageError as error:
            self.fail(str(error), param, ctx)


class Checked(Parsed):
    """A text that a function checks."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text itself."""
        super().convert(value, param, ctx)
        return value


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
        return self.inner.convert(value, param, ctx)


DURATION = Parsed("duration", parse_duration)
POSITIVE_DURATION = Parsed("duration", parse_positive_duration)
SIZE = Parsed("size", parse_size)


def or_none(inner: click.ParamType[Any], metavar: str) -> dict[str, Any]:
    """Return the attributes of an option that the crawl remembers until it is given as 'none'."""
    return {"type": Liftable(inner, "none"), "metavar": f"{metavar}|none"}


def or_default(inner: click.ParamType[Any], metavar: str) -> dict[str, Any]:
    """Return the attributes of an option that the crawl remembers until it is given as 'default'."""
    return {"type": Liftable(inner, "default"), "metavar": metavar}
