"""The numbers and names that politeness is made of."""

from __future__ import annotations

import re

from rove import __version__

DEFAULT_DELAY = 70.0
"""Least seconds between two visits to one domain."""
VISIT_BUDGET = 180.0
"""Seconds that a visit may take from its claim on: waiting in the process, robots.txt and all hops."""
MAX_REQUESTS_PER_VISIT = 8
DEFAULT_REDIRECT_HOPS = 3
DEFAULT_MAX_LINKS = 2_000
"""Links that are taken from one page."""
"""Redirects inside a domain that a visit follows at once."""
MAX_ROBOTS_HOPS = 5
MAX_REDIRECT_CHAIN = 20
"""Redirects in a row, over all visits, before a chain is given up."""
ROBOTS_VALID_SECONDS = 86_400.0
PROJECT_PAGE = "https://rove.example/about"

_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
    r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])"
)


def user_agent(email: str, info_url: str | None) -> str:
    """What rove calls itself: its name, a page about it, and how to reach who runs it."""
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
