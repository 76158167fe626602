"""A page as the crawl sees it: title, text, links, and what it asks of robots.

The hot path: one pass in Python over the elements, everything else in the parser's C code. That pass
takes inline elements out of the tree (their text stays), so that what then still separates two texts
is a block, and drops what is not shown.

What counts as text is all of <body> without
- script, style, template and noscript: who reads this text has no use for «enable JavaScript»;
- drawings and formulas (svg, math), embedded things and their fallbacks (iframe, object, audio,
  video, canvas), form fields and their choices (select, datalist, textarea);
- elements with the `hidden` attribute. Style sheets are not read, so other hidden text stays.
Blocks, table cells, buttons and elements unknown to HTML are on lines of their own.

Links are taken from the whole page, shown or not, but not from scripts, templates and noscript: that
is parsed as a browser with scripts does, since its content would otherwise end the head too early.

A page that says `nofollow` has no links. That goes for all that leads on from it, a refresh and a
canonical link too: the large engines document a refresh as a redirect and `nofollow` as a word about
links, but not what holds where both meet, and who sends people on with `nofollow` does not mean robots.

What is taken from a page is bounded; where something was cut, the document is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from selectolax.lexbor import (
    LexborCSSSelector,
    LexborDocumentOptions,
    LexborHTMLParser,
    LexborNode,
)

from rove.parse.charset import decode, to_utf8
from rove.parse.directives import AGENTS, read_headers, read_metas
from rove.parse.guard import MAX_PLAIN_BYTES, MAX_PLAIN_NODES, is_plain
from rove.parse.links import followed, refresh_target, resolve
from rove.parse.text import BREAK, keep_lines, tidy, tidy_line
from rove.policy.constants import DEFAULT_MAX_LINKS
from rove.urls.canonical import CrawlUrl
from rove.urls.ignored_params import IgnoredParams, ignored_params_with

MAX_TITLE_LENGTH = 1_000
MAX_TEXT_LENGTH = 1024 * 1024
LINKS_CUT = "links-cut"
TEXT_CUT = "text-cut"

_OPTIONS = LexborDocumentOptions.WO_EVENTS.value
_SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]
"""One for all pages, which are read in one thread: a tree that is asked makes one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was read from one page."""

    title: str
    utf8: bytes
    """The text, encoded as it is stored."""
    links: tuple[CrawlUrl, ...]
    noindex: bool
    nofollow: bool
    encoding: str
    marks: tuple[str, ...] = ()
    """What was cut."""

    @property
    def text(self) -> str:
        """The text, decoded for who wants to read it."""
        return self.utf8.decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """What a server sent, and all that is needed to read it."""

    body: bytes
    url: str
    content_type: str | None
    robots_tags: Sequence[str] = ()
    """The values of its X-Robots-Tag headers."""
    now: float = 0.0
    """Wall-clock seconds, against which dates after which it is not to be kept are held."""
    max_links: int = DEFAULT_MAX_LINKS
    max_text: int = MAX_TEXT_LENGTH
    drop_params: tuple[str, ...] = ()

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters removed from its links."""
        return ignored_params_with(self.drop_params)


class _TooManyNodes(Exception):
    """More elements than are read in the event loop."""


# What an element is to us; one that is in no list is a block, as are elements unknown to HTML.
_INLINE, _ANCHOR, _DROPPED, _TITLE, _META, _LINK, _BASE, _PREFORMATTED = range(1, 9)
_TAGS = {
    _INLINE: (
        "abbr acronym b bdi bdo big blink cite code data del dfn em embed font i img input"
        " ins kbd label map mark meter nobr output picture progress q rb rp rt rtc ruby s samp slot"
        " small source span strike strong sub sup time track tt u var wbr"
    ),
    _ANCHOR: "a area",
    _DROPPED: (
        "applet audio canvas datalist iframe math noembed noframes noscript object script select"
        " style svg template textarea video"
    ),
    _TITLE: "title",
    _META: "meta",
    _LINK: "link",
    _BASE: "base",
    _PREFORMATTED: "listing plaintext pre xmp",
}


def _kinds_by_id() -> dict[int, int]:
    """The kinds by the parser's numbers for tags, which are quicker to ask for than names."""
    tree = LexborHTMLParser("<p><!-- --></p>")
    kinds = {tree.create_node(tag).tag_id: k for k, tags in _TAGS.items() for tag in tags.split()}
    comments = [node for node in _root(tree).traverse() if node.is_comment_node]
    return kinds | {comment.tag_id: _DROPPED for comment in comments}


def _root(tree: LexborHTMLParser) -> LexborNode:
    root = tree.root
    assert root is not None, "the parser makes an <html> of anything"
    return root


_KINDS = _kinds_by_id()


@dataclass(slots=True)
class _Findings:
    """What the pass over the elements gathers."""

    hrefs: list[str] = field(default_factory=list)
    base_href: str | None = None
    robots: list[str] = field(default_factory=list)
    preformatted: list[LexborNode] = field(default_factory=list)


def read_html(answer: PageSource) -> Document:
    """What an HTML page says; any bytes make a Document, some of them after minutes."""
    raw, encoding = to_utf8(answer.body, answer.content_type)
    return _read(raw, encoding, answer, most=None)


def read_html_at_once(answer: PageSource) -> Document | None:
    """The same for a page that does not take long, and None for one that may."""
    if len(answer.body) > MAX_PLAIN_BYTES:
        return None
    raw, encoding = to_utf8(answer.body, answer.content_type)
    if not is_plain(raw):
        return None
    try:
        return _read(raw, encoding, answer, most=MAX_PLAIN_NODES)
    except _TooManyNodes:
        return None


def read_plain(answer: PageSource) -> Document:
    """What a plain text says; its lines and indents are kept."""
    decoded, encoding = decode(answer.body, answer.content_type)
    utf8, is_cut = _cut(tidy(keep_lines(decoded)), answer.max_text)
    asked = read_headers(answer.robots_tags, now=answer.now)
    return Document(
        title="",
        utf8=utf8,
        links=(),
        noindex=asked.noindex,
        nofollow=asked.nofollow,
        encoding=encoding,
        marks=(TEXT_CUT,) if is_cut else (),
    )


def read_plain_at_once(answer: PageSource) -> Document | None:
    """The same for a text that does not take long, and None for one that may."""
    return None if len(answer.body) > MAX_PLAIN_BYTES else read_plain(answer)


def _read(raw: bytes, encoding: str, answer: PageSource, *, most: int | None) -> Document:
    """What a page in UTF-8 says; _TooManyNodes if it has more elements than `most`."""
    tree = LexborHTMLParser(raw, options=_OPTIONS, scripting=True)
    nodes = list(islice(_root(tree).traverse(), most))
    if len(nodes) == most:
        raise _TooManyNodes
    title = _title(tree)
    found = _gather(tree, nodes)
    asked = read_headers(answer.robots_tags, now=answer.now)
    asked |= read_metas(found.robots, now=answer.now)
    utf8, text_is_cut = _cut(_text(tree, found.preformatted), answer.max_text)
    links: tuple[CrawlUrl, ...] = ()
    links_are_cut = False
    if not asked.nofollow:
        links, links_are_cut = resolve(
            found.hrefs,
            url=answer.url,
            base_href=found.base_href,
            limit=answer.max_links,
            ignored=answer.ignored_params,
        )
    cuts = {TEXT_CUT: text_is_cut, LINKS_CUT: links_are_cut}
    return Document(
        title=title,
        utf8=utf8,
        links=links,
        noindex=asked.noindex,
        nofollow=asked.nofollow,
        encoding=encoding,
        marks=tuple(mark for mark, is_cut in cuts.items() if is_cut),
    )


def _cut(utf8: bytes, length: int) -> tuple[bytes, bool]:
    """A text of at most so many characters, and whether it was longer."""
    if len(utf8) <= length:  # no character takes less than a byte
        return utf8, False
    text = utf8.decode()
    return (utf8, False) if len(text) <= length else (text[:length].rstrip().encode(), True)


def _title(tree: LexborHTMLParser) -> str:
    # What does not belong into a head ends it early, and the title then lies in the body.
    in_head = () if tree.head is None else tree.head.iter()
    titles = (node for node in in_head if _KINDS.get(node.tag_id) == _TITLE)
    node = next(titles, None) or tree.css_first("title:not(svg *)")
    return "" if node is None else tidy_line(node.text(), MAX_TITLE_LENGTH)


def _gather(tree: LexborHTMLParser, nodes: list[LexborNode]) -> _Findings:
    """Collect what the elements say, and leave only blocks and what is shown in the tree."""
    found = _Findings()
    _drop_hidden(_root(tree))
    for node in nodes:
        kind = _KINDS.get(node.tag_id)
        if kind is None:
            continue
        if kind == _INLINE:
            node.unwrap(True)
        elif kind == _ANCHOR:
            attributes = node.attributes
            href = attributes.get("href")
            rel = attributes.get("rel")
            if href and (not rel or followed(rel)):
                found.hrefs.append(href)
            node.unwrap(True)
        elif kind in (_DROPPED, _TITLE):
            node.decompose(False)
        elif kind == _PREFORMATTED:
            found.preformatted.append(node)
        else:
            _read_head_element(kind, node.attributes, found)
            node.decompose(False)
    return found


def _drop_hidden(root: LexborNode) -> None:
    for node in _SELECTOR.find("[hidden]", root):
        # Some pages hide themselves until a script has run; «until-found» can be found and read.
        shown = node.tag in ("html", "body") or node.attributes["hidden"] == "until-found"
        if not shown:
            node.decompose(False)


def _read_head_element(kind: int, attributes: dict[str, str | None], found: _Findings) -> None:
    href = attributes.get("href")
    if kind == _META:
        _read_meta(attributes, found)
    elif kind == _BASE:
        if found.base_href is None:
            found.base_href = href
    elif href and _points_on(attributes.get("rel")):
        found.hrefs.append(href)


def _points_on(rel: str | None) -> bool:
    """Whether a <link> with this rel attribute leads to a page to visit."""
    words = (rel or "").lower().split()
    return ("next" in words or "canonical" in words) and followed(rel)


def _read_meta(attributes: dict[str, str | None], found: _Findings) -> None:
    content = attributes.get("content")
    if not content:
        return
    if (attributes.get("name") or "").strip().lower() in AGENTS:
        found.robots.append(content)
    elif (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        target = refresh_target(content)
        if target:
            found.hrefs.append(target)


def _text(tree: LexborHTMLParser, preformatted: list[LexborNode]) -> bytes:
    body = tree.body
    if body is None:  # a page of frames
        return b""
    body.merge_text_nodes()
    _keep_lines_of(preformatted)
    return tidy(body.text(separator=BREAK, skip_empty=True))


def _keep_lines_of(blocks: list[LexborNode]) -> None:
    inside: set[int] = set()  # blocks in blocks: a page of these alone must not cost its square
    for block in blocks:
        if block.mem_id in inside:
            continue
        for node in list(block.traverse(include_text=True)):
            content = node.text_content
            if content:
                node.replace_with(keep_lines(content))
            else:
                inside.add(node.mem_id)
