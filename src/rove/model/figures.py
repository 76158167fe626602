"""The table of all figures that a sample may have: unit, how values are combined, and what each means.

The history, the plots, the metrics and the dashboard read this table. `rove.observe.figures` is the way in for them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_ANY = "*"


class Unit(enum.StrEnum):
    """What a figure counts or measures."""

    PAGES = "pages"
    VISITS = "visits"
    REQUESTS = "requests"
    LINKS = "links"
    URLS = "urls"
    DOMAINS = "domains"
    LEASES = "leases"
    CLAIMS = "claims"
    PROCESSES = "processes"
    FILES = "files"
    CONNECTIONS = "connections"
    BYTES = "bytes"
    SECONDS = "seconds"
    PAGES_PER_SECOND = "pages/s"
    RATIO = "ratio"
    """From 0 to 1."""


class Combining(enum.StrEnum):
    """How several values of a figure become one, over time or over machines."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    LAST = "last"
    """The value of the latest sample. Over machines this is right for figures of the whole crawl."""
    MERGE = "merge"
    """The figure is a histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure, or all figures of a family."""

    pattern: str
    """The name, or the beginning of the names and a star."""
    unit: Unit
    over_time: Combining
    over_machines: Combining
    help: str
    is_zero_if_absent: bool = False
    """A sample without the figure means 0, not that it was not measured."""

    @property
    def is_count(self) -> bool:
        """Whether the figure counts something in the interval, so that it can be shown per second."""
        return self.over_time is Combining.SUM

    @property
    def is_histogram(self) -> bool:
        """Whether the figure is one of `Sample.histograms`."""
        return self.over_time is Combining.MERGE

    @property
    def is_family(self) -> bool:
        """Whether the pattern stands for several names."""
        return self.pattern.endswith(_ANY)

    @property
    def prefix(self) -> str:
        """The beginning of the names of a family; the name of a single figure."""
        return self.pattern.removesuffix(_ANY)


def _count(pattern: str, unit: Unit, help: str) -> Figure:
    return Figure(
        pattern=pattern,
        unit=unit,
        over_time=Combining.SUM,
        over_machines=Combining.SUM,
        help=help,
        is_zero_if_absent=True,
    )


def _gauge(
    pattern: str, unit: Unit, over_time: Combining, over_machines: Combining, help: str, *, or_zero: bool = False
) -> Figure:
    return Figure(
        pattern=pattern,
        unit=unit,
        over_time=over_time,
        over_machines=over_machines,
        help=help,
        is_zero_if_absent=or_zero,
    )


def _histogram(pattern: str, unit: Unit, help: str) -> Figure:
    return Figure(pattern=pattern, unit=unit, over_time=Combining.MERGE, over_machines=Combining.MERGE, help=help)


_SUM, _MEAN, _MAX, _MIN, _LAST = (
    Combining.SUM,
    Combining.MEAN,
    Combining.MAX,
    Combining.MIN,
    Combining.LAST,
)

FIGURES: Sequence[Figure] = (
    # What came in
    _count("pages.stored", Unit.PAGES, "Pages whose text was new and was stored."),
    _count("pages.copy", Unit.PAGES, "Pages whose text was stored before."),
    _count("visits", Unit.VISITS, "Visits that made at least one request."),
    _count("bytes.received", Unit.BYTES, "Bytes of bodies received."),
    _count("bytes.stored", Unit.BYTES, "Bytes written to WARC files."),
    _count("bytes.stored.*", Unit.BYTES, "Bytes written to WARC files: text, or raw responses."),
    _count("requests.*", Unit.REQUESTS, "Requests by kind: page, robots or sitemap."),
    _count("errors.*", Unit.REQUESTS, "Failed requests by kind of request and error."),
    _count(
        "without_content.*",
        Unit.REQUESTS,
        "Requests that brought nothing although nothing went wrong, by kind and why.",
    ),
    _count("internal_errors", Unit.VISITS, "Visits that failed because of a bug in rove."),
    _count("marks.*", Unit.REQUESTS, "Responses that were cut, doubtful or a bot wall, by mark."),
    # Links
    _count("links.found", Unit.LINKS, "Links found in pages, redirects and sitemaps."),
    _count("links.new", Unit.LINKS, "Links that were new and were added to the frontier."),
    _count("links.known", Unit.LINKS, "Links that the frontier knew already."),
    _count("links.evicted", Unit.LINKS, "URLs that were added earlier and were deleted for better ones."),
    _count("not_taken.*", Unit.LINKS, "Links that were not added to the frontier, by reason."),
    # Leases
    _count("leases.*", Unit.LEASES, "Leases by how they ended: requested or without_request."),
    _count("leases_lost", Unit.LEASES, "Leases that ended after another process could have taken their domain."),
    _count("no_request.*", Unit.LEASES, "Leases that ended without a request, by reason."),
    _count("claims", Unit.CLAIMS, "Claims of due domains."),
    _count("claims.empty", Unit.CLAIMS, "Claims that returned no domain."),
    _count("rests.*", Unit.VISITS, "Visits by the reason for the delay after them."),
    # The state of the crawl on this machine
    _gauge("in_flight", Unit.VISITS, _MEAN, _SUM, "Visits in flight."),
    _gauge("at_once", Unit.VISITS, _MEAN, _SUM, "Visits that may be in flight."),
    _gauge("held_by.*", Unit.PROCESSES, _MEAN, _SUM, "Processes that this keeps from more visits.", or_zero=True),
    _gauge(
        "slowed.*",
        Unit.DOMAINS,
        _MEAN,
        _SUM,
        "Domains that rest for longer than the chosen delay after a visit by this machine, by cause.",
        or_zero=True,
    ),
    _gauge("queued", Unit.LEASES, _MEAN, _SUM, "Leases that wait for a free slot."),
    _gauge("unsettled", Unit.VISITS, _MEAN, _SUM, "Finished visits that wait to be written."),
    _gauge(
        "paused.*",
        Unit.RATIO,
        _MEAN,
        _MAX,
        "Share of the time in which this cause slowed or paused the crawl.",
        or_zero=True,
    ),
    _gauge("processes", Unit.PROCESSES, _MIN, _SUM, "Crawling processes that are alive."),
    _gauge(
        "seeds.loading", Unit.RATIO, _MEAN, _MAX, "Share of the time in which seeds were being loaded.", or_zero=True
    ),
    # The frontier, which all machines share
    _gauge("urls.*", Unit.URLS, _LAST, _LAST, "URLs of the whole crawl by state."),
    _gauge("domains.*", Unit.DOMAINS, _MEAN, _LAST, "Domains of the whole crawl by state."),
    _gauge(
        "oldest_due", Unit.SECONDS, _MAX, _MAX, "How long the domain that is ready has waited that has waited longest."
    ),
    _gauge("next_due", Unit.SECONDS, _LAST, _LAST, "Seconds until the next domain is due; 0 if one is."),
    _gauge("ceiling", Unit.PAGES_PER_SECOND, _MEAN, _LAST, "Visits per second that politeness allows the whole crawl."),
    _gauge("ceiling.used", Unit.RATIO, _MEAN, _LAST, "Share of the visits that politeness allows and that are made."),
    # The machine
    _count("cpu.*", Unit.SECONDS, "CPU time by process: supervisor, 1, 2 ..."),
    _gauge("rss.*", Unit.BYTES, _MAX, _SUM, "Resident memory by process."),
    _gauge("open_files.*", Unit.FILES, _MAX, _SUM, "Open files by kind: web, database, files or other.", or_zero=True),
    _gauge("disk.free", Unit.BYTES, _MIN, _MIN, "Free space on the disk of the data directory."),
    _gauge("memory.free", Unit.BYTES, _MIN, _MIN, "Memory that the machine has left."),
    _count("network.received", Unit.BYTES, "Bytes that the machine received over the network."),
    _count("network.sent", Unit.BYTES, "Bytes that the machine sent over the network."),
    _gauge("lag.longest", Unit.SECONDS, _MAX, _MAX, "The longest stop of an event loop."),
    _gauge(
        "margin.smallest",
        Unit.SECONDS,
        _MIN,
        _MIN,
        "The smallest margin of politeness: how much longer than required a domain had rested when its visit began.",
    ),
    # The database
    _gauge("database.up", Unit.RATIO, _MEAN, _MIN, "Share of the time in which the database answered."),
    _gauge(
        "database.connections.*", Unit.CONNECTIONS, _MAX, _SUM, "Connections to the database by state.", or_zero=True
    ),
    # Histograms
    _histogram("phase.*", Unit.SECONDS, "Phases of requests: dns, connect, tls, first_byte, transfer."),
    _histogram("request.*", Unit.SECONDS, "Whole requests by kind: page, robots or sitemap."),
    _histogram("rest", Unit.SECONDS, "Delays after visits."),
    _histogram("page_size", Unit.BYTES, "Sizes of pages."),
    _histogram("query.*", Unit.SECONDS, "Named queries of the frontier."),
    _histogram("claim", Unit.SECONDS, "Claims of due domains."),
    _histogram("add", Unit.SECONDS, "Adding a batch of links."),
    _histogram("settle", Unit.SECONDS, "Settling a batch of visits."),
    _histogram("flush", Unit.SECONDS, "Writing and flushing a batch of pages."),
)

_SINGLE = {figure.pattern: figure for figure in FIGURES if not figure.is_family}
_FAMILIES = sorted((figure for figure in FIGURES if figure.is_family), key=lambda figure: -len(figure.prefix))


@lru_cache(maxsize=4096)
def figure_of(name: str) -> Figure:
    """Return the entry of a figure; KeyError if there is none.

    >>> figure_of("errors.page.dns").unit, figure_of("claims.empty").pattern
    (<Unit.REQUESTS: 'requests'>, 'claims.empty')
    """
    single = _SINGLE.get(name)
    if single is not None:
        return single
    for figure in _FAMILIES:
        if name.startswith(figure.prefix):
            return figure
    raise KeyError(name)
