"""Sorting with little memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rove.export.sorting import ExternalSort


@pytest.mark.parametrize("memory", [1, 500, 5_000, 1 << 20])
def test_any_order_and_any_memory(tmp_path: Path, memory: int) -> None:
    chance = random.Random(memory)
    items = [chance.randbytes(chance.randrange(30)) for _ in range(400)] + [b"", b"\n", b"same", b"same"]
    sort = ExternalSort(tmp_path, memory=memory, most_runs=5)
    for item in items:
        sort.add(item)
    assert list(sort.merged()) == sorted(items)
    assert list(tmp_path.iterdir()) == [], "the files have no names"


def test_nothing_to_sort() -> None:
    assert list(ExternalSort().merged()) == []
