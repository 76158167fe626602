"""One page under many URLs, made-up pages, links to files: a crawl from its start to the output of the commands."""

from __future__ import annotations

import json
from pathlib import Path

from rove.model.urls import UrlState
from tests.acceptance.command import crawl_options, rove, rove_each, write_lines
from tests.acceptance.results import check_books, frontier_rows
from tests.acceptance.site import Reply, site

A = "http://a.test"
LINKS = (
    *("/x?utm_source=one", "/x?utm_source=two&gclid=3", "/x;jsessionid=4", "/x?mark=5"),
    *("/session", "/cal/cal/cal/cal/cal", "/calendar/2999/01"),
    *("/Photo.JPG?w=8", "/numbers.dat", "/wiki/File:Photo.jpg"),
)


def answer(host: str, path: str) -> Reply:
    """Answer like a site that tags its links, needs a session for one page, and never ends."""
    match path:
        case "/robots.txt":
            return Reply(status=404)
        case "/":
            return Reply("".join(f'<a href="{link}">go</a>' for link in LINKS))
        case "/session":
            return Reply(status=302, headers={"Location": "/session;jsessionid=1"})
    return Reply(f"<title>{path}</title>")


def test_one_page_has_one_name_and_neither_traps_nor_files_are_visited(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", f"{A}/?fbclid=1")
    with site(answer) as web:
        options = [*crawl_options(data, delay=0.02), *web.reach]
        first = rove("crawl", seeds, *options, "--drop-param", "mark", "--skip-extension", "dat")
    assert first.returncode == 0, first.stderr
    pages = [f"{A}/", f"{A}/x", f"{A}/session", f"{A}/session;jsessionid=1", f"{A}/wiki/File:Photo.jpg"]
    assert sorted(web.pages) == sorted(pages)
    done = frontier_rows(data, f"SELECT url FROM url WHERE state = {UrlState.DONE.value}")
    assert {url for (url,) in done} == {*pages} - {f"{A}/session"}
    check_books(data, web.urls)
    there = ["--data-dir", data]
    status, known, trap, file, shown, changed = rove_each(
        [
            ["status", "--json", *there],
            ["explain", f"{A}/x?mark=1&utm_term=2", "--json", *there],
            ["explain", f"{A}/calendar/2999/01", *there],
            ["explain", f"{A}/numbers.dat", *there],
            ["show", f"{A}/session;jsessionid=1", *there],
            ["crawl", "--resume", *there, "--drop-param", "other"],
        ]
    )
    assert json.loads(status.stdout)["not_accepted"] == {"trap": 2, "file-type": 2}
    said = json.loads(known.stdout)
    assert (said["url"], said["verdict"], said["dropped"]) == (
        f"{A}/x",
        "fetched",
        ["mark", "utm_term"],
    )
    assert "a link to it would be refused, unless it is a seed: it looks like a trap." in trap.stdout
    assert "a link to it would be refused, unless it is a seed: links to .dat files are not taken." in file.stdout
    assert "state         done" in shown.stdout
    assert changed.returncode == 2 and "started with --drop-param mark and cannot change that" in changed.stderr
