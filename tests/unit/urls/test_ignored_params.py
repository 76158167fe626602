"""Which parameters the canonical form removes from URLs, and which it keeps."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rove.errors import UsageError
from rove.urls.canonical import MAX_URL_LENGTH, UrlForm, parse_base
from rove.urls.ignored_params import BUILT_IN_NAMES, ignored_params_with, parse_names
from rove.urls.seed import parse_seed
from tests.unit.urls.test_canonical import LIKE_URLS
from tests.urls import FORM, canonical, form_dropping

HEX = "9682993c8daa2c5497996114facdc805"
A = "https://a.test"


BUILT_IN = ignored_params_with(())


def form(text: str, url_form: UrlForm = FORM) -> str:
    url = url_form.canonical(text)
    assert url is not None
    return url.text


DROPPED = [
    ("/?utm_source=x", "/"),
    ("/?utm_source=x&utm_medium=y&utm_anything", "/"),
    ("/a?id=1&utm_source=x", "/a?id=1"),
    ("/a?utm_source=x&id=1", "/a?id=1"),
    ("/a?x=1&utm_source=x&y=2", "/a?x=1&y=2"),
    ("/a?x=1&gclid=abc&y=2&fbclid=def", "/a?x=1&y=2"),
    ("/a?x=1;utm_source=x;y=2", "/a?x=1;y=2"),
    ("/a?utm_source=a;b=2", "/a?b=2"),
    ("/a?x=1&utm_source=x&", "/a?x=1&"),
    ("/a?%75tm_source=x", "/a"),
    ("/a?b=%41&utm_source=%", "/a?b=A"),
    ("/a?utm_source=https%3A%2F%2Fb.test%2F%3Fid%3D1", "/a"),
    ("/a?utm_source=b/c?d", "/a"),
    ("/a?msclkid=1&dclid=2&gbraid=3&wbraid=4&yclid=5&mc_cid=6&mc_eid=7&igshid=8", "/a"),
    ("/a?_ga=1&_gl=2&_hsenc=3&_hsmi=4&ref_src=twsrc%5Etfw", "/a"),
    ("/a;jsessionid=0A1B2C", "/a"),
    ("/a;jsessionid=0A1B2C.node1?id=3", "/a?id=3"),
    ("/a;JSESSIONID=1/b;jsessionid=2/c", "/a/b/c"),
    ("/a;v=1;jsessionid=2;w=3", "/a;v=1;w=3"),
    ("/..;jsessionid=1/b", "/b"),
    ("/a/..;jsessionid=1", "/"),
    ("/a?jsessionid=1", "/a"),
    (f"/a?PHPSESSID={HEX}&id=1", "/a?id=1"),
    ("/a.asp?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM", "/a.asp"),
    ("/a.cfm?CFID=12412453&CFTOKEN=15501799&id=1", "/a.cfm?id=1"),
    ("/a?osCsid=abc", "/a"),
    (f"/viewtopic.php?t=1&sid={HEX}", "/viewtopic.php?t=1"),
    (f"/a?sessionid={HEX}00", "/a"),
]  # fmt: skip

KEPT = [
    "/utm_source=x",
    "/a;v=1",
    "/a?autm_source=x",
    "/a?utm=x",
    "/a?q=utm_source",
    "/a?q=utm_source=x",
    "/a?gclids=1",
    "/a?UTM_SOURCE=x",
    "/a&utm_source=x",
    "/a?sid=123",
    "/a?sid",
    f"/a?sid={HEX[1:]}",
    f"/a?sid={HEX}-7",
    f"/a?asid={HEX}",
    f"/a?q={HEX}",
    "/a?cfid=12",
    "/a?session_id=keynote",
    "/a?ref=menu&source=x&cid=3&share=1&campaign=4",
    "/a?b=2&a=1",
    "/a/",
    "/index.html",
    "/a?",
    "/a??x",
]


@pytest.mark.parametrize(("text", "expected"), DROPPED)
def test_session_ids_and_click_trackers_are_removed(text: str, expected: str) -> None:
    assert form(A + text) == A + expected
    assert form(A + text, FORM.in_full) != A + expected
    assert BUILT_IN.names_in(form(A + text, FORM.in_full))


@pytest.mark.parametrize("text", KEPT)
def test_all_other_parameters_are_kept(text: str) -> None:
    assert form(A + text) == form(A + text, FORM.in_full)


def test_a_crawl_adds_its_own_names() -> None:
    names = ("mark", "x_*", "a[b]", "a.b")
    dropping, ignored = form_dropping(*names), ignored_params_with(names)
    assert form(f"{A}/?mark=1&x_=2&x_y=3&id=4&a[b]=5&a.b=6", dropping) == f"{A}/?id=4"
    assert (
        form(f"{A}/?marks=1&ax_=2&Mark=3&acb=4&utm_x=5", form_dropping("mark", "x_*", "a[b]", "a.b"))
        == f"{A}/?marks=1&ax_=2&Mark=3&acb=4"
    )
    assert ignored.names_in(f"{A}/a;mark=0?x_y=3&id=4&mark=1&x_y=5") == ["mark", "x_y"]


def test_links_and_seeds_lose_ignored_parameters() -> None:
    link = FORM.canonical("?utm_source=x&id=1", parse_base(f"{A}/dir/"))
    assert link is not None and link == canonical(f"{A}/dir/?id=1")
    assert parse_seed("a.test/?utm_source=x", FORM) == parse_seed("a.test", FORM)
    assert parse_seed(f"{A}/x?gclid=1", FORM) == parse_seed(f"{A}/x", FORM)


def test_the_length_limit_applies_after_removal() -> None:
    assert form(f"{A}/?utm_source={'x' * MAX_URL_LENGTH}") == f"{A}/"


def test_every_built_in_name_is_removed() -> None:
    names = "&".join(BUILT_IN_NAMES).replace("*", "")
    assert form(f"{A}/?{names}") == f"{A}/"


@pytest.mark.parametrize("given", [["b", "a", "b"], ["b", "a"], ["a", "b"]])
def test_names_are_sorted_and_unique(given: list[str]) -> None:
    assert parse_names(given) == ("a", "b")


@pytest.mark.parametrize("name", ["", " ", "a b", "a=1", "a&b", "a*b", "**", "*a", "ä", "a%20", "?a", "x" * 101])
def test_an_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(UsageError, match="is not a parameter name"):
        parse_names(["a", name])


def test_a_lone_star_is_rejected() -> None:
    with pytest.raises(UsageError, match="every parameter"):
        parse_names(["*"])


PARTS = [
    *("utm_x", "=1", "&", ";", "?", "/", "id", "sid", f"={HEX}", "%", "%75", ".."),
    *(";jsessionid=2", "cfid=1&cftoken=2"),
]
PIECES = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@settings(max_examples=500, deadline=None)
@given(st.one_of(LIKE_URLS, PIECES.map(f"{A}/".__add__)))
@example(f"{A}/?a=%41&utm_source=%")
@example(f"{A}/..;jsessionid=1/x")
def test_the_form_is_stable_with_and_without_the_list(text: str) -> None:
    url = FORM.canonical(text)
    if url is not None:
        assert FORM.canonical(url.text) == url
        assert canonical(url.text) == url
        assert not BUILT_IN.names_in(url.text)
