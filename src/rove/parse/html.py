"""Reads HTML pages: title, text, links and robots directives.

This is the hot path: one pass in Python over the elements, everything else in the parser's C code. The pass unwraps
inline elements (their text stays) and removes elements that are not shown. Only blocks then separate texts.

The text is all of <body> except
- script, style, template and noscript ("enable JavaScript" is of no use to readers of the text);
- drawings and formulas (svg, math), embedded objects with their fallbacks (iframe, object, audio, video, canvas), form
  fields and their choices (select, datalist, textarea);
- elements with the `hidden` attribute. Style sheets are not read, so text that they hide stays.
Blocks, table cells, buttons and elements unknown to HTML are on lines of their own.

Links come from the whole page, shown or not, except from scripts, templates and noscript. The page is parsed as by a
browser with scripts, because otherwise the content of noscript could end the head too early.

A page that says `nofollow` has no links, refreshes and canonical links included. The large search engines document a
refresh as a redirect and `nofollow` as a rule for links, but not the two together. A site that combines them probably
does not want robots to follow the refresh.

The amount of text and links is limited. The marks of a document say which of them were cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from selectolax.lexbor import LexborCSSSelector, LexborDocumentOptions, LexborHTMLParser, LexborNode

from rove.model.marks import Mark
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

_OPTIONS = LexborDocumentOptions.WO_EVENTS.value
_SELECTOR = LexborCSSSelector()  # type: ignore[no-untyped-call]
"""Shared by all pages, which are read in one thread. Without it every tree would create its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The parts of one page that rove uses."""

    title: str
    utf8: bytes
    """The text in UTF-8, as it is stored."""
    links: tuple[CrawlUrl, ...]
    noindex: bool
    nofollow: bool
    marks: tuple[str, ...] = ()
    """The parts that were cut."""

    @property
    def text(self) -> str:
        """Decode the text."""
        return self.utf8.decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """A response body with everything that is needed to read it."""

    body: bytes
    url: str
    content_type: str | None
    robots_tags: Sequence[str] = ()
    """The values of the X-Robots-Tag headers."""
    now: float = 0.0
    """Current time in seconds since the epoch, compared with `unavailable_after` dates."""
    max_links: int = DEFAULT_MAX_LINKS
    max_text: int = MAX_TEXT_LENGTH
    drop_params: tuple[str, ...] = ()

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters to remove from its links."""
        return ignored_params_with(self.drop_params)


class _TooManyNodes(Exception):
    """The page has too many elements for the event loop."""


# Kinds of elements. Every element that is not listed is a block, also one unknown to HTML.
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
    """Map the parser's tag numbers, which are quicker to read than names, to kinds."""
    tree = LexborHTMLParser("<p><!-- --></p>")
    kinds = {tree.create_node(tag).tag_id: k for k, tags in _TAGS.items() for tag in tags.split()}
    comments = [node for node in _root(tree).traverse() if node.is_comment_node]
    return kinds | {comment.tag_id: _DROPPED for comment in comments}


def _root(tree: LexborHTMLParser) -> LexborNode:
    root = tree.root
    assert root is not None, "the parser creates an <html> for any input"
    return root


_KINDS = _kinds_by_id()


@dataclass(slots=True)
class _Gathered:
    """The links, robots rules and preformatted blocks that the pass over the elements collects."""

    hrefs: list[str] = field(default_factory=list)
    base_href: str | None = None
    robots: list[str] = field(default_factory=list)
    preformatted: list[LexborNode] = field(default_factory=list)


def read_html(page: PageSource) -> Document:
    """Read an HTML page. Any bytes give a Document, but some take minutes."""
    return _read(to_utf8(page.body, page.content_type), page, max_nodes=None)


def read_html_at_once(page: PageSource) -> Document | None:
    """Read an HTML page, or return None if that may take long."""
    if len(page.body) > MAX_PLAIN_BYTES:
        return None
    raw = to_utf8(page.body, page.content_type)
    if not is_plain(raw):
        return None
    try:
        return _read(raw, page, max_nodes=MAX_PLAIN_NODES)
    except _TooManyNodes:
        return None


def read_plain(page: PageSource) -> Document:
    """Read a plain text, with its lines and indents."""
    text = keep_lines(decode(page.body, page.content_type))
    utf8, is_cut = _cut(tidy(text), page.max_text)
    directives = read_headers(page.robots_tags, now=page.now)
    return Document(
        title="",
        utf8=utf8,
        links=(),
        noindex=directives.noindex,
        nofollow=directives.nofollow,
        marks=(Mark.TEXT_CUT,) if is_cut else (),
    )


def read_plain_at_once(page: PageSource) -> Document | None:
    """Read a plain text, or return None if that may take long."""
    return None if len(page.body) > MAX_PLAIN_BYTES else read_plain(page)


def _read(raw: bytes, page: PageSource, *, max_nodes: int | None) -> Document:
    """Read a page in UTF-8; raise _TooManyNodes if it has `max_nodes` elements or more."""
    tree = LexborHTMLParser(raw, options=_OPTIONS, scripting=True)
    nodes = list(islice(_root(tree).traverse(), max_nodes))
    if len(nodes) == max_nodes:
        raise _TooManyNodes
    title = _title(tree)
    gathered = _gather(tree, nodes)
    directives = read_headers(page.robots_tags, now=page.now)
    directives |= read_metas(gathered.robots, now=page.now)
    utf8, text_is_cut = _cut(_text(tree, gathered.preformatted), page.max_text)
    links: tuple[CrawlUrl, ...] = ()
    links_are_cut = False
    if not directives.nofollow:
        links, links_are_cut = resolve(
            gathered.hrefs,
            url=page.url,
            base_href=gathered.base_href,
            limit=page.max_links,
            ignored=page.ignored_params,
        )
    cuts = {Mark.TEXT_CUT: text_is_cut, Mark.LINKS_CUT: links_are_cut}
    return Document(
        title=title,
        utf8=utf8,
        links=links,
        noindex=directives.noindex,
        nofollow=directives.nofollow,
        marks=tuple(mark for mark, is_cut in cuts.items() if is_cut),
    )


def _cut(utf8: bytes, length: int) -> tuple[bytes, bool]:
    """Cut a text to `length` characters; also return whether it was longer."""
    if len(utf8) <= length:  # a character has at least one byte
        return utf8, False
    text = utf8.decode()
    return (utf8, False) if len(text) <= length else (text[:length].rstrip().encode(), True)


def _title(tree: LexborHTMLParser) -> str:
    # An element that is not allowed in a head ends it early, and then the title is in the body.
    in_head = () if tree.head is None else tree.head.iter()
    titles = (node for node in in_head if _KINDS.get(node.tag_id) == _TITLE)
    node = next(titles, None) or tree.css_first("title:not(svg *)")
    return "" if node is None else tidy_line(node.text(), MAX_TITLE_LENGTH)


def _gather(tree: LexborHTMLParser, nodes: list[LexborNode]) -> _Gathered:
    """Collect links, robots rules and preformatted blocks; leave only blocks and visible text in the tree."""
    gathered = _Gathered()
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
                gathered.hrefs.append(href)
            node.unwrap(True)
        elif kind in (_DROPPED, _TITLE):
            node.decompose(False)
        elif kind == _PREFORMATTED:
            gathered.preformatted.append(node)
        else:
            _read_head_element(kind, node.attributes, gathered)
            node.decompose(False)
    return gathered


def _drop_hidden(root: LexborNode) -> None:
    for node in _SELECTOR.find("[hidden]", root):
        # Some pages hide themselves until a script has run. "until-found" text can be searched and read.
        shown = node.tag in ("html", "body") or node.attributes["hidden"] == "until-found"
        if not shown:
            node.decompose(False)


def _read_head_element(kind: int, attributes: dict[str, str | None], gathered: _Gathered) -> None:
    href = attributes.get("href")
    if kind == _META:
        _read_meta(attributes, gathered)
    elif kind == _BASE:
        if gathered.base_href is None:
            gathered.base_href = href
    elif href and _points_on(attributes.get("rel")):
        gathered.hrefs.append(href)


def _points_on(rel: str | None) -> bool:
    """Whether a <link> with this rel attribute is followed."""
    words = (rel or "").lower().split()
    return ("next" in words or "canonical" in words) and followed(rel)


def _read_meta(attributes: dict[str, str | None], gathered: _Gathered) -> None:
    content = attributes.get("content")
    if not content:
        return
    if (attributes.get("name") or "").strip().lower() in AGENTS:
        gathered.robots.append(content)
    elif (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        target = refresh_target(content)
        if target:
            gathered.hrefs.append(target)


def _text(tree: LexborHTMLParser, preformatted: list[LexborNode]) -> bytes:
    body = tree.body
    if body is None:  # a page of frames
        return b""
    body.merge_text_nodes()
    _keep_lines_of(preformatted)
    return tidy(body.text(separator=BREAK, skip_empty=True))


def _keep_lines_of(blocks: list[LexborNode]) -> None:
    inside: set[int] = set()  # nested blocks are visited once, so that they do not take quadratic time
    for block in blocks:
        if block.mem_id in inside:
            continue
        for node in list(block.traverse(include_text=True)):
            content = node.text_content
            if content:
                node.replace_with(keep_lines(content))
            else:
                inside.add(node.mem_id)
