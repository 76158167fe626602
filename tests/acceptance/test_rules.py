"""Rules in a real crawl: what is requested, stored and followed, and what the commands say about it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.acceptance.command import crawl_options, rove, rove_each, started, wait_for, write_lines
from tests.acceptance.results import check_books, exported_urls, frontier_rows, status_of
from tests.acceptance.site import Reply, site

A, B = "http://a.test", "http://b.test"
TAG = 'path ~ "/tag/"'


def answer(host: str, path: str) -> Reply:
    """Answer like a site with tags, short pages, a redirect to a tag and a sitemap."""
    match path:
        case "/robots.txt":
            return Reply(f"Sitemap: {A}/map.xml" if host == "a.test" else "", type="text/plain")
        case "/map.xml":
            urls = "".join(f"<url><loc>{A}{path}</loc></url>" for path in ("/listed", "/tag/listed"))
            return Reply(f"<urlset>{urls}</urlset>", type="text/xml")
        case "/":
            links = ("/long", "/short", "/moved", "/tag/1", f"{B}/tag/2", f"{B}/page", "http://c.test/")
            return Reply("A start page." + "".join(f'<a href="{link}">go</a>' for link in links))
        case "/moved":
            return Reply(status=302, headers={"Location": "/tag/3"})
        case "/short":
            return Reply('<p>Short.<a href="/from-short">go</a>')
    return Reply(f"<title>{path}</title>A longer text about {path}.<a href='{path}/more'>more</a>")


def test_rules_decide_what_is_requested_and_stored(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", f"{A}/", f"{A}/tag/seed")
    rules = write_lines(tmp_path / "rules", "# not the lists", f"reject {TAG}", "store-if seed or text_length > 15")
    given = ["--accept", 'domain in ("a.test", "b.test")', "--follow-if", "depth < 1 or text_length < 15"]
    with site(answer) as web:
        options = [*crawl_options(data, delay=0.02), *web.reach, "--sitemaps"]
        first = rove("crawl", seeds, *options, "--rules", rules, *given)
    assert first.returncode == 0, first.stderr
    pages = {f"{A}{path}" for path in ("/", "/long", "/short", "/moved", "/listed", "/from-short")} | {f"{B}/page"}
    assert {url for url in web.pages if not url.endswith("map.xml")} == pages
    assert exported_urls(data) == pages - {f"{A}/short", f"{A}/moved"}
    assert f"seeds.txt, line 2: {A}/tag/seed is rejected by rule 2: {TAG}" in first.stderr
    assert "1 new, 1 excluded or rejected by rules" in first.stderr
    check_books(data, web.urls)
    status = status_of(data)
    # The seed, two links, the redirect and a URL of the sitemap; a link to another domain; the links of four pages.
    assert status["not_accepted"] == {"rule-2": 5, "rule-1": 1, "rule-4": 4}
    assert status["blocked"] == {"not stored by rule 3: store only if seed or text_length > 15": 1}
    there = ["--data-dir", data]
    listed, chosen, tested, skipped, unknown = rove_each(
        [
            ["rules", *there],
            ["pages", "--where", 'status == 200 and path ~ "^/l" and not title startswith "/li"', "--json", *there],
            ["rules", "test", TAG, f"{A}/tag/", f"{A}/"],
            ["skipped", "--reason", "rule-2", "--json", *there],
            ["skipped", "--reason", "rule-x", *there],
        ]
    )
    assert listed.stdout.splitlines() == [
        '  1  accept domain in ("a.test", "b.test")  (1 not taken)',
        f"  2  reject {TAG}  (5 not taken)",
        "  3  store-if seed or text_length > 15  (1 not stored)",
        "  4  follow-if depth < 1 or text_length < 15  (4 not taken)",
    ]
    assert [json.loads(line)["url"] for line in chosen.stdout.splitlines()] == [f"{A}/long"]
    assert exported_urls(data, "--where", 'host == "b.test"') == {f"{B}/page"}
    assert tested.stdout == f"yes  {A}/tag/\nno   {A}/\n"
    examples = {(link["url"], link["page"]) for link in map(json.loads, skipped.stdout.splitlines())}
    found = {(f"{A}/tag/1", f"{A}/"), (f"{B}/tag/2", f"{A}/"), (f"{A}/tag/3", f"{A}/moved")}
    assert examples == found | {(f"{A}/tag/listed", f"{A}/map.xml")}
    assert unknown.returncode == 2 and "or rule-2 for a rule" in unknown.stderr
    tag, short, other = rove_each([["explain", url, *there] for url in (f"{A}/tag/9", f"{A}/short", "http://c.test/")])
    assert (
        f"{A}/tag/9 is not known to this crawl; a link to it would be refused: rejected by rule 2: {TAG}." in tag.stdout
    )
    assert " but not stored by rule 3: store only if seed or text_length > 15." in short.stdout
    assert 'refused: rejected by rule 1: accept only domain in ("a.test", "b.test").' in other.stdout


def test_bad_rules_are_refused_before_anything_is_created(tmp_path: Path) -> None:
    seeds, data = write_lines(tmp_path / "seeds.txt", f"{A}/"), tmp_path / "data"
    result = rove("crawl", seeds, *crawl_options(data), "--reject", 'path ~ "/tag/" and lang == "de"')
    assert result.returncode == 2 and not data.exists()
    assert (
        "'--reject': column 20 of" in result.stderr
        and "there is no fact lang; the facts are host, domain" in result.stderr
    )


def test_a_crawl_stays_in_the_directories_of_its_seeds(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", f"{A}/docs/", f"{B}/docs/")

    def reply(host: str, path: str) -> Reply:
        match (host, path):
            case (_, "/robots.txt"):
                return Reply(status=404)
            case ("b.test", "/docs/"):
                return Reply(status=301, headers={"Location": f"http://www.b.test{path}"})
            case (_, "/docs/out"):
                return Reply(status=302, headers={"Location": "/blog/"})
        links = ("/docs/1", "/docs/out", "/blog/", f"{A}/docs/2", f"{B}/", "http://c.test/docs/")
        return Reply(f"About {host}{path}." + "".join(f'<a href="{link}">go</a>' for link in links))

    with site(reply) as web:
        result = rove("crawl", seeds, *crawl_options(data, delay=0.02, processes=2), *web.reach, "--scope", "path")
    assert result.returncode == 0, result.stderr
    inside = ("/docs/", "/docs/1", "/docs/out")
    pages = {*(f"{A}{path}" for path in inside), f"{A}/docs/2"}
    pages |= {f"{B}/docs/", *(f"http://www.b.test{path}" for path in inside)}
    assert {*web.pages} == pages
    out, inner, unknown = rove_each(
        [["explain", url, "--data-dir", data] for url in (f"{A}/blog/", f"{A}/docs/3", "http://c.test/docs/")]
    )
    refused = "refused: only links into the directories of the seeds are followed, and it is in none of them."
    assert refused in out.stdout and refused in unknown.stdout
    assert "a link to it would be accepted" in inner.stdout
    assert "in scope: links are followed only into the directories of the seeds" in inner.stdout


def test_changed_rules_hold_at_once_and_bring_the_queue_in_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    paths = [f"/{kind}/{number}" for kind in ("tag", "page") for number in range(6)]
    seeds = write_lines(tmp_path / "seeds.txt", *(f"{A}{path}" for path in paths))
    blocked = "SELECT url, reason FROM url WHERE state = 2"
    applied = """SELECT 1 FROM meta WHERE key = 'rules' AND value LIKE '%"reject %"after":null%'"""
    with site(lambda _, path: Reply(status=404) if path == "/robots.txt" else Reply(f"A page at {path}.")) as web:
        rove("crawl", seeds, *crawl_options(data), *web.reach, "--max-pages", 1)
        assert rove("pause", "--data-dir", data).returncode == 0  # so that no visit blocks a URL
        with started("crawl", "--resume", "--data-dir", data, "--reject", TAG) as process:
            wait_for(lambda: frontier_rows(data, applied))
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[0]
        rejected = dict(frontier_rows(data, blocked))
        assert set(rejected.values()) == {f"rejected by rule 1: {TAG}"}
        assert {*rejected} <= {f"{A}{path}" for path in paths if "/tag/" in path} and len(rejected) >= 5
        assert f"the rules have changed: {len(rejected)} pending URLs blocked, 0 pending again" in said
        assert status_of(data)["blocked"] == {f"rejected by rule 1: {TAG}": len(rejected)}
        rove("unpause", "--data-dir", data)
        last = rove("crawl", "--resume", "--data-dir", data, "--reject", "none", "--delay", 0.05)
    assert last.returncode == 0, last.stderr
    assert "limits given now: " in last.stderr and "--reject none" in last.stderr
    assert f"the rules have changed: 0 pending URLs blocked, {len(rejected)} pending again" in last.stderr
    assert exported_urls(data) == {f"{A}{path}" for path in paths}
    assert frontier_rows(data, blocked) == []
    check_books(data, web.urls)
