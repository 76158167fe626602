"""The way of URLs through a crawl."""

from __future__ import annotations

from rove.model.counts import Counts
from rove.model.ledger import RequestKind
from rove.model.request_counts import RequestCounts
from rove.model.urls import UrlState
from rove.observe.dashboard.funnel import funnel

COUNTS = Counts(
    urls={
        UrlState.PENDING: 500,
        UrlState.DONE: 300,
        UrlState.BLOCKED: 60,
        UrlState.FAILED: 40,
        UrlState.REDIRECTED: 90,
        UrlState.READ: 10,
    },
    domains={},
    pages=310,
    bytes=0,
    request_counts=RequestCounts(errors_by_kind={RequestKind.PAGE: {"dns": 3, "status-404": 38}}),
    not_accepted={"trap": 20, "budget": 180},
    blocked={"robots.txt": 50, "noindex": 10},
)


def test_every_stage_is_the_one_before_without_what_was_lost_or_waits() -> None:
    stages = {stage["name"]: stage for stage in funnel(COUNTS, known=5_000)}
    assert {name: stage["count"] for name, stage in stages.items()} == {
        "found": 6_200,
        "new": 1_200,
        "taken": 1_000,
        "decided": 500,
        "tried": 450,
        "fetched": 410,
        "stored": 300,
    }


def test_losses_are_named_and_the_largest_comes_first() -> None:
    stages = {stage["name"]: stage for stage in funnel(COUNTS, known=None)}
    assert "found" not in stages, "links to known URLs were not counted"
    assert stages["new"]["reasons"] == [{"reason": "budget", "count": 180}, {"reason": "trap", "count": 20}]
    assert stages["decided"]["reasons"] == [{"reason": "robots.txt", "count": 50}]
    assert stages["tried"]["reasons"] == [{"reason": "status-404", "count": 38}, {"reason": "dns", "count": 3}]
    assert stages["fetched"]["reasons"] == [{"reason": "noindex", "count": 10}]
    assert stages["taken"]["note"] == {"pending": 500}
    assert stages["fetched"]["note"] == {"redirected": 90, "sitemaps": 10}
