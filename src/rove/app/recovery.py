"""Cleans up after processes that were killed: half-written WARC files, leases, and unrecorded requests."""

from __future__ import annotations

import asyncio
import logging
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from rove.crawl.inflight_log import inflight_files, lost_visits
from rove.frontier.contract import Frontier
from rove.frontier.records import LostVisit, Suspicion
from rove.store.recovery import recover

VISITS_PER_BATCH = 500

log = logging.getLogger(__name__)


async def recover_store(warc: Path) -> None:
    """Complete the WARC files that a killed process left open."""
    recovered = await asyncio.to_thread(recover, warc)
    if recovered.files:
        log.info("recovered WARC files after a crash: %s", recovered)


async def recover_requests(
    frontier: Frontier,
    inflight_log: Path,
    *,
    delay: float,
    processes: list[int] | None = None,
    is_evidence: bool = False,
) -> list[Suspicion]:
    """Release the leases of dead processes and enter their last requests into the ledger.

    `processes` are process numbers in the frontier; None means all earlier ones of this machine. `is_evidence`: a death
    counts against the suspect that the process was trying alone. Return what becomes of the URLs that were being read.
    """
    suspicions: list[Suspicion] = []
    left = inflight_files(inflight_log, processes=processes, except_process=frontier.process)
    lost: list[tuple[int, list[Path], list[LostVisit]]] = []
    for process, files in groupby(left, key=itemgetter(0)):
        # All files of a process at once: a request may begin in one file and end in the next.
        paths = [path for _, path in files]
        visits = await asyncio.to_thread(lost_visits, process, paths, delay, is_evidence=is_evidence)
        lost.append((process, paths, visits))
    released = await frontier.recover(processes, [visit for _, _, visits in lost for visit in visits])
    if released:
        log.info("released %d leases of dead processes; their domains wait for the delay", released)
    for process, paths, visits in lost:
        for start in range(0, len(visits), VISITS_PER_BATCH):
            suspicions += await frontier.record_lost(visits[start : start + VISITS_PER_BATCH])
        for path in paths:
            path.unlink()
        log.info("recovered %d visits that process %d may not have settled", len(visits), process)
    return suspicions
