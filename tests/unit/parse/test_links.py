"""The links of a page."""

from __future__ import annotations

import pytest

from rove.parse.html import PageSource, read_html
from rove.parse.links import refresh_target, resolve
from rove.policy.constants import DEFAULT_MAX_LINKS
from tests.urls import FORM

PAGE = "https://site.example/dir/page"


def links(html: str, url: str = PAGE) -> list[str]:
    source = PageSource(body=html.encode(), url=url, content_type="text/html; charset=utf-8")
    document = read_html(source, FORM)
    return [link.text for link in document.links]


def site(*paths: str) -> list[str]:
    return ["https://site.example" + path for path in paths]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="x">', site("/dir/x")),
        ("<A HREF=x>", site("/dir/x")),
        ('<a href="/x">', site("/x")),
        ('<a href="//other.example/x">', ["https://other.example/x"]),
        ('<a href="///other.example/x">', ["https://other.example/x"]),
        ('<a href="http://other.example">', ["http://other.example/"]),
        ('<a href="HTTPS://Other.Example/X">', ["https://other.example/X"]),
        ('<a href="?q=1&amp;r=2">', site("/dir/page?q=1&r=2")),
        ('<a href=" \n x \t">', site("/dir/x")),
        ('<a href="x\ny\tz">', site("/dir/xyz")),
        ('<a href="Talk:Main">', []),
        ('<a href="./Talk:Main">', site("/dir/Talk:Main")),
        ('<a href="x#part">', site("/dir/x")),
        ('<a href="x" target=_blank rel="noopener noreferrer">', site("/dir/x")),
        ('<area href="x">', site("/dir/x")),
        ('<map><area shape=rect href="x"><area href="y"></map>', site("/dir/x", "/dir/y")),
        ('<link rel=next href="x">', site("/dir/x")),
        ('<link rel="Canonical" href="x">', site("/dir/x")),
        ('<link rel="shortlink canonical" href="x">', site("/dir/x")),
        ('<body><link rel="next" href="x"></body>', site("/dir/x")),
        ('<p hidden><a href="x">', site("/dir/x")),
        ('<svg><a href="x"></a></svg>', site("/dir/x")),
        ('<a href="y">1</a><a href="x">2</a>', site("/dir/y", "/dir/x")),
        ('<link rel=next href="n"><a href="x">', site("/dir/n", "/dir/x")),
        ('<frameset><frame src="x"><frame src="y"></frameset>', site("/dir/x", "/dir/y")),
        ('<iframe src="x"></iframe><iframe src="//b.example/"></iframe>', [*site("/dir/x"), "https://b.example/"]),
        ('<frameset><frame src="x"><noframes><a href="y">t</a></noframes></frameset>', site("/dir/x", "/dir/y")),
    ],
)
def test_followed(html: str, expected: list[str]) -> None:
    assert links(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<a>",
        "<a href>",
        '<a href="">',
        '<a href=" ">',
        '<a href="#">',
        '<a href="#top">',
        '<a href="page">',
        '<a href="/dir/page#x">',
        '<a href="../dir/page?">',
        '<a name="x">',
        '<svg><a xlink:href="x"></a></svg>',
        '<a href="javascript:void(0)">',
        '<a href="JavaScript:void(0)">',
        '<a href=" javascript:x">',
        '<a href="java\nscript:x">',
        '<a href="mailto:a@site.example">',
        '<a href="tel:+123">',
        '<a href="data:text/html,x">',
        '<a href="ftp://site.example/x">',
        '<a href="zork:x">',
        '<a href="http://">',
        '<a href="http://[::1">',
        '<a href="x" rel="nofollow">',
        '<a href="x" rel="external NoFollow noopener">',
        '<a href="x" rel="ugc">',
        '<a href="x" rel="sponsored">',
        '<a href="x" rel="nofollow,noopener">',
        '<a href="x" rel="noopener, UGC">',
        '<area href="x" rel="nofollow">',
        '<area href="x" rel="ugc,external">',
        '<link rel="canonical nofollow" href="x">',
        '<link rel="next,sponsored" href="x">',
        '<link rel="next sponsored" href="x">',
        '<link rel="stylesheet" href="x">',
        '<link rel="alternate" href="x">',
        '<link rel="nextthing" href="x">',
        '<link href="x">',
        "<link rel=next>",
        '<img src="x">',
        "<iframe></iframe>",
        '<iframe src="about:blank"></iframe>',
        "<iframe srcdoc='<a href=y>'></iframe>",
        '<script>"<a href=x>"</script>',
        '<!-- <a href="x"> -->',
        '<template><a href="x"></template>',
        '<noscript><a href="x">n</a></noscript>',
        '<textarea><a href="x"></textarea>',
        f'<a href="{"x" * 2_001}">',
        f'<a href="{"x" * 1_990}">',
        f'<a href="data:image/png;base64,{"A" * 1_000_000}">',
    ],
)
def test_not_followed(html: str) -> None:
    assert links(html) == []


@pytest.mark.parametrize(
    "html",
    [
        '<a href="x"><a href="x">',
        '<a href="x"><a href=" x ">',
        '<a href="x"><a href="x#a"><a href="x#b">',
        '<a href="x"><a href="/dir/x"><a href="./x"><a href="HTTPS://SITE.example:443/dir/x">',
        '<a href="x" rel=nofollow><a href="x">',
        '<a href="x">1</a><area href="x"><link rel=next href="x">',
    ],
)
def test_each_once(html: str) -> None:
    assert links(html) == site("/dir/x")


def test_page_itself_is_known_by_its_fingerprint() -> None:
    assert links('<a href="/%7Eu">1</a><a href="/x">2</a>', "https://site.example/~u") == site("/x")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ('<base href="/other/">', "https://site.example/other/x"),
        ('<base href="sub/">', "https://site.example/dir/sub/x"),
        ('<base href="https://b.example/c/d">', "https://b.example/c/x"),
        ('<base href="//b.example/c/">', "https://b.example/c/x"),
        ('<base target=_top><base href="/other/">', "https://site.example/other/x"),
        ('<base href="/one/"><base href="/two/">', "https://site.example/one/x"),
        ('<base href="">', "https://site.example/dir/x"),
        ("<base href>", "https://site.example/dir/x"),
        ('<base href="javascript:x">', "https://site.example/dir/x"),
        ('<base href="data:text/plain,x">', "https://site.example/dir/x"),
        ('<base href="ftp://b.example/">', "https://site.example/dir/x"),
        ('<base href="http://[">', "https://site.example/dir/x"),
        ('<body><base href="/other/">', "https://site.example/other/x"),
    ],
)
def test_base(base: str, expected: str) -> None:
    assert links(f'{base}<a href="x">') == [expected]


@pytest.mark.parametrize("href", ["#", "#x", " #x"])
@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/other/", site("/other/")),
        ("/other/#y", site("/other/")),
        ("https://b.example/c?d", ["https://b.example/c?d"]),
        ("page", []),
        ("?utm_source=x", []),
        ("javascript:x", []),
    ],
)
def test_a_fragment_leads_to_the_base(base: str, href: str, expected: list[str]) -> None:
    assert links(f'<base href="{base}"><a href="{href}">1</a><a href="{href}2">2</a>') == expected


def test_base_counts_for_links_before_it() -> None:
    assert links('<body><a href="x">1</a><base href="/other/">') == site("/other/x")


def test_page_without_a_usable_url_has_its_absolute_links() -> None:
    html = '<a href="x">1</a><a href="https://other.example/">2</a>'
    assert links(html, "nonsense") == ["https://other.example/"]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        ("5; url=x", "x"),
        ("5; URL = x", "x"),
        ("5;\n url=x", "x"),
        (" 5 ;url=x", "x"),
        ("5,url=x", "x"),
        ("5 url=x", "x"),
        ("0.5;url=x", "x"),
        (".5;url=x", "x"),
        ("5;url='x'", "x"),
        ('5;url="x"', "x"),
        ("5;url='x\"y' rest", 'x"y'),
        ("5;url='x", "x"),
        ("5;x", "x"),
        ("5;'x'", "x"),
        ("5;url=x y", "x y"),
        ("5;urlx", "urlx"),
        ("5;url=a?b=c;d=e", "a?b=c;d=e"),
        ("5", None),
        ("5;", None),
        ("5;url=", None),
        ("5 ;url=", None),
        ("5;url=''", None),
        ("url=x", None),
        ("x;url=y", None),
        ("5x", None),
        ("", None),
    ],
)
def test_refresh_target(content: str, target: str | None) -> None:
    assert (refresh_target(content) or None) == target


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<meta http-equiv="refresh" content="0;url=x">', site("/dir/x")),
        ("<META HTTP-EQUIV=Refresh CONTENT=\"0; URL='x'\">", site("/dir/x")),
        ('<noscript><meta http-equiv=refresh content="0;url=x"></noscript>', []),
        ('<meta http-equiv=refresh content="0;url=//o.example">', ["https://o.example/"]),
        ('<meta http-equiv=refresh content="30">', []),
        ('<meta http-equiv=refresh content="0;url=page">', []),
        ('<meta http-equiv=refresh content="0;url=javascript:x">', []),
        ("<meta http-equiv=refresh>", []),
        ('<meta http-equiv=other content="0;url=x">', []),
    ],
)
def test_refresh(html: str, expected: list[str]) -> None:
    assert links(html) == expected


def test_the_number_of_links_is_limited() -> None:
    html = "".join(f'<a href="{number}">x</a>' for number in range(DEFAULT_MAX_LINKS + 10))
    assert links(html) == site(*(f"/dir/{number}" for number in range(DEFAULT_MAX_LINKS)))


def test_the_number_of_unusable_links_is_limited() -> None:
    unfit = [f"zork:{number}" for number in range(5_000)]
    assert resolve([*unfit, "x"], url=PAGE, form=FORM) == ((), True)
    assert [link.text for link in resolve([*unfit[1:], "x"], url=PAGE, form=FORM)[0]] == site("/dir/x")


def test_links_are_crawl_urls() -> None:
    ((link,), _) = resolve(["http://www.other.example:8080/x"], url=PAGE, form=FORM)
    assert (link.host, link.origin) == ("www.other.example", "http://www.other.example:8080")
    assert link.domain_name == "other.example"


def test_the_queries_that_are_escaped_in_the_encoding_of_the_page_are_limited() -> None:
    """A page full of them would take a second. The others are escaped in UTF-8."""
    hrefs = [f"?{number}{'é' * 100}" for number in range(600)]
    found, _ = resolve(hrefs, url=PAGE, form=FORM, encoding="windows-1252")
    assert found[0].text == f"{PAGE}?0{'%E9' * 100}"
    assert found[-1].text == f"{PAGE}?599{'%C3%A9' * 100}"
