"""docs/observe.md has exactly the metrics of the table in the code."""

from __future__ import annotations

from pathlib import Path

from rove.observe.metrics.table import METRICS

DOCUMENT = Path(__file__).parents[4] / "docs" / "observe.md"
HEAD = "| metric | type | labels | what it tells |\n|---|---|---|---|\n"


def test_the_document_lists_every_metric() -> None:
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |\n"
        for metric in METRICS
    ]
    _, _, rest = DOCUMENT.read_text("utf-8").partition(HEAD)
    written, wanted = rest.partition("\n\n")[0].rstrip("\n") + "\n", "".join(rows)
    assert written == wanted, f"replace the table in docs/observe.md by:\n\n{HEAD}{wanted}"
