"""A directory is written whole or not at all, and replaces only what an export has made."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.errors import UsageError
from rove.export.output import whole_directory


def write(path: Path, name: str = "a.parquet", *, overwrite: bool = False) -> None:
    with whole_directory(path, overwrite=overwrite) as directory:
        (directory / "sub").mkdir()
        (directory / "sub" / name).write_text(name)


def test_it_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out"
    seen: list[Path] = []
    with whole_directory(target, overwrite=False, on_complete=seen.append) as directory:
        (directory / "x.parquet").write_text("x")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["x.parquet"]
    assert seen == [directory] and list(tmp_path.iterdir()) == [target]


def test_after_an_error_nothing_has_changed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target)
    with pytest.raises(ZeroDivisionError), whole_directory(target, overwrite=True) as directory:
        (directory / "x.parquet").write_text("x")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == [target]
    assert (target / "sub" / "a.parquet").exists()


def test_only_an_export_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target)
    with pytest.raises(UsageError, match="add --force"):
        write(target)
    write(target, "README.md", overwrite=True)
    assert (target / "sub" / "README.md").exists() and not (target / "sub" / "a.parquet").exists()
    (target / "sub" / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match=r"such as thesis\.tex"):
        write(target, overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        write(tmp_path / "file", overwrite=True)
    with pytest.raises(UsageError, match="cannot write"):
        write(tmp_path / "missing" / "out")
