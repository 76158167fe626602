"""`--max-page-size` cuts what is received of a page, and `rove show --raw` writes what was stored of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.command import EMAIL, crawl_options, rove, rove_alone, write_lines
from tests.acceptance.results import exported, status_of
from tests.acceptance.site import Reply, site

SIZE = 10 * 1024
BODY = b"<title>long</title>" + b"<p>one more line of text</p>\n" * 2000


def show_raw(url: str, data: Path) -> subprocess.CompletedProcess[bytes]:
    return rove_alone("show", "--raw", url, "--data-dir", data, text=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of long pages, resumed once without --max-page-size."""
    folder = tmp_path_factory.mktemp("page-size")
    data, more = folder / "data", write_lines(folder / "more.txt", "http://b.test/")
    seeds = write_lines(folder / "seeds.txt", "http://a.test/", "http://a.test/missing")
    short = Reply("<title>short</title>")
    with site({"a.test/": Reply(BODY), "b.test/": Reply(BODY), "b.test/short": short}) as web:
        options = [*crawl_options(data, delay=0.01), *web.reach]
        cut = ["--max-page-size", "10KiB", "--store", "both"]
        first = rove("crawl", seeds, *options, *cut)
        assert first.returncode == 0, first.stderr
        again = rove("crawl", "--resume", more, "--data-dir", data)
        assert again.returncode == 0, again.stderr
    return data


def test_a_long_page_is_cut_and_marked(data: Path) -> None:
    pages = {page["url"]: page for page in exported(data)}
    for url in ("http://a.test/", "http://b.test/"):
        assert pages[url]["truncated"] is True, "the size is remembered on --resume"
        assert 0 < len(pages[url]["text"]) < SIZE
    assert status_of(data)["marks"]["body-cut"] == 2


def test_the_raw_response_is_written_as_it_was_stored(data: Path) -> None:
    result = show_raw("http://a.test/", data)
    assert result.returncode == 0, result.stderr
    head, _, body = result.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"Content-Type: text/html" in head
    assert body == BODY[:SIZE]


def test_without_a_raw_copy_there_is_a_message(data: Path) -> None:
    for url, said in (
        ("http://a.test/missing", b"no raw response of http://a.test/missing is stored"),
        ("http://elsewhere.test/", b"not known to this crawl"),
    ):
        result = show_raw(url, data)
        assert (result.returncode, result.stdout) == (2, b"")
        assert said in result.stderr, result.stderr


def test_a_damaged_copy_is_an_error(data: Path) -> None:
    for path in (data / "warc").iterdir():
        content = path.read_bytes()
        try:
            path.write_bytes(content[:100] + bytes(len(content) - 100))
            result = show_raw("http://a.test/", data)
        finally:
            path.write_bytes(content)
        if result.returncode:
            break
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"is damaged" in result.stderr


@pytest.mark.parametrize(
    ("size", "complaint"),
    [
        ("10", "a --max-page-size of 10 B is not between 1.0 KiB and 64.0 MiB"),
        ("1GiB", "a --max-page-size of 1.0 GiB is not between"),
        ("60MiB", "--max-memory 1.0 GiB is too little for pages of up to 60.0 MiB"),
        ("big", "'big' is not a size"),
    ],
)
def test_a_size_that_cannot_work_is_refused(tmp_path: Path, size: str, complaint: str) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/")
    data = tmp_path / "data"
    options = ["--email", EMAIL, "--data-dir", data, "--max-page-size", size]
    result = rove("crawl", seeds, *options)
    assert result.returncode == 2 and complaint in result.stderr, result.stderr
    assert not data.exists()
