"""Robots directives in headers and meta elements."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.parse.directives import MAX_LENGTH, Directives, read_headers, read_metas
from rove.parse.html import Document, PageSource, read_html, read_plain
from tests.urls import FORM

NOW = datetime(2010, 6, 25, 15, 0, tzinfo=UTC).timestamp()
UNRESTRICTED = Directives()
NOINDEX = Directives(noindex=True)
NOFOLLOW = Directives(nofollow=True)
BOTH = Directives(noindex=True, nofollow=True)


@pytest.mark.parametrize("one", [UNRESTRICTED, NOINDEX, NOFOLLOW, BOTH])
@pytest.mark.parametrize("two", [UNRESTRICTED, NOINDEX, NOFOLLOW, BOTH])
def test_most_restrictive_wins(one: Directives, two: Directives) -> None:
    joined = one | two
    assert joined.noindex == (one.noindex or two.noindex)
    assert joined.nofollow == (one.nofollow or two.nofollow)


# What both sources say in the same way.
RULES = [
    ("", UNRESTRICTED),
    (" , ,", UNRESTRICTED),
    ("noindex", NOINDEX),
    ("nofollow", NOFOLLOW),
    ("noindex, nofollow", BOTH),
    ("noindex,nofollow", BOTH),
    ("noindex nofollow", BOTH),
    ("noindex; nofollow", BOTH),
    ('"noindex"', NOINDEX),
    ("'noindex'", NOINDEX),
    ('"noindex, nofollow"', BOTH),
    ('"noindex", "nofollow"', BOTH),
    ("\u201cnoindex\u201d", NOINDEX),
    ("noindex/nofollow", BOTH),
    ("noindex / follow", NOINDEX),
    ('max-image-preview: "none"', UNRESTRICTED),
    ("max-snippet:-1/noindex", NOINDEX),
    ('unavailable_after: "25 Jun 2010 15:00:00 GMT"', NOINDEX),
    ('unavailable_after: "25 Jun 2030 15:00:00 GMT"', UNRESTRICTED),
    ("unavailable_after: 25/06/2001, nofollow", NOFOLLOW),
    (" NoIndex ", NOINDEX),
    ("NONE", BOTH),
    ("all", UNRESTRICTED),
    ("index, follow", UNRESTRICTED),
    ("all, noindex", NOINDEX),
    ("noindex, index", NOINDEX),
    ("noarchive, nosnippet, noimageindex, notranslate", UNRESTRICTED),
    ("noindexing, xnofollow, nonesuch", UNRESTRICTED),
    ("max-snippet: 5", UNRESTRICTED),
    ("max-snippet: 5, nofollow", NOFOLLOW),
    ("max-snippet:-1, max-video-preview:-1, noindex", NOINDEX),
    ("max-image-preview: none", UNRESTRICTED),
    ("max-image-preview:none", UNRESTRICTED),
    ("Max-Image-Preview : None, nofollow", NOFOLLOW),
    ("max-image-preview:, noindex", NOINDEX),
    ("noindex, max-image-preview: large", NOINDEX),
    ("unavailable_after: 25 Jun 2010 15:00:00 GMT", NOINDEX),
    ("unavailable_after: 25 Jun 2010 15:00:01 GMT", UNRESTRICTED),
    ("unavailable_after: 25 Jun 2010 15:00:01 GMT, nofollow", NOFOLLOW),
    ("nofollow, unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", BOTH),
    ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow", BOTH),
    ("unavailable_after: Friday, 25-Jun-30 15:00:00 GMT, nofollow", NOFOLLOW),
    ("UNAVAILABLE_AFTER: 25 JUN 2010 15:00:00 GMT", NOINDEX),
    ("unavailable_after 25 Jun 2010 15:00:00 GMT", NOINDEX),
    ("unavailable_after=2010-06-25", NOINDEX),
    ("unavailable_after: 2010-06-25 noindex", NOINDEX),
    ("unavailable_after: 2030-06-25 noindex", NOINDEX),
    ("unavailable_after: 2030-06-25 none", BOTH),
    ("unavailable_after: 2030-06-25, unavailable_after: 2001-01-01", NOINDEX),
    ("unavailable_after", UNRESTRICTED),
    ("unavailable_after:", UNRESTRICTED),
    ("unavailable_after: none", UNRESTRICTED),
    ("unavailable_after: never, noindex", NOINDEX),
    ("unavailable_after: 31 Feb 2001 15:00:00 GMT", UNRESTRICTED),
    ("unavailable_after: 25 Foo 2001 15:00:00 GMT, noindex", NOINDEX),
    ("unavailable_after: Foo, 25-Jun-01 15:00:00 GMT, noindex", NOINDEX),
    ("unavailable_after: Fri, the 25th at 15:00:00 GMT, noindex", NOINDEX),
]


@pytest.mark.parametrize(("value", "expected"), RULES)
def test_rules(value: str, expected: Directives) -> None:
    assert read_headers([value], now=NOW) == expected
    assert read_metas([value], now=NOW) == expected


@pytest.mark.parametrize(
    "date",
    [
        "25 Jun 2010 15:00:00 GMT",
        "25 Jun 2010 15:00 UT",
        "25 June 2010 15:00:00 +0000",
        "25 Jun 10 15:00:00 Z",
        "25 Jun 2010 07:00:00 PST",
        "25 Jun 2010 08:00:00 PDT",
        "25 Jun 2010 10:00:00 EST",
        "25 Jun 2010 17:00:00 CEST",
        "25 Jun 2010 16:30:00 +0130",
        "25 Jun 2010 11:00:00 -04:00",
        "25 Jun 2010 15:00:00",
        "25 Jun 2010 15:00:00 XYZ",
        "25-Jun-2010 15:00:00 UTC",
        "Fri, 25 Jun 2010 15:00:00 GMT",
        "Fri 25 Jun 2010 15:00:00 GMT",
        "Friday, 25-Jun-10 15:00:00 UTC",
        "Jun 25, 2010 15:00:00 UTC",
        "Friday, June 25, 2010, 15:00 UTC",
        "2010-06-25T15:00:00Z",
        "2010-06-25T15:00:00.000Z",
        "2010-06-25T15:00:00,000Z",
        "2010-06-25T15:00",
        "2010-06-25 15:00:00",
        "2010-06-25 15:00:00 UTC",
        "2010-06-25T17:00:00+02:00",
        "2010-06-25T17:00:00+02",
        "2010-06-25T08:30:00-0630",
        "20100625T150000Z",
    ],
)
def test_dates(date: str) -> None:
    for read in (read_headers, read_metas):
        assert read([f"unavailable_after: {date}"], now=NOW) == NOINDEX
        assert read([f"unavailable_after: {date}, nofollow"], now=NOW - 1) == NOFOLLOW


@pytest.mark.parametrize("date", ["2010-06-25", "20100625", "25 Jun 2010", "June 25, 2010"])
def test_a_date_without_a_time_means_midnight(date: str) -> None:
    midnight = NOW - 15 * 3600
    assert read_headers([f"unavailable_after: {date}"], now=midnight) == NOINDEX
    assert read_headers([f"unavailable_after: {date}"], now=midnight - 1) == UNRESTRICTED


@pytest.mark.parametrize(
    "date",
    [
        "0000-00-00",
        "0000-01-01",
        "2001-13-01",
        "2001-01-32",
        "2001-01-01T25:00:00Z",
        "2001-01-01T00:60:00Z",
        "200101011",
        "32 Jan 2001",
        "1 Jan 20011",
        "01/02/2001",
        "978307200",
        "yesterday",
        "٢٠٠١-٠١-٠١",
    ],
)
def test_a_date_that_cannot_be_read_is_ignored(date: str) -> None:
    assert read_headers([f"unavailable_after: {date}"], now=NOW) == UNRESTRICTED
    assert read_headers([f"unavailable_after: {date}, nofollow"], now=NOW) == NOFOLLOW


def test_a_leap_second_is_a_second() -> None:
    assert read_headers(["unavailable_after: 2008-12-31T23:59:60Z"], now=NOW) == NOINDEX


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], UNRESTRICTED),
        (["rove: noindex"], NOINDEX),
        (["ROVE : NoIndex"], NOINDEX),
        (["rove:noindex,nofollow"], BOTH),
        (["rove/1.0: noindex"], NOINDEX),
        (["robots: noindex"], NOINDEX),
        (["*: noindex"], NOINDEX),
        (["all: noindex"], NOINDEX),
        (["otherbot: noindex"], UNRESTRICTED),
        (["otherbot: noindex, nofollow"], UNRESTRICTED),
        (["otherbot: none"], UNRESTRICTED),
        (["otherbot/2.1: none"], UNRESTRICTED),
        (['"otherbot: none"'], UNRESTRICTED),
        (['"rove: noindex"', '"otherbot: nofollow"'], NOINDEX),
        (["rove: noindex/nofollow"], BOTH),
        (["360Spider: none"], UNRESTRICTED),
        (["Other Web Spider: none"], UNRESTRICTED),
        (["rover: none"], UNRESTRICTED),
        (["grove: none"], UNRESTRICTED),
        (["googlebot: nofollow, otherbot: noindex, nofollow"], UNRESTRICTED),
        (["googlebot: nofollow, rove: noindex, noarchive"], NOINDEX),
        (["rove: noindex, otherbot: nofollow"], NOINDEX),
        (["rove: noindex, otherbot: nosnippet, rove: nofollow"], BOTH),
        (["noindex, otherbot: nofollow"], NOINDEX),
        (["noindex, rove: nofollow"], BOTH),
        (["noindex", "rove: nofollow"], BOTH),
        (["otherbot: noindex", "nofollow"], NOFOLLOW),
        (["noindex", "rove: all"], NOINDEX),
        (["noarchive", "unavailable_after: 25 Jun 2010 15:00:00 PST"], UNRESTRICTED),
        (["noarchive", "unavailable_after: 25 Jun 2010 07:00:00 PST"], NOINDEX),
        (["rove: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow"], BOTH),
        (["otherbot: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow"], UNRESTRICTED),
        (["otherbot: unavailable_after: Foo, 25-Jun-10 15:00:00 GMT, nofollow"], UNRESTRICTED),
        (["otherbot: noarchive, rove: max-snippet: 5, nofollow"], NOFOLLOW),
        (["otherbot: max-image-preview: none, nofollow"], UNRESTRICTED),
        (["noindex: nofollow"], BOTH),
        (["noindex otherbot: noarchive"], NOINDEX),
        ([":noindex"], NOINDEX),
        (["\xa0noindex\xff"], UNRESTRICTED),
    ],
)
def test_headers(values: list[str], expected: Directives) -> None:
    assert read_headers(values, now=NOW) == expected


def test_meta_elements_name_no_robots() -> None:
    assert read_metas(["noindex", "max-snippet:5 nofollow"], now=NOW) == BOTH
    assert read_metas(["otherbot: noindex"], now=NOW) == NOINDEX


@pytest.mark.parametrize(
    "value",
    [
        "," * 1_000_000 + "noindex",
        "noindex" + "," * 1_000_000,
        "noindex" + " " * 1_000_000,
        "noindex" + ":" * 1_000_000,
        "noindex," + "x:," * 300_000,
        "noindex," + "x " * 500_000 + ":",
        "noindex max-" * 100_000,
        "max-image-preview: " * 50_000 + "none",
        "unavailable_after: " * 50_000,
        "unavailable_after" + " " * 1_000_000,
        "unavailable_after: Fri, " * 50_000,
        "unavailable_after: 25 Jun 2010 15:00:00 GMT, " * 20_000,
        "unavailable_after: " + "1" * 1_000_000,
        "a: " * 300_000 + "noindex",
    ],
)
def test_hostile_values_take_little_time(value: str) -> None:
    started = time.process_time()
    read_headers([value], now=NOW)
    read_metas([value], now=NOW)
    assert time.process_time() - started < 1


def test_many_hostile_values_take_little_time() -> None:
    started = time.process_time()
    assert read_headers(["noindex"] * 1_000_000, now=NOW) == NOINDEX
    assert read_metas(["nofollow, " * 1_000] * 1_000, now=NOW) == NOFOLLOW
    assert time.process_time() - started < 1


def test_long_values_are_read_in_part() -> None:
    filler = "x" * (MAX_LENGTH - 50)
    assert read_headers([f"noindex, {filler}", "nofollow"], now=NOW) == BOTH
    assert read_headers([f"noindex, {filler * 2}", "nofollow"], now=NOW) == NOINDEX


WORDS = (
    "noindex nofollow none all rove otherbot * : , ; = max-snippet max-image-preview"
    " unavailable_after Fri, 25 Jun 2010 25-Jun-10 15:00:00 2010-06-25T15:00 -04:00 GMT"
)
PIECES = st.one_of(st.sampled_from(WORDS.split()), st.just(" "), st.text(max_size=4))
VALUES = st.lists(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60), max_size=4)


@given(VALUES, st.floats(min_value=-1e12, max_value=1e12))
def test_any_values(values: list[str], now: float) -> None:
    for read in (read_headers, read_metas):
        directives = read(values, now=now)
        assert read([*values, "noindex"], now=now) == directives | NOINDEX


@given(st.binary(max_size=200))
def test_any_bytes(raw: bytes) -> None:
    value = raw.decode("latin-1")
    both = read_headers([value], now=NOW) | read_metas([value], now=NOW)
    assert isinstance(both, Directives)


def page(html: str, *tags: str) -> Document:
    source = PageSource(
        body=f"{html}<a href=x>t</a>".encode(),
        url="https://site.example/",
        content_type="text/html; charset=utf-8",
        robots_tags=tags,
        now=NOW,
    )
    return read_html(source, FORM)


@pytest.mark.parametrize(
    ("html", "tags", "expected"),
    [
        ("", (), UNRESTRICTED),
        ("", ("noindex",), NOINDEX),
        ("", ("rove: nofollow",), NOFOLLOW),
        ("", ("otherbot: none",), UNRESTRICTED),
        ("", ("noarchive", "none"), BOTH),
        ("<meta name=robots content=noindex>", ("nofollow",), BOTH),
        ("<meta name=robots content=noindex>", ("all",), NOINDEX),
        ("<meta name=rove content=all>", ("noindex",), NOINDEX),
        ("<meta name=robots content='unavailable_after: 25-Jun-2010 11:00:00 EDT'>", (), NOINDEX),
        ("<meta name=robots content='unavailable_after: 25-Jun-2010 12:00:00 EDT'>", (), UNRESTRICTED),
        ("<meta name=robots content='max-image-preview: none'>", (), UNRESTRICTED),
    ],
)
def test_both_sources_of_a_page(html: str, tags: tuple[str, ...], expected: Directives) -> None:
    document = page(html, *tags)
    assert Directives(document.noindex, document.nofollow) == expected
    assert len(document.links) == (0 if expected.nofollow else 1)
    assert document.text == "t"


@pytest.mark.parametrize(
    "html",
    [
        '<meta http-equiv=refresh content="0;url=y">',
        "<link rel=canonical href=y>",
        "<link rel=next href=y>",
        "<map><area href=y></map>",
    ],
)
def test_nofollow_applies_to_refreshes_and_canonical_links(html: str) -> None:
    assert len(page(html).links) == 2
    assert page(html, "nofollow").links == ()
    assert page(f"<meta name=robots content=nofollow>{html}").links == ()


def test_a_page_of_robots_meta_elements_takes_little_time() -> None:
    started = time.process_time()
    document = page("<meta name=robots content='noindex,,,,'>" * 20_000)
    assert document.noindex
    assert time.process_time() - started < 2


def test_plain_text_has_the_header_only() -> None:
    source = PageSource(body=b"<meta name=robots content=none>", url="https://site.example/", content_type=None)
    plain = read_plain(source)
    assert (plain.noindex, plain.nofollow) == (False, False)
    plain = read_plain(replace(source, robots_tags=["noindex"]))
    assert (plain.noindex, plain.nofollow) == (True, False)
    dated = replace(source, robots_tags=["unavailable_after: 25 Jun 2010 15:00:00 GMT"], now=NOW)
    assert read_plain(dated).noindex
    assert not read_plain(replace(dated, now=NOW - 1)).noindex
