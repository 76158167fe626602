"""Random words, sentences, attribute values, scripts and style sheets for pages like those of the real web."""

from __future__ import annotations

import random
import string
from functools import cache
from itertools import accumulate

_POOL = 400_000
_SYLLABLES = """
ka lo mi ter den ra so ne vi pu an er in ou st le ti on ing ed ma co pre de al is ur ch gra pl
""".split()  # noqa: SIM905
_ENTITIES = (
    "&amp;",
    "&nbsp;",
    "&#8217;",
    "&quot;",
    "&raquo;",
    "&#039;",
    "&lt;",
    "\u00e9",
    "\u00fc",
    "\u2013",
    "\u2019",
)


@cache
def words() -> tuple[str, ...]:
    """Return a vocabulary; a word is rarer the later it comes."""
    choice = random.Random("words")
    found: dict[str, None] = {}
    while len(found) < 4_000:
        found["".join(choice.choices(_SYLLABLES, k=choice.choice((1, 2, 2, 3, 4))))] = None
    return tuple(found)


@cache
def _text() -> str:
    """Return a long text, of which pages take pieces."""
    choice = random.Random("text")
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(words()))))
    sentences = []
    size = 0
    while size < _POOL:
        chosen = choice.choices(words(), cum_weights=weights, k=choice.randrange(5, 20))
        if choice.random() < 0.05:
            chosen.insert(choice.randrange(len(chosen)), choice.choice(_ENTITIES))
        sentence = f"{' '.join(chosen).capitalize()}. "
        sentences.append(sentence)
        size += len(sentence)
    return "".join(sentences)


@cache
def _names() -> tuple[str, ...]:
    choice = random.Random("names")
    return tuple(
        f"{choice.choice(words())}{choice.choice(('-', '_', '__', '--'))}{choice.choice(words())}" for _ in range(3_000)
    )


class Vocabulary:
    """The words of one page: a few class names, which come again and again, and any text."""

    def __init__(self, choice: random.Random) -> None:
        self._choice = choice
        self._classes = choice.choices(_names(), k=50)

    def _class(self) -> str:
        return self._classes[int(len(self._classes) * self._choice.random() ** 2)]

    def prose(self, length: int) -> str:
        """Return about as many bytes of text."""
        text = _text()
        parts = []
        while length > 0:
            start = text.index(" ", self._choice.randrange(len(text) - 60_000)) + 1
            # No entity is cut in the middle.
            end = text.index(" ", start + min(length, 50_000))
            parts.append(text[start:end])
            length -= end - start
        return " ".join(parts)

    def name(self, length: int) -> str:
        """Return an identifier of about this length."""
        name = self._class()
        while len(name) < length - 4:
            name += f"-{self._choice.choice(words())}"
        return name[: length + 6]

    def value(self, attribute: str, length: int) -> str:
        """Return the value of an attribute, of about this length."""
        choice = self._choice
        length = max(1, int(length * choice.choice((0.4, 0.6, 0.8, 1.0, 1.2, 2.0))))
        match attribute:
            case "class":
                value = self._class()
                while len(value) < length - 4:
                    value += f" {self._class()}"
                return value
            case "title" | "alt" | "aria-label":
                return self.prose(length).replace("\n", " ")
            case "style":
                return f"width:{choice.randrange(100)}px;{'margin:0 auto;' * (length // 18)}"
            case "srcset" | "onclick":
                return figurative(choice, length)
            case _:
                return self.name(length)[:length] or "x"


@cache
def _scripts() -> str:
    choice = random.Random("scripts")
    names = [
        "".join(choices)
        for choices in (choice.choices(string.ascii_letters, k=choice.choice((1, 1, 1, 2, 2, 7, 9))) for _ in range(40))
    ]
    forms = (
        "function {0}({1},{2}){{return {1}.{3}&&{2}[{n}]}}",
        'var {0}="{w}",{1}={n};',
        "if({0}>={1}.length){{{2}.push({3}({n}))}}else{{{1}={0}>{n}?{2}:null}}",
        "window.{0}=window.{1}||[];{2}.addEventListener('{w}',function({3}){{{0}.{2}()}});",
        '"{w}":{{"{0}":{n},"url":"https:\\/\\/{w}.test\\/{1}"}},',
    )
    parts: list[str] = []
    size = 0
    while size < _POOL:
        form = choice.choice(forms)
        # Scripts repeat themselves.
        again = parts and choice.random() < 0.3
        part = (
            choice.choice(parts[-60:])
            if again
            else form.format(*choice.choices(names, k=4), n=choice.randrange(12), w=choice.choice(_names()[:25]))
        )
        parts.append(part)
        size += len(part)
    return "".join(parts)


@cache
def _styles() -> str:
    choice = random.Random("styles")
    properties = ("margin", "padding", "width", "font-size", "color", "border-radius", "top", "z-index", "background")
    parts = []
    size = 0
    while size < _POOL:
        body = ";".join(
            f"{choice.choice(properties)}:{choice.randrange(12) * 2}px" for _ in range(choice.randrange(1, 5))
        )
        part = f".{choice.choice(_names()[:60])} .{choice.choice(words()[:20])}{{{body}}}"
        parts.append(part)
        size += len(part)
    return "".join(parts)


@cache
def _figures() -> str:
    choice = random.Random("figures")
    return "".join(
        choice.choices(("1.5-", "0-0 ", "12.25", " c-1.3", "-2.75", "4", "assets/", "image-", "7.04"), k=_POOL // 2)
    )


def code(choice: random.Random, size: int) -> str:
    """Return a script of this size."""
    return _piece(_scripts(), choice, size)


def rules(choice: random.Random, size: int) -> str:
    """Return a style sheet of this size."""
    return _piece(_styles(), choice, size)


def figurative(choice: random.Random, size: int) -> str:
    """Return the coordinates of a drawing, or any other value that is not text."""
    return _piece(_figures(), choice, size).strip()


def _piece(pool: str, choice: random.Random, size: int) -> str:
    start = choice.randrange(len(pool))
    return (
        (pool[start:] + pool * (size // len(pool) + 1))[:size]
        if start + size > len(pool)
        else pool[start : start + size]
    )
