"""The pictures in the documentation."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from rove.app.panel_layout import Dashboard
from rove.crawl.progress import Counters
from rove.observe.panels import default_panels
from rove.observe.svg_chart import style
from rove.policy.limiting import limiting
from rove.policy.situation import Situation
from tests.unit.app.test_panel import COUNTS, TYPICAL

UNDISTURBED = replace(
    TYPICAL,
    counters=Counters(in_flight=432),
    counts=replace(COUNTS, domains={**COUNTS.domains, "ready": 0, "excluded": 0}),
    left="12 s",
    is_whole_crawl=True,
    limiting=limiting(Situation(domains={"waiting": 9, "leased": 1})),
)
PICTURES = Path(__file__).parents[3] / "docs" / "pictures"


def test_the_committed_picture_shows_the_labels_of_the_panel() -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Dashboard(UNDISTURBED))
    labels = set(re.findall(r"[a-zA-Z]{3,}", console.export_text())) - {"GiB", "min"}
    picture = html.unescape((PICTURES / "panel.svg").read_text())
    missing = {label for label in labels if label not in picture}
    assert not missing, f"{sorted(missing)} are not in the picture; run 'make pictures'"


def test_the_committed_plot_has_all_panels_and_the_style_of_today() -> None:
    picture = (PICTURES / "plot.svg").read_text()
    missing = {panel.title for panel in default_panels() if html.escape(panel.title) not in picture}
    assert not missing and style() in picture, "run 'make pictures'"
