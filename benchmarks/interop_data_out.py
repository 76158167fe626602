"""Check that the programs for which rove writes data read it: a part of `make interop`.

A small site with a copy is crawled three times: with the original responses, with the texts, and with both. Each check
returns what it found, and fails with an AssertionError.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.command import crawl_options, rove_alone, write_lines
from tests.acceptance.site import Reply, site

from rove.export.surt import surt
from rove.urls.canonical import plain_url

BIN = Path(sys.executable).parent
STORES = ("raw", "text", "both")
TEXT = "What this page says, and no other page says in the same words. "
ANSWERS = {
    "www.shop.test/": Reply("<title>Shop</title><a href=/a?b=2&a=1>a</a><a href=/B/>b</a><a href=http://b.test/>c</a>"),
    "www.shop.test/a?b=2&a=1": Reply(f"<title>Grüße</title><p>{TEXT * 20}"),
    "www.shop.test/B/": Reply(f"<title>B</title><p>{TEXT * 30}", type="text/html; charset=iso-8859-1"),
    "b.test/": Reply(f"<title>The same</title><p>{TEXT * 20}"),
}
SURT_URLS = 50_000
_SEGMENTS = ("a", "B", ".", "..", "", "%2e", "%2F", "%2541", "ä", "a b", "x.aspx", "(4hqa0555fwsecu455xqckv45)", "~")
_QUERIES = ("a=1", "b", "B=2", "a", "=", "", f"sid={'0a' * 16}", "cfid=1&cftoken=2", "q=%26", "q=ä", "?", "a=b=c")
_HOSTS = ("www.example.com", "WWW2.Example.co.uk", "www.com", "a.test:8080", "b.test:443", "127.0.0.1", "[::1]:81")
_QUERIES_OF_COMMON_CRAWL = {
    "count-by-tld-page-host-domain": """
        SELECT COUNT(*) AS n_pages, url_host_tld AS tld, COUNT(DISTINCT url_host_name) AS n_hosts,
               COUNT(DISTINCT url_host_registered_domain) AS n_domains
        FROM ccindex WHERE crawl = 'CC-TEST' AND subset = 'warc' GROUP BY url_host_tld ORDER BY n_pages DESC""",
    "average-warc-record-length-by-mime-type": """
        SELECT COUNT(*) AS n_pages, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER() AS perc_pages,
               AVG(warc_record_length) AS avg_warc_record_length, content_mime_detected
        FROM ccindex WHERE crawl = 'CC-TEST' AND subset = 'warc' GROUP BY content_mime_detected""",
    "get-records-home-pages": """
        SELECT url, fetch_time, warc_filename, warc_record_offset, warc_record_length, fetch_redirect
        FROM ccindex WHERE crawl = 'CC-TEST' AND subset = 'warc'
          AND regexp_matches(url_path, '^/?(?:index\\.(?:html?|php))?$') AND url_query IS NULL""",
}
"""Three of the examples of cc-index-table, in DuckDB's words for a regular expression."""


def crawled(folder: Path) -> dict[str, Path]:
    """Crawl the site once for each way to store pages, and write every output."""
    seeds = write_lines(folder / "shop.txt", "http://www.shop.test/")
    found = {}
    for store in STORES:
        data = found[store] = folder / store
        with site(ANSWERS) as web:
            rove_alone("crawl", seeds, *crawl_options(data, delay=0.01), *web.reach, "--store", store, check=True)
        _write(data, "index", "--text", to=f"{store}.cdxj")
    both = found["both"]
    _write(both, "index", "--format", "parquet", "--name", "CC-TEST", to="table")
    _write(both, "index", "--zipnum", to="zip.cdxj.gz")
    for form, name in {"jsonl": "pages.jsonl", "parquet": "parquet", "hf": "hf", "wacz": "all.wacz"}.items():
        _write(both, "export", "--format", form, to=name)
    return found


def check_all(folder: Path) -> int:
    """Run every check and print what it found; return the number of those that failed."""
    folder.mkdir()
    crawls = crawled(folder)
    failures = 0
    for name, check in CHECKS.items():
        try:
            found = check(folder, crawls)
        except Exception as error:
            failures += 1
            found = f"FAILS: {type(error).__name__}: {error}"
        print(f"  {name:<28}{found}")
    return failures


def _write(data: Path, *words: object, to: str) -> None:
    rove_alone(*words, "--data-dir", data, "--output", data.parent / to, check=True)


def _warcs(data: Path) -> list[Path]:
    return sorted((data / "warc").iterdir())


def _run(program: str, *words: object, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [BIN / program, *map(str, words)], capture_output=True, text=True, timeout=300, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]
    return done.stdout


def _surt(folder: Path, crawls: dict[str, Path]) -> str:
    from surt import surt as theirs

    chance = random.Random(1)
    count = 0
    while count < SURT_URLS:
        path = "/".join(chance.choices(_SEGMENTS, k=chance.randrange(5)))
        query = "&".join(chance.choices(_QUERIES, k=chance.randrange(4)))
        url = plain_url(f"{chance.choice(('http', 'https'))}://{chance.choice(_HOSTS)}/{path}?{query}")
        assert url is not None
        assert surt(url.text) == theirs(url.text), url.text
        count += 1
    return f"the same keys for {count:,} URLs"


def _cdxj_indexer(folder: Path, crawls: dict[str, Path]) -> str:
    count = 0
    for store, data in crawls.items():
        lines = _run("cdxj-indexer", "--records", "response,revisit,resource,conversion", *_warcs(data)).splitlines()
        ours = (folder / f"{store}.cdxj").read_text().splitlines()
        assert ours == sorted(lines, key=str.encode), store
        count += len(ours)
    lines = _run("cdxj-indexer", "--sort", *_warcs(crawls["raw"])).splitlines()
    assert (folder / "raw.cdxj").read_text().splitlines() == lines
    return f"the same {count} lines"


def _warcio(folder: Path, crawls: dict[str, Path]) -> str:
    files = [path for data in crawls.values() for path in _warcs(data)]
    _run("warcio", "check", *files)
    for path in files:
        _run("fastwarc", "check", path)
    return f"no fault in {len(files)} files, nor does fastwarc find one"


def _wacz(folder: Path, crawls: dict[str, Path]) -> str:
    return _run("wacz", "validate", "-f", folder / "all.wacz").strip().splitlines()[-1]


def _pywb(folder: Path, crawls: dict[str, Path]) -> str:
    """Replay every page, found by each of the two forms of the index."""
    collections = {"plain": folder / "raw.cdxj", "zipped": folder / "zip.idx"}
    archives = {"plain": crawls["raw"] / "warc", "zipped": crawls["both"] / "warc"}
    home = folder / "pywb"
    home.mkdir()
    config = {
        "collections": {
            name: {"index_paths": str(index), "archive_paths": f"{archives[name]}/"}
            for name, index in collections.items()
        }
    }
    (home / "config.yaml").write_text(json.dumps(config))
    count = 0
    with _serving(home) as base:
        for name in collections:
            for place, reply in ANSWERS.items():
                with urllib.request.urlopen(f"{base}/{name}/2id_/http://{place}", timeout=60) as answer:
                    body = answer.read()
                expected = reply.body
                assert isinstance(expected, str) and body == expected.encode(), (name, place, body[:200])
                count += 1
    return f"replays {count} pages exactly as they were received"


@contextmanager
def _serving(home: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([BIN / "wayback", "-p", str(port)], cwd=home, stdout=log, stderr=log)
        base = f"http://127.0.0.1:{port}"
        try:
            for _ in range(120):
                try:
                    urllib.request.urlopen(base, timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.5)
            yield base
        finally:
            process.terminate()
            process.wait()


def _duckdb(folder: Path, crawls: dict[str, Path]) -> str:
    import duckdb

    duckdb.sql(f"CREATE VIEW ccindex AS SELECT * FROM read_parquet('{folder}/table/**/*.parquet', hive_partitioning=1)")
    found = {name: duckdb.sql(query).fetchall() for name, query in _QUERIES_OF_COMMON_CRAWL.items()}
    assert found["count-by-tld-page-host-domain"][0][:3] == (4, "test", 2), found
    assert {row[0] for row in found["get-records-home-pages"]} == {"http://www.shop.test/", "http://b.test/"}, found
    return f"{len(found)} queries of cc-index-table give the right rows"


def _datasets(folder: Path, crawls: dict[str, Path]) -> str:
    from datasets import load_dataset

    loaded = {
        "hf folder": load_dataset(str(folder / "hf"), split="train"),
        "parquet": load_dataset("parquet", data_files=str(folder / "parquet" / "*.parquet"), split="train"),
        "jsonl": load_dataset("json", data_files=str(folder / "pages.jsonl"), split="train"),
    }
    urls = {f"http://{place}" for place in ANSWERS}
    for name, rows in loaded.items():
        assert set(rows["url"]) == urls and all(rows["text"]), name
    return f"loads {', '.join(loaded)}"


def _datatrove(folder: Path, crawls: dict[str, Path]) -> str:
    from datatrove.pipeline.readers import JsonlReader, ParquetReader, WarcReader

    def texts(reader: Any) -> list[str]:
        return sorted(document.text for document in reader.run())

    expected = sorted(json.loads(line)["text"] for line in (folder / "pages.jsonl").read_text().splitlines())
    assert texts(JsonlReader(str(folder), glob_pattern="pages.jsonl")) == expected
    assert texts(ParquetReader(str(folder / "parquet"))) == expected
    found = texts(WarcReader(str(crawls["text"] / "warc"), glob_pattern="*.warc.gz"))
    assert found == sorted(set(expected)), "each text is stored once"
    return f"its readers find {len(expected)} texts as JSON Lines and Parquet, {len(found)} different ones in WARC"


CHECKS: dict[str, Callable[[Path, dict[str, Path]], str]] = {
    "surt": _surt,
    "cdxj-indexer": _cdxj_indexer,
    "warcio check": _warcio,
    "wacz validate": _wacz,
    "pywb": _pywb,
    "DuckDB": _duckdb,
    "Hugging Face datasets": _datasets,
    "datatrove": _datatrove,
}
