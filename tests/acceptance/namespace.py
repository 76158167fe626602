"""A mount namespace of its own, in which a test may fill a file system that nobody else sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMESPACES = (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"])


def run_in_namespace(module: str, folder: Path) -> str:
    """Run a module as a program that may mount something on a folder; what it prints. Skips where that is forbidden."""
    for namespace in NAMESPACES:
        mount = [*namespace, "mount", "-t", "tmpfs", "none", str(folder)]
        try:
            if subprocess.run(mount, capture_output=True).returncode == 0:
                break
        except FileNotFoundError:
            continue
    else:
        pytest.skip("nobody may mount a file system here")
    program = [sys.executable, "-m", module, str(folder)]
    result = subprocess.run(
        [*namespace, *program], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
