"""Pages that are made to cost a crawler much: deep nesting, endless tags, and much to receive.

They are shapes that some parser takes seconds, gigabytes or for ever for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

LARGEST = 5 << 20
"""With its name and links, as large as the largest page that rove receives by default."""
NESTED = 100_000
_ROOM = 64 << 10
"""Bytes of the largest pages that are left for their names and links."""


class Shape(NamedTuple):
    """The rest of a page, and whether it is sent as gzip."""

    name: str
    rest: bytes
    is_compressed: bool


def shapes(scale: float = 1.0) -> Iterator[Shape]:
    """Yield all hostile pages; `scale` makes them smaller."""
    count, largest = int(NESTED * scale), int((LARGEST - _ROOM) * scale)
    yield Shape("nested div", b"<div>" * count, True)
    yield Shape("nested div, closed", b"<div>" * count + b"x" + b"</div>" * count, True)
    yield Shape("attributes", b"<p " + b" ".join(b'a%d="%d"' % (n, n) for n in range(count // 2)) + b">x</p>", True)
    yield Shape("one tag", b'<a href="' + b"x" * (largest // 2) + b'">x</a>', True)
    yield Shape("formatting", b"<b><i><font color=red><p>x</p>" * (count // 4), True)
    yield Shape("misnested", b"<a href=/><b><div></a></b>" * (count // 4), True)
    yield Shape("tables", b"<table><tr><td>" * (count // 3), True)
    yield Shape("select", b"<select>" + b"<option>x<optgroup>y" * count, True)
    yield Shape("large", _large(largest), False)
    yield Shape("large, gzip", _large(largest), True)


def _large(size: int) -> bytes:
    """Return an ordinary page of this size: paragraphs, and many links to the same host."""
    units = [b'<p class="c%d">some words and <a href="/x/%d">more</a> words</p>\n' % (n, n) for n in range(1_000)]
    return (b"".join(units) * (size // 40_000 + 1))[:size]
