"""The words around a plot, which all drawings share."""

from __future__ import annotations

from rove.notation.humanize import counted, utc_text
from rove.observe.series import Plot
from rove.observe.time_axis import elapsed_text

_SHORT = 600.0
"""A plot of fewer seconds is described to the second."""
NOTHING = "none in this time"
NO_SAMPLES = "no samples in this time"


def about(plot: Plot) -> str:
    """Describe the time, the steps and the machines of a plot."""
    end = plot.start + plot.step * plot.count
    machines = f", {counted(len(plot.machines), 'machine')}" if len(plot.machines) > 1 else ""
    first, last = utc_text(plot.start), utc_text(end)
    if plot.step * plot.count > _SHORT:
        first, last = (f"{time[:16]}Z" for time in (first, last))
    return f"{first} to {last}, in steps of {elapsed_text(plot.step)}{machines}"
