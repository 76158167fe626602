"""Texts as a database can store them."""

from __future__ import annotations

import re

UNSTORABLE = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}
"""NUL and halves of surrogate pairs: a page's title may hold them, PostgreSQL refuses both and JSON the latter."""
_FOUND = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """A text without what cannot be stored."""
    if text.isascii() and "\0" not in text:
        return text  # as most are: the search takes three times as long
    return text.translate(UNSTORABLE) if _FOUND.search(text) else text
