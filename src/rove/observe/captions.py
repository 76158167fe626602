"""The words around a plot, which all drawings share."""

from __future__ import annotations

from rove.notation.humanize import counted, utc_text
from rove.observe.series import Plot
from rove.observe.time_axis import elapsed_text

NOTHING = "none in this time"
NO_SAMPLES = "no samples in this time"


def about(plot: Plot) -> str:
    """Describe the time, the steps and the machines of a plot."""
    end = plot.start + plot.step * plot.count
    machines = f", {counted(len(plot.machines), 'machine')}" if len(plot.machines) > 1 else ""
    times = f"{utc_text(plot.start)[:16]}Z to {utc_text(end)[:16]}Z"
    return f"{times}, in steps of {elapsed_text(plot.step)}{machines}"
