"""The columnar index: the columns of cc-index-table, what is in them, partitions and order."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow
import pyarrow.dataset
import pyarrow.parquet

from rove.export.captures import Capture, capture_of
from rove.export.columnar_index import ColumnarIndex
from rove.store.scan import ScannedRecord

ID = "11f1331b-b354-4b53-b970-2a08e9c116ac"
TYPES = {
    "url_port": pyarrow.int32(),
    "fetch_time": pyarrow.timestamp("ms"),
    "fetch_status": pyarrow.int16(),
    "warc_record_id": pyarrow.binary(),
    "warc_record_offset": pyarrow.int32(),
    "warc_record_length": pyarrow.int32(),
}
REQUIRED = {
    *("url_surtkey", "url", "url_host_name", "url_protocol", "url_path", "fetch_time", "fetch_status"),
    *("warc_record_id", "warc_filename", "warc_record_offset", "warc_record_length", "warc_segment"),
}


def capture(url: str, status: int = 200, *, offset: int = 3, **headers: str) -> Capture:
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    record = {
        "warc-type": "response",
        "warc-target-uri": url,
        "warc-date": "2023-11-14T22:13:20Z",
        "warc-record-id": f"<urn:uuid:{ID}>",
        "warc-payload-digest": "sha1:ABC",
        "warc-truncated": "length",
    }
    block = f"HTTP/1.1 {status} x\r\n{head}\r\n".encode()
    found = capture_of(ScannedRecord(offset, 9, record, block=block), "f.warc.gz")
    assert found is not None
    return found


def written(folder: Path, *captures: Capture, **options: int) -> list[dict[str, Any]]:
    index = ColumnarIndex(folder, "mine", **options)
    for each in captures:
        index.add(each)
    assert index.write() == len(captures)
    table = pyarrow.dataset.dataset(folder, partitioning="hive").to_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_row(tmp_path: Path) -> None:
    url = "https://www.shop.example.co.uk:8443/a/B?q=1&a=2"
    (row,) = written(tmp_path, capture(url, Content_Type='text/html; charset="utf-8"', Location="/ignored"))
    assert row == {
        "url_surtkey": "uk,co,example,shop:8443)/a/b?a=2&q=1",
        "url": url,
        "url_host_name": "www.shop.example.co.uk",
        "url_host_tld": "uk",
        "url_host_2nd_last_part": "co",
        "url_host_3rd_last_part": "example",
        "url_host_4th_last_part": "shop",
        "url_host_5th_last_part": "www",
        "url_host_registry_suffix": "co.uk",
        "url_host_registered_domain": "example.co.uk",
        "url_host_private_suffix": "co.uk",
        "url_host_private_domain": "example.co.uk",
        "url_host_name_reversed": "uk.co.example.shop.www",
        "url_protocol": "https",
        "url_port": 8443,
        "url_path": "/a/B",
        "url_query": "q=1&a=2",
        "fetch_time": datetime(2023, 11, 14, 22, 13, 20),  # noqa: DTZ001 - the column has no zone
        "fetch_status": 200,
        "fetch_redirect": None,
        "content_digest": "ABC",
        "content_mime_type": "text/html",
        "content_mime_detected": None,
        "content_charset": "UTF-8",
        "content_languages": None,
        "content_truncated": "length",
        "warc_record_id": UUID(ID).bytes,
        "warc_filename": "f.warc.gz",
        "warc_record_offset": 3,
        "warc_record_length": 9,
        "warc_segment": "f",
        "crawl": "mine",
        "subset": "warc",
    }
    (file,) = tmp_path.rglob("*.parquet")
    schema = pyarrow.parquet.read_schema(file)
    assert schema.names == list(row)[:-2]
    for field in schema:
        assert field.type == TYPES.get(field.name, pyarrow.string()), field
        assert field.nullable is (field.name not in REQUIRED), field


def test_hosts_that_have_no_parts(tmp_path: Path) -> None:
    rows = written(tmp_path, capture("http://192.0.2.7/"), capture("http://me.github.io/"), capture("http://[::1]:81/"))
    by_host = {row["url_host_name"]: row for row in rows}
    for address in ("192.0.2.7", "[::1]"):
        assert by_host[address]["url_host_tld"] is None
        assert by_host[address]["url_host_private_domain"] is None
        assert by_host[address]["url_host_name_reversed"] is None
    github = by_host["me.github.io"]
    assert (github["url_host_registry_suffix"], github["url_host_registered_domain"]) == ("io", "github.io")
    assert (github["url_host_private_suffix"], github["url_host_private_domain"]) == ("github.io", "me.github.io")


def test_partitions_and_order(tmp_path: Path) -> None:
    captures = [capture(f"http://{host}.test/{path}") for host in "bca" for path in ("2", "1")]
    captures += [capture("http://a.test/robots.txt"), capture("http://a.test/x", 404)]
    captures += [capture("http://a.test/y", 301, Location="http://b.test/"), capture("http://a.test/1", offset=1)]
    rows = written(tmp_path, *captures, shard_bytes=1)
    subsets = {row["url"]: row["subset"] for row in rows}
    assert subsets["http://a.test/robots.txt"] == "robotstxt"
    assert subsets["http://a.test/x"] == subsets["http://a.test/y"] == "crawldiagnostics"
    assert {row["fetch_redirect"] for row in rows} == {None, "http://b.test/"}
    pages = [(row["url_surtkey"], row["warc_record_offset"]) for row in rows if row["subset"] == "warc"]
    assert pages == sorted(pages) and len(pages) == 7


def test_without_records_there_is_an_empty_table(tmp_path: Path) -> None:
    assert written(tmp_path) == []
