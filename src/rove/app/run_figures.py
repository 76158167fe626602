"""The final figures of a run: a worker that dies has stored more than it has reported."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rove.crawl.progress import Counters
from rove.frontier.runs import Participant
from rove.model.counts import Counts
from rove.model.request_counts import counters_of


def has_had_company(participants: Sequence[Participant], seconds: float) -> bool:
    """Whether a process of another machine has taken part in the crawl within the last seconds."""
    return any(not process.is_here and process.silent_for <= seconds for process in participants)


def stored_figures(reported: Counters, *, before: Counts, after: Counts) -> Counters:
    """Return what the processes of a run reported, with the pages, bytes and requests that the frontier has counted.

    `before` and `after` are the counts at the begin and at the end of the run, which no other machine took part in.
    """
    requests = counters_of(after.request_counts) - counters_of(before.request_counts)
    return msgspec.structs.replace(
        reported,
        pages=after.pages - before.pages,
        bytes=after.bytes - before.bytes,
        request_counters=requests,
    )
