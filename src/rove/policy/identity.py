"""How rove introduces itself to web servers."""

from __future__ import annotations

import re

from rove import __version__

PROJECT_PAGE = "https://rove.example/about"

_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
    r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])"
)


def user_agent(email: str, info_url: str | None) -> str:
    """Return the User-Agent header: the name, a page about the crawl, and the operator's e-mail address."""
    return f"rove/{__version__} (+{info_url or PROJECT_PAGE}; mailto:{email})"


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
