"""Application shells: pages whose content is made by scripts, and the text that they carry as data.

Frameworks put the data of the first view into the page (__NEXT_DATA__, __NUXT__), and many sites describe their
articles for search engines (JSON-LD).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

import msgspec

from rove.parse.whatwg import Tree, parse

LONGEST_SHELL = 300
"""Characters of visible text."""
_ROOTS = "#root,#app,#__next,#__nuxt,app-root"
_MAYBE = re.compile(r"\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt)\b|<app-root\b|<noscript\b", re.IGNORECASE)
_DATA = "script[type='application/ld+json'],#__NEXT_DATA__,#__NUXT_DATA__"
_NUXT = "window.__NUXT__"
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_DESCRIBED = frozenset({"headline", "description", "articleBody", "text"})
_MAX_VALUES = 50_000
_SHORTEST_PROSE = 40
_FEWEST_SPACES = 4


def is_shell(html: str) -> bool:
    """Whether a page with little visible text has an empty root for an application, or asks for JavaScript."""
    if not _MAYBE.search(html):
        return False
    tree = parse(html)
    if any(not root.text.strip() for root in tree.select(_ROOTS)):
        return True
    return any("javascript" in noscript.text.lower() for noscript in tree.elements("noscript"))


def data_texts(html: str) -> list[str]:
    """Return the texts in the data of a shell, one for each line."""
    strings = dict.fromkeys(_strings(parse(html)))
    if not strings:
        return []
    # A string may be plain text or HTML.
    pieces = (string if "</" in string or "<p>" in string or "<br" in string else escape(string) for string in strings)
    return parse("<p>" + "<p>".join(pieces)).take_texts(lambda text: text) or []


def _strings(tree: Tree) -> Iterator[str]:
    for script in tree.select(_DATA):
        is_description = script.attr("type") == "application/ld+json"
        yield from _prose(script.text, described_only=is_description)
    for script in tree.elements("script"):
        code = script.text
        if _NUXT in code:
            yield from _prose(f"[{','.join(_STRING.findall(code)[:_MAX_VALUES])}]", described_only=False)


def _prose(json: str, *, described_only: bool) -> Iterator[str]:
    """Yield the strings of some JSON that are sentences, in its order."""
    try:
        values: list[object] = [msgspec.json.decode(json)]
    except (msgspec.DecodeError, RecursionError):
        return
    for _ in range(_MAX_VALUES):
        if not values:
            return
        value = values.pop()
        if isinstance(value, dict):
            values.extend(
                item
                for key, item in reversed(value.items())
                if key in _DESCRIBED or not described_only or not isinstance(item, str)
            )
        elif isinstance(value, list):
            values.extend(item for item in reversed(value) if not described_only or not isinstance(item, str))
        elif isinstance(value, str) and _is_prose(value):
            yield value


def _is_prose(text: str) -> bool:
    """Whether a string is made for people to read."""
    if len(text) < _SHORTEST_PROSE or text.lstrip()[:1] in "{[":
        return False
    # Chinese and Japanese have no spaces.
    return text.count(" ") >= _FEWEST_SPACES or (not text.isascii() and len(text.encode()) > 2 * len(text))
