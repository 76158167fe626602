"""The front page in numbers: state, politeness, funnel, answers and machines."""

from __future__ import annotations

import time
from typing import Any

from rove.inspect import nodes, status
from rove.inspect.open_crawl import Archive
from rove.inspect.request_rows import request_json
from rove.observe.dashboard.funnel import funnel
from rove.observe.dashboard.lately import read_lately
from rove.observe.dashboard.link_totals import LinkTotals
from rove.observe.dashboard.recent import RecentRequests

REQUESTS_SHOWN = 50


async def read_overview(archive: Archive, links: LinkTotals) -> dict[str, Any]:
    """Read everything on the front page that changes, but the requests."""
    state = await status.read_status(
        archive.reader,
        archive.catalog,
        in_use=archive.in_use,
        told=await archive.instructions(),
        retries=await archive.catalog.retries(),
    )
    participants = await archive.reader.participants()
    now = time.time()
    lately = await read_lately(archive.reader, now=now)
    figures = lately.pop("figures")
    return {
        "at": now,
        "status": status.as_json(state),
        **lately,
        "funnel": funnel(state.counts, await links.known(archive.reader)),
        "several_machines": len({process.node for process in participants}) > 1,
        "machines": [
            {**nodes.as_json(node), "figures": figures.get(node.name, [])} for node in nodes.nodes_of(participants)
        ],
    }


async def read_requests(archive: Archive, recent: RecentRequests) -> dict[str, Any]:
    """Read the last requests, and what was answered lately."""
    await recent.update(archive)
    answers = recent.answers()
    return {
        "at": time.time(),
        "requests": [
            {**request_json(row), "title": row.title or None, "marks": list(row.marks)}
            for row in recent.newest(REQUESTS_SHOWN)
        ],
        "answers": {
            "requests": answers.requests,
            "statuses": dict(answers.statuses.most_common()),
            "media_types": dict(answers.media_types.most_common()),
        },
    }
