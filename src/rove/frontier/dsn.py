"""What a crawl in PostgreSQL is called, and its URL as it may be shown: without the driver, which is slow to load."""

from __future__ import annotations

import re

from rove.errors import UsageError

_PLAIN_URL = re.compile(
    r"(postgres(?:ql)?://)(?:([\w.%+-]+)(:[^@/?#\s]*)?@)?((?:[\w.,%-]|:\d+|\[[\da-fA-F:.]*\])*(?:/[\w.%-]*)?)(?:\?[^@\s]*)?"
)
"""Scheme, user, password, place; what follows may hold a password as well."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def checked_name(name: str) -> str:
    """A crawl's name, which is that of its schema."""
    if (
        not _NAME.fullmatch(name)
        or name.startswith("pg_")
        or name in ("public", "information_schema")
    ):
        raise UsageError(
            f"--crawl-name {name!r} is not a name for a crawl: lower-case letters, digits and _, at most 63 of them"
        )
    return name


def redacted(url: str) -> str:
    """A URL without its password, nor anything that could be a part of one: what is not plain is not shown."""
    plain = _PLAIN_URL.fullmatch(url)
    if plain is None:
        return "postgresql://***" if re.search("[:=@]", url) else url
    scheme, user, password, place = plain.groups()
    before = f"{user}:***@" if password else f"{user}@" if user else ""
    return f"{scheme}{before}{place}"
