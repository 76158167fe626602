"""Rows of the queue, as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rove.frontier.url_queue import QueueClass, QueuedUrl
from rove.inspect.table import table_lines
from rove.notation.humanize import seconds_text

_TITLES = ("when", "URL", "note")


def queued_json(url: QueuedUrl) -> dict[str, Any]:
    """Return the object that `queue --json` prints for a URL: the same keys for every one."""
    return {
        "url": url.url,
        "domain": url.domain,
        "due_in_s": None if url.due_in is None else round(url.due_in, 3),
        "in_progress": url.is_leased,
        "class": url.kind.value,
        "depth": url.depth,
        "attempts": url.attempts,
        "seed": url.is_seed,
        "reason": url.reason or None,
    }


def queued_lines(urls: Sequence[QueuedUrl]) -> Iterator[str]:
    """Yield what `queue` prints: a line of titles, then one line for each URL."""
    return table_lines(_TITLES, [(_when(url), url.url, _note(url)) for url in urls])


def _when(url: QueuedUrl) -> str:
    if url.is_leased:
        return "in progress"
    if url.due_in is None:
        return "not planned"
    return f"in {seconds_text(url.due_in, whole=True)}" if url.due_in > 0 else "due"


def _note(url: QueuedUrl) -> str:
    why = {
        QueueClass.OWN: "",
        QueueClass.FOREIGN: "only other domains link to it",
        QueueClass.RETRIED: f"retry {url.attempts}: {url.reason}",
        QueueClass.HELD: f"held: {url.reason}",
        QueueClass.SUSPECT: f"tried alone: {url.reason}",
    }[url.kind]
    if url.is_robots:
        return "robots.txt that another domain redirects to"
    return why.removesuffix(": ")
