"""`make` finds a Python that is new enough, or says which one it needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "find-python.sh"

pytestmark = pytest.mark.system


def with_pythons(folder: Path, **versions: str) -> dict[str, str]:
    """Return an environment whose PATH has only these Pythons, each a script that prints its version."""
    for name, version in versions.items():
        path = folder / name.replace("_", ".")
        path.write_text(f"#!/bin/sh\necho {version}\n")
        path.chmod(0o755)
    return {"PATH": str(folder)}


def found(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    shell = shutil.which("sh") or "/bin/sh"
    return subprocess.run([shell, SCRIPT, "python3"], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("version", ["3.11", "3.14", "3.20", "4.0"])
def test_a_new_python_is_taken_as_it_is(tmp_path: Path, version: str) -> None:
    result = found(with_pythons(tmp_path, python3=version))
    assert (result.returncode, result.stdout, result.stderr) == (0, "python3\n", "")


@pytest.mark.parametrize("version", ["2.7", "3.9", "3.10"])
def test_a_newer_python_on_the_path_is_used(tmp_path: Path, version: str) -> None:
    result = found(with_pythons(tmp_path, python3=version, python3_11="3.11", python3_13="3.13"))
    assert (result.returncode, result.stdout) == (0, "python3.13\n")
    assert result.stderr == f"python3 is {version}; using python3.13\n"


def test_a_name_that_does_not_keep_its_promise_is_passed_over(tmp_path: Path) -> None:
    """A version manager may have a command for a version that is not installed."""
    environment = with_pythons(tmp_path, python3_12="3.12", python3_14="3.14")
    (tmp_path / "python3.14").write_text("#!/bin/sh\nexit 127\n")
    assert found(environment).stdout == "python3.12\n"


def test_make_says_what_it_needs(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    environment = with_pythons(tmp_path, python3="3.10")
    command = [make, "-C", str(ROOT), "demo", f"VENV={tmp_path}/venv"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.splitlines()[0] == "rove needs Python 3.11 or newer; found 3.10"
    assert not (tmp_path / "venv").exists()
    (tmp_path / "python3").unlink()
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.stderr.splitlines()[0] == "rove needs Python 3.11 or newer; found none"
