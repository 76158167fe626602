"""Replaces characters that a database cannot store."""

from __future__ import annotations

import re

UNSTORABLE = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}
"""NUL and lone surrogates. A page's title may contain them; PostgreSQL refuses both, and JSON the latter."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return a text with replacement characters for everything that cannot be stored."""
    if text.isascii() and "\0" not in text:
        return text  # most texts; the search takes three times as long
    return text.translate(UNSTORABLE) if _UNSTORABLE.search(text) else text
