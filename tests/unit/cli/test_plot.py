"""The help of `rove plot`."""

from __future__ import annotations

import re

from rove.cli.plot import plot
from rove.observe.panels import PANELS, default_panels


def test_the_help_names_all_panels() -> None:
    drawn, extra = re.findall(r"(?:The panels are|there are also) ([^.]*)\.", " ".join((plot.help or "").split()))
    assert re.split(r", | and ", drawn) == [panel.name for panel in default_panels()]
    assert re.split(r", | and ", extra) == [panel.name for panel in PANELS if panel.is_extra]
