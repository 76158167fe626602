"""The benchmark still works, on tiny webs and for a few of its parts. Its speed does not matter here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CHOSEN = ("f", "c", "real", "hostile-10")
"""A part that compares two webs, one over TLS, a part that fills a frontier, and real-like pages. The others are built
alike."""
CONTESTANTS = ("bare-2", "handshakes-2", "lexbor-2", "rove-2")


@pytest.mark.timeout(240)
def test_the_benchmark_runs_and_agrees_with_the_servers_log(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    command = [sys.executable, "-m", "benchmarks.crawl", "--quick", "--json", str(file)]
    command += [word for part in CHOSEN for word in ("--only", part)]
    command += [word for name in CONTESTANTS for word in ("--contestant", name)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=230)
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads(file.read_text())
    assert not found["failures"]
    for web in ("40kb", "https", "real", "hostile-10"):
        (figures,) = found["webs"][web]["rounds"]
        by_name = {one["contestant"]: one for one in figures}
        assert "rove-2" in by_name
        assert all(one["pages_logged"] > 0 for one in figures)
        rove = by_name["rove-2"]
        assert rove["pages_told"] == rove["pages_logged"] > 0
        assert rove["details"]["requests_told"] == rove["details"]["requests_logged"]
        assert rove["details"]["rules_broken"] == 0
        assert rove["details"]["longest_lag_s"] > 0
    assert {verdict["part"] for verdict in found["verdicts"]} == {"a", "c", "f", "j", "k"}
    assert "| (f) |" in result.stdout and "its own count agrees with" in result.stdout
