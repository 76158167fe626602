"""The numbers of a running crawl at one moment, and the words for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rove.crawl.progress import Counters
from rove.model.counts import Counts
from rove.model.request_counts import KIND_NAMES
from rove.notation.humanize import counted, seconds_text, size_text
from rove.policy.limiting import Limiting


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The numbers on display at one moment."""

    counters: Counters
    """This run."""
    counts: Counts
    """The whole crawl: all runs, processes and machines."""
    rate: float
    average: float
    share: float | None
    """The visits made, as a share of those that politeness allows; None if no domain has work."""
    left: str
    """The time and the pages until a limit is reached; '' without a limit."""
    seconds: float
    next_visit: float | None = None
    """Seconds until the next visit is due, if no domain can be visited before."""
    is_whole_crawl: bool = False
    """Whether this run is the whole crawl: there was no earlier run, and there is no other machine."""
    is_stopping: bool = False
    limiting: Limiting | None = None
    """What limits the crawl; None if that was not asked."""

    @property
    def state(self) -> str:
        """The phrase that says what the crawl is doing."""
        counters, domains = self.counters, self.counts.domains
        if self.is_stopping:
            in_flight = counters.in_flight
            left = f"{counted(in_flight, 'visit')} in flight may finish" if in_flight else "writing the last pages"
            return f"stopping: {left}"
        if self.next_visit is not None:
            waiting = "all domains wait" if domains["waiting"] != 1 else "the domain waits"
            return f"{waiting} for the next polite moment: next visit in {seconds_text(self.next_visit, whole=True)}"
        if counters.in_flight:
            return f"fetching from {counted(counters.in_flight, 'domain')} at once"
        if domains["ready"] or domains["leased"] or counters.queued:
            return "starting visits"
        return "writing the last pages" if counters.visits else "loading the seeds"

    @property
    def speed(self) -> str:
        """The phrase for the share of what politeness allows. Only a share of 1 is shown as 100 %."""
        if self.share is None:
            return "no domain has anything to fetch"
        percent = 100 if self.share == 1.0 else min(99, round(100 * self.share))
        return f"{percent} % of what politeness allows"

    @property
    def in_flight(self) -> str:
        """How many fetches are in flight, and how many may be."""
        counters = self.counters
        return f"{counters.in_flight:,}" + (f" of {counters.at_once:,}" if counters.at_once else "")

    @property
    def could_be_visited(self) -> str:
        """The phrase for what could be visited more often; '' if nothing could."""
        ready = self.counts.domains["ready"]
        return f"{counted(ready, 'domain')} could be visited now" if ready else ""


def errors_text(errors: Mapping[str, int], shown: int | None = None) -> str:
    """Return the commonest errors."""
    return ", ".join(f"{name} {count:,}" for name, count in Counter(errors).most_common(shown)) or "none"


def left_text(*, seconds: float | None, pages: int | None, rate: float) -> str:
    """Return the time and the pages until a limit is reached, at `rate` pages per second; '' without a limit."""
    parts = []
    if seconds is not None:
        parts.append(seconds_text(max(0.0, seconds)))
    if pages is not None:
        time = f" (about {seconds_text(pages / rate)})" if rate > 0 else ""
        parts.append(f"{counted(max(0, pages), 'page')}{time}")
    return ", ".join(parts)


def plain_line(view: View) -> str:
    """Return the view as one line of text."""
    counters, domains = view.counters, view.counts.domains
    # The frontier counts pages before their process reports them, and also those of a process that died.
    stored = view.counts if view.is_whole_crawl else counters
    has_more = view.counts.pages > stored.pages
    requests = counters.request_counts
    failed = [
        f"{requests.failed(kind):,} of {counted(requests.by_kind[kind], f'{name} request')} failed"
        for kind, name in KIND_NAMES.items()
        if requests.by_kind[kind]
    ]
    parts = [
        counted(stored.pages, "page") + (f" ({view.counts.pages:,} in the whole crawl)" if has_more else ""),
        f"{view.rate:.1f}/s now",
        f"{view.average:.1f}/s on average",
        size_text(stored.bytes),
        f"{counters.in_flight:,} in flight" + (f" of at most {counters.at_once:,}" if counters.at_once else ""),
        f"domains {domains['ready']:,} ready {domains['waiting']:,} waiting {domains['leased']:,} leased",
        f"{counted(view.counts.urls_pending, 'URL')} pending",
        view.speed,
        *([f"limited by {view.limiting.factor}"] if view.limiting is not None else []),
        *failed,
        *([f"next visit in {seconds_text(view.next_visit, whole=True)}"] if view.next_visit is not None else []),
        *([f"left: {view.left}"] if view.left else []),
        *counters.troubles.values(),
    ]
    return f"{seconds_text(view.seconds)}: {', '.join(parts)}"
