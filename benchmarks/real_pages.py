"""Pages like those of the real web, made at random after the figures of real pages (page_figures.py).

A page is made of three parts, so that a server can compress two of them in advance. The first part is all up to the
start of the body, the second one the navigation, with the page's own name and its links with host names, and the third
one the rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice

from benchmarks.page_figures import Figures, figures_of
from benchmarks.page_words import Vocabulary, code, figurative, rules

# The share of each kind of link. The links with a host name are in the navigation.
ABSOLUTE, ELSEWHERE, FRAGMENT, NOT_WEB, FILE = 0.37, 0.15, 0.033, 0.026, 0.01
DIFFERENT = 0.8
"""Share of the links of a page that are no copies of others."""
OWN_HOST = b"OWN.HOST"
"""Stands for the host's name in the navigation."""
NAME = b"OWN.NAME"
"""Stands for the name of the page, in the title and the heading."""
_LEGACY = {17: "iso-8859-1", 83: "iso-8859-1", 131: "windows-1250", 151: "iso-8859-1"}
"""Templates of 200 that are not in UTF-8."""
_UNDECLARED = frozenset({29, 71, 113, 173})
"""Templates of 200 that declare no encoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A page in three parts. The second one becomes that of a page with `navigation_of`."""

    content_type: str
    head: bytes
    navigation: bytes
    rest: bytes
    other_hosts: int
    """The number of other hosts that the page links to."""
    links_elsewhere: int
    """The number of `%b` in the navigation, which stand for addresses at the other hosts."""

    def navigation_of(self, name: str, host: str, elsewhere: Sequence[bytes]) -> bytes:
        """Return the second part of the page with a name; `elsewhere` has an address at each of the other hosts."""
        count = self.links_elsewhere
        part = self.navigation % tuple(islice(cycle(elsewhere), count)) if count else self.navigation
        return part.replace(OWN_HOST, host.encode()).replace(NAME, name.encode())


def templates(seed: int, count: int, paths: Sequence[str], scheme: str) -> list[Template]:
    """Make pages whose links lead to `paths` of their own host, and to others."""
    return [
        _Maker(figures, number * 200 // count, random.Random(f"{seed} {number}"), paths, scheme).template()
        for number, figures in enumerate(figures_of(seed, count))
    ]


# How often an element has an attribute, and which lengths its values have.
_ATTRIBUTES: dict[str, tuple[tuple[str, float, int], ...]] = {
    "div": (("class", 0.91, 28), ("id", 0.136, 16), ("style", 0.06, 36), ("data-id", 0.12, 40), ("role", 0.02, 8)),
    "a": (("class", 0.41, 24), ("title", 0.18, 26), ("rel", 0.09, 12), ("id", 0.04, 16), ("data-path", 0.12, 40)),
    "li": (("class", 0.56, 40), ("id", 0.1, 16), ("data-item", 0.05, 5), ("role", 0.02, 8)),
    "span": (
        ("data-id", 0.1, 40),
        ("class", 0.71, 18),
        ("style", 0.1, 30),
        ("title", 0.03, 26),
        ("itemprop", 0.02, 7),
        ("onclick", 0.02, 80),
    ),
    "p": (("class", 0.26, 18), ("style", 0.05, 30)),
    "ul": (("class", 0.73, 24), ("id", 0.08, 16), ("role", 0.03, 8)),
    "td": (("align", 0.26, 5), ("class", 0.25, 16), ("width", 0.07, 3), ("valign", 0.06, 3)),
    "svg": (("class", 0.68, 24), ("viewBox", 0.45, 10), ("aria-hidden", 0.42, 4), ("xmlns", 0.41, 26)),
    "option": (("value", 0.95, 8),),
    "input": (("type", 0.97, 6), ("name", 0.8, 10), ("value", 0.5, 12), ("class", 0.6, 18), ("id", 0.4, 12)),
    "button": (("class", 0.85, 28), ("type", 0.6, 6), ("aria-label", 0.4, 18)),
    "img": (("alt", 0.79, 22), ("class", 0.59, 28), ("width", 0.42, 3), ("height", 0.38, 3), ("srcset", 0.1, 300)),
    "source": (("srcset", 0.95, 180), ("media", 0.6, 20), ("type", 0.5, 10)),
}
_USUAL = (("class", 0.5, 20), ("id", 0.05, 14))
_WRAPPERS = ("div",) * 14 + ("section", "article", "aside", "header", "nav", "main")


class _Maker:
    """Makes one page."""

    def __init__(self, figures: Figures, number: int, choice: random.Random, paths: Sequence[str], scheme: str) -> None:
        self._figures = figures
        self._choice = choice
        self._paths = paths
        self._scheme = scheme
        self._charset = _LEGACY.get(number, "utf-8")
        self._is_declared = number not in _UNDECLARED
        self._words = Vocabulary(choice)
        self._elements = self._links = self._text = self._entities = 0
        self._fullness = figures.attributes / 1.1
        lines = max(1, figures.elements)
        self._gap = "\n" + " " * min(400, max(0, figures.blanks // lines))
        self._seen: list[str] = []
        self._open: list[str] = []

    def template(self) -> Template:
        """Make the page."""
        head = self._head()
        wanted = round(self._figures.elements * self._figures.links)
        links_elsewhere = round(wanted * ELSEWHERE) if self._figures.other_hosts else 0
        navigation = self._navigation(wanted, links_elsewhere)
        body = self._body(wanted)
        type_header = f"text/html; charset={self._charset}" if self._choice.random() < 0.85 else "text/html"
        return Template(
            content_type=type_header if self._is_declared else "text/html",
            head=head.encode(self._charset, "xmlcharrefreplace"),
            navigation=navigation.encode("ascii", "xmlcharrefreplace"),
            rest=body.encode(self._charset, "xmlcharrefreplace"),
            other_hosts=min(self._figures.other_hosts, links_elsewhere),
            links_elsewhere=links_elsewhere,
        )

    def _tag(self, name: str, fixed: str = "") -> str:
        """Return a start tag with attributes."""
        self._elements += 1
        random_number, words = self._choice.random, self._words
        parts = [name, fixed] if fixed else [name]
        for attribute, share, length in _ATTRIBUTES.get(name, _USUAL):
            if random_number() < share * self._fullness:
                parts.append(f'{attribute}="{words.value(attribute, length)}"')
        return f"<{' '.join(parts)}>"

    def _prose(self, length: int) -> str:
        text = self._words.prose(length)
        self._text += len(text)
        due = self._figures.entities * self._text // max(1, self._figures.text) - self._entities
        if due > 0:
            blanks = min(due, text.count(" "))
            text = text.replace(" ", " &#8211;&nbsp;", blanks)
            self._entities += 2 * blanks
        return text

    # Before the body

    def _head(self) -> str:
        figures, choice, words = self._figures, self._choice, self._words
        small = min(1.0, figures.elements / 300)
        lines = ["<!DOCTYPE html>", '<html lang="en" class="no-js">', "<head>"]
        if self._is_declared:
            lines.append(f'<meta charset="{self._charset}">')
        for _ in range(round(24 * small)):
            kind = choice.choice(("name", "property"))
            lines.append(f'<meta {kind}="{words.name(12)}" content="{words.prose(choice.randrange(4, 108))}">')
        for _ in range(round(22 * small)):
            kind = choice.choice(("stylesheet", "preload", "icon", "dns-prefetch"))
            lines.append(f'<link rel="{kind}" id="{words.name(14)}" href="/assets/{figurative(choice, 60)}">')
        styles = self._split(figures.style, 6)
        lines += [f"<style>{rules(choice, size)}</style>" for size in styles]
        scripts = self._split((figures.script - figures.json) * 2 // 3, round(14 * small))
        lines += [f'<script type="text/javascript">{code(choice, size)}</script>' for size in scripts]
        for size in self._split(figures.json, 2):
            lines.append(
                f'<script type="application/json">{{"data": "{words.name(8)}", {_json(choice, size)}}}</script>'
            )
        self._elements += len(lines)
        return "\n".join(lines) + "\n"

    def _split(self, total: int, pieces: int) -> list[int]:
        if total <= 0:
            return []
        pieces = max(1, pieces)
        return [max(1, total // pieces)] * pieces

    # The navigation

    def _navigation(self, wanted: int, links_elsewhere: int) -> str:
        name = NAME.decode()
        head = [f"<title>{name} | {self._words.prose(30)}</title>", "</head>", self._tag("body"), self._tag("ul")]
        self._elements += 2
        own = f"{self._scheme}://{OWN_HOST.decode()}"
        items = [self._item(f"{own}{self._path()}") for _ in range(round(wanted * ABSOLUTE))]
        items += [self._item(f"{self._scheme}://%b", 'target="_blank" ') for _ in range(links_elsewhere)]
        self._links += len(items)
        self._choice.shuffle(items)
        return "\n".join([*head, *items, "</ul>", f"<h1>{name}</h1>"]) + "\n"

    def _item(self, url: str, more: str = "") -> str:
        return f"{self._tag('li')}{self._tag('a', f'{more}href={chr(34)}{url}{chr(34)}')}{self._prose(12)}</a></li>"

    def _path(self) -> str:
        """Return a path of the host: often one that the page has already, or one that most pages have."""
        choice = self._choice
        if self._seen and choice.random() > DIFFERENT:
            return choice.choice(self._seen)
        path = self._paths[int(len(self._paths) * choice.random() ** 2)]
        self._seen.append(path)
        return path

    # The rest of the body

    def _body(self, wanted: int) -> str:
        figures, choice = self._figures, self._choice
        lines: list[str] = []
        extras = self._extras()
        every = max(1, figures.elements // (len(extras) + 1))
        placed = 0
        while self._elements < figures.elements:
            self._nest(lines)
            done = self._elements / figures.elements
            if self._links < wanted * done:
                block: Callable[[], list[str]] = choice.choice((self._menu, self._menu, self._card))
            elif self._text < figures.text * done:
                block = self._paragraphs
            else:
                block = choice.choice((self._spans, self._spans, self._images, self._table, self._form, self._spans))
            lines += block()
            while placed < len(extras) and placed * every < self._elements:
                lines.append(extras[placed])
                placed += 1
        lines += extras[placed:]
        if self._text < figures.text:
            lines.append(f"{self._tag('p')}{self._prose(figures.text - self._text)}</p>")
        lines += [f"</{name}>" for name in reversed(self._open)]
        return self._gap.join(lines) + "\n</body>\n</html>\n"

    def _extras(self) -> list[str]:
        """Make what is no text: scripts, drawings and comments."""
        figures, choice = self._figures, self._choice
        small = min(1.0, figures.elements / 300)
        scripts = self._split((figures.script - figures.json) // 3, round(14 * small))
        extras = [f"<script>{code(choice, size)}</script>" for size in scripts]
        extras += [self._drawing(size) for size in self._split(figures.svg, figures.svg // 800)]
        comments = self._split(figures.comment, figures.comment // 56)
        extras += [f"<!-- {self._words.prose(size - 9)} -->" for size in comments]
        extras += [
            f'<iframe src="about:blank" title="{self._words.name(8)}"></iframe>' for _ in range(round(3 * small))
        ]
        choice.shuffle(extras)
        self._elements += len(scripts) + round(3 * small)
        return extras

    def _drawing(self, size: int) -> str:
        shapes = "".join(f'<path d="{figurative(self._choice, max(20, size // 2 - 60))}"/>' for _ in range(2))
        self._elements += 2
        return f"{self._tag('svg')}<g>{shapes}</g></svg>"

    def _nest(self, lines: list[str]) -> None:
        """Open or close containers."""
        choice = self._choice
        goal = choice.randrange(self._figures.depth // 3, max(3, self._figures.depth - 3))
        while len(self._open) > goal and choice.random() < 0.8:
            lines.append(f"</{self._open.pop()}>")
        while len(self._open) < goal and choice.random() < 0.75:
            name = choice.choice(_WRAPPERS)
            self._open.append(name)
            lines.append(self._tag(name))

    def _anchor(self, content: str) -> str:
        drawn = self._choice.random()
        inside = 1 - ABSOLUTE - ELSEWHERE
        self._links += 1
        if drawn < FRAGMENT / inside:
            href = f"#{self._words.name(10)}"
        elif drawn < (FRAGMENT + NOT_WEB) / inside:
            href = f"mailto:{self._words.name(6)}@mail.test"
        elif drawn < (FRAGMENT + NOT_WEB + FILE) / inside:
            href = f"/files/{self._words.name(16)}.pdf"
        else:
            href = self._path()
        return f"{self._tag('a', f'href={chr(34)}{href}{chr(34)}')}{content}</a>"

    def _menu(self) -> list[str]:
        choice = self._choice
        lines = [self._tag("ul")]
        for _ in range(choice.randrange(2, 12)):
            label = self._prose(choice.randrange(4, 24))
            if choice.random() < 0.3:
                label = f"{self._tag('span')}{label}</span>"
            lines.append(f"{self._tag('li')}{self._anchor(label)}</li>")
        return [*lines, "</ul>"]

    def _card(self) -> list[str]:
        choice = self._choice
        heading = choice.choice(("h2", "h3", "h3", "h4"))
        return [
            self._tag("div"),
            self._anchor(self._image()),
            self._tag("div"),
            f"{self._tag(heading)}{self._anchor(self._prose(choice.randrange(15, 70)))}</{heading}>",
            f"{self._tag('span')}{self._prose(10)}</span>",
            "</div></div>",
        ]

    def _paragraphs(self) -> list[str]:
        choice, figures = self._choice, self._figures
        # As much as is missing, and as much again, so that not every block has to be a paragraph.
        missing = figures.text * self._elements / max(1, figures.elements) - self._text
        length = int(max(20.0, missing + min(missing + 100, 400)))
        lines = []
        while length > 0:
            size = min(length, choice.randrange(40, 500))
            text = self._prose(size)
            inline = choice.choice(("strong", "em", "b", "i", "br", "br"))
            if inline == "br":
                text += "<br>"
                self._elements += 1
            else:
                text += f" {self._tag(inline)}{self._prose(12)}</{inline}>"
            lines.append(f"{self._tag('p')}{text}</p>")
            length -= size
        return lines

    def _image(self) -> str:
        return self._tag("img", f'src="/images/{figurative(self._choice, 70)}.jpg"')

    def _images(self) -> list[str]:
        if self._choice.random() < 0.3:
            self._elements += 2
            return ["<figure><picture>", self._tag("source"), self._image(), "</picture></figure>"]
        return [f"{self._tag('div')}{self._image()}</div>"]

    def _spans(self) -> list[str]:
        tag = self._tag
        return [
            f"{tag('div')}{tag('div')}{tag('span')}{self._prose(8)}</span>{tag('span')}{tag('i')}</i></span></div></div>"
        ]

    def _table(self) -> list[str]:
        if self._choice.random() < 0.6:
            return self._spans()
        rows = []
        for _ in range(self._choice.randrange(2, 7)):
            cells = "".join(f"{self._tag('td')}{self._prose(9)}</td>" for _ in range(3))
            rows.append(f"{self._tag('tr')}{cells}</tr>")
        return [f"{self._tag('table')}<tbody>", *rows, "</tbody></table>"]

    def _form(self) -> list[str]:
        if self._choice.random() < 0.5:
            return [f"{self._tag('div')}{self._tag('button')}{self._prose(9)}</button>{self._tag('input')}</div>"]
        options = "".join(f"{self._tag('option')}{self._prose(8)}</option>" for _ in range(5))
        label = f"{self._tag('label')}{self._prose(8)}</label>"
        return [self._tag("form"), label, self._tag("select"), options, "</select></form>"]


@cache
def _json_pool() -> str:
    words = Vocabulary(random.Random("json"))
    return ", ".join(f'"{words.name(7)}": "{words.prose(24)}"' for _ in range(8_000)) + ", "


def _json(choice: random.Random, size: int) -> str:
    """Return the members of a JSON object."""
    pool = _json_pool()
    start = pool.index('"', choice.randrange(len(pool) // 4))
    start = pool.index(', "', start) + 2
    end = pool.find(', "', min(len(pool) - 100, start + size))
    return pool[start:end] if end > start else '"a": 1'
