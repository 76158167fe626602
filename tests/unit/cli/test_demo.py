"""`rove demo`, as far as it goes without its small web."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.__main__ import run
from rove.datadir import DataDir


def test_a_kept_demo_is_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its small web has stopped, and it has no --resume."""
    kept = DataDir(tmp_path / "demo")
    kept.root.mkdir()
    kept.frontier.touch()
    assert run(["demo", "--keep", str(kept.root)]) == 2
    message = capsys.readouterr().err
    assert "holds a crawl already" in message and "--keep DIR" in message and "--resume" not in message
