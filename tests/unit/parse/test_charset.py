"""How the encoding of a body is detected. No label and no byte sequence raises an error."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.parse.charset import decode
from rove.parse.labels import CODECS, encoding_named

RUSSIAN = (
    "Сегодня утром в городе открылась большая выставка современной живописи. Посетители увидят более"
    " ста картин, многие из которых никогда раньше не показывали. Билеты можно купить в кассе музея."
    " Организаторы обещают, что экспозиция будет работать до конца следующего месяца без выходных."
)
JAPANESE = (
    "今日の朝、市内で新しい美術館が開館しました。館内には百点以上の作品が展示されており、"
    "その多くは初めて公開されるものです。入場券は窓口で購入できます。来月の末まで休まず開館します。"
    "ひらがなとカタカナも、もちろん漢字も使われています。コンピュータで読んでください。"
)
CHINESE = (
    "今天早上,市中心的一座新博物馆正式对外开放。馆内展出了一百多件作品,其中很多都是第一次公开展示。"
    "参观者可以在售票处购买门票,展览将持续到下个月底,中间不休息。我们希望大家都能来看看这些作品。"
)
TAIWANESE = (
    "今天早上,市中心的一座新博物館正式對外開放。館內展出了一百多件作品,其中很多都是第一次公開展示。"
    "參觀者可以在售票處購買門票,展覽將持續到下個月底,中間不休息。我們希望大家都能來看看這些作品。"
)
KOREAN = (
    "오늘 아침 시내에 새로운 박물관이 문을 열었습니다. 이곳에는 백 점이 넘는 작품이 전시되어 있으며,"
    " 그 가운데 많은 작품이 처음으로 공개되는 것입니다. 입장권은 매표소에서 살 수 있습니다."
)
FRENCH = (
    "Ce matin, une très belle exposition s'est ouverte à l'hôtel de ville. Les visiteurs découvriront"
    " plus de cent œuvres, dont plusieurs n'ont jamais été montrées. L'entrée est gratuite pour les"
    " élèves ; le musée reste fermé le lundi. « C'est un événement », a déclaré le maire."
)


def decode_with_name(body: bytes, content_type: str | None) -> tuple[str, str]:
    return decode(body, content_type)


def html(text: str, head: str = "") -> str:
    return f"<!doctype html><html><head>{head}<title>x</title></head><body><p>{text}</p></body>"


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("utf-8", "utf-8"),
        ("UTF8", "utf-8"),
        ("  utf-8\n", "utf-8"),
        ("latin-1", "windows-1252"),
        ("iso-8859-1", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("ascii", "windows-1252"),
        ("x-user-defined", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("iso-8859-11", "windows-874"),
        ("tis-620", "windows-874"),
        ("gb2312", "gbk"),
        ("GB_2312-80", "gbk"),
        ("gb18030", "gb18030"),
        ("big5-hkscs", "big5"),
        ("x-sjis", "shift_jis"),
        ("windows-31j", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("koi8", "koi8-r"),
        ("win-1251", None),
        ("hex", None),
        ("rot13", None),
        ("zlib", None),
        ("idna", None),
        ("punycode", None),
        ("utf-7", None),
        ("unicode_escape", None),
        ("undefined", None),
        ("hz-gb-2312", None),
        ("", None),
    ],
)
def test_labels(label: str, encoding: str | None) -> None:
    assert encoding_named(label) == encoding


def test_every_codec_reads_any_byte() -> None:
    for codec in CODECS.values():
        assert isinstance(bytes(range(256)).decode(codec, "replace"), str)


def test_names_are_labels_of_themselves() -> None:
    assert {name: encoding_named(name) for name in CODECS} == {name: name for name in CODECS}


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("utf-8", "utf-8", "naïve — 日本 😀"),
        ("windows-1251", "cp1251", RUSSIAN),
        ("koi8-r", "koi8-r", RUSSIAN),
        ("ibm866", "cp866", "Привет"),
        ("shift_jis", "cp932", JAPANESE + "①㈱"),
        ("euc-jp", "euc_jp", JAPANESE),
        ("euc-jp", "euc_jis_2004", "①㈱"),
        ("iso-2022-jp", "iso2022_jp", JAPANESE),
        ("gb2312", "gb18030", CHINESE + "㐀"),
        ("big5", "big5", TAIWANESE),
        ("euc-kr", "cp949", KOREAN + "똠"),
        ("iso-8859-1", "cp1252", "«café» – 20 €"),
        ("iso-8859-2", "iso8859-2", "Zażółć gęślą jaźń"),
        ("windows-1253", "cp1253", "Καλημέρα"),
        ("windows-1254", "cp1254", "İyi günler"),
        ("windows-1255", "cp1255", "שלום"),
        ("windows-1256", "cp1256", "مرحبا"),
        ("tis-620", "cp874", "สวัสดี"),
        ("macintosh", "mac-roman", "café"),
        ("utf-16le", "utf-16-le", "naïve"),
        ("utf-16be", "utf-16-be", "naïve"),
        ("utf-16", "utf-16-le", "naïve"),
    ],
)
def test_header(label: str, codec: str, text: str) -> None:
    body = html(text).encode(codec)
    assert decode_with_name(body, f"text/html; charset={label}") == (html(text), encoding_named(label))


@pytest.mark.parametrize(
    "content_type",
    [
        "text/html; charset=koi8-r",
        "text/html;charset=KOI8-R",
        'text/html; charset="koi8-r"',
        "text/html; charset='koi8-r'",
        "text/html; charset = koi8-r; boundary=x",
        "text/html; a=b; Charset=koi8-r,text/html",
    ],
)
def test_header_spellings(content_type: str) -> None:
    assert decode_with_name("Привет".encode("koi8-r"), content_type) == ("Привет", "koi8-r")


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="windows-1251">',
        "<meta charset=windows-1251>",
        "<META CHARSET='Windows-1251' />",
        "<meta/charset=windows-1251>",
        '<meta\n  charset = "windows-1251"\n>',
        '<meta name="a>b" charset="windows-1251">',
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        '<meta content="text/html;charset=windows-1251" http-equiv=content-type>',
        "<meta http-equiv=content-type content='text/html; charset=\"windows-1251\"'>",
        '<meta charset="bogus"><meta charset="windows-1251">',
        '<meta charset=""><meta charset="windows-1251">',
        '<!-- <meta charset="koi8-r"> --><meta charset="windows-1251">',
        '<meta name="x" content="text/html; charset=koi8-r"><meta charset="windows-1251">',
        f"<script>{'x' * 2_000}</script><meta charset=windows-1251>",
    ],
)
def test_meta(head: str) -> None:
    text = html("Привет", head)
    assert decode_with_name(text.encode("cp1251"), "text/html") == (text, "windows-1251")


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="utf-16">', "utf-8"),
        ('<meta charset="utf-16be">', "utf-8"),
        ('<meta charset="x-user-defined">', "windows-1252"),
        ('<meta charset="utf-7">', "utf-8"),
        ('<meta charset="hex">', "utf-8"),
        ("<meta charset", "utf-8"),
        ("<meta charset=", "utf-8"),
        ("<meta charset='", "utf-8"),
        ("<!-- <meta charset=koi8-r>", "utf-8"),
        (f"{' ' * 5_000}<meta charset=koi8-r>", "utf-8"),
    ],
)
def test_meta_that_means_something_else(head: str, encoding: str) -> None:
    assert decode_with_name(head.encode(), "text/html") == (head, encoding)


@pytest.mark.parametrize(
    ("late", "encoding"),
    [
        ("<meta http-equiv=content-type content='text/html; charset=koi8-r'>", "koi8-r"),
        ("<META CHARSET=KOI8-R>", "koi8-r"),
        ("<!-- <meta charset=koi8-r> -->", "windows-1251"),
        ("<meta charset=hex>", "windows-1251"),
    ],
)
def test_a_late_declaration_is_better_than_a_guess(late: str, encoding: str) -> None:
    text = f"<style>{'x' * 100_000}</style>{RUSSIAN}{late}"
    assert decode_with_name(text.encode("cp1251"), None)[1] == encoding
    assert decode_with_name(text.encode(), None) == (text, "utf-8"), "valid UTF-8 is no coincidence"


@pytest.mark.parametrize(
    ("before", "encoding"),
    [
        ("<meta charset=unknown>" * 99, "koi8-r"),
        ("<meta charset=unknown>" * 100, "windows-1251"),
        ("<meta name=description content=x>" * 4_000, "koi8-r"),
        ("<meta name=description content=x>" * 5_000, "windows-1251"),
        ("<!-- x -->" * 4_000, "koi8-r"),
        ("<!-- x -->" * 5_000, "windows-1251"),
        (f"<meta name=description content='{'x' * 900} charset'>", "koi8-r"),
        ("<!--", "windows-1251"),
    ],
)
def test_the_search_for_a_late_declaration_is_bounded(before: str, encoding: str) -> None:
    text = f"<style>{'x' * 5_000}</style>{RUSSIAN}{before}<meta charset=koi8-r>"
    assert decode_with_name(text.encode("cp1251"), None)[1] == encoding


def test_xml_declaration() -> None:
    text = '<?xml version="1.0" encoding="koi8-r"?><html><body>Привет'
    assert decode_with_name(text.encode("koi8-r"), "application/xhtml+xml") == (text, "koi8-r")


def test_meta_is_stronger_than_xml_declaration() -> None:
    text = '<?xml version="1.0" encoding="koi8-r"?><meta charset="windows-1251">Привет'
    assert decode_with_name(text.encode("cp1251"), None) == (text, "windows-1251")


def test_header_is_stronger_than_meta() -> None:
    text = html("Привет", '<meta charset="koi8-r">')
    assert decode_with_name(text.encode("cp1251"), "text/html; charset=cp1251") == (text, "windows-1251")


def test_unknown_header_gives_way_to_meta() -> None:
    text = html("Привет", '<meta charset="koi8-r">')
    assert decode_with_name(text.encode("koi8-r"), "text/html; charset=none") == (text, "koi8-r")


@pytest.mark.parametrize(
    ("mark", "codec", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8", "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16le"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16be"),
    ],
)
def test_mark_is_stronger_than_header_and_meta(mark: bytes, codec: str, encoding: str) -> None:
    text = html("Привет", '<meta charset="koi8-r">')
    body = mark + text.encode(codec)
    assert decode_with_name(body, "text/html; charset=windows-1251") == (text, encoding)


@pytest.mark.parametrize(("codec", "encoding"), [("utf-16-le", "utf-16le"), ("utf-16-be", "utf-16be")])
def test_wide_characters_without_mark(codec: str, encoding: str) -> None:
    text = html("naïve")
    assert decode_with_name(text.encode(codec), "text/html") == (text, encoding)


def test_lying_label_gives_replacement_characters() -> None:
    assert decode_with_name("café".encode("latin-1"), "text/html; charset=utf-8") == ("caf\ufffd", "utf-8")


def test_utf8_without_label() -> None:
    assert decode_with_name("Привет, 日本".encode(), None) == ("Привет, 日本", "utf-8")


def test_utf8_cut_inside_a_character() -> None:
    assert decode_with_name("Привет".encode()[:-1], None) == ("Приве\ufffd", "utf-8")


@pytest.mark.parametrize(
    ("codec", "encoding", "text"),
    [
        ("cp1251", "windows-1251", RUSSIAN),
        ("koi8-r", "koi8-r", RUSSIAN),
        ("cp932", "shift_jis", JAPANESE),
        ("euc_jp", "euc-jp", JAPANESE),
        ("gb18030", "gb18030", CHINESE),
        ("big5", "big5", TAIWANESE),
        ("cp949", "euc-kr", KOREAN),
        ("cp1252", "windows-1252", FRENCH),
    ],
)
@pytest.mark.parametrize("padding", [0, 100_000])
def test_guess(codec: str, encoding: str, text: str, padding: int) -> None:
    page = f"<script>{'x' * padding}</script>{html(text)}"
    assert decode_with_name(page.encode(codec), "text/html") == (page, encoding)


def test_guess_is_never_worse_than_windows_1252() -> None:
    assert decode_with_name(b"\x81\x8d\xff\xfe\x00", None)[1] in CODECS


def test_empty() -> None:
    assert decode_with_name(b"", None) == ("", "utf-8")
    assert decode_with_name(b"", "text/html; charset=utf-16") == ("", "utf-16le")


LABELS = st.sampled_from(["", "utf-8", "gb2312", "x-sjis", "big5", "utf-16", "hex", "iso-2022-jp"])


@given(body=st.binary(max_size=300), header=LABELS, meta=LABELS)
def test_any_bytes_are_read(body: bytes, header: str, meta: str) -> None:
    body = f"<meta charset={meta}>".encode() + body
    text, encoding = decode_with_name(body, f"text/html; charset={header}")
    assert encoding in CODECS
    assert text.encode("utf-8").decode("utf-8") == text
