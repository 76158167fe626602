"""The way of URLs through a crawl, from a link that was found to a page that was stored, with every loss on it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from rove.model.counts import Counts
from rove.model.ledger import RequestKind
from rove.model.reasons import BlockReason
from rove.model.urls import UrlState


class Loss(enum.StrEnum):
    """A place on the way where URLs are lost."""

    NOT_TAKEN = "not-taken"
    """Links that were found and not added to the frontier."""
    BLOCKED = "blocked"
    FAILED = "failed"


_FETCHED_AND_BLOCKED = (BlockReason.NOINDEX,)
"""What a page must have been fetched for."""


def funnel(counts: Counts, known: int | None) -> list[dict[str, Any]]:
    """Return the stages as JSON objects; `known` is the number of links that led to known URLs, if that is known."""
    urls = counts.urls
    taken = sum(urls.values())
    evicted = counts.evicted
    not_taken = dict(counts.not_accepted)
    new = taken + sum(not_taken.values())
    pending = urls[UrlState.PENDING]
    stored = urls[UrlState.DONE]
    blocked_early = {reason: n for reason, n in counts.blocked.items() if reason not in _FETCHED_AND_BLOCKED}
    blocked_late = {reason: n for reason, n in counts.blocked.items() if reason in _FETCHED_AND_BLOCKED}
    tried = taken - pending - sum(blocked_early.values())
    fetched = tried - urls[UrlState.FAILED]
    stages = [
        _stage("new", "New links", new, Loss.NOT_TAKEN, not_taken),
        _stage("taken", "In the frontier", taken, note={"pending": pending, "evicted": evicted}),
        _stage("decided", "Their turn has come", taken - pending, Loss.BLOCKED, blocked_early),
        _stage("tried", "Requested", tried, Loss.FAILED, _failures(counts)),
        _stage(
            "fetched",
            "Fetched",
            fetched,
            Loss.BLOCKED,
            blocked_late,
            note={"redirected": urls[UrlState.REDIRECTED], "sitemaps": urls[UrlState.READ]},
        ),
        _stage("stored", "Stored", stored, note={"copies": counts.copies}),
    ]
    if known:
        stages.insert(0, _stage("found", "Links found", new + known, note={"known already": known}))
    return stages


def _failures(counts: Counts) -> dict[str, int]:
    """Return the failed requests for pages by error. A URL that was tried again counts several times."""
    return dict(counts.request_counts.errors_by_kind.get(RequestKind.PAGE, {}))


def _stage(
    name: str,
    title: str,
    count: int,
    loss: Loss | None = None,
    reasons: Mapping[str, int] | None = None,
    *,
    note: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    ordered = sorted((reasons or {}).items(), key=lambda item: -item[1])
    return {
        "name": name,
        "title": title,
        "count": count,
        "loss": loss,
        "reasons": [{"reason": reason, "count": number} for reason, number in ordered if number],
        "note": {text: number for text, number in (note or {}).items() if number},
    }
