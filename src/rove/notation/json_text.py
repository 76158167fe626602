"""Writes values as JSON that neither a terminal nor a strict reader stumbles over."""

from __future__ import annotations

from typing import Any

import msgspec

from rove.notation.harmless import ascii_escapes, without_surrogates


def json_text(value: Any) -> bytes:
    r"""Return a value as JSON on one line, in UTF-8. Characters that a terminal would obey are written as escapes.

    >>> json_text({"title": "\u202eevil\ud800"})
    b'{"title":"\\u202eevil\xef\xbf\xbd"}'
    """
    try:
        json = msgspec.json.encode(value)
    except UnicodeEncodeError:
        json = msgspec.json.encode(_without_surrogates(value))
    return ascii_escapes(json)


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return without_surrogates(value)
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_surrogates(item) for item in value]
        case _:
            return value
