"""The final figures of a run: a worker that dies has stored more than it has reported."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import msgspec

from rove.app.runner import RunContext
from rove.crawl.progress import Counters
from rove.errors import RoveError
from rove.frontier.runs import Participant
from rove.model.counts import Counts
from rove.model.request_counts import counters_of

log = logging.getLogger(__name__)


def has_had_company(participants: Sequence[Participant], seconds: float) -> bool:
    """Whether a process of another machine has taken part in the crawl within the last seconds."""
    return any(not process.is_here and process.silent_for <= seconds for process in participants)


async def is_whole_crawl(context: RunContext) -> bool:
    """Whether a run is the whole crawl: there was no earlier run, and there is no other machine."""
    if not context.is_first_run or context.remote is None:
        return context.is_first_run
    try:
        return not has_had_company(await context.backend.reader.participants(), math.inf)
    except RoveError as error:
        log.debug("could not look for other machines: %s", error)
        return True


def stored_figures(reported: Counters, *, before: Counts, after: Counts) -> Counters:
    """Return what the processes of a run reported, with the pages, bytes and requests that the frontier has counted.

    `before` and `after` are the counts at the beginning and at the end of the run. No other machine took part in it.
    """
    requests = counters_of(after.request_counts) - counters_of(before.request_counts)
    return msgspec.structs.replace(
        reported,
        pages=after.pages - before.pages,
        bytes=after.bytes - before.bytes,
        request_counters=requests,
    )
