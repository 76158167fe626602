"""Legacy encodings are decoded by the WHATWG's indexes, and queries of links are encoded by them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rove.parse.html import PageSource, read_html
from rove.parse.labels import CODECS
from rove.parse.queries import escape_query
from rove.parse.whatwg import decode_as
from tests.urls import FORM

PAIRS = [bytes((lead, trail)) for lead in range(0x81, 0xFF) for trail in range(0x30, 0xFF)]
GB18030_OF_2022 = {  # the characters that Python still maps to the private use area
    **dict(zip(range(0xA6D9, 0xA6E0), "︐︒︑︓︔︕︖", strict=True)),
    0xA6EC: "︗",
    0xA6ED: "︘",
    0xA6F3: "︙",
    0xA8BC: "ḿ",
    0xA3A0: "\u3000",
    **dict(zip((0xFE59, 0xFE61, 0xFE66, 0xFE67, 0xFE6D, 0xFE7E, 0xFE90, 0xFEA0), "龴龵龶龷龸龹龺龻", strict=True)),
}
SINGLE_BYTE = [name for name in CODECS if name.startswith(("windows-", "iso-8859-", "koi8-", "mac", "x-mac", "ibm"))]
EXCEPTIONS = {("windows-1255", 0xCA): "\u05ba", ("koi8-u", 0xAE): "ў", ("koi8-u", 0xBE): "Ў"}


def of_one_byte(name: str, byte: int) -> str:
    """Return what the standard's index has: Python's table, with controls where Windows has nothing below A0."""
    if (name, byte) in EXCEPTIONS:
        return EXCEPTIONS[name, byte]
    char = bytes([byte]).decode(CODECS[name], "replace")
    return chr(byte) if char == "\ufffd" and byte < 0xA0 else char


@pytest.mark.parametrize("name", SINGLE_BYTE)
def test_single_bytes(name: str) -> None:
    expected = "".join(of_one_byte(name, byte) for byte in range(256))
    assert decode_as(name, bytes(range(256))) == expected


def differing(name: str, codec: str) -> Iterator[tuple[int, str, str]]:
    """Yield the pairs of bytes that are one character in both tables, but not the same."""
    for pair in PAIRS:
        standard = decode_as(name, pair)
        if "\ufffd" not in standard:
            other = pair.decode(codec, "replace")
            if "\ufffd" not in other and other != standard:
                yield int.from_bytes(pair), standard, other


@pytest.mark.parametrize("name", ["gbk", "gb18030"])
def test_gb18030(name: str) -> None:
    assert {code: char for code, char, _ in differing(name, "gb18030")} == GB18030_OF_2022
    assert decode_as(name, b"\x80 \xa2\xe3") == "€ €"
    assert decode_as(name, "𠀀ü㐀".encode("gb18030")) == "𠀀ü㐀"


def test_big5() -> None:
    assert all(pair.to_bytes(2).decode("cp950") == char for pair, char, _ in differing("big5", "big5hkscs"))
    assert len(list(differing("big5", "big5hkscs"))) == 11
    assert decode_as("big5", b"\x87\x40\x88\x62\x88\xa3") == "䏰Ê\u0304ê\u0304"


def test_shift_jis_and_euc_kr() -> None:
    assert list(differing("shift_jis", "cp932")) == []
    assert list(differing("euc-kr", "cp949")) == []
    assert decode_as("shift_jis", b"\x87\x40\xfa\x41\xb1\x80") == "①ⅱｱ\x80"


def as_shift_jis(lead: int, trail: int) -> bytes:
    """Return the bytes with which Shift_JIS has the character of the same row and cell."""
    pointer = (lead - 0xA1) * 94 + trail - 0xA1
    first, second = divmod(pointer, 188)
    return bytes((first + (0x81 if first < 0x1F else 0xC1), second + (0x40 if second < 0x3F else 0x41)))


def test_euc_jp_and_iso_2022_jp_have_the_rows_of_nec_and_ibm() -> None:
    """The standard has one index for all three. Rows 85 to 88 and 93 on are the users' own in Shift_JIS."""
    checked = 0
    for lead in range(0xA1, 0xFD):
        for trail in range(0xA1, 0xFF):
            expected = as_shift_jis(lead, trail).decode("cp932", "replace")
            if len(expected) == 1 and expected != "\ufffd" and not "\ue000" <= expected <= "\uf8ff":
                checked += 1
                assert decode_as("euc-jp", bytes((lead, trail))) == expected
                seven_bits = bytes((lead - 0x80, trail - 0x80))
                assert decode_as("iso-2022-jp", b"\x1b$B" + seven_bits + b"\x1b(B") == expected
    assert checked == 7_336
    assert decode_as("euc-jp", b"\xf9\xa1\xad\xa1\x8e\xb1") == "纊①ｱ"
    assert decode_as("euc-jp", b"\x8f\xb0\xa1") == "丂"


@pytest.mark.parametrize(
    ("encoding", "href", "escaped"),
    [
        ("windows-1251", "/я?q=Привет&x=1#я", "/я?q=%CF%F0%E8%E2%E5%F2&x=1#я"),
        ("windows-1252", "?q=é%20+'€", "?q=%E9%20+'%80"),
        ("windows-1252", "?q=я", "?q=%26%231103%3B"),
        ("gbk", "?q=中文€𠀀", "?q=%D6%D0%CE%C4%80%26%23131072%3B"),
        ("gb18030", "?q=𠀀", "?q=%952%826"),
        ("shift_jis", "?q=表①", "?q=%95\\%87@"),
        ("euc-jp", "?q=～纊①日", "?q=%A1%C1%F9%A1%AD%A1%C6%FC"),
        ("iso-2022-jp", "?q=日本a", "?q=%1B$BF|K\\%1B(Ba"),
        ("big5", "?q=中", "?q=%A4%A4"),
        ("euc-kr", "?q=한", "?q=%C7%D1"),
        ("iso-8859-2", "a?b?ł", "a?b?%B3"),
        ("windows-1252", "é", "é"),
        ("windows-1252", "#?é", "#?é"),
    ],
)
def test_queries(encoding: str, href: str, escaped: str) -> None:
    assert escape_query(href, encoding) == escaped


@pytest.mark.parametrize(
    ("charset", "codec", "link"),
    [
        ("windows-1251", "cp1251", "https://e.example/%D1%8F?q=%FF"),
        ("utf-8", "utf-8", "https://e.example/%D1%8F?q=%D1%8F"),
        ("utf-16", "utf-16", "https://e.example/%D1%8F?q=%D1%8F"),
    ],
)
def test_queries_of_a_page(charset: str, codec: str, link: str) -> None:
    body = "<a href='/я?q=я'>x</a>".encode(codec)
    page = PageSource(body=body, url="https://e.example/", content_type=f"text/html; charset={charset}")
    assert [found.text for found in read_html(page, FORM).links] == [link]
