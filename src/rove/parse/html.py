"""Reads HTML pages: title, text, links and robots directives.

This is the hot path: one pass in Python over the elements with links, everything else in the parser's C code.

The text is all of <body> except
- script, style, template and noscript ("enable JavaScript" is of no use to readers of the text);
- drawings and formulas (svg, math), embedded objects with their fallbacks (iframe, object, audio, video, canvas), form
  fields and their choices (select, datalist, textarea);
- elements with the `hidden` attribute. Style sheets are not read, so text that they hide stays.
Blocks, table cells and buttons are on lines of their own, and a space separates two links that follow each other. Of a
page of frames, the text is that of <noframes>.

Links come from the whole page, shown or not, except from scripts, templates and noscript. The pages in frames and
iframes are links, too.

A page that says `nofollow` has no links, refreshes and canonical links included. The large search engines document a
refresh as a redirect and `nofollow` as a rule for links, but not the two together. A site that combines them probably
does not want robots to follow the refresh.

The amount of HTML, text and links is limited. The marks of a document say which of them were cut, and whether it is a
bot wall or an application shell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rove.model.languages import Language
from rove.model.marks import Mark
from rove.model.usage import Statement, UsageSource
from rove.parse.charset import decode
from rove.parse.directives import AGENTS, Directives, read_headers, read_metas
from rove.parse.language import languages_of
from rove.parse.links import followed, refresh_target, resolve
from rove.parse.shells import LONGEST_SHELL, MOST_TAGS, shell_of
from rove.parse.text import BREAK, keep_lines, tidy, tidy_line
from rove.parse.whatwg import MAX_TAGS, Element, Namespace, Tree, parse
from rove.policy.challenges import LONGEST_WALL, is_challenge_page
from rove.policy.constants import DEFAULT_MAX_LINKS, DEFAULT_MAX_PARSED_SIZE
from rove.policy.pacing import reading_seconds
from rove.policy.usage import TDM_NAMES, noai, tdm
from rove.urls.canonical import CrawlUrl, UrlForm

MAX_TITLE_LENGTH = 1_000
MAX_TEXT_LENGTH = 1024 * 1024
MAX_TDM_METAS = 8
"""Statements about the use of a page that are taken from its meta elements."""


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
    """What was cut, and what kind of page it is."""
    languages: tuple[Language, ...] = ()
    """Of the text, the most frequent one first."""
    usage: tuple[Statement, ...] = ()
    """What the page and its X-Robots-Tag state about its use."""
    reading_seconds: float = 0.0
    """Estimated CPU time for reading the page."""

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
    max_parsed: int = DEFAULT_MAX_PARSED_SIZE
    """Bytes of the body that are read."""


_FRAMES = frozenset({"frame", "iframe"})
_LINKS = frozenset({"a", "area", "link", *_FRAMES})
_OTHERS = ("meta", "base", "title", "noframes", "template")
"""Titles and noframes of drawings and formulas do not count. They may be nested, so that each has the text of the next.
"""


@dataclass(slots=True)
class _Gathered:
    """What the pass over the elements collects: links, robots rules and more."""

    title: str | None = None
    hrefs: list[str] = field(default_factory=list)
    base_href: str | None = None
    robots: list[str] = field(default_factory=list)
    usage: list[Statement] = field(default_factory=list)
    """What meta elements of the TDM Reservation Protocol state."""
    without_frames: list[str] = field(default_factory=list)
    """The <noframes> elements, which have the text for browsers without frames."""
    is_cut: bool = False
    """Not all links were looked at."""


def read_html(page: PageSource, form: UrlForm) -> Document:
    """Read an HTML page. Any bytes give a Document."""
    text, encoding, is_cut = _decoded(page)
    tree = parse(text)
    gathered = _gather(tree, len(text))
    unframed = None
    if without_frames := "".join(gathered.without_frames):
        unframed = parse(without_frames)
        gathered.hrefs += _gather(unframed, len(text)).hrefs
    from_headers = read_headers(page.robots_tags, now=page.now)
    from_metas = read_metas(gathered.robots, now=page.now)
    directives = from_headers | from_metas
    texts = tree.take_texts(keep_lines)
    if texts is None and unframed is not None:
        texts = unframed.take_texts(keep_lines)
    utf8 = tidy(BREAK.join(texts or []))
    is_challenged = len(utf8) < LONGEST_WALL and is_challenge_page(text)
    shell = None
    if len(utf8) < 4 * LONGEST_SHELL and len(utf8.decode()) < LONGEST_SHELL and tree.tags <= MOST_TAGS:
        shell = shell_of(text)
        if shell is not None:
            utf8 = tidy(BREAK.join(dict.fromkeys([*(texts or []), *shell.data_texts()])))
    utf8, text_is_cut = _cut(utf8, page.max_text)
    links: tuple[CrawlUrl, ...] = ()
    links_are_cut = False
    if not directives.nofollow:
        links, links_are_cut = resolve(
            gathered.hrefs,
            url=page.url,
            base_href=gathered.base_href,
            form=form,
            limit=page.max_links,
            encoding=encoding,
        )
    marks = {
        Mark.PARSE_CUT: is_cut or tree.is_cut,
        Mark.TEXT_CUT: text_is_cut,
        Mark.LINKS_CUT: links_are_cut or (gathered.is_cut and not directives.nofollow),
        Mark.JS_SHELL: shell is not None,
        Mark.CHALLENGED: is_challenged,
    }
    return Document(
        title=tidy_line(gathered.title or "", MAX_TITLE_LENGTH),
        utf8=utf8,
        links=links,
        noindex=directives.noindex,
        nofollow=directives.nofollow,
        marks=tuple(mark for mark, applies in marks.items() if applies),
        languages=languages_of(utf8),
        usage=(
            *_noai(from_headers, UsageSource.X_ROBOTS_TAG),
            *_noai(from_metas, UsageSource.META_ROBOTS),
            *gathered.usage,
        ),
        reading_seconds=reading_seconds(characters=len(text), tags=min(tree.tags, MAX_TAGS)),
    )


def read_plain(page: PageSource) -> Document:
    """Read a plain text, with its lines and indents."""
    text, _, is_cut = _decoded(page)
    utf8, text_is_cut = _cut(tidy(keep_lines(text)), page.max_text)
    directives = read_headers(page.robots_tags, now=page.now)
    cuts = {Mark.PARSE_CUT: is_cut, Mark.TEXT_CUT: text_is_cut}
    return Document(
        title="",
        utf8=utf8,
        links=(),
        noindex=directives.noindex,
        nofollow=directives.nofollow,
        marks=tuple(mark for mark, is_cut in cuts.items() if is_cut),
        languages=languages_of(utf8),
        usage=_noai(directives, UsageSource.X_ROBOTS_TAG),
        reading_seconds=reading_seconds(characters=len(text), tags=0),
    )


def _noai(directives: Directives, source: UsageSource) -> tuple[Statement, ...]:
    return tuple(noai(source, text=directives.noai, images=directives.noimageai))


def _decoded(page: PageSource) -> tuple[str, str, bool]:
    """Decode as much of a body as may be read; also return its encoding, and whether that is less than all."""
    if len(page.body) <= page.max_parsed:
        return *decode(page.body, page.content_type), False
    text, encoding = decode(page.body[: page.max_parsed], page.content_type)
    return text.rstrip("\ufffd"), encoding, True  # the last character may be incomplete


def _cut(utf8: bytes, length: int) -> tuple[bytes, bool]:
    """Cut a text to `length` characters; also return whether it was longer."""
    if len(utf8) <= length:  # a character has at least one byte
        return utf8, False
    text = utf8.decode()
    return (utf8, False) if len(text) <= length else (text[:length].rstrip().encode(), True)


def _gather(tree: Tree, length: int) -> _Gathered:
    """Collect what is of interest in a page with this many characters."""
    gathered = _Gathered()
    links: list[str] = []
    left = length
    for element in tree.elements(*_LINKS, *_OTHERS):
        tag = element.tag
        if tag not in _LINKS:
            if tag == "template":
                tree.remove_templates()
                return _gather(tree, length)
            _read_other(element, gathered)
        elif not gathered.is_cut:
            attribute = element.attr
            href = attribute("href") or (attribute("src") if tag in _FRAMES else None)
            if not href:
                continue
            rel = attribute("rel")
            # The parser copies links that are left open, so that they could be longer together than the page.
            left -= len(href) + len(rel or "")
            if left < 0:
                gathered.is_cut = True
            elif (not rel or followed(rel)) and (tag != "link" or _points_on(rel)):
                links.append(href)
    gathered.hrefs += links  # after the refreshes
    return gathered


def _read_other(element: Element, gathered: _Gathered) -> None:
    match element.tag:
        case "meta":
            _read_meta(element, gathered)
        case "base" if gathered.base_href is None:
            gathered.base_href = element.attr("href")
        case "title" if gathered.title is None and element.namespace is Namespace.HTML:
            gathered.title = element.text
        case "noframes" if element.namespace is Namespace.HTML:
            gathered.without_frames.append(element.text)


def _points_on(rel: str | None) -> bool:
    """Whether a <link> with this rel attribute leads to a page."""
    words = (rel or "").lower().split()
    return "next" in words or "canonical" in words


def _read_meta(meta: Element, gathered: _Gathered) -> None:
    content = meta.attr("content")
    if not content:
        return
    name = (meta.attr("name") or "").strip().lower()
    if name in AGENTS:
        gathered.robots.append(content)
    elif name in TDM_NAMES:
        if len(gathered.usage) < MAX_TDM_METAS:
            gathered.usage += tdm(name, content, UsageSource.TDM_META)
    elif (meta.attr("http-equiv") or "").strip().lower() == "refresh":
        target = refresh_target(content)
        if target:
            gathered.hrefs.append(target)
