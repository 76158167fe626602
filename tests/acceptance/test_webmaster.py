"""The answers to a webmaster who complains: the audit, why a URL was fetched or not, and every request to a site."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance.command import (
    EMAIL,
    crawl_options,
    kill_hard,
    rove,
    rove_each,
    start,
    wait_for,
    write_lines,
)
from tests.acceptance.results import check_audit, check_books, frontier_rows
from tests.acceptance.site import Reply, Site, site

DELAY = 0.2
HOSTILE = "<script>alert('title')</script><img src=x onerror=alert(1)>"
HOSTILE_PATH = "/a'><script>alert(2)</script>"
ROBOTS = "# </pre><script>alert(3)</script>\nUser-agent: *\nDisallow: /private/\n"


class Looked(NamedTuple):
    """A crawl that was killed, resumed and finished, and the site that it crawled."""

    data: Path
    web: Site


def answer(host: str, path: str) -> Reply:
    if path == "/robots.txt":
        if host == "led.test":
            return Reply(status=302, headers={"Location": "http://www.site.test/robots.txt"})
        return Reply(ROBOTS, type="text/plain")
    if path == "/gone":
        return Reply("gone", status=410)
    if path == "/moved":
        return Reply(status=301, headers={"Location": '/"><script>alert(4)</script>'})
    links = "".join(f'<a href="{link}">x</a>' for link in ("/b", "/gone", "/moved", "/private/c"))
    return Reply(f'<title>{HOSTILE}</title>{links}<a href="{HOSTILE_PATH}">y</a>')


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    folder = tmp_path_factory.mktemp("webmaster")
    data = folder / "data"
    hosts = ("site.test", "www.site.test", "other.test", "unwanted.test", "led.test")
    with site(answer) as web:
        seeds = write_lines(folder / "seeds.txt", *(f"http://{host}/" for host in hosts))
        crawl = start("crawl", seeds, *crawl_options(data, delay=DELAY), *web.reach)
        wait_for(lambda: len(web.requests) > 12)
        kill_hard(crawl)
        asked = len(web.requests)
        excluded = rove("exclude", "unwanted.test", "--reason", "a letter", "--data-dir", data)
        assert excluded.returncode == 0, excluded.stderr
        result = rove("crawl", "--resume", "--data-dir", data)
        assert result.returncode == 0, result.stderr
        assert "unwanted.test" not in {one.host for one in web.requests[asked:]}
    yield Looked(data, web)


def of_site(web: Site, domain: str) -> list[str]:
    """Return the requested URLs of a domain by the server's log."""
    return [asked.url for asked in web.requests if asked.host == domain or asked.host.endswith(f".{domain}")]


def records_of(data: Path, domain: str) -> list[dict[str, Any]]:
    result = rove("report", domain, "--json", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_audit_of_a_killed_crawl_is_clean(looked: Looked) -> None:
    said = check_books(looked.data, looked.web.urls)
    unchecked = [name for name, check in said["checks"].items() if not check["checked"]]
    assert unchecked == ["usage"], "only pages that were kept for training are checked for that"
    plain = rove("audit", "--data-dir", looked.data)
    assert plain.returncode == 0 and plain.stdout.startswith("no violations in "), plain.stdout


def test_an_audit_finds_what_is_wrong(looked: Looked, tmp_path: Path) -> None:
    """A check that cannot fail proves nothing, so audit the same ledger with one visit that came too soon."""
    data = tmp_path / "data"
    shutil.copytree(looked.data, data)
    soonest = check_audit(data)["smallest_margin"]
    too_soon = round(1000 * soonest["margin_s"]) + 100
    with closing(sqlite3.connect(data / "frontier.sqlite")) as ledger, ledger:
        ledger.execute(
            f"UPDATE request SET began = began - {too_soon}, ended = ended - {too_soon} WHERE visit = ?",
            (soonest["requests"][1]["visit"],),
        )
    result = rove("audit", "--json", "--data-dir", data)
    said = json.loads(result.stdout)
    assert result.returncode == 1 and not said["polite"]
    assert said["checks"]["delay"]["violations"] == 1
    assert said["violations"][0]["domain"] == soonest["domain"]


def test_explain_says_why(looked: Looked) -> None:
    verdicts = {
        "http://site.test/": ("fetched", "was fetched on"),
        "http://site.test/private/c": ("forbidden-by-robots", "robots.txt forbids it"),
        "http://unwanted.test/b": ("excluded", "is excluded"),
        "http://unwanted.test/never-met": ("excluded", "is excluded"),
        "http://site.test/gone": ("failed", "status 410"),
        "http://site.test/moved": ("redirected", "redirects to"),
        "http://unknown.test/x": ("unknown-would-be-accepted", "is not known to this crawl"),
        "http://site.test/private/new": ("unknown-would-be-accepted", "robots.txt forbids it"),
    }
    words = [["explain", url, "--data-dir", looked.data] for url in verdicts]
    told = rove_each([*words, *([*word, "--json"] for word in words)])
    for (url, (verdict, sentence)), plain, as_json in zip(
        verdicts.items(), told[: len(words)], told[len(words) :], strict=True
    ):
        assert plain.returncode == 0 and as_json.returncode == 0, plain.stderr + as_json.stderr
        found = json.loads(as_json.stdout)
        assert found["verdict"] == verdict, found
        assert sentence in found["sentence"] and found["sentence"] in plain.stdout, plain.stdout
        assert found["requests"] == looked.web.urls.count(url), url
    forbidden = json.loads(told[len(words) + 1].stdout)["robots"]["rule"]
    assert forbidden == {"line": 3, "text": "Disallow: /private/", "group": "*"}
    assert "a letter" in told[2].stdout
    wrong = rove("explain", "not a url", "--data-dir", looked.data)
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr, wrong


def test_a_report_lists_what_the_server_saw(looked: Looked) -> None:
    for domain in ("site.test", "other.test", "unwanted.test", "led.test"):
        head, *others = records_of(looked.data, domain)
        listed = Counter(record["url"] for record in others if record["record"] == "request")
        lost = {url for (url,) in frontier_rows(looked.data, "SELECT url FROM request WHERE settlement = 'lost'")}
        seen = Counter(of_site(looked.web, domain))
        # A request that was started when the crawl was killed may not have reached the server.
        assert not seen - listed, seen - listed
        assert set(listed - seen) <= lost, listed - seen
        assert head["requests"] == listed.total()
        assert head["contact"] == EMAIL and head["gaps"]["not_kept"] == 0
        assert head["excluded"] is (domain == "unwanted.test")
    records = records_of(looked.data, "site.test")
    texts = {record["text"] for record in records if record["record"] == "robots"}
    assert texts == {ROBOTS}
    plain = rove("report", "site.test", "--data-dir", looked.data)
    assert plain.returncode == 0 and EMAIL in plain.stdout
    for url in set(of_site(looked.web, "site.test")):
        assert url in plain.stdout, url


class _Page(HTMLParser):
    """Reads an HTML file as a browser would: closed elements, URLs to load, and the text."""

    VOID = frozenset({"meta", "link", "img", "br", "hr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_html_report_is_whole_and_harmless(looked: Looked, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    result = rove("report", "site.test", "--html", file, "--data-dir", looked.data)
    assert result.returncode == 0 and str(file) in result.stdout, result.stderr
    source = file.read_text(encoding="utf-8")
    page = _Page()
    page.feed(source)
    page.close()
    assert source.startswith("<!doctype html>") and not page.open, page.open
    assert page.seen["html"] == page.seen["head"] == page.seen["body"] == 1
    assert not {"script", "img", "iframe", "link", "object", "form", "base"} & set(page.seen)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for tag, name, value in page.attributes:
        if name in ("src", "href", "action", "data", "xlink:href"):
            assert tag == "a" and value.startswith("mailto:"), (tag, name, value)
    assert not re.search(r"url\(|@import", source)
    for url in set(of_site(looked.web, "site.test")):
        assert url in page.text, url
    assert "# </pre><script>alert(3)</script>" in page.text, "robots.txt is shown as it was"
    assert EMAIL in page.text and "Disallow: /" in page.text
    both = rove("report", "site.test", "--html", file, "--json", "--data-dir", looked.data)
    assert both.returncode == 2
    nowhere = rove("report", "site.test", "--html", tmp_path / "no/x", "--data-dir", looked.data)
    assert nowhere.returncode == 2 and "cannot write" in nowhere.stderr, nowhere.stderr


def test_a_report_on_a_site_that_was_never_asked(looked: Looked, tmp_path: Path) -> None:
    file = tmp_path / "never.html"
    words = ["report", "never.test", "--data-dir", looked.data]
    plain, as_json, html, wrong = rove_each(
        [words, [*words, "--json"], [*words, "--html", file], ["report", "...", *words[2:]]]
    )
    assert plain.returncode == 0 and "no request was ever made" in plain.stdout, plain
    head, *rest = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert as_json.returncode == 0 and not rest
    assert head["requests"] == 0 and head["first"] is None and head["excluded"] is False
    assert html.returncode == 0 and "no request was ever made" in file.read_text()
    assert wrong.returncode == 2 and "is not a domain" in wrong.stderr, wrong
