"""Tells the user that proxies in the environment are not used."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = ("http_proxy", "https_proxy", "all_proxy")


def proxy_note(environment: Mapping[str, str]) -> str | None:
    """Return a sentence if the environment names a proxy, without its value, which may hold a password."""
    names = sorted(name for name, value in environment.items() if name.lower() in _NAMES and value)
    if not names:
        return None
    return (
        f"{' and '.join(names)} in the environment: ignored, because rove connects to every site directly. Behind a "
        "proxy, rove could not check the address of a site or measure its answers"
    )
