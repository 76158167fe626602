"""Generated text: pages choose paragraphs from a pool for each language.

A pool is made once, so that even long pages are cheap. Each page adds its title and address, so no two pages have the
same text.
"""

from __future__ import annotations

import enum
from functools import cache

from rove.demo import words
from rove.demo.draw import Draw

_POOL_SIZE = 64


class Language(enum.StrEnum):
    """A language, by its code."""

    ENGLISH = "en"
    FRENCH = "fr"
    RUSSIAN = "ru"
    JAPANESE = "ja"
    GREEK = "el"


LANGUAGES = tuple(Language)
LEGACY_CHARSETS = {Language.FRENCH: "iso-8859-1", Language.RUSSIAN: "windows-1251", Language.JAPANESE: "shift_jis"}
_WORDS = {
    Language.ENGLISH: words.ENGLISH.split(),
    Language.FRENCH: words.FRENCH.split(),
    Language.RUSSIAN: words.RUSSIAN.split(),
    Language.JAPANESE: words.JAPANESE.split(),
    Language.GREEK: words.GREEK.split(),
}


def title(draw: Draw, language: Language) -> str:
    """Make a title of a few words."""
    return _phrase(draw, language, 3 + draw.below(3))


def paragraphs(draw: Draw, language: Language, length: int) -> list[str]:
    """Return paragraphs with a total of at least `length` bytes of UTF-8."""
    pool = _pool(language)
    position = draw.below(_POOL_SIZE)
    chosen = []
    while length > 0:
        paragraph, size = pool[position]
        chosen.append(paragraph)
        length -= size
        position = (position + 1) % _POOL_SIZE
    return chosen


@cache
def _pool(language: Language) -> tuple[tuple[str, int], ...]:
    draw = Draw(0, f"prose in {language}")
    texts = [_paragraph(draw, language) for _ in range(_POOL_SIZE)]
    return tuple((text, len(text.encode())) for text in texts)


def _paragraph(draw: Draw, language: Language) -> str:
    return " ".join(_phrase(draw, language, 6 + draw.below(14)) + "." for _ in range(4 + draw.below(6)))


def _phrase(draw: Draw, language: Language, length: int) -> str:
    return " ".join(draw.pick(_WORDS[language]) for _ in range(length)).capitalize()
