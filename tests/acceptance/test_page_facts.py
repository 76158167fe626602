"""What a crawl records about its pages: languages and usage preferences, in the ledger, the exports and WARC files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.acceptance.command import crawl_options, rove, rove_each, write_lines
from tests.acceptance.results import check_audit, exported, frontier_rows, status_of
from tests.acceptance.site import Reply, site
from tests.unit.parse.test_language import ARTICLES
from tests.unit.store.pages import warcio_records

TEXTS = dict(ARTICLES)


def page(code: str, *links: str, head: str = "", **headers: str) -> Reply:
    """Return a page in a language."""
    anchors = "".join(f'<a href="{link}">{number}</a> ' for number, link in enumerate(links))
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(f"<title>{code}</title>{head}<p>{TEXTS[code]} {TEXTS[code]}</p>{anchors}", headers=more)


def robots(text: str) -> Reply:
    return Reply(text, type="text/plain")


ANSWERS = {
    "a.test/": page("eng", "/en", "/de", "/header", "/meta", "/robots-meta", "/tdm"),
    "a.test/en": page("eng", "/en/2"),
    "a.test/en/2": page("fra"),
    "a.test/de": page("deu", "/de/2"),
    "a.test/de/2": page("deu"),
    "a.test/header": page("eng", Content_Usage="train-ai=n, search=y"),
    "a.test/meta": page("eng", head='<meta name="tdm-reservation" content="1">'),
    "a.test/robots-meta": page("eng", head='<meta name="robots" content="noai">'),
    "a.test/tdm": page("eng", TDM_Reservation="0"),
    "b.test/robots.txt": robots("User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"),
    "b.test/": page("deu", "http://b.test/next"),
    "b.test/next": page("deu"),
    "c.test/robots.txt": robots("License: https://c.test/l.xml\nUser-agent: *\nContent-Usage: /no train-ai=n\n"),
    "c.test/": page("deu", "/no"),
    "c.test/no": page("spa"),
}
BIG = [f"big{number}.test" for number in range(3)]
for number, host in enumerate(BIG):
    ANSWERS[f"{host}/"] = Reply(f"<p>{Random(number).randbytes(700_000).hex()}")
REFUSED = {
    *("http://a.test/header", "http://a.test/meta", "http://a.test/robots-meta"),
    *("http://b.test/", "http://b.test/next", "http://c.test/no"),
}
KEPT = {f"http://{key}" for key in ANSWERS if not key.endswith("/robots.txt")} - REFUSED


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, list[str]]]:
    """A crawl for training that prefers German, and one without a purpose; and the order of the first one's pages."""
    folder = tmp_path_factory.mktemp("facts")
    seeds = write_lines(folder / "seeds.txt", *(f"http://{host}/" for host in ("a.test", "b.test", "c.test", *BIG)))
    training, plain = folder / "training", folder / "plain"
    with site(ANSWERS) as served:
        chosen = ["--purpose", "training", "--languages", "de", "--store", "both", "--warc-size", "1MiB"]
        done = rove("crawl", seeds, *crawl_options(training), *served.reach, *chosen)
        assert done.returncode == 0, done.stderr
        order = [request.url for request in served.requests if request.host == "a.test"]
        again = rove("crawl", seeds, *crawl_options(plain), *served.reach)
        assert again.returncode == 0, again.stderr
    yield training, plain, order


def by_url(data: Path, *options: object) -> dict[str, dict[str, Any]]:
    return {page["url"]: page for page in exported(data, *options)}


def test_links_of_german_pages_come_first(crawls: tuple[Path, Path, list[str]]) -> None:
    order = crawls[2]
    assert order.index("http://a.test/de/2") == order.index("http://a.test/de") + 1
    assert order.index("http://a.test/en/2") == len(order) - 1


def test_every_page_is_kept_with_its_labels_unless_it_is_for_training(crawls: tuple[Path, Path, list[str]]) -> None:
    training, plain, _ = crawls
    everything, kept = by_url(plain), by_url(training)
    assert everything.keys() == KEPT | REFUSED and kept.keys() == KEPT
    assert {url for url, page in everything.items() if "train-ai=n" in (page["usage"] or "").split()} == REFUSED
    assert by_url(plain, "--for", "training").keys() == KEPT
    assert by_url(plain, "--for", "search").keys() == KEPT | REFUSED
    german = everything["http://b.test/"]
    assert (german["language"], german["languages"]) == ("deu", [{"code": "deu", "share": german["language_score"]}])
    assert (german["usage"], german["usage_from"]) == ("search=y train-ai=n", ["robots-content-signal"])
    licensed = everything["http://c.test/no"]
    assert licensed["usage"] == "license=https://c.test/l.xml train-ai=n"
    assert licensed["usage_from"] == ["robots-content-usage", "robots-license"]
    assert (everything["http://a.test/"]["usage"], everything["http://a.test/"]["usage_from"]) == (None, [])


def test_what_is_left_out_is_counted_and_explained(crawls: tuple[Path, Path, list[str]]) -> None:
    training, plain, _ = crawls
    assert status_of(training)["blocked"]["usage preference"] == len(REFUSED)
    explained, filtered, shown, report = rove_each(
        [
            ["explain", "http://a.test/meta", "--data-dir", training],
            ["export", "--for", "training", "--data-dir", plain, "--output", plain.parent / "for-training.jsonl"],
            ["show", "http://b.test/", "--data-dir", plain],
            ["report", "b.test", "--json", "--data-dir", training],
        ]
    )
    assert "but not stored: the crawl is for training, which its site does not want (train-ai=n, from tdm-meta)" in (
        explained.stdout
    )
    assert f"{len(REFUSED)} pages left out, because of the site's usage preference" in filtered.stderr
    assert "languages     deu 99 %" in shown.stdout and "usage         search=y train-ai=n" in shown.stdout
    assert "usage_from    robots-content-signal" in shown.stdout
    assert json.loads(report.stdout.splitlines()[0])["purpose"] == "training"
    rows = frontier_rows(plain, "SELECT language, usage FROM v_pages WHERE url = 'http://b.test/'")
    assert rows == [("deu", "search=y train-ai=n")]


def test_the_audit_finds_a_page_that_was_kept_against_its_preference(crawls: tuple[Path, Path, list[str]]) -> None:
    training, plain, _ = crawls
    assert check_audit(training)["checks"]["usage"] == {"checked": len(KEPT), "violations": 0}
    assert check_audit(plain)["checks"]["usage"] == {"checked": 0, "violations": 0}
    with closing(sqlite3.connect(plain / "frontier.sqlite")) as connection:
        planted = "UPDATE request SET purpose = 'training', usage = '' WHERE url = 'http://b.test/next'"
        connection.execute(planted)
        connection.commit()
    found = rove("audit", "--data-dir", plain)
    assert found.returncode == 1
    assert "kept for training, although http://b.test/robots.txt states search=y train-ai=n" in found.stdout


def test_warc_records_name_type_and_languages_and_the_response_of_a_text(
    crawls: tuple[Path, Path, list[str]],
) -> None:
    texts, raws = (
        {
            record.rec_headers.get_header("WARC-Target-URI"): dict(record.rec_headers.headers)
            for path in crawls[0].glob(f"warc/*-{kind}-*.warc.gz")
            for record, _ in warcio_records(path)[1:]
        }
        for kind in ("text", "raw")
    )
    assert texts.keys() == raws.keys() == KEPT
    assert len(list(crawls[0].glob("warc/*-raw-*.warc.gz"))) == 2, "one file got larger than --warc-size"
    for url, text in texts.items():
        assert text["WARC-Identified-Payload-Type"] == "text/plain"
        assert raws[url]["WARC-Identified-Payload-Type"] == "text/html"
        assert text.get("WARC-Refers-To", text.get("WARC-Concurrent-To")) == raws[url]["WARC-Record-ID"]
        assert text.get("WARC-Identified-Content-Language") == raws[url].get("WARC-Identified-Content-Language")
    assert texts["http://a.test/de"]["WARC-Identified-Content-Language"] == "deu"
    assert texts["http://a.test/en/2"]["WARC-Identified-Content-Language"] == "fra"


def test_the_options_are_remembered_and_lifted(crawls: tuple[Path, Path, list[str]]) -> None:
    training = crawls[0]
    again = rove("crawl", "--resume", "--data-dir", training, "--languages", "none", "--purpose", "archive")
    assert again.returncode == 0, again.stderr
    (settings,) = frontier_rows(training, "SELECT value FROM meta WHERE key = 'settings'")[0]
    assert json.loads(settings)["purpose"] == "archive" and json.loads(settings)["languages"] == []
    for option, value in (("--languages", "german"), ("--purpose", "money"), ("--for", "archive")):
        words = ["export"] if option == "--for" else ["crawl", "--resume"]
        assert rove(*words, "--data-dir", training, option, value).returncode == 2
