"""A log that cannot be written is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.app.log_file import start_logging
from rove.errors import StoreError


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rove-1.log"
    file.mkdir()
    with pytest.raises(StoreError, match=r"rove-1\.log cannot be written: Is a directory"):
        start_logging(file, "info")
