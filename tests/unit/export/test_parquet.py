"""Parquet files: their sizes, their columns, and that the same rows give the same bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from rove.errors import UsageError
from rove.export.parquet import Column, ShardWriter, Type, check_pyarrow

COLUMNS = (Column("name", nullable=False), Column("count", Type.INT32))
ROWS = [(f"name {number} " * 50, number if number % 3 else None) for number in range(400)]


def write(folder: Path, rows: list[tuple[str, int | None]], **sizes: int) -> list[Path]:
    writer = ShardWriter(COLUMNS, lambda number: folder / f"{number}.parquet", **sizes)
    for row in rows:
        writer.add(row)
    writer.close()
    writer.abandon()
    return sorted(folder.iterdir())


def test_a_file_ends_when_it_is_large_enough(tmp_path: Path) -> None:
    paths = write(tmp_path, ROWS, shard_bytes=2_000, group_bytes=20_000)
    assert len(paths) > 3
    tables = [pyarrow.parquet.read_table(path) for path in paths]
    assert [(row["name"], row["count"]) for table in tables for row in table.to_pylist()] == ROWS
    assert not tables[0].schema.field("name").nullable
    assert tables[0].schema.field("count").type == pyarrow.int32()
    assert pyarrow.parquet.ParquetFile(paths[0]).metadata.row_group(0).column(0).compression == "ZSTD"


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        [path.read_bytes() for path in write(tmp_path / name, ROWS, shard_bytes=2_000, group_bytes=20_000)]
        for name in "ab"
    )
    assert first == second


def test_without_rows_there_is_a_file_with_the_columns(tmp_path: Path) -> None:
    (path,) = write(tmp_path, [])
    assert pyarrow.parquet.read_table(path).column_names == ["name", "count"]


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pyarrow()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"run 'pip install \"rove\[parquet\]\"'"):
        check_pyarrow()
