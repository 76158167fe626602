"""The table of all metrics. docs/observe.md shows it, and a test compares the two."""

from __future__ import annotations

from collections.abc import Sequence

from rove import __version__
from rove.model.ledger import DelaySource, RequestKind
from rove.model.marks import Mark
from rove.model.reasons import NoRequestReason, PauseCause
from rove.model.urls import NotAccepted
from rove.observe.metrics.metric import PREFIX, Distributions, Kind, Labels, Values
from rove.observe.metrics.values import (
    Read,
    ReadDistributions,
    chosen_counts,
    claims,
    count,
    counts,
    distribution,
    distributions,
    gauge,
    gauges,
    limiting_factor,
    links,
    of_each_process,
    open_files,
    request_errors,
    requests,
    while_always,
    while_any,
)
from rove.policy.concurrency import HeldBy

SECONDS = range(20)
"""Buckets of durations: from 0.1 ms to 52 s, each twice as long as the one before."""
FEWER_SECONDS = range(0, 20, 2)
"""Every second one, for metrics with many series."""
BYTES = range(4, 20)
"""Buckets of sizes: from 1 KiB to 32 MiB."""
SLOWING = tuple(source for source in DelaySource if source is not DelaySource.DELAY)
LEASE_ENDS = ("requested", "without_request")
CONNECTION_STATES = ("busy", "idle")
STORES = ("text", "raw")
PHASES = ("dns", "connect", "tls", "first_byte", "transfer")


def _counter(name: str, help: str, read: Read, *labels: str) -> Values:
    return Values(name=f"{PREFIX}{name}", kind=Kind.COUNTER, labels=labels, help=help, read=read)


def _gauge(name: str, help: str, read: Read, *labels: str) -> Values:
    return Values(name=f"{PREFIX}{name}", kind=Kind.GAUGE, labels=labels, help=help, read=read)


def _histogram(name: str, help: str, bounds: range, read: ReadDistributions, *labels: str) -> Distributions:
    name = f"{PREFIX}{name}"
    return Distributions(name=name, kind=Kind.HISTOGRAM, labels=labels, help=help, bounds=bounds, read=read)


def _last_page(last_page: float | None) -> dict[Labels, float]:
    return {} if last_page is None else {(): last_page}


METRICS: Sequence[Values | Distributions] = (
    # What runs
    _gauge("build_info", "The version of rove; always 1.", lambda _: {(__version__,): 1.0}, "version"),
    _gauge(
        "process_up",
        "1 while the process runs, 0 while it is being restarted.",
        of_each_process(lambda process: None if process.is_up is None else float(process.is_up)),
        "process",
    ),
    # What the web answers
    _counter(
        "pages_total",
        "Pages by outcome: stored, or copy if the text was stored before.",
        counts("pages.", ("stored", "copy")),
        "outcome",
    ),
    _gauge(
        "last_page_timestamp_seconds",
        "When the last page was stored, in seconds since 1970.",
        lambda reading: _last_page(reading.last_page),
    ),
    _counter("visits_total", "Visits that made at least one request.", count("visits")),
    _counter(
        "requests_total", "Requests by kind and result: ok, failed or without-content.", requests, "kind", "result"
    ),
    _counter("request_errors_total", "Failed requests by kind and error.", request_errors, "kind", "error"),
    _counter("internal_errors_total", "Visits that failed because of a bug in rove.", count("internal_errors")),
    _counter("received_bytes_total", "Bytes of bodies received.", count("bytes.received")),
    _counter(
        "stored_bytes_total",
        "Bytes written to WARC files, by store: text, or raw for responses.",
        counts("bytes.stored.", STORES),
        "store",
    ),
    _counter(
        "response_marks_total",
        "Responses that were cut, doubtful or a bot wall, by mark.",
        counts("marks.", Mark),
        "mark",
    ),
    _counter("challenges_total", "Responses that were a bot wall.", count(f"marks.{Mark.CHALLENGED}")),
    _histogram(
        "request_duration_seconds",
        "Requests by kind, from the lookup of the name to the last byte.",
        SECONDS,
        distributions("request.", RequestKind),
        "kind",
    ),
    _histogram("request_phase_seconds", "Phases of requests.", SECONDS, distributions("phase.", PHASES), "phase"),
    _histogram("page_size_bytes", "Sizes of pages as received.", BYTES, distribution("page_size")),
    # Links and the queue
    _counter("links_total", "Links by fate: new, known or not-taken.", links, "fate"),
    _counter(
        "links_not_taken_total",
        "Links that were not added to the frontier, by reason.",
        counts("not_taken.", NotAccepted),
        "reason",
    ),
    _counter(
        "urls_evicted_total", "URLs that were added earlier and were deleted for better ones.", count("links.evicted")
    ),
    _gauge("frontier_urls", "URLs of the whole crawl by state.", gauges("urls."), "state"),
    _gauge("frontier_domains", "Domains of the whole crawl by state.", gauges("domains."), "state"),
    _gauge(
        "frontier_oldest_due_seconds",
        "How long the domain that has been ready for longest has waited.",
        gauge("oldest_due"),
    ),
    _gauge("frontier_next_due_seconds", "Seconds until the next domain is due; 0 if one is.", gauge("next_due")),
    _counter("leases_total", "Leases by end: requested or without_request.", counts("leases.", LEASE_ENDS), "end"),
    _counter(
        "leases_lost_total",
        "Leases that ended after another process could have taken their domain.",
        count("leases_lost"),
    ),
    _counter(
        "leases_without_request_total",
        "Leases that ended without a request, by reason.",
        counts("no_request.", NoRequestReason),
        "reason",
    ),
    _counter("claims_total", "Claims of due domains by result: found or empty.", claims, "result"),
    # What limits it
    _gauge(
        "limiting_factor",
        "1 for what limits the crawl; `rove status` says the same in a sentence with numbers.",
        limiting_factor,
        "factor",
    ),
    _gauge("fetches_in_flight", "Visits in flight.", gauge("in_flight")),
    _gauge("concurrency_limit", "Visits that may be in flight.", gauge("at_once")),
    _gauge(
        "concurrency_held_by",
        "Processes that this keeps from more visits in flight: a mean, because it may have changed.",
        gauges("held_by.", HeldBy),
        "reason",
    ),
    _gauge("leases_queued", "Leased domains that wait for a free slot.", gauge("queued")),
    _gauge("visits_unsettled", "Finished visits that wait to be written.", gauge("unsettled")),
    _gauge(
        "paused", "1 while this cause slows or pauses the crawl.", while_any(gauges("paused.", PauseCause)), "cause"
    ),
    _gauge("seeds_loading", "1 while seeds are being loaded.", while_any(gauge("seeds.loading"))),
    _gauge("loop_lag_seconds", "The longest recent stop of an event loop.", gauge("lag.longest")),
    # Whether it is polite
    _gauge(
        "politeness_ceiling_pages_per_second",
        "Visits per second that politeness allows the whole crawl.",
        gauge("ceiling"),
    ),
    _gauge(
        "politeness_used_ratio", "Share of the visits that politeness allows and that are made.", gauge("ceiling.used")
    ),
    _gauge(
        "politeness_smallest_margin_seconds",
        "How much longer than required a domain had rested when its visit began: the smallest recent value.",
        gauge("margin.smallest"),
    ),
    _counter(
        "throttled_total",
        "Visits after which a domain rests for longer than the chosen delay, by cause.",
        chosen_counts("rests.", SLOWING),
        "cause",
    ),
    _gauge(
        "domains_slowed",
        "Domains that rest for longer than the chosen delay after a visit by this machine, by cause.",
        gauges("slowed.", SLOWING),
        "cause",
    ),
    # The machine
    _gauge("memory_bytes", "Resident memory by process.", of_each_process(lambda process: process.resident), "process"),
    _counter(
        "cpu_seconds_total", "CPU time by process.", of_each_process(lambda process: process.cpu_seconds), "process"
    ),
    _gauge("open_files", "Open files by process and kind.", open_files, "process", "kind"),
    _gauge("disk_free_bytes", "Free space on the disk of the data directory.", gauge("disk.free")),
    _gauge("machine_memory_free_bytes", "Memory that the machine has left.", gauge("memory.free")),
    _counter(
        "network_received_bytes_total", "Bytes that the machine received over the network.", count("network.received")
    ),
    _counter("network_sent_bytes_total", "Bytes that the machine sent over the network.", count("network.sent")),
    # The database
    _gauge("database_up", "1 while the database answers.", while_always(gauge("database.up"))),
    _gauge(
        "database_connections",
        "Connections of this machine to the database by state.",
        gauges("database.connections.", CONNECTION_STATES),
        "state",
    ),
    _histogram("claim_duration_seconds", "Claims of due domains.", SECONDS, distribution("claim")),
    _histogram("add_duration_seconds", "Adding batches of links to the frontier.", SECONDS, distribution("add")),
    _histogram("settle_duration_seconds", "Settling batches of visits.", SECONDS, distribution("settle")),
    _histogram("flush_duration_seconds", "Writing batches of pages to the disk.", SECONDS, distribution("flush")),
    _histogram(
        "query_duration_seconds", "Named statements of the database.", FEWER_SECONDS, distributions("query."), "query"
    ),
)
