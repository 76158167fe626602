"""The languages of a page's text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Language(NamedTuple):
    """A language of a text, and the share of the text that is in it."""

    code: str
    """ISO 639-3, such as 'deu'."""
    percent: int


def languages_text(languages: Iterable[Language]) -> str:
    """Return languages as the ledger stores them.

    >>> languages_text([Language("deu", 92), Language("eng", 5)])
    'deu:92 eng:5'
    """
    return " ".join(f"{code}:{percent}" for code, percent in languages)


def languages_from(text: str) -> tuple[Language, ...]:
    """Return the languages that `languages_text` wrote.

    >>> languages_from("deu:92 eng:5")
    (Language(code='deu', percent=92), Language(code='eng', percent=5))
    """
    return tuple(Language(code, int(percent)) for code, _, percent in (part.partition(":") for part in text.split()))
