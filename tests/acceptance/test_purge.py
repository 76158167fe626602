"""`rove purge` deletes the pages of a domain from the WARC files, even if it is killed. Checked with warcio."""

from __future__ import annotations

import re
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from rove.demo.log import LogKind
from rove.urls.domain import domain_of
from tests.acceptance.command import (
    crawl_options,
    rove,
    rove_alone,
    rove_each,
    started,
    wait_for,
    write_lines,
)
from tests.acceptance.interruption import killed_before_change
from tests.acceptance.results import check_books, exported, frontier_rows
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import served

RUNS = 3
"""How often the crawl is started. Each of its processes leaves files of its own."""
STEPS_PER_FILE = 6
"""Changes that a purge makes for one file: copy, plan, decision, new name, and two deletions."""

Stored = tuple[str, str, bytes]
"""Type, URL and payload of a WARC record."""


class Crawled(NamedTuple):
    """A crawl that has stopped."""

    data: Path
    domain: str
    seen: list[str]
    """The URLs in the web's log."""


def records(data: Path) -> Counter[Stored]:
    """Count all records about pages by type, URL and payload, and check that the files are whole."""
    found: Counter[Stored] = Counter()
    for path in sorted((data / "warc").iterdir()):
        assert path.name.endswith(".warc.gz"), f"{path.name} was left behind"
        with path.open("rb") as file:
            for number, record in enumerate(ArchiveIterator(file, check_digests=True)):
                body = record.raw_stream.read()
                url = record.rec_headers.get_header("WARC-Target-URI")
                assert record.digest_checker.passed is not False, (path.name, url)
                if number == 0:
                    assert record.rec_type == "warcinfo"
                    assert record.rec_headers.get_header("WARC-Filename") == path.name
                else:
                    found[record.rec_type, url, body] += 1
    return found


def is_of(domain: str, url: str) -> bool:
    return domain_of(url.split("/")[2].partition(":")[0]) == domain


def pages_by_url(data: Path) -> dict[str, dict[str, object]]:
    """Return the exported pages without the positions of their records."""
    where = ("text_record", "raw_record")
    return {page["url"]: {name: value for name, value in page.items() if name not in where} for page in exported(data)}


def check_purged(crawled: Crawled, data: Path, before: Counter[Stored], pages: dict[str, dict[str, object]]) -> None:
    """Check that nothing of the domain is stored any more, and that everything else is unchanged and can be found."""
    left = Counter({key: n for key, n in before.items() if not is_of(crawled.domain, key[1])})
    assert records(data) == left
    assert pages_by_url(data) == {url: page for url, page in pages.items() if not is_of(crawled.domain, url)}
    check_books(data, crawled.seen)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A crawl that stored texts and raw answers in several files."""
    folder = tmp_path_factory.mktemp("crawled")
    data = folder / "data"
    with served(folder, hosts=40, profile="calm") as web:
        seeds = web.write_seeds(folder / "seeds.txt")
        options = crawl_options(data, delay=0.02, processes=2)
        result = rove("crawl", seeds, *options, *web.reach, "--store", "both", "--max-pages", 60)
        assert result.returncode == 0, result.stderr
        for _ in range(RUNS - 1):
            result = rove("crawl", "--resume", "--data-dir", data, "--max-pages", 60)
            assert result.returncode == 0, result.stderr
        seen = [request.url for request in web.requests() if request.kind is LogKind.REQUEST]
    stored = Counter(domain_of(page["url"].split("/")[2]) for page in exported(data))
    assert len(list((data / "warc").iterdir())) >= RUNS
    return Crawled(data, stored.most_common(1)[0][0], seen)


def test_all_records_of_a_domain_go_and_no_others(crawled: Crawled, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(crawled.data, data)
    before, pages = records(data), pages_by_url(data)
    gone = [url for url in pages if is_of(crawled.domain, url)]
    assert len(gone) > 3 and {kind for kind, _, _ in before} == {"conversion", "response"}
    result = rove("purge", crawled.domain, "--yes", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    records_gone = sum(n for (_, url, _), n in before.items() if is_of(crawled.domain, url))
    assert re.search(rf"\b{records_gone} records of {crawled.domain} removed", result.stdout)
    check_purged(crawled, data, before, pages)
    requests = sum(is_of(crawled.domain, url) for (url,) in frontier_rows(data, "SELECT url FROM request"))
    titled = "SELECT visit, seq, url, title FROM request WHERE title <> '' ORDER BY visit, seq"
    all_titles = frontier_rows(crawled.data, titled)
    kept = [row for row in all_titles if not is_of(crawled.domain, row[2])]
    assert frontier_rows(data, titled) == kept and kept != all_titles
    assert f"{len(all_titles) - len(kept)} titles removed" in result.stdout
    assert f"kept in the ledger: {requests} requests to {crawled.domain} and all its subdomains" in result.stdout
    others = sorted(set(pages) - set(gone))[::40]
    for url, shown in zip(others, rove_each([["show", url, "--data-dir", data] for url in others]), strict=True):
        assert shown.returncode == 0, shown.stderr
        assert str(pages[url]["text"]) in shown.stdout
    one = next(url for url in gone if pages[url]["text"])
    shown = rove("show", one, "--data-dir", data)
    assert shown.returncode == 0 and str(pages[one]["text"]) not in shown.stdout
    again = rove("purge", crawled.domain, "--yes", "--data-dir", data)
    assert again.returncode == 0 and f"no page of {crawled.domain} is stored in " in again.stdout
    check_purged(crawled, data, before, pages)


def test_a_purge_that_is_killed_is_brought_to_its_end(crawled: Crawled, tmp_path: Path) -> None:
    """Each purge is killed one step later than the one before: before its first change of a file, its second, ..."""
    before, pages = records(crawled.data), pages_by_url(crawled.data)
    data = tmp_path / "data"
    shutil.copytree(crawled.data, data)
    purge = ["purge", crawled.domain, "--yes", "--data-dir", data]
    for step in range(1, STEPS_PER_FILE + 1):
        killer = killed_before_change(tmp_path / f"killer-{step}", data / "warc", step)
        killed = rove_alone(*purge, env=killer)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        _check_every_page_is_there(crawled, data, pages)
    result = rove(*purge)
    assert result.returncode == 0, result.stderr
    check_purged(crawled, data, before, pages)


def _check_every_page_is_there(crawled: Crawled, data: Path, pages: dict[str, dict[str, object]]) -> None:
    """Check that all other pages can be read in the middle of a purge."""
    readable = pages_by_url(data)
    for url, page in pages.items():
        if not is_of(crawled.domain, url):
            assert readable[url] == page


def test_a_running_crawl_is_not_purged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    answers = {"a.test/": Reply("<title>a</title>"), "held.test/": Reply(held=True)}
    with site(answers) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/", "http://held.test/")
        options = crawl_options(data, delay=0.05)
        with started("crawl", seeds, *options, *web.reach) as crawl:
            wait_for(lambda: "http://held.test/" in web.urls)
            wait_for(lambda: frontier_rows(data, "SELECT 1 FROM url WHERE state = 1"))
            refused = rove("purge", "a.test", "--yes", "--data-dir", data)
            assert refused.returncode == 2, refused
            assert "in use" in refused.stderr and refused.stderr.count("\n") == 1, refused.stderr
            web.release.set()
            crawl.communicate(timeout=20)
    assert {page["url"] for page in exported(data)} == {"http://a.test/", "http://held.test/"}
    typo = rove("purge", "aa.test", "--yes", "--data-dir", data)
    assert typo.stdout == f"nothing to delete: {data} has no request to aa.test and all its subdomains\n"
    unshown = rove("show", "http://a.test/robots.txt", "--data-dir", data)
    assert unshown.stderr.endswith(" is not known to this crawl; 'rove report a.test' shows the robots.txt\n")
    result = rove("purge", "a.test", "--yes", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    assert [url for _, url, _ in records(data)] == ["http://held.test/"]
    assert [page["url"] for page in exported(data)] == ["http://held.test/"]
    check_books(data, web.urls)


def test_wrong_words(tmp_path: Path) -> None:
    cases = {
        ("purge", "not a domain", "--yes"): "'not a domain' is not a domain",
        ("purge", "*", "--yes"): "would exclude everything",
        ("purge", "a.test", "--yes"): "holds no crawl",
        ("purge", "--yes"): "Missing argument",
    }
    said = rove_each([[*words, "--data-dir", tmp_path / "none"] for words in cases])
    for sentence, result in zip(cases.values(), said, strict=True):
        assert result.returncode == 2, result
        assert sentence in result.stderr and "Traceback" not in result.stderr, result.stderr
    assert not (tmp_path / "none").exists()


def test_nothing_is_deleted_without_a_word(tmp_path: Path) -> None:
    """Without a terminal, rove cannot ask for confirmation, and it never purges more than one domain."""
    for words, said in ((["a.test"], "add --yes"), (["com", "--yes"], "is not one domain")):
        result = rove("purge", *words, "--data-dir", tmp_path, input="y\n")
        assert result.returncode == 2 and said in result.stderr, result.stderr
