"""Regular expressions that take time in proportion to the text: RE2, which is imported only when a pattern needs it."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_PROGRAM = 1_000
"""Steps of a compiled pattern. A search takes at most about this many steps for each character of the text."""
MAX_MEMORY = 1 << 20
"""Bytes that RE2 may use for a pattern, so that it refuses a huge one quickly."""
_META = re.compile(r"[\\^$.|?*+()\[\]{}]")


class PatternError(Exception):
    """A pattern that cannot be used; its text says why."""


def searcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether the pattern matches anywhere in a text.

    >>> searcher("^/a+b")("/aab"), searcher("/tag/")("/blog/tag/7"), searcher("/tag/")("/tags/")
    (True, True, False)
    """
    if _META.search(pattern) is None:
        return lambda text: pattern in text
    try:
        import re2
    except ImportError as error:
        raise PatternError("regular expressions need the package google-re2, which is not installed") from error
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    try:
        size = re2.compile(pattern, options).programsize
    except re2.error as error:
        raise PatternError(f"RE2 cannot read the pattern: {_reason(error)}") from error
    if size > MAX_PROGRAM:
        raise PatternError(f"the pattern is too large for RE2: {size:,} steps, at most {MAX_PROGRAM:,}")
    # A set of one pattern: its search takes a third of the time, because it looks for no position.
    patterns = re2.Set.SearchSet(options)
    patterns.Add(pattern)
    patterns.Compile()
    search = patterns.Match
    return lambda text: bool(search(text.encode("utf-8", "replace")))


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
