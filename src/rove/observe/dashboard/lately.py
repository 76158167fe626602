"""What the samples of the last hour tell: pages, links, politeness, and the state of each machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rove.frontier.contract import FrontierReader
from rove.model.samples import Sample, together
from rove.notation.humanize import size_text

HOUR = 3_600.0
FRESH_SECONDS = 60.0
"""A machine's latest sample tells about now if it is not older."""


async def read_lately(reader: FrontierReader, *, now: float) -> dict[str, Any]:
    """Read the figures of the front page that come from samples; those that were not measured are left out.

    `now` is wall-clock seconds.
    """
    hour = [sample async for group in reader.samples(since=now - HOUR, until=now, step=HOUR) for sample in group]
    latest = await reader.latest_samples()
    fresh = [sample for sample in latest if now - sample.ended / 1000 <= FRESH_SECONDS]
    return {
        **({"last_hour": _last_hour(hour)} if hour else {}),
        "polite": _polite(hour, fresh),
        "figures": {sample.node: _machine(sample) for sample in fresh},
    }


def _last_hour(samples: Sequence[Sample]) -> dict[str, Any]:
    pages = sum(sample.total("pages.") for sample in samples)
    seconds = max(sample.ended for sample in samples) / 1000 - min(
        sample.ended / 1000 - sample.seconds for sample in samples
    )
    links = {name: sum(sample.figures.get(f"links.{name}", 0.0) for sample in samples) for name in ("found", "new")}
    return {"pages": pages, "seconds": seconds, "pages_per_s": pages / seconds if seconds else 0.0, "links": links}


def _polite(hour: Sequence[Sample], fresh: Sequence[Sample]) -> dict[str, Any]:
    """Return the smallest margin of the last hour, and how much of what politeness allows is used now."""
    margins = [sample.figures["margin.smallest"] for sample in hour if "margin.smallest" in sample.figures]
    polite: dict[str, Any] = {"margin": min(margins)} if margins else {}
    if fresh:
        now = together(fresh).figures
        polite |= {name: now[figure] for name, figure in _CEILINGS.items() if figure in now}
    return polite


_CEILINGS = {"ceiling": "ceiling", "used": "ceiling.used"}


def _machine(sample: Sample) -> list[dict[str, str]]:
    """Return what the latest sample tells about its machine, for people."""
    figures = sample.figures
    shown = {
        "CPU": f"{sample.total('cpu.') / sample.seconds:.2f} cores" if sample.seconds else "",
        "memory": size_text(round(sample.total("rss."))),
        "memory left": _size(figures.get("memory.free")),
        "disk left": _size(figures.get("disk.free")),
        "network": f"{_size(sample.rate('network.received'))}/s in, {_size(sample.rate('network.sent'))}/s out",
        "open files": f"{sample.total('open_files.'):,.0f}",
        "event loop": f"stopped for at most {1000 * figures['lag.longest']:,.0f} ms"
        if "lag.longest" in figures
        else "",
    }
    return [{"name": name, "value": value} for name, value in shown.items() if value]


def _size(number: float | None) -> str:
    return "" if number is None else size_text(round(number))
