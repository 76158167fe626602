"""Application shells: pages whose content is made by scripts, and the text that they carry as data.

Frameworks put the data of the first view into the page (__NEXT_DATA__, __NUXT__), and many sites describe their
articles for search engines (JSON-LD).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain

import msgspec

from rove.parse.whatwg import Element, Namespace, Tree, parse

LONGEST_SHELL = 300
"""Characters of visible text."""
MOST_TAGS = 5_000
"""Shells have few tags. Pages with more are not parsed again."""
_ROOTS = "#root,#app,#__next,#__nuxt,app-root"
_MAX_ROOTS = 10
_DESCRIPTION = "application/ld+json"
_DATA_IDS = frozenset({"__NEXT_DATA__", "__NUXT_DATA__"})
_NUXT = "window.__NUXT__"
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_DESCRIBED = frozenset({"headline", "description", "articleBody", "text"})
_MAX_VALUES = 50_000
_SHORTEST_PROSE = 40
_FEWEST_SPACES = 4


@dataclass(frozen=True, slots=True)
class Shell:
    """A page whose content is made by scripts."""

    scripts: Sequence[Element]

    def data_texts(self) -> list[str]:
        """Return the texts in its data, one for each line."""
        strings = dict.fromkeys(_strings(self.scripts))
        if not strings:
            return []
        # A string may be plain text or HTML.
        pieces = (text if "</" in text or "<p>" in text or "<br" in text else escape(text) for text in strings)
        return parse("<p>" + "<p>".join(pieces)).take_texts(lambda text: text) or []


def shell_of(html: str) -> Shell | None:
    """Return the shell if a page with little text has an empty root for an application or asks for JavaScript.

    This parses the page again, because the tree that its text was taken from has lost its scripts.
    """
    tree = parse(html)
    tree.remove_templates()
    hidden = tree.take_hidden()
    # They may be nested, and then each contains the text of the next ones.
    if any(not root.text.strip() for root in tree.select(_ROOTS)[:_MAX_ROOTS]) or any(
        "javascript" in noscript.text.lower() for noscript in _named("noscript", tree, hidden)
    ):
        return Shell(list(_named("script", tree, hidden)))
    return None


def _named(name: str, tree: Tree, hidden: Iterable[Element]) -> Iterator[Element]:
    """Yield the elements with a name, without those in drawings and formulas, which may contain each other."""
    for element in chain(tree.elements(name), hidden):
        if element.tag == name and element.namespace is Namespace.HTML:
            yield element


def _strings(scripts: Iterable[Element]) -> Iterator[str]:
    for script in scripts:
        is_description = (script.attr("type") or "").lower() == _DESCRIPTION
        if is_description or script.attr("id") in _DATA_IDS:
            yield from _prose(script.text, described_only=is_description)
    for script in scripts:
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
