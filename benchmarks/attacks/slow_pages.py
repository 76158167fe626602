"""Search for pages that stop the event loop for long or take much memory: simple patterns, repeated up to a size.

    .venv/bin/python -m benchmarks.attacks.slow_pages                # all kinds, 2 MiB each
    .venv/bin/python -m benchmarks.attacks.slow_pages --kinds characters tags --mib 5

Child processes with an address space limit read the pages. For each page, CPU time is the lowest of up to three
attempts, and memory is how far the peak is above what the process had before, which includes the page's bytes.
"""

from __future__ import annotations

import argparse
import heapq
import html.entities
import math
import os
import re
import resource
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from tests.unit.parse.evil_pages import EVIL_PAGES, repeated

from rove.parse.html import PageSource, read_html, read_plain
from rove.urls.canonical import NO_IDS

MOST_SECONDS = 0.15
MOST_MIB = 150
MAX_ADDRESS_SPACE = 2 << 30
ATTEMPTS = 3
MAX_CPU_SECONDS = 20
_RESULT = struct.Struct("dd")
_READERS: dict[str, Callable[[PageSource], object]] = {
    "text/html": lambda source: read_html(source, NO_IDS),
    "text/plain": read_plain,
}
SHOWN = 15
UTF_8 = "text/html; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"

TAGS = """
a abbr address applet area article aside audio b base basefont bdi bdo bgsound big blockquote body br button canvas
caption center code col colgroup data datalist dd del desc details dialog dir div dl dt em embed fieldset figcaption
figure font footer foreignObject form frame frameset h1 h6 head header hr html i iframe image img input ins isindex kbd
keygen li link listing main map mark marquee math menu meta mi mn mo ms mtext annotation-xml nav nobr noembed noframes
noscript object ol optgroup option output p param picture plaintext pre progress q rb rp rt rtc ruby s samp script
search section select slot small source span strike strong style sub summary sup svg table tbody td template textarea
tfoot th thead time title tr track tt u ul var video wbr x-y xmp
""".split()  # noqa: SIM905
ATTRIBUTES = """
href=x href=/# href=?q=é src=x content=x content=# hidden hidden=until-found id=app id=root id=__next id=# class=x
name=robots name=robots_content=noindex name=robots_content=, rel=nofollow rel=next rel=canonical_href=#
http-equiv=refresh_content=0;url=# http-equiv=content-type charset=x charset=# type=application/ld+json
style=x a=1_b=2_c=3 a#=# x=" x=' x a# / = " ' data-x=&amp; encoding=text/html href=x_a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p_q
""".split()  # noqa: SIM905
CONTEXTS = {
    "text": ("", ""),
    "<pre>": ("<pre>", ""),
    "<title>": ("<title>", "</title>"),
    "<textarea>": ("<textarea>", ""),
    "<script>": ("<script>", "</script>"),
    "JSON-LD": ("<script type='application/ld+json'>", "</script><div id=root></div>"),
    "<noscript>": ("<noscript>", "</noscript>"),
    "<noframes>": ("<frameset><noframes>", "</noframes>"),
    "<noframes><pre>": ("<frameset><noframes><pre>", "</pre></noframes>"),
    "comment": ("<!--", "-->"),
    "href": ("<a href='", "'>x</a>"),
    "rel": ("<a href=x rel='", "'>x</a>"),
    "base": ("<base href='", "'><a href=x>"),
    "refresh": ("<meta http-equiv=refresh content='", "'>"),
    "robots": ("<meta name=robots content='", "'>"),
    "tag": ("<p ", ">"),
    "meta": ("<meta ", ">"),
    "<svg>": ("<svg>", ""),
    "unquoted": ("<a href=", ">x</a>"),
    "shell": ("<div id=root></div><noscript>", "</noscript>"),
}
CONTROLS = [chr(code) for code in (*range(0x20), 0x7F, *range(0x80, 0xA1))]
SPECIAL = ["\xad", "\u200b", "\u0e01\u200b", "\u200b\u0e01", "\u2028", "\u2060", "\ufeff", "\ufdd0", "\ufffd", "\ufffe",
    "\u3000", "\u1680", "\u0130", "\u00df", "é", "日", "\U0001f600", "e\u0301", "\u202e", "\u200d"]  # fmt: skip
ENCODINGS = """
big5 euc-jp euc-kr gb18030 gbk ibm866 iso-2022-jp iso-8859-1 iso-8859-8-i koi8-r macintosh replacement shift_jis
utf-16be utf-16le utf-8 windows-1252 windows-1255 windows-874 x-user-defined
""".split()  # noqa: SIM905
LATE = ("<meta charset=#>", "<meta charset=x>", "<meta charset>", "<meta a=b c=d charset=x>", "<meta ", "<meta '",
    '<meta ""', "<meta x", "<meta x ", "<!---->", "<!--", "<!-- <meta charset=x> -->", "charset",
    "<meta content=charset>",
    "<meta http-equiv=content-type content=charset=x>")  # fmt: skip


class Shape(NamedTuple):
    """A page of any size."""

    name: str
    page: Callable[[int], bytes]
    content_type: str | None = UTF_8


def _filled(unit: bytes, before: bytes = b"", after: bytes = b"") -> Callable[[int], bytes]:
    def page(size: int) -> bytes:
        left = size - len(before) - len(after)
        middle = repeated(unit.decode(), left) if b"#" in unit else unit * (left // len(unit) + 1)
        return before + middle[: max(left, 0)] + after

    return page


def _repeated(unit: bytes, before: bytes, after: bytes, size: int) -> bytes:
    left = max(size - len(before) - len(after), 0)
    return before + unit * (left // len(unit)) + after


def _spaced(text: str) -> str:
    return text.replace("_", " ")


def characters() -> Iterator[Shape]:
    """Every character that may matter, in every context, and as a plain text."""
    printable = [chr(code) for code in range(0x21, 0x7F) if chr(code) != "#"]
    for char in (*printable, *CONTROLS, *SPECIAL):
        yield Shape(f"plain text {char!r}", _filled(char.encode()), PLAIN)
        yield Shape(f"plain text x{char!r}", _filled(f"x{char}".encode()), PLAIN)
        for name, (before, after) in CONTEXTS.items():
            for unit in (char, f"x{char}", f"{char} "):
                yield Shape(f"{name}: {unit!r}", _filled(unit.encode(), before.encode(), after.encode()))


def pairs() -> Iterator[Shape]:
    """All pairs of printable characters."""
    for first, second in product(map(chr, (0x0A, *range(0x20, 0x7F))), repeat=2):
        if "#" not in first + second:
            yield Shape(f"{first + second!r}", _filled((first + second).encode()))


def tags() -> Iterator[Shape]:
    """Every tag with every attribute, alone, with text, closed, and in blocks."""
    for tag in TAGS:
        for attribute in ("", *ATTRIBUTES):
            start = f"<{tag} {_spaced(attribute)}>" if attribute else f"<{tag}>"
            for unit in (start, f"{start}x", f"{start}x</{tag}>", f"<p>{start}x"):
                yield Shape(unit, _filled(unit.encode()))
        for before in ("<pre>", "<table>", "<svg>", "<math>", "<select>", "<frameset>", "<frameset><noframes>"):
            yield Shape(f"{before}, <{tag}>", _filled(f"<{tag}>".encode(), before.encode()))
            yield Shape(f"{before}, <{tag}>\\nx", _filled(f"<{tag}>\nx".encode(), before.encode()))
        yield Shape(f"</{tag}>", _filled(f"</{tag}>".encode()))


def entities() -> Iterator[Shape]:
    """Every character reference."""
    for name in html.entities.html5:
        yield Shape(f"&{name}", _filled(f"&{name}".encode()))
    for number in ("#0;", "#x80;", "#xD800;", "#x110000;", "#128;", "#x1F600;", "#10;", "#13;", "#32;", "#160;"):
        reference = f"&{number}".encode()
        for name, (before, after) in CONTEXTS.items():
            yield Shape(f"{name}: {reference.decode()}", partial(_repeated, reference, before.encode(), after.encode()))


def encodings() -> Iterator[Shape]:
    """Every byte and some sequences, in every kind of encoding and in none, as text and in links."""
    bytes_of = [bytes([code]) for code in (*range(0x20), *range(0x7F, 0x100))]
    some = [
        *(b"\x1b$B", b"\x1b(B", b"\x1b$B!!\x1b(B", b"\x810\x810", b"\xe3\x80", b"\xf0\x9f\x98", b"\xd8\0", b"\xdc\0"),
        *(b"\0\xd8", b"a\x81", b"\x81a", b"\xff<", b"<\0p\0>\0", b"\0<\0p\0>", b"\x81\xa0", b"\x81 ", b"\x81\n"),
    ]
    for encoding in (*ENCODINGS, None):
        kind = f"text/html; charset={encoding}" if encoding else None
        for unit in (*bytes_of, *some):
            yield Shape(f"{encoding}: {unit!r}", _filled(unit), kind)
            yield Shape(f"{encoding}: <pre>{unit!r}", _filled(unit, b"<pre>"), kind)
        for text in ("<a href='?\xe9\xe8#'>", "<a href='?\u65e5#'>x", "<p>\xa0\xad\u200b", "<a href='?\U0001f600#'>"):
            yield Shape(f"{encoding}: {text}", _filled(text.encode()), kind)
    for encoding in (*ENCODINGS, "utf-8"):
        plain = f"text/plain; charset={encoding}"
        for unit in (*some, b"\x81", b"\x9f", b"\xa0", b"\n", b"\r"):
            yield Shape(f"plain {encoding}: {unit!r}", _filled(unit), plain)


def late() -> Iterator[Shape]:
    """Declarations of an encoding that are looked for because nothing else says anything."""
    for unit in LATE:
        for prefix in (b"\xff", b"<p>\xff" + b"x" * 5_000, b"charset\xff" + b" " * 5_000):
            yield Shape(f"{prefix[:8]!r}, {unit}", _filled(unit.encode(), prefix), None)
            yield Shape(f"{prefix[:8]!r}, {unit} at the end", _filled(unit.encode(), prefix, b"<meta charset=x>"), None)


def links() -> Iterator[Shape]:
    """Links of every form."""
    hrefs = ("#", "/#", "?#", "//h#.example", "//h#.example/", "http://#", "http://a#.b#.example/x?y=#", "../#",
        "a/../#",
        "%41#", "é#", "//é#.example", "//xn--#", "?a=#&b=#&sid=#", "http:#", "x:#", "javascript:#", "/#" + "/a" * 50,
        "?" + "a=#&" * 30, "//[::#]", "//#.#.#.#", "//a#:80", "//u@h#", "/#?" + "é" * 20, "//" + "a#." * 20 + "example",
        "/" + "%zz#" * 20, "/#\t", " #", "/#%00", "//h#.co.uk", "//h#.example:99999", "\\\\h#.example\\x",
        "/" + "../" * 30 + "#", "/#" + "x" * 1_990, "/#" + "é" * 330, "?#" + "é" * 240)  # fmt: skip
    for href in hrefs:
        for encoding in ("utf-8", "windows-1251", "gbk"):
            unit = f"<a href='{href}'>"
            yield Shape(f"{encoding}: {unit[:60]}", _filled(unit.encode()), f"text/html; charset={encoding}")


def mixtures() -> Iterator[Shape]:
    """Pages that need several steps: shells, walls, data of scripts, and the known evil pages."""
    shell = b"<div id=root></div>"
    data = (
        '"a"',
        '["x"',
        "[",
        '{"a":',
        '{"text":"' + "word " * 10 + '#"}',
        '"' + "word " * 10 + '#",',
        "\\",
        '"\\',
        "<",
    )
    for kind, unit in product(("type='application/ld+json'", "id=__NEXT_DATA__", ""), data):
        opening = b"<script " + kind.encode() + b">" + (b"window.__NUXT__=[" if not kind else b"[")
        yield Shape(f"{opening.decode()} {unit}", _filled(unit.encode(), shell + opening, b'"x"]</script>'))
        tag = f"<script {kind}>{'window.__NUXT__=' if not kind else ''}[{unit.rstrip(',')}]</script>"
        yield Shape(tag, _filled(tag.encode(), shell))
    for unit in ("<p>word word word word word word word word #</p>", "<b>#", "<br>", "</", "<div hidden>"):
        text = unit + "word " * 10
        value = f'"{text}",'
        yield Shape(
            f"__NEXT_DATA__ of {unit}", _filled(value.encode(), shell + b"<script id=__NEXT_DATA__>[", b'"x"]</script>')
        )
    for word in ("_cf_chl_opt", "anubis_challenge", "sec-if-cpt-container", "_Incapsula_Resource"):
        for unit in ("<script>", "<script ", "<script id='a'>_", f"<script x>{word[:-1]}", "<!--<script>-->"):
            yield Shape(f"{word}, {unit}", _filled(unit.encode(), f"<!--{word}-->".encode()))
            yield Shape(f"{word}, <!-- {unit}", _filled(unit.encode(), f"<!--{word}".encode()))
    for name, page in EVIL_PAGES.items():
        yield Shape(f"evil: {name}", page)


KINDS: dict[str, Callable[[], Iterator[Shape]]] = {
    kind.__name__: kind for kind in (characters, pairs, tags, entities, encodings, late, links, mixtures)
}


def measured(shape: Shape, size: int) -> tuple[float, float]:
    """Return the CPU seconds and MiB that a page takes."""
    body = shape.page(size)[:size]
    source = PageSource(
        body=body, url="https://site.example/dir/page", content_type=shape.content_type, max_parsed=size
    )
    read = _READERS[(shape.content_type or UTF_8).partition(";")[0]]
    seconds, mib = float("inf"), 0.0
    for _ in range(ATTEMPTS):
        before = _mib("VmRSS")
        started = time.process_time()
        read(source)
        seconds = min(seconds, time.process_time() - started)
        mib = max(mib, _mib("VmHWM") - before)
        if seconds < 0.8 * MOST_SECONDS:
            break
    return seconds, mib


def _mib(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def _child(shape: Shape, size: int, result: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    os.write(result, _RESULT.pack(*measured(shape, size)))


def search(shapes: Iterable[Shape], size: int) -> Iterator[tuple[Shape, float, float]]:
    """Yield the shapes with CPU seconds and MiB, which are infinite if the page killed its process."""
    for label in (None, UTF_8, "text/html; charset=gbk"):  # what loads at first use
        read_html(PageSource(body="<a href=//a.example>Текст".encode("cp1251"), url="", content_type=label), NO_IDS)
    for shape in shapes:
        ours, theirs = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                _child(shape, size, theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        raw = os.read(ours, _RESULT.size)
        os.close(ours)
        os.waitpid(pid, 0)
        yield (shape, *(_RESULT.unpack(raw) if raw else (math.inf, math.inf)))


def main() -> None:
    """Search, print what is over the limits and the worst shapes of each kind; exit with 1 if one is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--mib", type=float, default=2)
    parser.add_argument("--step", type=int, default=1, help="take every n-th shape of each kind")
    options = parser.parse_args()
    size = int(options.mib * (1 << 20))
    seconds_allowed, mib_allowed = MOST_SECONDS * max(1, options.mib / 2), MOST_MIB * max(1, options.mib / 2)
    is_over = False
    for kind in options.kinds:
        results = []
        for shape, seconds, mib in search(islice(KINDS[kind](), 0, None, options.step), size):
            results.append((seconds, mib, shape.name))
            if seconds > seconds_allowed or mib > mib_allowed:
                is_over = True
                print(f"over  {seconds:8.3f} s {mib:6.0f} MiB  {kind}: {shape.name} ({shape.content_type})", flush=True)
        print(f"{kind}: {len(results):,} shapes of {options.mib:g} MiB; the slowest and the largest:")
        for seconds, mib, name in heapq.nlargest(SHOWN, results):
            print(f"      {seconds:8.3f} s {mib:6.0f} MiB  {name}")
        for seconds, mib, name in heapq.nlargest(5, results, key=lambda result: result[1]):
            print(f"      {seconds:8.3f} s {mib:6.0f} MiB  {name}", flush=True)
    sys.exit(is_over)


if __name__ == "__main__":
    main()
