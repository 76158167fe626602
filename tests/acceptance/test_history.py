"""The history of a real crawl agrees with its status, in every form in which it is printed."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import Completed, crawl_options, rove, rove_each, started, wait_for
from tests.acceptance.results import frontier_rows, status_of
from tests.acceptance.small_web import served

HOSTS = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl in two processes that was stopped and resumed."""
    folder = tmp_path_factory.mktemp("history")
    data = folder / "data"
    with served(folder, hosts=HOSTS, profile="full") as web:
        seeds = web.write_seeds(folder / "seeds.txt")
        with started("crawl", seeds, *crawl_options(data, delay=0.2, processes=2), *web.reach) as crawl:
            wait_for(lambda: (data / "frontier.sqlite").exists() and settled_pages(data) > 100)
            asked = rove("history", "--data-dir", data)
            assert asked.returncode == 0 and "Traceback" not in asked.stderr, asked.stderr
            assert rove("stop", "--data-dir", data).returncode == 0
            crawl.communicate(timeout=100)
        resumed = rove("crawl", "--resume", "--data-dir", data, "--max-duration", "4s")
        assert resumed.returncode == 0, resumed.stderr
    return data


def settled_pages(data: Path) -> int:
    try:
        ((pages,),) = frontier_rows(data, "SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'urls.done'")
    except Exception:
        return 0
    return int(pages)


def history(data: Path, *options: object) -> Completed:
    result = rove("history", "--data-dir", data, *options)
    assert result.returncode == 0, result.stderr
    return result


def samples(data: Path, *options: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in history(data, "--json", *options).stdout.splitlines()]


def total(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row.get(name, 0) for row in rows))


def test_the_samples_add_up_to_the_status(data: Path) -> None:
    rows, status = samples(data), status_of(data)
    assert len(rows) >= 2, "each run ends with a sample"
    assert total(rows, "pages.stored") + total(rows, "pages.copy") == status["pages"]
    assert total(rows, "bytes.received") == status["bytes"]
    requests = dict(frontier_rows(data, "SELECT kind, count(*) FROM request GROUP BY kind"))
    assert {kind: total(rows, f"requests.{kind}") for kind in requests} == requests
    stored = frontier_rows(data, "SELECT sum(text_length) FROM request")[0][0]
    assert total(rows, "bytes.stored") == stored
    known = frontier_rows(data, "SELECT count(*) FROM url")[0][0]
    assert total(rows, "links.new") == known - HOSTS - total(rows, "links.evicted")
    assert total(rows, "links.found") > total(rows, "links.new")
    names = {name for row in rows for name in row}
    assert names >= {"cpu.1", "cpu.2", "cpu.supervisor", "rss.1", "open_files.web", "disk.free", "memory.free"}
    assert names >= {"in_flight", "urls.pending", "domains.waiting", "lag.longest", "phase.connect:p95", "claim:max"}
    assert names >= {
        "request.page:p50",
        "page_size:mean",
        "query.insert_urls:count",
        "flush:p95",
        "phase.first_byte:max",
    }
    assert min(row["margin.smallest"] for row in rows if "margin.smallest" in row) >= 0
    assert all(row["database.up"] == 1 for row in rows)


def test_csv_and_tables_show_the_same(data: Path) -> None:
    chosen = ["--columns", "pages,visits/s,errors.page.*,claim:p95"]
    rows = samples(data, *chosen)
    table = history(data, *chosen, "--step", "10s").stdout.splitlines()
    read = list(csv.DictReader(history(data, *chosen, "--csv").stdout.splitlines()))
    assert len(read) == len(rows) == len(table) - 1
    for row, from_csv, line in zip(rows, read, table[1:], strict=True):
        assert datetime.fromisoformat(from_csv["ended"]).utcoffset() is not None and from_csv["ended"] == row["ended"]
        assert float(from_csv["pages"]) == row["pages"] and float(from_csv["visits/s"]) == row["visits/s"]
        assert line.startswith(row["ended"][:19].replace("T", " ") + "Z")
    assert table[0].split()[:3] == ["until", "pages", "visits/s"]
    assert {"errors.page.status-404", "claim:p95"} <= read[0].keys()
    assert len(history(data).stdout.splitlines()) >= 2
    assert "urls.<state>" not in history(data, "--figures").stdout


def test_a_part_of_the_time(data: Path) -> None:
    rows = samples(data)
    first, last = rows[0]["ended"], rows[-1]["ended"]
    assert [row["ended"] for row in samples(data, "--since", first)] == [row["ended"] for row in rows[1:]]
    assert [row["ended"] for row in samples(data, "--until", first)] == [first]
    assert samples(data, "--step", "1000d")[0]["ended"] == last
    nothing = history(data, "--since", "2000-01-01", "--until", "2000-01-02")
    assert nothing.stdout == "" and "no samples of this time" in nothing.stderr


def test_mistakes_are_explained(data: Path, tmp_path: Path) -> None:
    where = ["--data-dir", data]
    answers = rove_each(
        [
            ["history", *where, "--columns", "pags"],
            ["history", *where, "--csv", "--json"],
            ["history", *where, "--machine", "nowhere"],
            ["history", "--data-dir", tmp_path],
        ]
    )
    assert [answer.returncode for answer in answers] == [2, 2, 2, 2]
    sentences = ["did you mean 'pages'?", "exclude each other", "no machine has 'nowhere' in", "holds no crawl"]
    for answer, sentence in zip(answers, sentences, strict=True):
        assert sentence in answer.stderr, answer.stderr
