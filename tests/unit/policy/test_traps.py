"""The signs of traps in URLs: ordinary URLs have none, and clear traps are refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rove.policy.traps import REFUSED, penalty, signs
from tests.unit.urls.test_canonical import LIKE_URLS
from tests.urls import canonical

YEAR = 2026
A = "https://www.a.test"


def form(path: str) -> str:
    url = canonical(A + path)
    assert url is not None
    return url.text


GOOD = [
    "/",
    "/about",
    "/de/de/",
    "/index.php",
    "/index.php?id=12",
    "/?p=123456",
    "/?p=123456&preview=true",
    "/2019/05/12/title-of-the-story",
    "/2011/11/11/11-11-11-a-day-to-marry",
    "/11/11/11/",
    "/1987/06/12/tear-down-this-wall",
    "/news/2031/what-comes-next",
    "/archive/1865/04/14/page-1",
    "/lccn/sn83030213/1865-04-15/ed-1/seq-1/",
    "/history/events/1969",
    "/events/2026-04-05",
    "/events/2027/05/12/conference",
    "/events/123456",
    "/events/20451234",
    "/events/2045-a-look-ahead",
    "/event/1234-5",
    "/calendar/2026/05",
    "/calendar?month=5&year=2026",
    "/calendar/month/2025-12/",
    "/agenda-2030/",
    "/agenda-2063/goals",
    "/films?year=1994",
    "/blog/page/2/",
    "/blog/page/312/",
    "/list?page=87",
    "/forum/viewforum.php?f=12&start=350",
    "/forum/viewtopic.php?f=2&t=51234",
    "/showthread.php?t=123456&page=3",
    "/article/1234567890",
    "/products/blue-widget-4500",
    "/product?id=9&color=red&size=xl",
    "/w/index.php?title=Main_Page",
    "/wiki/Category:1950s_films",
    "/index.php?option=com_content&view=article&id=71&Itemid=5&lang=en",
    "/watch?v=dQw4w9WgXcQ&list=PL123&index=4",
    "/search?q=hello+world",
    "/search?q=a%26b%3Dc",
    "/search?q=AC%2FDC",
    "/tag/AC%252FDC",
    "/a?tag=AC%252FDC",
    "/web/20200101000000/http://example.org/page",
    "/user/repo/blob/main/src/main/java/org/user/repo/Main.java",
    "/gp/product/B00X4WHP5E/ref=as_li_tl",
    "/en/docs/guide/install/linux/debian/stable/amd64/notes",
    "/a/b/a/b",
    "/x/x",
    "/tiles/5/5/5.html",
    "/ru/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/" + "%D0%B0" * 60,
    "/jobs?location=berlin&radius=20&type=fulltime&remote=1&level=senior",
    "/doc.aspx?file=a.pdf&lang=de",
    "/?lang=de",
    "/download.php?path=/docs/a.txt",
    "/opac/record?id=1&id=2",
    "/item;v=2",
    "/@user/109382910",
    "/feed?format=rss",
    "/browse?dir=docs/2020",
    "/map?lat=52.5200&lon=13.4050&zoom=12",
    "/static/1.2.3/api/index.html",
    "/a//b",
    "/page/about-us",
    "/page-1984-by-george-orwell",
    "/books?title=1984&page=3",
]

SUSPECT = [
    "/x/x/x",
    "/en/a/en/b/en/c",
    "/a/a/a/boo.html",
    "/a//b//c//d",
    "/1/2/3/4/5/6/7/8/9/10/11/12",
    "/" + "x" * 800,
    "/a?" + "&".join(f"p{i}=1" for i in range(10)),
    "/a?id=1&id=2&id=3&id=4",
    "/a?tag[]=1&tag[]=2&tag[]=3&tag[]=4",
    "/a?page=1&page=1",
    "/login?return_to=%2Faccount",
    "/login?next=https%3A%2F%2Fwww.a.test%2Fx",
    "/login?back=%2Fx%3Fid%3D1",
    "/share?u=https://www.a.test/x",
    "/login?next=%2Flogin%3Fnext%3D%252Fx%253Fid%253D1",
    "/list?page=5000",
    "/list?page=100000",
    "/blog/page/20000/",
    "/list?offset=50000",
    "/list?start=3000000",
    "/list?sort=price",
    "/list?sort=price&order=asc",
    "/shop?orderby=price&min_price=10&max_price=90",
    "/shop?filter_color=red&filter_size=xl",
    "/shop?f[0]=color:red&f[1]=size:xl",
    "/post/?replytocom=12345",
    "/w/index.php?title=X&action=edit",
    "/w/index.php?title=X&action=history",
    "/w/index.php?title=X&oldid=123456",
    "/doku.php?id=x&do=revisions",
    "/page?print=1",
    "/page?format=print",
    "/post/?share=facebook",
    "/shop/?add-to-cart=99",
    "/list?dir=desc",
    "/calendar/2031/05",
    "/calendar/1969/05",
    "/calendar/1700/05",
    "/events/2031-04-05",
    "/events/list/2030/12",
    "/kalender/2030-01",
    "/calendar?month=1&year=1970",
    "/?month=2031-05",
    "/events/?tribe-bar-date=2033-05-01",
    "/agenda/2032/05/01",
]

REFUSED_ONES = [
    "/a/b/a/b/a/b",
    "/x/x/x/x/x",
    "/a/b/c/a/b/c/a/b/c/",
    "/img/img/img/img/img/x.png",
    "/en/1/en/2/en/3/en/4/en",
    "/" + "/".join(map(str, range(21))),
    "//////a",
    "/?" + "&".join(f"p{i}=1" for i in range(30)),
    "/?" + "&".join(f"p={i}" for i in range(15)),
    "/a?feature=app&feature=app&feature=app",
    "/login?next=%252Flogin%253Fnext%253D%25252Flogin%25253Fnext",
    "/r?u=https%25253A%25252F%25252Fa.test",
    "/list?page=1000000",
    "/list?page=99999999999999999999999",
    "/blog/page/1234567",
    "/s?sort=a&order=b&limit=c&filter=d&min_price=e&max_price=f",
    "/calendar/2087/05",
    "/calendar/2087",
    "/events/2087-05-01",
    "/kalender/woche/2040/12",
    "/calendar?month=1&year=2087",
    "/cal?date=20870501",
    "/login?return_to=https%3A%2F%2Fa.test%2Fx&redirect_to=%2Fa&sort=a&order=b&limit=9",
]


@pytest.mark.parametrize("path", GOOD)
def test_ordinary_urls_have_no_penalty(path: str) -> None:
    assert signs(form(path), YEAR) == []
    assert penalty(form(path), YEAR) == 0


@pytest.mark.parametrize("path", SUSPECT)
def test_suspicious_urls_have_a_penalty(path: str) -> None:
    assert 0 < penalty(form(path), YEAR) < REFUSED, signs(form(path), YEAR)


@pytest.mark.parametrize("path", REFUSED_ONES)
def test_clear_cases_are_refused(path: str) -> None:
    assert penalty(form(path), YEAR) >= REFUSED, signs(form(path), YEAR)


def test_signs_name_what_was_found() -> None:
    trap_signs = signs(form("/a/b/a/b/a/b?sort=x&page=20000"), YEAR)
    assert [sign.what for sign in trap_signs] == [
        "a path segment that occurs 3 times",
        "2 path segments that each occur 3 times",
        "parameters that sort or filter: 1",
        "page number 20,000",
    ]


@pytest.mark.parametrize(("year", "expected"), [(2026, 6), (2028, 6), (2029, 0), (2040, 0), (2010, REFUSED)])
def test_calendars_are_compared_with_the_current_year(year: int, expected: int) -> None:
    assert penalty(form("/calendar/2031/05"), year) == expected


@settings(max_examples=300, deadline=None)
@given(LIKE_URLS, st.integers(1, 9999))
@example("", 1)
@example("?", 2026)
@example("http://a.test/?&&&", 2026)
@example("http://a.test/?page=²³", 2026)
def test_any_text_has_a_penalty(text: str, year: int) -> None:
    trap_signs = signs(text, year)
    assert penalty(text, year) == sum(sign.penalty for sign in trap_signs)
    assert all(sign.penalty > 0 for sign in trap_signs)
    assert signs(text, year) == trap_signs


SEGMENTS = st.lists(st.text("abcxyz-12", min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(SEGMENTS, st.integers(1, 12))
def test_repeating_a_path_never_helps(segments: list[str], times: int) -> None:
    unit = "/" + "/".join(segments)
    assert penalty(A + unit * times, YEAR) <= penalty(A + unit * (times + 1), YEAR)
    assert penalty(A + unit * 21, YEAR) >= REFUSED


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["a=1", "b=2", "sort=x", "page=9000", "print=1"]), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_repeating_a_query_never_helps(parameters: list[str], times: int) -> None:
    def repeated(count: int) -> str:
        return f"{A}/?{'&'.join(parameters * count)}"

    assert penalty(repeated(times), YEAR) <= penalty(repeated(times + 1), YEAR)
    assert penalty(repeated(3), YEAR) >= REFUSED


def test_long_urls_take_linear_time() -> None:
    """Every pattern scans the text once; a scan from every position would take minutes."""
    for unit in ("=/%2f", "%25", "/page/", "/calendar/1", "a=%2F&", "/2087/", "[=%3"):
        penalty("https://a.test/calendar?" + unit * 40_000, YEAR)
        penalty("https://a.test/calendar/" + unit * 40_000, YEAR)
