"""Finds the domain that a person probably meant.

A frontier may know millions of domains and has no index for similar names. So this asks for every name that one typing
error turns into the given one: about a thousand, with one query by key.
"""

from __future__ import annotations

import string
from collections.abc import Iterator

from rove.frontier.contract import FrontierReader
from rove.urls.canonical import UrlForm
from rove.urls.domain import domain_of

MOST_SUGGESTED = 3
LONGEST_NAME = 100
"""Longer names are not looked for, because each letter adds 76 candidates."""
_LETTERS = string.ascii_lowercase + string.digits + "-"
_ENDINGS = (
    "com",
    "org",
    "net",
    "de",
    "fr",
    "co.uk",
    "eu",
    "io",
    "info",
    "ru",
    "nl",
    "it",
    "es",
    "pl",
    "jp",
    "ch",
    "at",
)


async def similar_domains(reader: FrontierReader, name: str, form: UrlForm) -> list[str]:
    """Return known domains whose names differ from this one by a typing error or the ending, likeliest first."""
    if len(name) > LONGEST_NAME:
        return []
    candidates = [candidate for candidate in dict.fromkeys(_candidates(name)) if candidate != name]
    ids = {candidate: form.domain_id(domain_of(candidate)) for candidate in candidates}
    known = await reader.known_domains(ids.values())
    return [candidate for candidate, id in ids.items() if id in known][:MOST_SUGGESTED]


def _candidates(name: str) -> Iterator[str]:
    first, dot, ending = name.partition(".")
    yield from (f"{first}.{other}" for other in _ENDINGS)
    for word in _mistyped(first):
        yield f"{word}{dot}{ending}"
    for word in _mistyped(ending):
        yield f"{first}{dot}{word}"


def _mistyped(word: str) -> Iterator[str]:
    """Yield all words from which one typing error makes this word: letters swapped, missing, doubled or wrong."""
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    yield from (left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1)
    yield from (left + letter + right for left, right in splits for letter in _LETTERS)
    if len(word) > 1:
        yield from (left + right[1:] for left, right in splits if right)
    yield from (left + letter + right[1:] for left, right in splits if right for letter in _LETTERS)
