"""The WHATWG's algorithms: legacy decoders and the HTML parser. Only this module uses turbohtml.

The parser holds the GIL and cannot be stopped, so a page must not be able to make it slow. It takes linear time, with
two exceptions, which `parse` takes out of a page first:

- Formatting elements that are left open (<b>, <font>, <a>) are created again in every following block, with all their
  attributes.
- Every further <html> and <body> copies all attributes that were collected so far.

If a page has too many of such tags, they get other names: <span>, and <area> for <a>. The text and the links stay the
same, because all these elements are inline. A page with more than MAX_TAGS is cut, which bounds its elements and so its
memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import turbohtml
import turbohtml.detect  # registers the decoders
from turbohtml import Document, Element, Namespace, ProcessingInstruction, Text
from turbohtml.clean import strip_comments_node

__all__ = ["MAX_TAGS", "Element", "Namespace", "Tree", "decode_as", "parse"]

MAX_TAGS: Final = 60_000
"""Long pages have several times fewer tags."""
MAX_COPIES: Final = 100_000
"""Elements that a page may make the parser copy, by a bound that counts every formatting tag for every other tag."""
MAX_ATTRIBUTES: Final = 16
"""Attributes of a tag that may be copied."""
MAX_ROOTS: Final = 20
"""Tags of <html> and <body>."""


def _any_case(pattern: str) -> str:
    """Return a pattern of names in lower case for any case, which is quicker than a flag for the whole pattern."""
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", pattern)


_FORMATTING = _any_case("b(?:ig)?|i|u|s(?:mall|tr(?:ong|ike))?|em|tt|font|code|nobr")
_ROOT = _any_case("html|body")
# How browsers read a tag from its name on; at the end of the text there is no tag. Quantifiers are possessive, so that
# a search takes linear time. HTML's blanks do not include the vertical tab.
_TAG_END = r"""
(?: [_/]*+ [^_/>][^_/>=]*+ (?: [_]*+ = [_]*+ (?: "[^"]*+(?:"|\Z) | '[^']*+(?:'|\Z) | [^_>"'][^_>]*+ )?+ )?+
){0,ATTRIBUTES}+ [_/]*+ (?: > | \Z )
"""


def _tags(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which _ stands for HTML's blanks, and TAG_END for the rest of a tag with few attributes."""
    pattern = pattern.replace("TAG_END", _TAG_END.replace("ATTRIBUTES", str(MAX_ATTRIBUTES)))
    return re.compile(pattern.replace("_", r"\t\n\f\r\x20"), re.VERBOSE)


_PLAIN_REST = r"""(?: [_]++ [^_/<>="']++ (?: = (?: "[^"<]*+" | '[^'<]*+' | [^_<>="'`]++ ) )?+ )*+ [_]*+ >"""
"""The rest of a tag that the parser reads in the same way, whatever stands before it, because `<` ends everything. So a
tag in a comment cannot swallow the tags behind the comment."""
_LEFT_OPEN = rf"({_FORMATTING}) (?=[_/>]) (?! {_PLAIN_REST} [^<]*+ </\1[_]*+> )"
"""A formatting tag that is not closed after its text, which is the most frequent form."""
# The set of first letters makes the search quicker.
_NOTABLE: Final = _tags(
    rf"<(?=[?aAbBcCeEfFhHiInNsStTuU]) (?: {_LEFT_OPEN} [_/>] | ({_ROOT}) [_/] | [aA] ([_/]) (?!TAG_END) | (\?) )"
)
"""A tag that may be copied: a formatting tag that is left open, one of <html> or <body>, or <a> if it may have too many
attributes. Or the start of a processing instruction."""
_OPEN_TAG: Final = _tags(f"<{_LEFT_OPEN} ({_PLAIN_REST})?+")
"""A formatting tag that may be left open: its name, and the rest of the tag if that is plain."""
_IS_LONG: Final = _tags("(?!TAG_END)").match
"""Whether the rest of a tag may have more than MAX_ATTRIBUTES."""


def _renaming(names: str, other: str) -> Callable[[str], str]:
    """Return a function that gives other names to tags."""
    # Two patterns with literal replacements are much quicker than one that has to copy a slash.
    starts, ends = _tags(rf"<(?:{names})(?=[_/>])"), _tags(rf"</(?:{names})(?=[_/>])")
    return lambda text: ends.sub(f"</{other}", starts.sub(f"<{other}", text))


_rename_formatting: Final = _renaming(_FORMATTING, "span")
_rename_roots: Final = _renaming(_ROOT, "span")
_rename_links: Final = _renaming("[aA]", "area")

# The most frequent names come first, because each element is compared with them one by one.
_BLOCKS: Final = (
    "div li p ul td br h3 tr h2 button section h4 article table nav tbody header footer h1 form ol h5 aside figure dd"
    " dt main h6 hr address blockquote body caption center col colgroup details dialog dir dl fieldset figcaption"
    " frameset head hgroup html legend listing marquee menu optgroup option plaintext pre search summary tfoot th thead"
    " xmp"
)
_FREQUENT_INLINE: Final = "a span i img b strong input label em small source picture abbr u sup font"
_DROPPED: Final = (
    "applet audio base canvas datalist iframe link math meta noembed noframes noscript object rp rt rtc script select"
    " style svg template textarea title video"
)
_PREFORMATTED: Final = ("listing", "plaintext", "pre", "xmp")


def _selector(names: str) -> str:
    return ",".join(names.split())


# Pages that hide themselves until a script has run hide <body>, and this pattern is only applied below <body>. Text
# that is "until-found" can be searched and read.
_NOT_SHOWN: Final = f"{_selector(_DROPPED)},[hidden]:not([hidden=until-found])"
_INLINE: Final = (_selector(_FREQUENT_INLINE), f":not({_selector(_BLOCKS)})")
"""Two selectors are quicker than one. Elements unknown to HTML are inline, as in browsers."""


def decode_as(name: str, raw: bytes) -> str:
    """Decode bytes by one of the WHATWG's encodings; bytes that it does not define become U+FFFD."""
    # Python's own decoder for UTF-8 does the same.
    return raw.decode("utf-8" if name == "utf-8" else f"whatwg-{name}", "replace")


def parse(text: str) -> Tree:
    """Parse a page as a browser with scripts does, because otherwise the content of noscript could end the head."""
    tags = text.count("<")
    is_cut = tags > MAX_TAGS
    if is_cut:
        text = text[: -1 - len(text.split("<", MAX_TAGS + 1)[-1])]
    text, has_instructions = _without_copies(text, min(tags, MAX_TAGS))
    document = turbohtml.parse(text, positions=False, scripting=True, allow_declarative_shadow_roots=False)
    return Tree(document, tags=tags, has_instructions=has_instructions, is_cut=is_cut)


def _without_copies(text: str, tags: int) -> tuple[str, bool]:
    """Rename the tags that the parser would copy too often; also return whether there are processing instructions."""
    formatting, roots, is_long, has_long_a, has_instructions = 0, 0, False, False, False
    for notable in _NOTABLE.finditer(text):
        match notable.lastindex:
            case 1:
                formatting += 1
                is_long = is_long or (text[notable.end() - 1] != ">" and _IS_LONG(text, notable.end()) is not None)
            case 2:
                roots += 1
            case 3:
                has_long_a = True
            case _:
                has_instructions = True
    if has_long_a:
        text = _rename_links(text)
    if is_long or (formatting * tags > MAX_COPIES and _most_open(text) * tags > MAX_COPIES):
        text = _rename_formatting(text)
    if roots > MAX_ROOTS:
        text = _rename_roots(text)
    return text, has_instructions


def _most_open(text: str) -> int:
    """Return how many formatting elements may be left open at most. Of identical ones, browsers remember three."""
    left_open = Counter(_OPEN_TAG.findall(text))
    return sum(min(times, 3) if rest else times for (_, rest), times in left_open.items())


class Tree:
    """A parsed page."""

    __slots__ = ("_document", "_has_instructions", "is_cut", "tags")

    def __init__(self, document: Document, *, tags: int, has_instructions: bool, is_cut: bool) -> None:
        self._document = document
        self._has_instructions = has_instructions
        self.tags = tags
        """A bound of the number of tags in the page."""
        self.is_cut = is_cut
        """The page had too many tags."""

    def elements(self, *names: str) -> Iterator[Element]:
        """Yield the elements with these names in their order, without those in scripts and noscript."""
        return self._document.iter_elements(names)

    def remove_templates(self) -> None:
        """Remove what scripts may make elements from."""
        self._document.remove("template")

    def select(self, selector: str) -> list[Element]:
        """Return the elements that match a CSS selector."""
        return self._document.select(selector)

    def take_hidden(self) -> list[Element]:
        """Remove what is not shown from <body>, and return it in its order, nested elements included."""
        body = self._body()
        if body is None:
            return []
        hidden = body.select(_NOT_SHOWN)
        for element in hidden:
            element.decompose()
        return hidden

    def take_texts(self, keep_lines: Callable[[str], str]) -> list[str] | None:
        """Return the visible texts of <body>, one for each line; None if the page consists of frames.

        Preformatted texts are passed through `keep_lines`. The tree loses everything else, so use it last.
        """
        body = self._body()
        if body is None:
            return None
        body.remove(_NOT_SHOWN)
        strip_comments_node(body)
        if self._has_instructions:
            for node in list(body.descendants):
                if isinstance(node, ProcessingInstruction):
                    node.decompose()
        for link in body.select("a + a"):
            if isinstance(link.previous_sibling, Element):
                link.insert_before(Text(" "))
        for inline in _INLINE:
            body.strip_tags(inline)
        body.normalize()
        self._keep_lines_of(body, keep_lines)
        return list(body.strings)

    def _body(self) -> Element | None:
        return next(self._document.iter_elements("body"), None)

    @staticmethod
    def _keep_lines_of(body: Element, keep_lines: Callable[[str], str]) -> None:
        inside: set[Element] = set()  # nested blocks are visited once, so that they do not take quadratic time
        for block in body.iter_elements(_PREFORMATTED):
            if block in inside:
                continue
            for node in block.descendants:
                if isinstance(node, Text):
                    node.data = keep_lines(node.data)
                elif isinstance(node, Element):
                    inside.add(node)
