"""The host index: responses of each host, by kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from rove.export.host_index import HostIndex, Outcome, outcome_of
from rove.model.ledger import Location, RequestKind, RequestRow

ROW = RequestRow(
    visit=1, seq=0, domain=1, kind=RequestKind.PAGE, url="", fingerprint=1, started=1.0, began=0, ended=1, status=200
)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *[(200, "200"), (206, "200"), (301, "redirPerm"), (308, "redirPerm"), (302, "redirTemp"), (307, "redirTemp")],
        *[(303, "3xx"), (304, "notModified"), (404, "gone"), (410, "gone"), (403, "4xx"), (503, "5xx")],
        *[(0, "other"), (100, "other"), (600, "other"), (999, "other")],
    ],
)
def test_the_kind_of_a_response(status: int, outcome: str) -> None:
    assert outcome_of(status) is Outcome(outcome)


def test_hosts_are_counted_apart_and_sorted(tmp_path: Path) -> None:
    def row(domain: int, url: str, status: int = 200, length: int = 0, **values: Any) -> RequestRow:
        text = Location(file="f", offset=0, length=length) if length else None
        return ROW.replace(domain=domain, url=url, status=status, text=text, **values)

    async def rows() -> AsyncIterator[RequestRow]:
        yield row(2, "http://z.example.org/", length=10)
        yield row(2, "http://www.example.org/1", length=10)
        yield row(2, "http://example.org/2", length=20)
        yield row(2, "http://example.org/3", length=90, raw=Location(file="f", offset=1, length=60))
        yield row(2, "http://example.org/robots.txt", 404, kind=RequestKind.ROBOTS)
        yield row(1, "http://192.0.2.7:81/", 503)

    async def write() -> int:
        index = HostIndex(tmp_path, "mine")
        await index.read(rows())
        return index.write()

    assert asyncio.run(write()) == 3
    table = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
    address, main, other = table.to_pylist()
    names = [row["surt_host_name"] for row in (address, main, other)]
    assert names == ["7,2,0,192:81", "org,example", "org,example,z"]
    assert (address["fetch_5xx"], address["url_host_tld"], address["warc_record_length_av"]) == (1, None, None)
    assert (main["fetch_200"], main["robots_gone"], main["fetch_gone"], main["crawl"]) == (3, 1, 0, "mine")
    assert (main["warc_record_length_av"], main["warc_record_length_median"]) == (30, 20)
    assert (other["url_host_registered_domain"], other["url_host_tld"]) == ("example.org", "org")
