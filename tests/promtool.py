"""promtool, Prometheus' own checker. Debian's package `prometheus` has it; without it, a test is skipped."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def promtool(*arguments: str | Path, input: bytes = b"") -> None:
    """Run promtool; fail with its output if it finds a mistake, or a bad habit."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing: apt-get install prometheus")
    done = subprocess.run([program, *map(str, arguments)], input=input, capture_output=True, timeout=120)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
