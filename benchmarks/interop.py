"""Check that an export loads as a table in the tools that people use for data.

    make interop

A crawl of a site from the tests gives a copy, redirects, failures and hostile text. A second export is made of 5,000
plain pages, with the first copy, redirect, failure and mark behind them: far behind the lines from which tools guess
the types of columns. Each tool must find all columns, the same number of rows, and the same values.
interop_data_out.py checks the other outputs.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from tests.acceptance.command import crawl_options, rove_alone, write_lines
from tests.acceptance.hostile_text import ANSWERS, HOST
from tests.acceptance.site import site

from benchmarks.interop_data_out import check_all
from rove.cli.output import write_json
from rove.export.chosen import examples_first
from rove.export.documents import Document, document_json
from rove.inspect.open_crawl import StoredText
from rove.model.ledger import Content, Location, RequestKind, RequestRow

PLAIN_PAGES = 5_000

Shape = dict[str, Any]
"""What a tool finds: columns, rows, and how many values some columns have."""
COUNTED = ("error", "redirect_to", "copy_of", "title", "text")
RECORDS = ("text_record", "revisit_record", "raw_record")


def main() -> int:
    """Make both exports, load them with every tool, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HF_HOME": f"{folder}/hf", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        exports = {"a crawl": _crawled(Path(folder)), "late values": _with_late_values(Path(folder))}
        print("outputs of a small crawl:")
        failures = check_all(Path(folder, "outputs"))
        for name, file in exports.items():
            expected = _expected(file)
            print(f"{name}: {expected}")
            for tool, load in TOOLS.items():
                try:
                    found: object = load(str(file))
                except Exception as error:
                    found = f"{type(error).__name__}: {error}"
                is_right = found == expected
                failures += not is_right
                print(f"  {tool:<22}{'loads it' if is_right else f'FAILS: {found}'}")
    return 1 if failures else 0


def _crawled(folder: Path) -> Path:
    data, file = folder / "crawl", folder / "pages.jsonl"
    seeds = write_lines(folder / "seeds.txt", f"http://{HOST}/")
    with site(ANSWERS) as served:
        rove_alone("crawl", seeds, *crawl_options(data, delay=0.01), *served.reach, check=True)
    rove_alone("export", "--all", "--output", file, "--data-dir", data, check=True)
    return file


def _with_late_values(folder: Path) -> Path:
    """Write an export through the same steps as `rove export`."""
    file = folder / "late.jsonl"

    async def write() -> None:
        with file.open("wb") as output:
            async for page in examples_first(_pages()):
                text = None if page.row.text is None else "A text. " * 400
                write_json(document_json(Document(stored=page, text=text, copies=0, depth=1)), output)

    asyncio.run(write())
    return file


async def _pages() -> AsyncIterator[StoredText]:
    where = Location(file="rove-1.warc.gz", offset=1, length=2)
    content = Content(
        hash=1, sha1_64=1, domain=1, visit=1, where=where, url="http://a.test/original", fetched_at=1_800_000_000.0
    )
    plain = RequestRow(
        visit=1,
        seq=0,
        domain=1,
        kind=RequestKind.PAGE,
        url="http://a.test/",
        fingerprint=1,
        started=1_800_000_000.0,
        began=0,
        ended=250,
        status=200,
        media_type="text/html",
        size=1_000,
        content_hash=1,
        title="A title",
        text=where,
    )
    for visit in range(PLAIN_PAGES):
        yield StoredText(row=plain.replace(visit=visit), content=None)
    none = plain.replace(text=None, content_hash=None, title="", media_type="")
    for visit in range(PLAIN_PAGES, PLAIN_PAGES + 10):
        yield StoredText(row=plain.replace(visit=visit, is_copy=True), content=content)
        yield StoredText(row=none.replace(visit=visit, status=301, target="http://b.test/"), content=None)
        yield StoredText(row=none.replace(visit=visit, status=0, error="dns"), content=None)
        yield StoredText(row=plain.replace(visit=visit, raw=where, marks=("body-cut",), truncated=True), content=None)


def _expected(file: Path) -> Shape:
    pages = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return _shape(list(pages[0]), pages)


def _shape(columns: list[str], pages: list[dict[str, Any]]) -> Shape:
    values: Counter[str] = Counter()
    for page in pages:
        values.update(name for name in COUNTED if _is_value(page[name]))
        values.update(name for name in RECORDS if _is_value(page[name]) and page[name]["offset"] is not None)
        values.update({"marks": len(page["marks"]), "status": page["status"], "bytes": page["bytes"]})
    return {"columns": sorted(columns), "rows": len(pages), "values": dict(+values)}


def _is_value(value: object) -> bool:
    return value is not None and value == value  # pandas has NaN instead of null


def _datasets(file: str) -> Shape:
    import datasets

    loaded = datasets.load_dataset("json", data_files=file, split="train")
    return _shape(loaded.column_names, list(loaded))


def _duckdb(file: str) -> Shape:
    import duckdb

    table = duckdb.sql(f"SELECT * FROM read_json('{file}')")
    return _shape(table.columns, [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()])


def _polars(file: str) -> Shape:
    import polars

    frame = polars.read_ndjson(file)
    return _shape(frame.columns, frame.to_dicts())


def _pandas(file: str) -> Shape:
    import pandas

    frame = pandas.read_json(file, lines=True)
    return _shape(list(frame.columns), frame.to_dict("records"))


TOOLS: dict[str, Callable[[str], Shape]] = {
    "Hugging Face datasets": _datasets,
    "DuckDB": _duckdb,
    "polars": _polars,
    "pandas": _pandas,
}

if __name__ == "__main__":
    sys.exit(main())
