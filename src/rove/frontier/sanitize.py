"""Replaces characters that a database cannot store."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""NUL and lone surrogates. A page's title may contain them; PostgreSQL refuses both, and JSON the latter."""


def storable(text: str) -> str:
    """Return a text with replacement characters for everything that cannot be stored."""
    if text.isascii() and "\0" not in text:
        return text  # most texts; the search takes three times as long
    return _UNSTORABLE.sub("\ufffd", text)
