"""Says which hosts an exclusion covers."""

from __future__ import annotations

import re

from rove.policy.exclusions import is_public_suffix
from rove.urls.domain import domain_of, is_address


def coverage_text(pattern: str, given: str) -> str:
    """Say which hosts a pattern covers; `given` is what the user wrote, perhaps a URL."""
    if pattern.startswith("="):
        return f"{pattern[1:]} alone, without its subdomains{_not_only(given)}"
    if "*" in pattern:
        return f"every host that matches {pattern}, and its subdomains"
    if is_public_suffix(pattern):
        return f"every domain below {pattern}, a public suffix"
    if is_address(pattern):
        return f"{pattern}{_not_only(given)}"
    name = domain_of(pattern)
    if name == pattern:
        return f"{pattern} and all its subdomains{_not_only(given)}"
    return f"{pattern} and its subdomains, but not the rest of {name}{_not_only(given)}"


def _not_only(given: str) -> str:
    """Return a note that the path of a URL does not count; '' if none was given."""
    path = re.sub(r"^=?([a-z]+://)?[^/?#]*", "", given.strip(), flags=re.IGNORECASE)
    return f" (all pages, not only {path})" if path.strip("/") else ""
