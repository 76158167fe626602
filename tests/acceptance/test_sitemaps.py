"""Sitemaps named by robots.txt are read with --sitemaps and ignored without it."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.acceptance.command import crawl_options, rove_each, write_lines
from tests.acceptance.results import check_books, exported_urls, frontier_rows, status_of
from tests.acceptance.site import Reply, site

XML = "application/xml"


def urlset(*urls: str) -> str:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?><urlset xmlns="{space}">{entries}</urlset>'


def index(*urls: str) -> str:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<?xml version="1.0"?><sitemapindex>{entries}</sitemapindex>'


ROBOTS = """\
Sitemap: http://a.test/index.xml
User-agent: *
Disallow: /private/
Disallow: /closed.xml
Sitemap: http://a.test/list.txt
Sitemap: http://a.test/closed.xml
Sitemap: http://maps.test/for-a.xml
"""

ANSWERS = {
    "a.test/robots.txt": Reply(ROBOTS, type="text/plain"),
    "a.test/": Reply("<title>home</title>"),
    "a.test/index.xml": Reply(
        index(
            "http://a.test/one.xml",
            "http://a.test/two.xml.gz",
            "http://b.test/strange.xml",
            "http://a.test/deeper.xml",
        ),
        type=XML,
    ),
    "a.test/one.xml": Reply(
        urlset("http://a.test/p1", "http://a.test/private/p", "http://b.test/no", "http://a.test/p2"),
        type=XML,
    ),
    "a.test/two.xml.gz": Reply(
        gzip.compress(urlset("http://a.test/p3", "http://www.a.test/no").encode()),
        type="application/gzip",
    ),
    "a.test/deeper.xml": Reply(index("http://a.test/deepest.xml"), type=XML),
    "a.test/deepest.xml": Reply(urlset("http://a.test/too-deep"), type=XML),
    "a.test/list.txt": Reply("http://a.test/p4\nhttp://b.test/no\nnonsense\n", type="text/plain; charset=utf-8"),
    "a.test/closed.xml": Reply(urlset("http://a.test/hidden"), type=XML),
    "maps.test/for-a.xml": Reply(urlset("http://a.test/p5", "http://maps.test/own", "http://b.test/no"), type=XML),
    **{f"a.test/p{number}": Reply(f"<title>{number}</title>") for number in range(1, 6)},
    "maps.test/own": Reply("<title>own</title>"),
}
PAGES = {f"http://a.test/{path}" for path in ("", "p1", "p2", "p3", "p4", "p5")}
MAPS = {
    f"http://{name}"
    for name in (
        "a.test/index.xml",
        "a.test/one.xml",
        "a.test/two.xml.gz",
        "a.test/deeper.xml",
        "a.test/list.txt",
        "maps.test/for-a.xml",
    )
}


def test_sitemaps_are_read_where_that_was_asked_for(tmp_path: Path) -> None:
    reading, plain = tmp_path / "reading", tmp_path / "plain"
    with site(ANSWERS) as web, site(ANSWERS) as other:
        seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/")
        with_maps = [*crawl_options(reading, delay=0.02), *web.reach, "--sitemaps"]
        without = [*crawl_options(plain, delay=0.02), *other.reach]
        results = rove_each([["crawl", seeds, *with_maps], ["crawl", seeds, *without]])
    assert [result.returncode for result in results] == [0, 0], results
    assert set(other.urls) == {"http://a.test/robots.txt", "http://a.test/"}
    assert set(web.pages) == PAGES | MAPS | {"http://maps.test/own"}
    assert len(web.urls) == len(set(web.urls)), "something was asked for twice"
    assert exported_urls(reading) == PAGES | {"http://maps.test/own"}
    assert status_of(reading)["urls"]["read"] == len(MAPS)
    asked = frontier_rows(reading, "SELECT DISTINCT url FROM request WHERE kind = 'sitemap'")
    assert {url for (url,) in asked} == MAPS
    check_books(reading, web.urls)
    check_books(plain, other.urls)
