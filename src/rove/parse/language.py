"""Finds the languages of a text. Only this module uses pycld2.

The sample at the beginning of a text decides, so that the cost does not depend on the length of the page. Neither the
address of the page nor its `lang` attribute is asked: equal texts have equal languages.
"""

from __future__ import annotations

from typing import Final

import pycld2

from rove.model.languages import Language
from rove.policy.languages import LANGUAGE_CODES

SAMPLE_BYTES: Final = 2_000
"""Bytes of a text that are looked at."""

_CODES: Final = LANGUAGE_CODES | {"bh": "bih", "iw": "heb", "jw": "jav", "zh-Hant": "zho"}
"""Codes of the library to ISO 639-3. What is not listed is a script or a joke (Klingon, Pig Latin)."""


def languages_of(utf8: bytes) -> tuple[Language, ...]:
    """Return up to three languages of a text, the most frequent one first; none if they cannot be told."""
    sample = _start_of(utf8)
    try:
        is_reliable, _, found = pycld2.detect(sample, isPlainText=True)
    except pycld2.error:
        # It refuses control characters and code points that are none.
        try:
            is_reliable, _, found = pycld2.detect(_printable(sample), isPlainText=True)
        except pycld2.error:
            return ()
    if not is_reliable:
        return ()
    shares: dict[str, int] = {}
    for _, code, percent, _ in found:
        name = _CODES.get(code)
        if name is not None and percent > 0:
            shares[name] = shares.get(name, 0) + percent
    return tuple(Language(code, percent) for code, percent in shares.items())


def _start_of(utf8: bytes) -> bytes:
    """Return the beginning of a text, without half a character at its end."""
    if len(utf8) <= SAMPLE_BYTES:
        return utf8
    end = SAMPLE_BYTES
    while utf8[end] & 0xC0 == 0x80:
        end -= 1
    return utf8[:end]


def _printable(utf8: bytes) -> bytes:
    return "".join(character if character.isprintable() else " " for character in utf8.decode()).encode()
