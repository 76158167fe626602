"""The panels of a plot: which figures each one shows, how they are read, and in which unit.

This table is all that `rove plot` and the page in the browser know about the figures that they draw.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from rove.errors import UsageError


class Measure(enum.StrEnum):
    """How the numbers of an axis are written and rounded."""

    NUMBER = "number"
    BYTES = "bytes"
    SECONDS = "seconds"
    SHARE = "share"


class Scale(enum.StrEnum):
    """How the values of a panel become heights."""

    LINEAR = "linear"
    LOG = "log"
    """For times, where a change from 1 to 10 ms matters as much as one from 1 to 10 s."""


class Reading(enum.StrEnum):
    """How a curve is read from samples."""

    RATE = "rate"
    """A count of the interval, per second."""
    LEVEL = "level"
    """A gauge, averaged over time."""
    P95 = "p95"
    """The 95th percentile of a histogram."""


class Role(enum.StrEnum):
    """What a curve is for."""

    CURVE = "curve"
    LIMIT = "limit"
    """What the others could reach. It may leave the panel instead of flattening the other curves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The figures that make one curve, or a family of curves."""

    figures: str
    """Names of figures, separated by spaces. They are added. With `*` at the end of a name it is a family of curves."""
    label: str | Callable[[str], str]
    """The label, or the function that makes it from what `*` stands for. Figures with the same label are added, and
    those with the label '' are left out."""
    reading: Reading
    role: Role = Role.CURVE
    by_machine: bool = False
    """If there are several machines, there is one curve for each machine instead."""

    @property
    def is_family(self) -> bool:
        """Whether there may be several curves."""
        return self.figures.endswith("*")

    def label_of(self, figure: str) -> str | None:
        """Return the label under which a figure is shown; None if it belongs to other curves."""
        if self.is_family:
            prefix = self.figures.removesuffix("*")
            return (self._named(figure.removeprefix(prefix)) or None) if figure.startswith(prefix) else None
        return self._named("") if figure in self.figures.split() else None

    def _named(self, part: str) -> str:
        return self.label if isinstance(self.label, str) else self.label(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel."""

    name: str
    """What `--panels` and the JSON call it."""
    title: str
    unit: str
    measure: Measure = Measure.NUMBER
    scale: Scale = Scale.LINEAR
    curves: tuple[Curve, ...]
    is_stacked: bool = False
    """The curves are parts of a whole and lie on top of each other."""
    is_extra: bool = False
    """It is drawn only if it is named."""


def plain(part: str) -> str:
    """Write a part of a figure's name as a label.

    >>> plain("first_byte"), plain("no-room")
    ('first byte', 'no room')
    """
    return part.replace("_", " ").replace("-", " ")


def process_label(process: str) -> str:
    """Name a process of a machine.

    >>> process_label("1"), process_label("supervisor")
    ('process 1', 'supervisor')
    """
    return f"process {process}" if process.isdigit() else plain(process)


def error_label(error: str) -> str:
    """Put an error into one of a few classes, so that a hundred statuses are not a hundred curves.

    >>> error_label("page.status-404"), error_label("robots.timeout-total"), error_label("page.dns-not-found")
    ('status 4xx', 'timeout', 'dns')
    """
    name = error.partition(".")[2]
    if status := re.fullmatch(r"status-(\d)\d\d", name):
        return f"status {status[1]}xx"
    return next((plain(kind) for kind in ("timeout", "dns") if name.startswith(kind)), plain(name))


_CAUSES = {
    "operator": "paused by its owner",
    "outage": "connection lost",
    "database": "database away",
    "rest": "all domains rest",
    "disk": "disk nearly full",
    "memory": "short of memory",
    "fetches": "",  # fewer fetches at once; the panel of the fetches in flight shows it
}


def cause_label(cause: str) -> str:
    """Name the cause that holds up a crawl; '' for one that is no reason to shade the plot.

    >>> cause_label("outage"), cause_label("fetches"), cause_label("something-new")
    ('connection lost', '', 'something new')
    """
    return _CAUSES.get(cause, plain(cause))


def _times(names: Mapping[str, str]) -> tuple[Curve, ...]:
    """Return the 95th percentiles of some histograms, by name and label."""
    return tuple(Curve(figures=name, label=label, reading=Reading.P95) for name, label in names.items())


PANELS = (
    Panel(
        name="pages",
        title="Pages",
        unit="pages/s",
        curves=(
            Curve(figures="pages.stored pages.copy", label="pages", reading=Reading.RATE),
            Curve(figures="ceiling", label="politeness allows", reading=Reading.LEVEL, role=Role.LIMIT),
        ),
    ),
    Panel(
        name="leases",
        title="Leases without a request, and empty claims",
        unit="per second",
        curves=(
            Curve(figures="no_request.*", label=plain, reading=Reading.RATE),
            Curve(figures="claims.empty", label="empty claims", reading=Reading.RATE),
        ),
    ),
    Panel(
        name="phases",
        title="Phases of requests, 95th percentile",
        unit="",
        measure=Measure.SECONDS,
        scale=Scale.LOG,
        curves=_times(
            {
                "phase.dns": "DNS",
                "phase.connect": "connect",
                "phase.tls": "TLS",
                "phase.first_byte": "first byte",
                "phase.transfer": "transfer",
            }
        ),
    ),
    Panel(
        name="errors",
        title="Errors by kind",
        unit="per second",
        is_stacked=True,
        curves=(Curve(figures="errors.*", label=error_label, reading=Reading.RATE),),
    ),
    Panel(
        name="in-flight",
        title="Fetches in flight",
        unit="",
        curves=(
            Curve(figures="in_flight", label="in flight", reading=Reading.LEVEL),
            Curve(figures="at_once", label="limit in force", reading=Reading.LEVEL, role=Role.LIMIT),
        ),
    ),
    Panel(
        name="urls",
        title="Pending URLs",
        unit="",
        curves=(Curve(figures="urls.pending", label="pending", reading=Reading.LEVEL),),
    ),
    Panel(
        name="domains",
        title="Domains by state",
        unit="",
        is_stacked=True,
        curves=(Curve(figures="domains.*", label=plain, reading=Reading.LEVEL),),
    ),
    Panel(
        name="cpu",
        title="CPU",
        unit="cores",
        curves=(Curve(figures="cpu.*", label=process_label, reading=Reading.RATE, by_machine=True),),
    ),
    Panel(
        name="memory",
        title="Memory (RSS)",
        unit="",
        measure=Measure.BYTES,
        is_stacked=True,
        curves=(Curve(figures="rss.*", label=process_label, reading=Reading.LEVEL, by_machine=True),),
    ),
    Panel(
        name="files",
        title="Open files",
        unit="",
        is_stacked=True,
        curves=(Curve(figures="open_files.*", label=plain, reading=Reading.LEVEL, by_machine=True),),
    ),
    Panel(
        name="database",
        title="Database times, 95th percentile",
        unit="",
        measure=Measure.SECONDS,
        scale=Scale.LOG,
        curves=_times({"claim": "claim", "add": "add", "settle": "settle", "flush": "store flush"}),
    ),
    Panel(
        name="requests",
        title="Requests",
        unit="requests/s",
        is_stacked=True,
        is_extra=True,
        curves=(Curve(figures="requests.*", label=plain, reading=Reading.RATE),),
    ),
    Panel(
        name="traffic",
        title="Traffic per second",
        unit="",
        measure=Measure.BYTES,
        is_extra=True,
        curves=(
            Curve(figures="bytes.received", label="received", reading=Reading.RATE),
            Curve(figures="bytes.stored", label="stored", reading=Reading.RATE),
        ),
    ),
    Panel(
        name="links",
        title="Links",
        unit="links/s",
        is_extra=True,
        curves=(
            Curve(figures="links.found", label="found", reading=Reading.RATE),
            Curve(figures="links.new", label="new", reading=Reading.RATE),
        ),
    ),
    Panel(
        name="margin",
        title="Smallest politeness margin",
        unit="",
        measure=Measure.SECONDS,
        is_extra=True,
        curves=(Curve(figures="margin.smallest", label="margin", reading=Reading.LEVEL),),
    ),
    Panel(
        name="lag",
        title="Longest stop of an event loop",
        unit="",
        measure=Measure.SECONDS,
        scale=Scale.LOG,
        is_extra=True,
        curves=(Curve(figures="lag.longest", label="lag", reading=Reading.LEVEL, by_machine=True),),
    ),
    Panel(
        name="disk",
        title="Free disk and memory",
        unit="",
        measure=Measure.BYTES,
        is_extra=True,
        curves=(
            Curve(figures="disk.free", label="disk", reading=Reading.LEVEL),
            Curve(figures="memory.free", label="memory", reading=Reading.LEVEL),
        ),
    ),
)
"""All panels, from top to bottom."""

STOPPED = Curve(figures="paused.*", label=cause_label, reading=Reading.LEVEL)
"""While one of these holds, all panels are shaded."""


def default_panels() -> tuple[Panel, ...]:
    """Return the panels that are drawn if none is named."""
    return tuple(panel for panel in PANELS if not panel.is_extra)


def panels_named(names: Iterable[str]) -> tuple[Panel, ...]:
    """Return panels by name, in the order in which they are named; 'all' means every panel.

    >>> [panel.title for panel in panels_named(["urls", "pages", "urls"])]
    ['Pending URLs', 'Pages']
    """
    known = {panel.name: panel for panel in PANELS}
    chosen: dict[str, Panel] = {}
    for name in names:
        if name == "all":
            chosen |= known
        elif name in known:
            chosen[name] = known[name]
        else:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; the panels are {', '.join(known)}, and all"
            raise UsageError(f"there is no panel {name!r}{hint}")
    return tuple(chosen.values())
