"""The second version of the canonical form: what it leaves out of URLs, and what it does not."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rove.errors import UsageError
from rove.urls import ignored_params
from rove.urls.canonical import MAX_URL_LENGTH, canonical, fingerprint, parse_base, parse_seed
from rove.urls.ignored_params import (
    CANONICAL_VERSION,
    CANONICAL_VERSIONS,
    IgnoredParams,
    drops_of,
    parse_names,
)
from tests.unit.urls.test_canonical import LIKE_URLS

HEX = "9682993c8daa2c5497996114facdc805"
A = "https://a.test"


def the_drops(*names: str) -> IgnoredParams:
    found = drops_of(CANONICAL_VERSION, names)
    assert found is not None
    return found


DROPS = the_drops()


def form(text: str, drops: IgnoredParams | None = DROPS) -> str:
    found = canonical(text, None, drops)
    assert found is not None
    return found.text


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
def test_sessions_and_marks_of_clicks_are_dropped(text: str, expected: str) -> None:
    assert form(A + text) == A + expected
    assert form(A + text, None) != A + expected, "version 1 keeps them"
    assert DROPS.dropped(form(A + text, None))


@pytest.mark.parametrize("text", KEPT)
def test_all_else_is_kept(text: str) -> None:
    assert form(A + text) == form(A + text, None)


def test_a_crawl_adds_names_of_its_own() -> None:
    drops = the_drops("mark", "x_*", "a[b]", "a.b")
    assert form(f"{A}/?mark=1&x_=2&x_y=3&id=4&a[b]=5&a.b=6", drops) == f"{A}/?id=4"
    assert (
        form(f"{A}/?marks=1&ax_=2&Mark=3&acb=4&utm_x=5", drops)
        == f"{A}/?marks=1&ax_=2&Mark=3&acb=4"
    )
    assert drops.dropped(f"{A}/a;mark=0?x_y=3&id=4&mark=1&x_y=5") == ["mark", "x_y"]


def test_links_and_seeds_are_put_into_the_form() -> None:
    found = canonical("?utm_source=x&id=1", parse_base(f"{A}/dir/"), DROPS)
    assert found is not None and found == canonical(f"{A}/dir/?id=1")
    assert parse_seed("a.test/?utm_source=x", DROPS) == parse_seed("a.test")
    assert parse_seed(f"{A}/x?gclid=1", DROPS) == parse_seed(f"{A}/x")


def test_the_length_is_that_of_what_is_left() -> None:
    assert form(f"{A}/?utm_source={'x' * MAX_URL_LENGTH}") == f"{A}/"


def test_each_version_has_its_list() -> None:
    assert CANONICAL_VERSIONS == (1, 2)
    assert drops_of(1, ()) is None
    assert drops_of(2, ()) is drops_of(2, ())


def test_the_list_of_a_version_stays_what_it_is() -> None:
    """A crawl whose list changed would not know its own URLs: a longer list is a new version."""
    listed = (
        *ignored_params._NAMES,
        *ignored_params._SESSIONS,
        *ignored_params._WITH_VALUE,
    )
    assert fingerprint("\n".join(sorted(listed))) == 4311986091690539636
    names = "&".join(ignored_params._NAMES).replace("*", "")
    assert form(f"{A}/?{names}") == f"{A}/"


@pytest.mark.parametrize("given", [["b", "a", "b"], ["b", "a"], ["a", "b"]])
def test_the_names_are_kept_in_one_order(given: list[str]) -> None:
    assert parse_names(given) == ("a", "b")


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a=1", "a&b", "a*b", "**", "*a", "ä", "a%20", "?a", "x" * 101]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a parameter"):
        parse_names(["a", name])


def test_not_everything_can_be_dropped() -> None:
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
def test_the_form_comes_to_rest_and_is_one_of_version_1_too(text: str) -> None:
    found = canonical(text, None, DROPS)
    if found is not None:
        assert canonical(found.text, None, DROPS) == found
        assert canonical(found.text) == found
        assert not DROPS.dropped(found.text)


def test_the_examples_in_the_module_hold() -> None:
    assert doctest.testmod(ignored_params).failed == 0
