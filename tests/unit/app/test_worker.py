"""The orders and reports that supervisor and worker exchange."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter

import msgspec
import pytest

from rove.app import worker
from rove.app.worker import WorkerOrder, WorkerReport, decode_report
from rove.crawl.progress import Counters
from rove.crawl.shutdown import Ending
from rove.model.samples import Distribution, Sample
from tests.unit.app.test_supervisor import order_of


def test_an_order_survives_encoding() -> None:
    for order in (order_of(1), msgspec.structs.replace(order_of(2), remote=None)):
        line = msgspec.json.encode(order)
        assert b"\n" not in line
        assert msgspec.json.decode(line, type=WorkerOrder) == order


def test_a_report_survives_encoding() -> None:
    counters = Counters(
        pages=1,
        visits=2,
        bytes=1 << 60,
        in_flight=4,
        at_once=9,
        held_by=Counter({"cpu": 2}),
        queued=5,
        internal_errors=6,
        resident=1 << 30,
        open_files=7,
        longest_lag=0.5,
        troubles={"disk": "paused: no room"},
        request_counters=Counter({"requests.page": 6, "ä\n": 7}),
    )
    times = Distribution(count=3, total=1.5, longest=1.0, buckets={0: 1, 13: 2})
    sample = Sample(node="", ended=1_700_000_000_123, seconds=2.5, figures={"visits": 4}, histograms={"claim": times})
    report = WorkerReport(
        process=7,
        counters=counters,
        sample=sample,
        news="two\nlines",
        ending=Ending.MAX_PAGES,
        failure="it is “full”",
        exit_code=8,
    )
    line = msgspec.json.encode(report)
    assert b"\n" not in line
    decoded = decode_report(line)
    assert decoded == report and isinstance(decoded.counters.request_counters, Counter)
    for value, default in ((report, WorkerReport()), (counters, Counters())):
        for name in value.__struct_fields__:
            assert getattr(value, name) != getattr(default, name), f"{name} is not tested"


@pytest.mark.parametrize("ending", list(Ending))
def test_every_ending_survives_encoding(ending: Ending) -> None:
    line = msgspec.json.encode(WorkerReport(ending=ending))
    assert Ending(decode_report(line).ending) is ending


def test_a_report_is_one_line_and_may_have_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with io.FileIO(reader) as readable, io.FileIO(writer, "w") as writable:
        monkeypatch.setattr(sys, "stdout", writable)
        worker.send(WorkerReport(process=1))
        worker.send(WorkerReport(news="x"))
        lines = readable.read(1000).splitlines()
        assert [decode_report(line) for line in lines] == [WorkerReport(process=1), WorkerReport(news="x")]
        readable.close()
        worker.send(WorkerReport(process=2))  # no error without a reader
        monkeypatch.undo()
