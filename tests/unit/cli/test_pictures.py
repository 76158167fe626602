"""The picture of the panel in the documentation."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from rove.app.panel_layout import Dashboard
from rove.crawl.progress import Counters
from tests.unit.app.test_panel import COUNTS, TYPICAL

UNDISTURBED = replace(
    TYPICAL,
    counters=Counters(in_flight=432),
    counts=replace(COUNTS, domains={**COUNTS.domains, "ready": 0, "excluded": 0}),
    left="12 s",
    is_whole_crawl=True,
)
PICTURE = Path(__file__).parents[3] / "docs" / "pictures" / "panel.svg"


def test_the_committed_picture_shows_the_labels_of_the_panel() -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Dashboard(UNDISTURBED))
    labels = set(re.findall(r"[a-zA-Z]{3,}", console.export_text())) - {"GiB", "min"}
    picture = html.unescape(PICTURE.read_text())
    missing = {label for label in labels if label not in picture}
    assert not missing, f"{sorted(missing)} are not in the picture; run 'make pictures'"
