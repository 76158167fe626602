"""What this process does, in a few words for those who see it from outside: the administrator of the database."""

from __future__ import annotations

_current = [""]


def begin(activity: str) -> None:
    """Say what this process does from now on, such as the name of its command."""
    _current[0] = activity


def current() -> str:
    """Return what this process does; '' if it has not said so."""
    return _current[0]
