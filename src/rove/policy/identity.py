"""How rove introduces itself to web servers."""

from __future__ import annotations

import re

from rove import __version__

_DOCUMENTATION = re.compile(r"(?:.+\.)?example\.(?:org|com|net)", re.IGNORECASE)

_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
    r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])"
)


def user_agent(email: str, info_url: str | None) -> str:
    """Return the User-Agent header: the name, the page about the crawl if there is one, and the e-mail address."""
    page = f"+{info_url}; " if info_url else ""
    return f"rove/{__version__} ({page}mailto:{email})"


def is_placeholder(email: str) -> bool:
    """Whether the address was copied from the documentation: nobody reads mail at example.org, .com or .net.

    >>> is_placeholder("you@example.org"), is_placeholder("me@mail.example.com"), is_placeholder("me@example.org.uk")
    (True, True, False)
    """
    return _DOCUMENTATION.fullmatch(email.rpartition("@")[2]) is not None


def is_plausible_email(text: str) -> bool:
    """Whether a webmaster could write to this address."""
    local, _, _ = text.partition("@")
    return (
        len(text) <= 254
        and _EMAIL.fullmatch(text) is not None
        and not local.startswith(".")
        and not local.endswith(".")
        and ".." not in local
    )
