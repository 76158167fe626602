"""Data out: every format, made by the real command and opened with the libraries that people use."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pty
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.acceptance.command import Completed, crawl_options, rove, rove_alone, rove_each, write_lines
from tests.acceptance.results import exported
from tests.acceptance.site import site
from tests.acceptance.test_copies import ANSWERS, COPIES, FIRST, OTHER, TEXT

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it warns of itself as it is imported
    from fastwarc.warc import ArchiveIterator as FastWarcIterator

PAGES = {FIRST, OTHER, *COPIES}
OF_B = {url for url in PAGES if "//b.test" in url}
OUTPUTS = {
    "pages.jsonl": ["export"],
    "parquet": ["export", "--format", "parquet"],
    "hf": ["export", "--format", "hf", "--name", 'my "crawl"'],
    "all.wacz": ["export", "--format", "wacz"],
    "b.wacz": ["export", "--format", "wacz", "--domain", "b.test"],
    "index.cdxj": ["index"],
    "texts.cdxj": ["index", "--text"],
    "zip.cdxj.gz": ["index", "--zipnum"],
    "table": ["index", "--format", "parquet", "--name", "CC-TEST-1"],
    "hosts": ["hosts"],
}


def crawl(folder: Path, name: str, *options: object, resume: bool = False) -> Path:
    """Crawl the small site."""
    data = folder / name
    seeds = [] if resume else [write_lines(folder / "seeds.txt", FIRST)]
    with site(ANSWERS) as web:
        more = ["--resume", "--data-dir", data] if resume else [*crawl_options(data, delay=0.01)]
        done = rove("crawl", *seeds, *more, *web.reach, *options)
    assert done.returncode == 0, done.stderr
    return data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawl(tmp_path_factory.mktemp("crawl"), "data", "--store", "both")


def write_all(data: Path, folder: Path) -> None:
    """Write every output."""
    commands = [[*words, "--data-dir", data, "--output", folder / name] for name, words in OUTPUTS.items()]
    for name, done in zip(OUTPUTS, rove_each(commands), strict=True):
        assert (done.returncode, done.stderr) == (0, ""), (name, done)


@pytest.fixture(scope="module")
def outputs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    write_all(data, folder)
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Read a table with pyarrow."""
    rows: list[dict[str, Any]] = pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    return rows


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_lines(lines: list[bytes], read: Any) -> list[str]:
    """Check that the lines of an index are sorted and lead to the records that they name; return the URLs."""
    assert lines == sorted(lines)
    urls = []
    for line in lines:
        fields = json.loads(line[line.index(b"{") :])
        member = read(fields["filename"])[int(fields["offset"]) :][: int(fields["length"])]
        (record,) = ArchiveIterator(io.BytesIO(member), check_digests="raise")
        assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]
        urls.append(fields["url"])
    return urls


def test_documents_as_parquet_and_as_lines_are_the_same(outputs: Path) -> None:
    lines = [json.loads(line) for line in (outputs / "pages.jsonl").read_text().splitlines()]
    rows = rows_of(outputs / "parquet")
    assert {row["url"] for row in rows} == PAGES and len({row["id"] for row in rows}) == len(PAGES)
    by_id = {line["id"]: line for line in lines}
    for row in rows:
        line = by_id.pop(row["id"])
        for key in (
            "url",
            "text",
            "title",
            "date",
            "domain",
            "status",
            "copies",
            "depth",
            "language",
            "usage",
            "simhash",
        ):
            assert row[key] == line[key], key
        assert row["file_path"] == line["text_record"]["file"] and row["dump"] == "data"
        assert row["copies"] == (0 if row["url"] == OTHER else len(COPIES))
        assert row["language"] == "eng" and 0.9 < row["language_score"] <= 1 and row["token_count"] is None
        assert row["language_score"] == pytest.approx(line["language_score"])
    assert by_id == {}
    assert {row["url"]: row["depth"] for row in rows} == {
        FIRST: 0,
        "http://a.test/1": 1,
        "http://a.test/2": 1,
        "http://b.test/": 1,
        "http://b.test/1": 2,
        OTHER: 2,
    }


def test_a_data_set_has_a_card(outputs: Path) -> None:
    card = (outputs / "hf" / "README.md").read_text()
    assert 'pretty_name: "my \\"crawl\\""' in card and "path: data/*.parquet" in card
    assert "This data set has 6 web pages" in card and "Of these pages, 4 repeat" in card
    assert "between two visits to one registrable domain" in card and "No site was excluded" in card
    assert {row["url"] for row in rows_of(outputs / "hf" / "data")} == PAGES


def test_an_index_leads_to_the_records(outputs: Path, data: Path) -> None:
    def read(name: str) -> bytes:
        return (data / "warc" / name).read_bytes()

    lines = (outputs / "index.cdxj").read_bytes().splitlines()
    assert set(check_lines(lines, read)) == PAGES and len(lines) == len(PAGES)
    texts = (outputs / "texts.cdxj").read_bytes().splitlines()
    assert len(check_lines(texts, read)) == 2 * len(PAGES) and set(lines) < set(texts)
    data_file = (outputs / "zip.cdxj.gz").read_bytes()
    assert gzip.decompress(data_file).splitlines() == lines
    key, name, offset, length, number = (outputs / "zip.idx").read_text().rstrip("\n").split("\t")
    assert lines[0].startswith(key.encode()) and (name, offset, number) == ("zip.cdxj.gz", "0", "1")
    assert int(length) == len(data_file)
    assert (outputs / "zip.loc").read_text() == "zip.cdxj.gz\tzip.cdxj.gz\n"
    rows = rows_of(outputs / "table")
    assert [row["url_surtkey"].encode() for row in rows] == [line.partition(b" ")[0] for line in lines]
    for row in rows:
        assert (row["crawl"], row["subset"], row["fetch_status"]) == ("CC-TEST-1", "warc", 200)
        member = read(row["warc_filename"])[row["warc_record_offset"] :][: row["warc_record_length"]]
        (record,) = FastWarcIterator(io.BytesIO(member), verify_digests=True)
        assert record.headers["WARC-Target-URI"] == row["url"]
    hosts = {row["surt_host_name"]: row["fetch_200"] for row in rows_of(outputs / "hosts")}
    assert hosts == {"test,a": 3, "test,b": 3}


@pytest.mark.parametrize(("name", "urls"), [("all.wacz", PAGES), ("b.wacz", OF_B)])
def test_a_wacz_file_has_what_it_says(outputs: Path, name: str, urls: set[str]) -> None:
    with zipfile.ZipFile(outputs / name) as archive:
        assert archive.testzip() is None
        contents = {info.filename: archive.read(info) for info in archive.infolist()}
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
    package = json.loads(contents["datapackage.json"])
    assert (package["profile"], package["wacz_version"], package["title"]) == ("data-package", "1.1.1", "data")
    described = {resource["path"]: resource for resource in package["resources"]}
    assert set(contents) == {*described, "datapackage.json", "datapackage-digest.json"}
    for path, resource in described.items():
        digest = hashlib.sha256(contents[path]).hexdigest()
        assert (resource["hash"], resource["bytes"]) == (f"sha256:{digest}", len(contents[path]))
    digest = hashlib.sha256(contents["datapackage.json"]).hexdigest()
    assert json.loads(contents["datapackage-digest.json"])["hash"] == f"sha256:{digest}"
    lines = gzip.decompress(contents["indexes/index.cdx.gz"]).splitlines()
    assert set(check_lines(lines, lambda file: contents[f"archive/{file}"])) == urls and len(lines) == len(urls)
    meta, block = contents["indexes/index.idx"].decode().splitlines()
    assert meta.startswith('!meta 0 {"format": "cdxj-gzip-1.0"') and block.startswith("test,")
    head, *pages = [json.loads(line) for line in contents["pages/pages.jsonl"].splitlines()]
    assert head["format"] == "json-pages-1.0"
    assert {page["url"] for page in pages} == urls and all(TEXT.strip() in page["text"] for page in pages)
    (warc,) = (path for path in contents if path.startswith("archive/"))
    kinds = [record.rec_type for record in ArchiveIterator(io.BytesIO(contents[warc]))]
    assert kinds == ["warcinfo", *["response"] * len(urls)]


def test_the_same_crawl_gives_the_same_bytes(outputs: Path, data: Path, tmp_path: Path) -> None:
    write_all(data, tmp_path)
    assert bytes_of(tmp_path) == bytes_of(outputs)


def test_excluded_domains_are_in_no_output(tmp_path: Path, data: Path) -> None:
    assert rove("exclude", "a.test", "--data-dir", data).returncode == 0
    try:
        for name, words in OUTPUTS.items():
            done = rove(*words, "--data-dir", data, "--output", tmp_path / name)
            assert done.returncode == 0, (name, done)
        assert {page["url"] for page in exported(data)} == OF_B
        for name in ("parquet", "hf/data", "table"):
            assert {row["url"] for row in rows_of(tmp_path / name)} == OF_B, name
        assert [row["surt_host_name"] for row in rows_of(tmp_path / "hosts")] == ["test,b"]
        for name in ("index.cdxj", "texts.cdxj", "all.wacz", "pages.jsonl"):
            found = (tmp_path / name).read_bytes()
            assert b"http://b.test" in found or name.endswith("wacz"), name
            assert b"test,a)" not in found and b'"url": "http://a.test' not in found, name
        assert "1 exclusion of sites applied" in (tmp_path / "hf" / "README.md").read_text()
    finally:
        assert rove("include", "a.test", "--data-dir", data).returncode == 0


def test_an_incremental_export_writes_every_page_once(tmp_path: Path) -> None:
    data = crawl(tmp_path, "data", "--max-pages", 2)

    def export(name: str, *options: object) -> Completed:
        state = ["--incremental", tmp_path / "state", "--data-dir", data]
        return rove("export", "--format", "parquet", *state, "--output", tmp_path / name, *options)

    assert export("first").returncode == 0
    nothing = export("nothing")
    assert "rove: no page is new" in nothing.stderr and not (tmp_path / "nothing").exists()
    crawl(tmp_path, "data", "--max-pages", "none", resume=True)
    before = (tmp_path / "state").read_bytes()
    refused = export("first")
    assert refused.returncode == 2 and "add --force to replace it" in refused.stderr
    assert (tmp_path / "state").read_bytes() == before
    assert export("second").returncode == 0
    first, second = ([row["url"] for row in rows_of(tmp_path / name)] for name in ("first", "second"))
    assert len(first) == 2 and sorted(first + second) == sorted(PAGES)
    other = export("third", "--domain", "a.test")
    assert other.returncode == 2 and "belongs to an export with other options" in other.stderr
    assert "takes no --since" in export("third", "--since", "1h").stderr


def test_several_crawls_are_one_output(data: Path, tmp_path: Path) -> None:
    second = crawl(tmp_path, "second", "--scope", "domain")
    sources = ["--from", data, "--from", second, "--from", data]
    done = rove("export", *sources)
    assert done.returncode == 0, done.stderr
    urls = [json.loads(line)["url"] for line in done.stdout.splitlines()]
    assert sorted(urls) == sorted([*PAGES, *(PAGES - OF_B)])
    lines = rove("index", *sources, "--text").stdout.splitlines()
    assert len(lines) == 2 * len(PAGES) + len(PAGES - OF_B) and lines == sorted(lines)
    assert "either --frontier or --from" in rove("export", *sources, "--frontier", "postgresql://x/y").stderr


def test_a_format_that_cannot_be_made_says_why(data: Path, tmp_path: Path) -> None:
    text, raw = crawl(tmp_path, "text"), crawl(tmp_path, "raw", "--store", "raw")
    output = ["--output", tmp_path / "out"]
    for words, answer in [
        (["export", "--format", "wacz", "--data-dir", text, *output], "crawl with --store raw or both to get one"),
        (["export", "--format", "hf", "--data-dir", raw, *output], "this crawl stored no texts (--store raw)"),
        (["export", "--format", "hf", "--data-dir", data], "is written into a directory; name it with --output"),
        (["export", "--format", "wacz", "--data-dir", data], "is written into a file; name it with --output"),
        (["index", "--format", "parquet", "--data-dir", data], "name it with --output"),
        (["index", "--zipnum", "--data-dir", data], "--zipnum writes three files"),
        (["export", "--format", "wacz", "--where", "status == 200", "--data-dir", data, *output], "--where is not for"),
        (["export", "--format", "wacz", "--for", "training", "--data-dir", data, *output], "--for is not for"),
        (["export", "--format", "wacz", "--all", "--data-dir", data, *output], "--all is for --format jsonl"),
        (["hosts", "--name", "a/b", "--data-dir", data, *output], "cannot be the name of a crawl"),
    ]:
        done = rove(*words)
        assert done.returncode == 2 and answer in done.stderr, (words, done.stderr)
    assert not (tmp_path / "out").exists()
    assert len(rove("index", "--data-dir", text).stdout.splitlines()) == len(PAGES), "texts, because there is no other"
    (tmp_path / "pyarrow.py").write_text("raise ImportError")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = rove_alone("export", "--format", "parquet", "--data-dir", data, *output, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run 'pip install \"rove[parquet]\"'" in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    user_end, program_end = pty.openpty()
    yield user_end, program_end
    os.close(user_end)


def test_a_terminal_shows_progress(data: Path, tmp_path: Path, terminal: tuple[int, int]) -> None:
    user_end, program_end = terminal
    words = ["index", "--data-dir", str(data), "--output", str(tmp_path / "index.cdxj")]
    with subprocess.Popen(
        [sys.executable, "-m", "rove", *words], stderr=program_end, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(program_end)
        assert "6 records" in process.communicate()[0]
    assert b"reading WARC files" in os.read(user_end, 65_536)
