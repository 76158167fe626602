"""Parquet files of limited size. The library that writes them, pyarrow, has its home here."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rove.errors import UsageError
from rove.export.output import sync_file

SHARD_BYTES = 256 << 20
GROUP_BYTES = 32 << 20
"""Memory of the rows in a row group."""
_VALUE_OVERHEAD = 56
"""Bytes of memory that a value takes besides its content."""
GROUP_ROWS = 50_000
_COMPRESSION = "zstd"


class Type(enum.Enum):
    """The type of a column, by pyarrow's name."""

    TEXT = "string"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT = "float64"
    TIME = "timestamp[ms]"
    BYTES = "binary"


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: Type = Type.TEXT
    nullable: bool = True


def check_pyarrow() -> None:
    """Raise UsageError if pyarrow is not installed."""
    _pyarrow()


class ShardWriter:
    """Writes rows into Parquet files, one after another. A new file begins when the last one is large enough.

    The same rows give the same bytes.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        path_of: Callable[[int], Path],
        *,
        shard_bytes: int = SHARD_BYTES,
        group_bytes: int = GROUP_BYTES,
    ) -> None:
        """`path_of` names a file by its number."""
        arrow, self._parquet = _pyarrow()
        fields = [arrow.field(c.name, arrow.type_for_alias(c.type.value), nullable=c.nullable) for c in columns]
        self._arrow = arrow
        self._schema = arrow.schema(fields)
        self._path_of = path_of
        self._shard_bytes = shard_bytes
        self._group_bytes = group_bytes
        self._rows: list[tuple[Any, ...]] = []
        self._size = 0
        self._paths: list[Path] = []
        self._sink: Any = None
        self._writer: Any = None

    @property
    def files(self) -> int:
        """The number of files so far."""
        return len(self._paths)

    def add(self, row: tuple[Any, ...]) -> None:
        """Take a row, with the values in the order of the columns."""
        self._rows.append(row)
        self._size += sum(len(value) for value in row if isinstance(value, (str, bytes))) + _VALUE_OVERHEAD * len(row)
        if self._size >= self._group_bytes or len(self._rows) == GROUP_ROWS:
            self._write_group()

    def close(self, *, even_if_empty: bool = True) -> None:
        """Write the last rows. Without any row, there is a file that has only columns, unless told otherwise."""
        if self._rows or (even_if_empty and not self._paths):
            self._write_group()
        self._end_shard()

    def abandon(self) -> None:
        """Close the file as it is."""
        if self._writer is not None:
            self._writer.close()
            self._sink.close()

    def _write_group(self) -> None:
        if self._writer is None:
            self._begin_shard()
        values = zip(*self._rows, strict=True) if self._rows else [()] * len(self._schema)
        arrays = [
            self._arrow.array(column, type=field.type) for column, field in zip(values, self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows, self._size = [], 0
        if self._sink.tell() >= self._shard_bytes:
            self._end_shard()

    def _begin_shard(self) -> None:
        path = self._path_of(len(self._paths))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._paths.append(path)
        self._sink = path.open("wb")
        self._writer = self._parquet.ParquetWriter(self._sink, self._schema, compression=_COMPRESSION)

    def _end_shard(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._sink.close()
        self._writer = None
        sync_file(self._paths[-1])


def _pyarrow() -> tuple[Any, Any]:
    """Import pyarrow, which takes a while."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs a library that is not installed; run 'pip install \"rove[parquet]\"'") from None
    return pyarrow, pyarrow.parquet
