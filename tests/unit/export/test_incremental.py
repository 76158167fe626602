"""The state of an incremental export: it survives a kill at each step, and refuses what does not belong to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rove.errors import UsageError
from rove.export.chosen import Span
from rove.export.incremental import State


def last_of(path: Path) -> int:
    saved: int = json.loads(path.read_text())["last"]
    return saved


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_kill_before_the_output_has_its_name(tmp_path: Path, is_directory: bool) -> None:
    path, part = tmp_path / "state", tmp_path / ".out.1.new"
    state = State(path, "crawl", "all")
    state.advance(Span(0, 5))
    part.mkdir() if is_directory else part.write_text("half")
    state.complete(Span(5, 9), part)
    State(path, "crawl", "all")
    assert last_of(path) == 5 and not part.exists()


def test_a_kill_after_the_output_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "state"
    State(path, "crawl", "all").complete(Span(0, 9), tmp_path / ".out.1.new")
    assert last_of(path) == 0
    State(path, "crawl", "all")
    assert last_of(path) == 9


def test_an_output_that_cannot_get_its_name(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = State(path, "crawl", "all")
    state.complete(Span(0, 9), tmp_path / ".out.1.new")
    state.withdraw()
    State(path, "crawl", "all")
    assert last_of(path) == 0


def test_a_state_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    State(path, "crawl", "--domain a.test").advance(Span(0, 5))
    with pytest.raises(UsageError, match="belongs to another crawl"):
        State(path, "other", "--domain a.test")
    with pytest.raises(UsageError, match=r"other options \(--domain a.test\)"):
        State(path, "crawl", "all")
    mine = tmp_path / "thesis.tex"
    mine.write_text("mine")
    state = State(tmp_path / "other", "crawl", "all")
    state.complete(Span(0, 1), mine)
    with pytest.raises(UsageError, match="the state file is damaged"):
        State(tmp_path / "other", "crawl", "all")
    assert mine.exists()
    path.write_text("{}")
    with pytest.raises(UsageError, match="is not a state file"):
        State(path, "crawl", "all")
    with pytest.raises(UsageError, match="cannot read"):
        State(tmp_path, "crawl", "all")
