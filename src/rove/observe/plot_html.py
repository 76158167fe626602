"""Writes a chart as one self-contained HTML file that shows the values of all panels at the time under the pointer.

The names of machines and directories are foreign text: they are escaped, and the page's Content-Security-Policy allows
its own script only and nothing from other hosts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib import resources
from typing import Any

import msgspec

from rove.notation.humanize import utc_text
from rove.observe.series import Plot
from rove.observe.svg_chart import LEFT, WIDTH, Drawn, drawn
from rove.observe.svg_panel import entry_text
from rove.observe.svg_text import safe
from rove.observe.time_axis import elapsed_text

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{chart}<script type="application/json" id="values">{values}</script>
<script>{script}</script>
</body>
</html>
"""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""In JSON these are the same characters; in HTML they end no element."""


def as_html(plots: Sequence[Plot]) -> str:
    """Return the page. The steps of all plots have the same length."""
    chart = drawn(plots)
    script = _resource("plot.js")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return _PAGE.format(
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        title=safe("rove: " + ", ".join(plot.label for plot in plots)),
        style=_resource("plot.css"),
        chart=chart.svg.replace("<svg ", '<svg tabindex="0" ', 1),
        values=_json(_values(chart)),
        script=script,
    )


def _values(chart: Drawn) -> dict[str, Any]:
    """Return what the script shows: the texts of each line of the legends at each step, and where the steps are."""
    first = chart.frame.plots[0]
    steps = range(max(plot.count for plot in chart.frame.plots))
    return {
        "width": WIDTH,
        "left": LEFT,
        "step": chart.frame.inner * first.step / chart.frame.seconds,
        "times": list(_times(chart.frame.plots, len(steps))),
        "values": [[entry_text(entry, panel, step) for step in steps] for panel, entry in chart.legends],
    }


def _times(plots: Sequence[Plot], count: int) -> Iterator[str]:
    for step in range(count):
        seconds = step * plots[0].step
        yield utc_text(plots[0].start + seconds) if len(plots) == 1 else elapsed_text(seconds)


def _json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def _resource(name: str) -> str:
    return resources.files("rove.observe").joinpath(name).read_text("utf-8")
