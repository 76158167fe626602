"""Checks crawl names and hides passwords in PostgreSQL URLs. Imports no driver, because that is slow."""

from __future__ import annotations

import re

from rove.errors import UsageError

_PLAIN_URL = re.compile(
    r"(postgres(?:ql)?://)(?:([\w.%+-]+)(:[^@/?#\s]*)?@)?((?:[\w.,%-]|:\d+|\[[\da-fA-F:.]*\])*(?:/[\w.%-]*)?)(?:\?[^@\s]*)?"
)
"""Scheme, user, password, hosts and database. The parameters after them may hold a password too."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def checked_name(name: str) -> str:
    """Return the name of a crawl, which is the name of its schema; UsageError if it is not allowed."""
    if not _NAME.fullmatch(name) or name.startswith("pg_") or name in ("public", "information_schema"):
        raise UsageError(
            f"--crawl-name {name!r} is not a valid name: use at most 63 lower-case letters, digits and _, "
            "and do not begin with a digit or pg_"
        )
    return name


def redacted(url: str) -> str:
    """Return a URL without its password. A URL of an unusual form is hidden, because any part may be the password."""
    plain = _PLAIN_URL.fullmatch(url)
    if plain is None:
        return "postgresql://***" if re.search("[:=@]", url) else url
    scheme, user, password, rest = plain.groups()
    before = f"{user}:***@" if password else f"{user}@" if user else ""
    return f"{scheme}{before}{rest}"
