"""A text that many pages share is stored once: in the files, in the output, after a kill and after a purge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

from tests.acceptance.command import (
    crawl_options,
    kill_hard,
    rove,
    rove_each,
    started,
    wait_for,
    write_lines,
)
from tests.acceptance.results import check_books, exported, frontier_rows, status_of
from tests.acceptance.site import Reply, Site, site

TEXT = "What all pages of these sites say, and more than once. " * 12
FIRST = "http://a.test/"
COPIES = ["http://a.test/1", "http://a.test/2", "http://b.test/", "http://b.test/1"]
OTHER = "http://b.test/other"
LINKS = {
    "a.test/": ["/1", "/2", "http://b.test/"],
    "a.test/1": [],
    "a.test/2": [],
    "b.test/": ["/1", "/other"],
    "b.test/1": [],
}
"""Only the first page links to the other site, so the first page is always the first with its text."""


def same(*links: str) -> Reply:
    anchors = "".join(f'<a href="{link}"></a>' for link in links)
    return Reply(f"<title>The same</title>{anchors}<p>{TEXT}</p>")


ANSWERS = {
    **{page: same(*links) for page, links in LINKS.items()},
    "b.test/other": Reply(f"<title>Another</title><p>{TEXT}, but for this.</p>"),
}


def records(data: Path) -> list[Any]:
    """Return the headers of all WARC records about pages."""
    found = []
    for path in sorted((data / "warc").iterdir()):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                record.content_stream().read()
                found.append(record.rec_headers)
    return [headers for headers in found if headers.get_header("WARC-Target-URI")]


def stored(data: Path) -> dict[str, str]:
    """Return the type of the WARC record of each page."""
    found = {h.get_header("WARC-Target-URI"): h.get_header("WARC-Type") for h in records(data)}
    assert len(found) == len(records(data))
    return found


def crawl(folder: Path, web: Site, *options: object) -> Path:
    data = folder / "data"
    seeds = write_lines(folder / "seeds.txt", FIRST)
    result = rove("crawl", seeds, *crawl_options(data, delay=0.05), *web.reach, *options)
    assert result.returncode == 0, result.stderr
    return data


def check_pages(data: Path, *urls: str) -> dict[str, dict[str, Any]]:
    """Check that exactly these pages are exported, each with its text, and return them by URL."""
    pages = {page["url"]: page for page in exported(data)}
    assert set(pages) == set(urls)
    for url, page in pages.items():
        assert TEXT.strip() in page["text"], url
        assert ("but for this" in page["text"]) is (url == OTHER)
    return pages


def test_one_text_many_pages(tmp_path: Path) -> None:
    with site(ANSWERS) as web:
        data = crawl(tmp_path, web)
    expected = dict.fromkeys(COPIES, "revisit") | dict.fromkeys([FIRST, OTHER], "conversion")
    assert stored(data) == expected
    for headers in records(data):
        if headers.get_header("WARC-Type") == "revisit":
            assert headers.get_header("WARC-Refers-To-Target-URI") == FIRST
    pages = check_pages(data, FIRST, OTHER, *COPIES)
    assert {page["text_record"]["offset"] for url, page in pages.items() if url != OTHER} == {
        pages[FIRST]["text_record"]["offset"]
    }
    assert {url: page.get("copy_of") for url, page in pages.items()} == {
        **dict.fromkeys(COPIES, FIRST),
        **dict.fromkeys([FIRST, OTHER]),
    }
    status = status_of(data)
    assert (status["pages"], status["copies"]) == (6, 4)
    shown = rove_each([["show", url, "--data-dir", data] for url in (FIRST, *COPIES)])
    for result in shown:
        assert result.returncode == 0 and TEXT.strip() in result.stdout, result
    assert [f"text of       {FIRST}," in result.stdout for result in shown] == [False] + [True] * 4
    people = rove("status", "--data-dir", data).stdout
    assert "4 of them copies of stored texts" in people
    check_books(data, web.urls)


def test_what_was_stored_is_known_after_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    answers = {**ANSWERS, "b.test/1": Reply(held=True)}
    with site(answers) as web:
        seeds = write_lines(tmp_path / "seeds.txt", FIRST)
        with started("crawl", seeds, *crawl_options(data, delay=0.05), *web.reach) as process:
            wait_for(lambda: "http://b.test/1" in web.urls)
            wait_for(lambda: len(frontier_rows(data, "SELECT 1 FROM url WHERE state = 1")) >= 4)
            kill_hard(process)
        answers["b.test/1"] = same()
        result = rove("crawl", "--resume", "--data-dir", data)
        assert result.returncode == 0, result.stderr
    assert Counter(stored(data).values()) == {"conversion": 2, "revisit": 4}
    check_pages(data, FIRST, OTHER, *COPIES)
    check_books(data, web.urls)


def test_a_purge_leaves_others_their_text(tmp_path: Path) -> None:
    with site(ANSWERS) as web:
        data = crawl(tmp_path, web, "--store", "both")
    assert rove("purge", "a.test", "--yes", "--data-dir", data).returncode == 0
    check_pages(data, OTHER, "http://b.test/", "http://b.test/1")
    assert not any("a.test" in str(headers) for headers in records(data))
    shown = rove("show", COPIES[0], "--data-dir", data)
    assert "it was purged" in shown.stdout and TEXT.strip() not in shown.stdout
    of_pages = "SELECT url FROM content JOIN request USING (visit) WHERE kind = 'page'"
    owners = {url for (url,) in frontier_rows(data, of_pages)}
    assert OTHER in owners and len(owners) == 2 and all("b.test" in url for url in owners)
    check_books(data, web.urls)
    assert rove("purge", "b.test", "--yes", "--data-dir", data).returncode == 0
    assert exported(data) == [] and list((data / "warc").iterdir()) == []
    assert frontier_rows(data, "SELECT 1 FROM content") == []
    assert frontier_rows(data, "SELECT 1 FROM request WHERE is_copy OR text_file IS NOT NULL") == []
