"""The oracle of the small web agrees with a crawl that sees only responses."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace

import brotli
import pytest
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

from rove.demo.profile import CALM, FULL, EntryKind, Profile, RobotsKind
from rove.demo.response import WebResponse
from rove.demo.web import STALL_SECONDS, SmallWeb
from rove.urls.canonical import CrawlUrl, parse_base
from tests.oracle import all_hosts, allowed, crawl_delay, expected_pages
from tests.urls import canonical

_DECODERS = {"gzip": gzip.decompress, "deflate": zlib.decompress, "br": brotli.decompress}


def path_of(url: CrawlUrl) -> str:
    return url.text.removeprefix(url.origin)


def header(response: WebResponse, name: str) -> str:
    return next((value for key, value in response.headers if key == name), "")


def text_of(response: WebResponse) -> str:
    decode = _DECODERS.get(header(response, "Content-Encoding"))
    body = decode(response.body) if decode else response.body
    declared = re.search(r"charset=([\w-]+)", header(response, "Content-Type"))
    if declared:
        return body.decode(declared[1])
    in_page = re.search(rb'<meta charset="([\w-]+)"', body)
    return body.decode(in_page[1].decode() if in_page else "utf-8", errors="replace")


def robots_of(web: SmallWeb, host: str) -> Protego | None:
    """Parse robots.txt with another parser; None if nothing may be fetched."""
    response = web.respond(host, "/robots.txt")
    if response.location:
        response = web.respond(host, response.location)
    if response.status >= 500:
        return None
    return Protego.parse(response.body.decode("utf-8-sig") if response.status == 200 else "")


class Page:
    """The parts of an HTML page that a crawler uses."""

    def __init__(self, url: CrawlUrl, html: str) -> None:
        self.tree = LexborHTMLParser(html)
        robots = self.tree.css_first('meta[name="robots"]')
        directives = (robots.attributes.get("content") or "").lower() if robots else ""
        self.noindex = "noindex" in directives
        self.nofollow = "nofollow" in directives
        base = self.tree.css_first("base[href]")
        self.base = parse_base((base.attributes["href"] if base else None) or url.text)

    def hrefs(self) -> Iterator[tuple[str, bool]]:
        for node in self.tree.css("a[href]"):
            yield node.attributes["href"] or "", "nofollow" in (node.attributes.get("rel") or "")

    def links(self) -> Iterator[CrawlUrl]:
        for href, nofollow in self.hrefs():
            url = canonical(href, self.base)
            if url is not None and not nofollow and not self.nofollow:
                yield url


def crawl(web: SmallWeb) -> tuple[set[str], Counter[str]]:
    """Return all pages that a polite crawler stores, and the number of links to each host."""
    stored: set[str] = set()
    named: Counter[str] = Counter()
    rules: dict[str, Protego | None] = {}
    seeds = [canonical(f"http://{host}/") for host in web.seeds()]
    queue = deque(url for url in seeds if url is not None)
    seen = {url.text for url in queue}

    def add(url: CrawlUrl) -> None:
        named[url.host] += 1
        if url.text not in seen:
            seen.add(url.text)
            queue.append(url)

    while queue:
        url = queue.popleft()
        if url.host not in rules:
            rules[url.host] = robots_of(web, url.host)
        allowing = rules[url.host]
        if allowing is None or not allowing.can_fetch(url.text, "rove"):
            continue
        response = web.respond(url.host, path_of(url), again=True)
        if response.location:
            target = canonical(response.location, parse_base(url.text))
            assert target is not None
            add(target)
            continue
        media_type = header(response, "Content-Type").partition(";")[0]
        failed = response.delay >= STALL_SECONDS or response.cut_after is not None
        if response.status != 200 or failed or not media_type.startswith("text/"):
            continue
        page = Page(url, text_of(response) if media_type == "text/html" else "")
        if not page.noindex:
            stored.add(url.text)
        for link in page.links():
            add(link)
    return stored, named


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "profile",
    [
        CALM,
        FULL,
        replace(CALM, pages_per_host=(20, 30), page_bytes=(9, 9), restricted=0.6),
        replace(
            CALM,
            offsite_share=0.0,
            entries={**CALM.entries, EntryKind.AWAY: 0},
            robots={**CALM.robots, RobotsKind.CLOSED: 40},
        ),
    ],
    ids=["calm", "full", "restricted", "islands"],
)
def test_a_crawl_finds_exactly_the_expected_pages(seed: int, profile: Profile) -> None:
    web = SmallWeb(seed, 30, profile)
    expected = {url for host in all_hosts(web) for url in expected_pages(web, host)}
    stored, named = crawl(web)
    assert stored == expected
    assert len(stored) > 100
    # Without links to other domains, www and blog hosts must be reached from their own domain.
    assert set(all_hosts(web)) <= set(named) | set(web.seeds())


@pytest.mark.parametrize("kind", list(RobotsKind))
def test_allowed_agrees_with_another_parser(kind: RobotsKind) -> None:
    web = SmallWeb(5, 30, replace(FULL, robots={kind: 1}, restricted=0.5))
    verdicts = Counter[bool]()
    for host in all_hosts(web):
        plan_host = web.plan.host(host)
        assert plan_host is not None
        assert plan_host.robots.kind is kind
        rules = robots_of(web, host)
        entries = [web.plan.entry(plan_host, position) for position in range(plan_host.entries)]
        paths = [web.plan.step(e, step).path for e in entries for step in range(e.steps + 1)]
        for path in [*paths, "/%70rivate/x", "/private", "/archive/open", "/archive/open/x"]:
            url = canonical(f"http://{host}{path}")
            assert url is not None
            expected = rules is not None and rules.can_fetch(url.text, "rove")
            assert allowed(web, host, path) == expected, (kind, path)
            verdicts[expected] += 1
        delay = 0.0 if rules is None else rules.crawl_delay("rove") or 0.0
        assert crawl_delay(web, host) == delay
    open_kinds = {RobotsKind.NONE, RobotsKind.EMPTY, RobotsKind.OPEN, RobotsKind.HTML}
    shut_kinds = {RobotsKind.CLOSED, RobotsKind.SHUT_OUT, RobotsKind.BROKEN}
    assert bool(verdicts[False]) == (kind not in open_kinds)
    assert bool(verdicts[True]) == (kind not in shut_kinds)


def test_some_rules_differ_for_other_crawlers() -> None:
    def others(kind: RobotsKind) -> Protego:
        web = SmallWeb(5, 1, replace(FULL, robots={kind: 1}))
        rules = robots_of(web, web.host_name(0))
        assert rules is not None
        return rules

    assert not others(RobotsKind.LAXER).can_fetch("http://a.test/", "otherbot")
    assert others(RobotsKind.SHUT_OUT).can_fetch("http://a.test/", "otherbot")
    assert others(RobotsKind.STRICTER).can_fetch("http://a.test/archive/x", "otherbot")


def test_every_link_leads_to_an_existing_address() -> None:
    web = SmallWeb(9, 60, replace(FULL, page_bytes=(9, 9)))
    forms = Counter[str]()
    for host in all_hosts(web):
        start = canonical(f"http://{host}/")
        assert start is not None
        response = web.respond(host, "/")
        if response.status != 200:
            continue
        page = Page(start, text_of(response))
        for href, _ in page.hrefs():
            url = canonical(href, page.base)
            if url is None or not url.host.endswith(".test"):
                forms["no web address"] += 1
                continue
            target = web.plan.host(url.host)
            assert target is not None, href
            assert web.plan.find(target, path_of(url)) is not None, href
            forms["other host" if url.host != host else "own host"] += 1
            forms["upper case"] += "TEST" in href
            forms["relative"] += href.startswith(("../", "./"))
            forms["protocol-relative"] += href.startswith("//")
            forms["fragment"] += "#" in href
            forms["other spelling"] += url.text != href
            forms["letters"] += "é" in href
    assert min(forms.values()) > 0, forms
    assert set(forms) == {
        "no web address",
        "other host",
        "own host",
        "upper case",
        "relative",
        "protocol-relative",
        "fragment",
        "other spelling",
        "letters",
    }
