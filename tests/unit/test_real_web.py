"""The benchmark's web of real-like pages: what it serves is what a crawl of it relies on."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from benchmarks import hostile_pages, lexbor_loop
from benchmarks.compare_pages import MEASURES, generated, quantiles, rows
from benchmarks.page_figures import FIGURES, QUANTILES, figures_of, quantile
from benchmarks.page_words import Vocabulary
from benchmarks.real_web import RealWeb
from benchmarks.web import WebPlan

from rove.errors import UsageError
from rove.parse.html import Document, PageSource, read_html
from rove.urls.canonical import NO_IDS

HOSTS = 50
KNOBS = ("real=true", "pages_per_host=40", "templates=8")


@pytest.fixture(scope="module")
def web() -> Iterator[RealWeb]:
    yield web_of()


def web_of(*knobs: str, pages: str = "") -> RealWeb:
    found = WebPlan(hosts=HOSTS, knobs=(*KNOBS, *knobs), pages=pages).web
    assert isinstance(found, RealWeb)
    return found


def read(web: RealWeb, host: str, path: str) -> Document:
    response = web.respond(host, path, codings=("gzip",))
    assert response.status == 200 and ("Content-Encoding", "gzip") in response.headers
    headers = dict(response.headers)
    body = gzip.decompress(response.body)
    assert web.respond(host, path, codings=()).body == body, "a client without gzip gets the same"
    return read_html(PageSource(body=body, url=f"http://{host}{path}", content_type=headers["Content-Type"]), NO_IDS)


def test_all_links_lead_to_pages_of_the_web(web: RealWeb) -> None:
    links = [
        link for host in list(web.seeds())[:8] for place in (0, 3) for link in read(web, host, web.path(place)).links
    ]
    hosts = {link.host for link in links}
    assert len(hosts) > 20, "pages link to other hosts"
    for link in links:
        path = urlsplit(link.text)
        target = path.path + (f"?{path.query}" if path.query else "")
        is_file = path.path.endswith((".pdf", "blank"))
        assert web.respond(link.host, target).status == 200 or is_file, link.text


def test_each_page_has_its_name_in_title_and_text(web: RealWeb) -> None:
    host = web.host_name(3)
    documents = [read(web, host, web.path(place)) for place in range(12)]
    assert len({document.utf8 for document in documents}) == len(documents), "no page is a copy of another one"
    for place, document in enumerate(documents):
        assert document.title.startswith(f"{host} {place} ")
        assert f"{host} {place}".encode() in document.utf8


def test_paths_are_canonical_and_known() -> None:
    web = web_of("pages_per_host=1000")
    host = web.plan.bare_host(0)
    for place in range(1_000):
        path = web.path(place)
        url = NO_IDS.canonical(f"http://{host.name}{path}")
        assert url is not None and url.text.endswith(path)
        spot = web.plan.find(host, path)
        assert spot is not None and spot.entry.number == place


def test_pages_are_the_same_in_every_process(web: RealWeb) -> None:
    again = web_of()
    host = web.host_name(0)
    assert web.respond(host, "/").body == again.respond(host, "/").body


def test_figures_follow_the_quantiles_of_real_pages() -> None:
    assert [round(quantile("text", share)) for share in QUANTILES[:-1]] == list(FIGURES["text"][:-1])
    elements = sorted(figures.elements for figures in figures_of(1, 100))
    assert elements[50] == pytest.approx(FIGURES["elements"][QUANTILES.index(0.5)], rel=0.02)


def test_generated_pages_are_as_large_as_their_figures() -> None:
    pages = generated(40)
    for measure, name in (("start tags", "elements"), ("text bytes", "text"), ("svg bytes", "svg")):
        median = quantiles(list(map(MEASURES[measure], pages)))[2]
        assert median == pytest.approx(FIGURES[name][QUANTILES.index(0.5)], rel=0.25, abs=200), measure
    assert len(rows({"generated": pages[:2]})) == len(MEASURES)


def test_text_has_about_the_length_that_was_asked_for() -> None:
    words = Vocabulary(random.Random(1))
    for length in (5, 500, 120_000):
        assert length <= len(words.prose(length)) < 1.1 * length + 60


# Hostile hosts


def test_a_share_of_the_hosts_is_hostile(web: RealWeb) -> None:
    hostile = web_of("hostile=0.2", "hostile_scale=0.01")
    found = {host for host in hostile.seeds() if hostile.is_hostile(host)}
    assert 0 < len(found) < HOSTS / 2
    assert not any(map(web.is_hostile, web.seeds()))
    names = set(hostile.seeds())
    for host in names:
        body = hostile.respond(host, hostile.path(1), codings=()).body
        plain = web.respond(host, web.path(1), codings=()).body
        assert (body != plain) is (host in found)
        if host in found:
            links = read_html(PageSource(body=body, url=f"http://{host}/", content_type=None), NO_IDS).links
            assert len(links) > 1 and {link.host for link in links} == {host}
    plan = WebPlan(hosts=HOSTS, knobs=(*KNOBS, "hostile=0.2", "hostile_scale=0.01"))
    assert {host for host in names if not plan.is_other(host)} == found


def test_the_largest_hostile_page_is_sent_both_ways() -> None:
    shapes = list(hostile_pages.shapes())
    sizes = [len(shape.rest) for shape in shapes]
    large = [shape for shape in shapes if len(shape.rest) == max(sizes)]
    assert {shape.is_compressed for shape in large} == {True, False}
    assert 0.95 * hostile_pages.LARGEST < max(sizes) < hostile_pages.LARGEST
    web = web_of("hostile=1", "hostile_scale=0.01")
    hosts = list(web.seeds())
    answers = [web.respond(host, "/", codings=("gzip",)) for host in hosts]
    codings = {dict(answer.headers).get("Content-Encoding", "") for answer in answers}
    assert codings == {"", "gzip"}


# Real pages from a folder

PAGE = b"""<!DOCTYPE html><html><head><title>Own title</title><base href="http://www.real.example/deep/">
<link rel="canonical" href="http://www.real.example/deep/page"><meta http-equiv="refresh" content="0;url=http://x.example/">
</head><body class=x><a href="/same">1</a> <a class='a>b' href='http://real.example/same'>2</a> <a href=other?x=1>3</a>
<a href="https://other.example/there#part">4</a> <a href="//other.example/">5</a> <a href="#top">6</a>
<a href="mailto:a@b.example">7</a> <a href="/picture.JPG">8</a> <iframe src="https://video.example/x"></iframe></body>"""


def test_links_of_real_pages_stay_in_the_web(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(PAGE)
    (tmp_path / "b.html.gz").write_bytes(gzip.compress(PAGE))
    web = web_of(pages=str(tmp_path))
    assert len(web.templates) == 2
    host = web.host_name(1)
    document = read(web, host, "/")
    assert f"{host} 0".encode() in document.utf8
    assert {link.host for link in document.links} <= set(web.seeds())
    assert len({link.host for link in document.links}) > 3
    body = gzip.decompress(web.respond(host, "/").body)
    assert b"/files/" in body and b".JPG" in body
    assert b'href="#top"' in body and b"mailto:a@b.example" in body
    assert b"<base" not in body and b"refresh" not in body
    first, second = (body.partition(end)[0].rpartition(b"href=")[2].strip(b"\"'") for end in (b">1</a>", b">2</a>"))
    assert first == second, "one page has one address"


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no page"):
        web_of(pages=str(tmp_path)).prepare()


# The loop of pycurl and Lexbor


@pytest.mark.parametrize(
    ("href", "joined"),
    [
        ("/d?e#f", "http://a.test/d?e"),
        ("d", "http://a.test/b/d"),
        ("../d", "http://a.test/d"),
        ("/x/../d", "http://a.test/d"),
        ("//b.test/", "http://b.test/"),
        ("https://b.test/#c", "https://b.test/"),
        ("#c", ""),
        ("mailto:a@b.test", ""),
        ("http://[", "http://["),
        ("//[", ""),
    ],
)
def test_the_loop_joins_links(href: str, joined: str) -> None:
    assert lexbor_loop.join("http://a.test/b/c", href) == joined


def test_the_loop_reads_the_links_of_a_page(web: RealWeb) -> None:
    host = web.host_name(2)
    body = zlib.decompress(web.respond(host, "/").body, 31)
    text, links = lexbor_loop.read(body, f"http://{host}/")
    assert f"{host} 0" in text
    ours = {link.text for link in read(web, host, "/").links}
    assert len(ours & links) > 0.9 * len(ours)
