"""A calm web crawled to its end: the stored pages, and the commands that show them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from rove.urls.domain import domain_of
from tests.acceptance.command import Completed, crawl_options, rove, rove_each
from tests.acceptance.results import exported, exported_urls, frontier_rows, status_of
from tests.acceptance.small_web import ServedWeb, served
from tests.oracle import all_hosts
from tests.urls import canonical

DONE = 1
KNOBS = ["crawl_delay=0.2"]
WARCIO = "import sys; sys.modules['brotli'] = None; from warcio.cli import main; main()"
"""Runs warcio without brotli, because it cannot use the brotli package that rove uses."""


@dataclass(frozen=True)
class Crawled:
    """A web and a finished crawl of it."""

    web: ServedWeb
    data: Path
    result: Completed


def crawl_all(folder: Path, *, hosts: int, options: tuple[object, ...] = ()) -> Iterator[Crawled]:
    data = folder / "data"
    with served(folder, hosts=hosts, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(folder / "seeds.txt")
        given = [*crawl_options(data, delay=0.05), *web.reach, *options]
        yield Crawled(web, data, rove("crawl", seeds, *given))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    yield from crawl_all(tmp_path_factory.mktemp("calm"), hosts=25)


def warc_files(data: Path) -> list[Path]:
    return sorted((data / "warc").glob("*.warc.gz"))


def check_warc_files(data: Path) -> None:
    """Check that all files are closed and that `warcio check` accepts them, digests included."""
    files = warc_files(data)
    assert files
    assert sorted((data / "warc").iterdir()) == files, "something is left open"
    command = [sys.executable, "-c", WARCIO, "check", "-v", *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "digest pass" in checked.stdout
    assert "digest failed" not in checked.stdout


def records(data: Path, kind: str) -> dict[str, tuple[Any, bytes]]:
    """Return the headers and the raw content of all records of a type, by URL."""
    found = {}
    for path in warc_files(data):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == kind:
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    assert url not in found, f"{url} is stored twice"
                    found[url] = (record.rec_headers, record.raw_stream.read())
    return found


def test_the_crawl_ends_by_itself_with_exactly_the_pages_there_are(crawled: Crawled) -> None:
    assert crawled.result.returncode == 0, crawled.result.stderr
    assert "exhausted" in crawled.result.stderr
    assert crawled.result.stdout == ""
    assert exported_urls(crawled.data) == crawled.web.expected()


def test_the_stored_files_are_closed_and_whole(crawled: Crawled) -> None:
    check_warc_files(crawled.data)
    assert set(records(crawled.data, "conversion")) == crawled.web.expected()
    assert not records(crawled.data, "response")


def test_status_agrees_with_what_was_collected(crawled: Crawled) -> None:
    status = status_of(crawled.data)
    pages = len(crawled.web.expected())
    assert set(status) >= {"urls", "domains", "pages", "bytes", "elapsed_s"}
    assert set(status["urls"]) == {"pending", "done", "blocked", "failed", "redirected", "read"}
    assert set(status["domains"]) == {"idle", "waiting", "ready", "leased", "excluded"}
    assert status["pages"] == status["urls"]["done"] == pages
    assert status["urls"]["pending"] == 0
    assert status["domains"]["idle"] == sum(status["domains"].values()) == crawled.web.web.hosts
    assert status["bytes"] > 0 and status["elapsed_s"] > 0
    assert status["running"] is False
    by_state = dict(frontier_rows(crawled.data, "SELECT state, count(*) FROM url GROUP BY state"))
    names = ["pending", "done", "blocked", "failed", "redirected", "read"]
    assert {name: by_state.get(i, 0) for i, name in enumerate(names)} == status["urls"]
    assert status["requests"] == len(crawled.web.requests())
    for_people = rove("status", "--data-dir", crawled.data)
    assert for_people.returncode == 0 and f"{pages:,}" in for_people.stdout


def test_no_url_is_done_without_a_record(crawled: Crawled) -> None:
    without = frontier_rows(
        crawled.data,
        f"""SELECT url.url FROM url LEFT JOIN request AS r
            ON r.visit = url.visit AND r.fingerprint = url.fingerprint AND r.kind = 'page'
            WHERE url.state = {DONE} AND r.text_file IS NULL""",
    )
    assert without == []


def test_pages_are_listed_by_domain_status_and_number(crawled: Crawled) -> None:
    domain = crawled.web.web.host_name(0)
    words = ["pages", "--data-dir", crawled.data]
    every, some, missing, own, plain = rove_each(
        [
            [*words, "--limit", 100_000, "--json"],
            [*words, "--limit", 3, "--json"],
            [*words, "--status", 404, "--limit", 100_000, "--json"],
            [*words, "--domain", domain, "--limit", 100_000, "--json"],
            words,
        ]
    )
    rows = [json.loads(line) for line in every.stdout.splitlines()]
    asked = [request for request in crawled.web.requests() if not request.for_robots]
    assert sorted(row["url"] for row in rows) == sorted(request.url for request in asked)
    assert [json.loads(line) for line in some.stdout.splitlines()] == rows[:3]
    visits = [row["visit"] for row in rows]
    assert visits == sorted(visits, reverse=True), "not the newest first"
    not_found = [json.loads(line)["url"] for line in missing.stdout.splitlines()]
    assert not_found == [row["url"] for row in rows if row["status"] == 404]
    assert not_found
    of_domain = {json.loads(line)["url"] for line in own.stdout.splitlines()}
    assert of_domain == {row["url"] for row in rows if domain_of_url(row["url"]) == domain}
    assert len(plain.stdout.splitlines()) == 20
    assert all("http://" in line for line in plain.stdout.splitlines())


def domain_of_url(url: str) -> str:
    found = canonical(url)
    assert found is not None
    return domain_of(found.host)


def test_export_is_one_json_object_a_page_with_its_text(crawled: Crawled) -> None:
    pages = exported(crawled.data)
    assert all({"url", "fetched", "status", "title", "text"} <= set(page) for page in pages)
    assert {page["status"] for page in pages} == {200}
    assert sum(bool(page["text"]) for page in pages) > len(pages) / 2
    domain = crawled.web.web.host_name(1)
    own = [host for host in all_hosts(crawled.web.web) if host.endswith(domain)]
    assert exported_urls(crawled.data, "--domain", domain) == crawled.web.expected(own)


def test_export_may_be_cut_short_by_who_reads_it(crawled: Crawled) -> None:
    command = [sys.executable, "-m", "rove", "export", "--data-dir", str(crawled.data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


def test_show_tells_the_record_and_the_text(crawled: Crawled) -> None:
    page = next(page for page in exported(crawled.data) if page["title"] and page["text"])
    redirects = frontier_rows(crawled.data, "SELECT url, reason FROM url WHERE state = 4 LIMIT 1")
    shown, spelled, redirected = rove_each(
        [
            ["show", page["url"], "--data-dir", crawled.data],
            [
                "show",
                page["url"].replace("http://", "HTTP://") + "#part",
                "--data-dir",
                crawled.data,
            ],
            ["show", redirects[0][0], "--data-dir", crawled.data],
        ]
    )
    assert shown.returncode == 0, shown.stderr
    record, _, text = shown.stdout.partition("\n\n")
    assert text == page["text"] + "\n"
    for part in (page["url"], "done", "200", page["title"], page["text_record"]["file"]):
        assert part in record
    assert spelled.stdout == shown.stdout
    assert "redirected" in redirected.stdout and redirects[0][1] in redirected.stdout


@pytest.mark.parametrize("store", ["raw", "both"])
def test_raw_answers_are_kept_as_they_were_sent(tmp_path: Path, store: str) -> None:
    for crawled in crawl_all(tmp_path, hosts=6, options=("--store", store)):
        assert crawled.result.returncode == 0, crawled.result.stderr
        check_warc_files(crawled.data)
        expected = crawled.web.expected()
        assert exported_urls(crawled.data) == expected
        answers = records(crawled.data, "response")
        assert set(answers) == expected
        for url, (_, content) in answers.items():
            found = canonical(url)
            assert found is not None
            path = url.removeprefix(found.origin)
            assert content == crawled.web.web.respond(found.host, path).body
        texts = records(crawled.data, "conversion")
        assert set(texts) == (expected if store == "both" else set())
        for url, (headers, _) in texts.items():
            raw_id = answers[url][0].get_header("WARC-Record-ID")
            assert headers.get_header("WARC-Refers-To") == raw_id
        check_row_locations(crawled, with_text=store == "both")


def check_row_locations(crawled: Crawled, *, with_text: bool) -> None:
    """Check that the records of every page are where its row says."""
    wanted = {"raw": "response"} | ({"text": "conversion"} if with_text else {})
    for page in exported(crawled.data):
        assert (page["text"] is not None) == with_text
        for name, kind in wanted.items():
            where = page[f"{name}_record"]
            path = crawled.data / "warc" / where["file"]
            with path.open("rb") as file:
                file.seek(where["offset"])
                record = next(iter(ArchiveIterator(file)))
                assert record.rec_type == kind
                assert record.rec_headers.get_header("WARC-Target-URI") == page["url"]
