"""Rows of the ledger are read back as they were written."""

from __future__ import annotations

import msgspec
import pytest

from rove.errors import FrontierError
from rove.frontier.queries import load_migrations
from rove.frontier.rows.requests import REQUEST_COLUMNS, request_row, request_values
from rove.model.languages import Language
from rove.model.ledger import DelaySource, Location, RequestKind, RequestRow, Settlement

ROW = RequestRow(
    visit=1,
    seq=2,
    domain=-3,
    kind=RequestKind.ROBOTS,
    url="http://a.test/robots.txt",
    fingerprint=-4,
    started=5.5,
    began=6,
    ended=7,
    address="192.0.2.1",
    delay=70.125,
    delay_from=DelaySource.CRAWL_DELAY,
    process=9,
    status=200,
    error="e",
    media_type="text/html",
    size=10,
    truncated=True,
    content_hash=11,
    robots="r" * 32,
    target="t",
    title="A title",
    text=Location(file="a.warc.gz", offset=12, length=13),
    raw=Location(file="b.warc.gz", offset=14, length=15),
    marks=("one", "two"),
    is_copy=True,
    languages=(Language("deu", 92), Language("eng", 5)),
    usage=("search=y", "train-ai=n"),
    usage_from=("content-usage", "tdm-meta"),
    purpose="training",
    simhash=-16,
)


def test_every_field_survives() -> None:
    assert request_row(request_values(ROW)) == ROW
    default = {field.name: field.default for field in msgspec.structs.fields(ROW)}
    same = [name for name in default if getattr(ROW, name) == default[name]]
    assert same == ["settlement", "node"], "the others have values of their own"


def test_the_node_is_read_from_elsewhere() -> None:
    assert request_row([*request_values(ROW), 3], "h:/d") == ROW.replace(node="h:/d")


@pytest.mark.parametrize("settlement", [Settlement.LATE, Settlement.LOST])
def test_the_page_of_a_visit_that_does_not_count_is_not_indexed(settlement: Settlement) -> None:
    row = request_row(request_values(ROW.replace(settlement=settlement)))
    assert row == ROW.replace(settlement=settlement, text=None, raw=None, is_copy=False)


@pytest.mark.parametrize("name", ["kind", "delay_from", "settlement"])
def test_a_damaged_row_is_named(name: str) -> None:
    values = request_values(ROW)
    values[REQUEST_COLUMNS.index(name)] = "p\ufffdge"
    with pytest.raises(FrontierError, match=f"request 2 of visit 1 has the {name} 'p\ufffdge'"):
        request_row(values)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_the_schema_has_the_listed_columns(backend: str) -> None:
    ((_, script),) = load_migrations(backend)
    table = script.split("CREATE TABLE request (")[1].split("PRIMARY KEY")[0]
    columns = {line.split()[0] for line in table.strip().splitlines()}
    assert columns - {"machine"} == set(REQUEST_COLUMNS)
