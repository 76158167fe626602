"""Run a program in a mount namespace of its own, where it may fill a file system that nothing else sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMESPACES = (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"])


def run_in_namespace(module: str, folder: Path) -> str:
    """Run a module that may mount something on a folder, and return its output. Skip if mounting is forbidden."""
    for namespace in NAMESPACES:
        mount = [*namespace, "mount", "-t", "tmpfs", "none", str(folder)]
        try:
            if subprocess.run(mount, capture_output=True).returncode == 0:
                break
        except FileNotFoundError:
            continue
    else:
        pytest.skip("mounting a file system is not permitted here")
    program = [sys.executable, "-m", module, str(folder)]
    result = subprocess.run([*namespace, *program], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
