"""Pages of any size that are crafted to slow down an HTML parser.

Found by experiment: a few megabytes of each take minutes or gigabytes, at least in some parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

Page = Callable[[int], bytes]


def repeated(unit: str, size: int) -> bytes:
    """Repeat a unit until the size is reached; '#' is replaced by a counter."""
    if "#" not in unit:
        raw = unit.encode()
        return raw * (size // len(raw) + 1)
    pieces, left = [], size
    for number in count():
        piece = unit.replace("#", str(number)).encode()
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            return b"".join(pieces)
    raise AssertionError("numbers do not end")


def _words(text: str) -> list[str]:
    """Split at white space; '_' stands for a space inside a word."""
    return [word.replace("_", " ") for word in text.split()]


# The same over and over.
_UNITS = _words("""
<div> <p> <p>x <b> <a> <i><p> <b><p>x <a><div> <a><b><p> <nobr><p> <b></p> <b><i></b> <b><div></b> <i></b> <em></div>
<ul><li> <li> <dl><dt> <dd> <rb> <rt> <ruby><rt> <pre> <h1> <section> <search> <dialog> <details> <form> <button>
<button><p> <p><button> <span> <x-y> <q>x <table> <table>x <table><b> <table><tr><td> <table><tr><b> <b><table> <td>
<tr> <caption> <colgroup><col> <select> <select><option> <option> <optgroup> <svg> <svg><g> <svg><desc><p> <svg><title>
<math> <math><mi> <math><annotation-xml_encoding=text/html><p> <template> <template><td> <object> <marquee> <applet>
<noscript> <iframe> <title> <textarea> <xmp> <plaintext> <frameset> <head> <html> <body> <input> <img> <hr> <br> <wbr>x
<!-- <!----> <![CDATA[ <svg><![CDATA[x]]> < </ <? <! </p> </br> </a> </b> </x> & &amp; &notit; &#1;
<div_hidden> <p_hidden>x <meta_name=robots_content=x> <meta_http-equiv=refresh_content=0;url=x> <base_href=x>
<link_rel=next_href=y> <area_href=x> <title>x</title> <svg><title>x</title></svg> <a_href=x>y <pre>x
<b_a#> <b_a#><div> <font_x=#><p> <i_class=a#>x <a_id=#><p>x <p_id=#> <x#> </x#> <html_a#> <body_a#>
<div_a#=">"> <div_a#='>'> <a_href=/#></a> &x#;
""")

# Half of one, then half of another.
_HALVES = _words("""
 <div>|</div> <div>|</p> <div>|<p> <div>|<li> <div>|<h1></h1> <div>|<form> <div>|<table></table> <div>|<b></b>
<div>|x<!----> <div>|<p_hidden>x <div>|<title>x</title> <div>|<svg></svg> <x>|</y> <x>|<li> <x>|<dd> <x>|</body>
<x>|</html> <x>|<body_a#> <b>|</b> <b_a#>|<p>x <p><b_a#>|<p>x <b_a#>|</p> <b_a#>|<p></p> <b_a#>|</b> <b_a#><div>|</b>
<font_a#>|<table> <b_a#_b#_c#_d#>|<p>x <a>|</a> <b><div>|</b> <i><div>|x<br> <table>|x <table>|<b> <table>|<p>x
<table><td>|</div> <svg>|<p> <svg>|</p> <svg>|<b> <svg>|<title>x</title> <math>|<mi> <ul>|<li> <select>|<option>
<template>|<td> <template>|</template> <ruby>|<rt> <pre>|<b>x</b> <object>|</object> <span>|x<br>
""")


def _attributes(before: str, unit: str, after: str, share: int = 1) -> Page:
    """Make a tag whose attributes fill part of the page, followed by a unit repeated many times."""

    def page(size: int) -> bytes:
        tag = before.encode() + repeated(unit, size // share) + b">"
        return tag + repeated(after, size - len(tag))

    return page


def _long_link(share: float, unit: str) -> Page:
    """Make a link with a long address that stays open in many blocks."""

    def page(size: int) -> bytes:
        link = b'<p><a href="' + repeated(unit, int(size * share)) + b'">'
        return link + repeated("<p>x", min(size - len(link), 7_900))

    return page


def _halves(first: str, second: str, size: int) -> bytes:
    return b"<p>" + repeated(first, size // 2) + repeated(second, size // 2)


def _all() -> Iterator[tuple[str, Page]]:
    for unit in _UNITS:
        yield unit, partial(repeated, unit)
    for both in _HALVES:
        first, _, second = both.partition("|")
        yield both, partial(_halves, first, second)
    for before in ("<a ", "<p><a ", "<p><b ", "<svg ", "<html ", "</a "):
        for unit in (
            *("a# ", "a#/", 'a#="" ', 'a#=">"', "a#='>'", 'a# x=">" ', "a<# "),
            "a#=\v\" b#='\" >' ",  # a vertical tab is not white space
        ):
            for share in (1, 8, 40):
                yield f"{before}{unit}1/{share}", _attributes(before, unit, "<p>x", share)
    three_of_each = "".join(
        f"<{tag}>" * 3 for tag in ("b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt")
    )
    yield "formatting", lambda size: f"<p>{three_of_each}".encode() + repeated("<p>x", size)
    yield "long value", lambda size: b'<a href="' + b"x" * size + b'">'
    yield "open value", lambda size: b'<a href="' + b"x" * size
    yield "long name", lambda size: b"<" + b"x" * size + b">"
    yield "long attribute", lambda size: b"<a " + b"x" * size + b">"
    yield "doctype", lambda size: b"<!doctype " + b"x " * (size // 2)
    for part in (0.2, 0.5, 0.9):
        yield f"long link {part}", _long_link(part, "x")
        yield f"long link of tags {part}", _long_link(part, "x>")
    yield "long links", lambda size: repeated(f"<a href='?#{'é' * 600}'>x</a>", size)
    yield "tabs", lambda size: repeated("x_ \n", size)


EVIL_PAGES: dict[str, Page] = dict(_all())
