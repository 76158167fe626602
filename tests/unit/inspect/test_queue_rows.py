"""What `rove queue` and `rove skipped` say about a URL."""

from __future__ import annotations

from typing import Any

import pytest

from rove.frontier.url_queue import QueueClass, QueuedUrl
from rove.inspect.queue_rows import queued_json, queued_lines
from rove.inspect.skipped_rows import examples_by_reason, skipped_json, skipped_lines
from rove.model.skipped import SkippedLink


def queued(kind: QueueClass = QueueClass.OWN, **more: Any) -> QueuedUrl:
    facts: dict[str, Any] = {
        "domain": "a.test",
        "url": "http://a.test/",
        "depth": 1,
        "attempts": 0,
        "is_robots": False,
        "is_seed": False,
        "reason": "",
        "due_in": 0.0,
    }
    return QueuedUrl(kind=kind, **facts | more)


@pytest.mark.parametrize(
    ("url", "when", "note"),
    [
        (queued(), "due", ""),
        (queued(due_in=65.2), "in 1 min 05 s", ""),
        (queued(due_in=None), "not planned", ""),
        (queued(is_leased=True), "in progress", ""),
        (queued(QueueClass.RETRIED, attempts=2, reason="status 503"), "due", "retry 2: status 503"),
        (queued(QueueClass.HELD, reason="robots.txt: dns"), "due", "held: robots.txt: dns"),
        (queued(QueueClass.HELD), "due", "held"),
        (queued(QueueClass.FOREIGN), "due", "only other domains link to it"),
        (queued(QueueClass.SUSPECT), "due", "tried alone"),
        (queued(is_robots=True), "due", "robots.txt that another domain redirects to"),
    ],
)
def test_when_and_why_a_url_is_requested(url: QueuedUrl, when: str, note: str) -> None:
    _, line = queued_lines([url])
    assert [part.strip() for part in line.split("  ") if part] == [part for part in (when, url.url, note) if part]
    row = queued_json(url)
    assert (row["due_in_s"], row["class"], row["in_progress"]) == (url.due_in, url.kind.value, url.is_leased)


def skipped(number: int, reason: str, page: str = "http://p.test/") -> SkippedLink:
    return SkippedLink(
        reason=reason, domain=1, fingerprint=number, url=f"http://a.test/{number}", page=page, at=1_800_000_000.0
    )


def test_examples_are_shown_by_reason_with_all_that_were_counted() -> None:
    links = [skipped(1, "budget"), skipped(2, "budget", page=""), skipped(3, "port", page="http://b.q.test/")]
    counts = {"budget": 1_234, "port": 1, "trap": 5}
    found = examples_by_reason(links, counts)
    assert list(found) == ["budget", "port", "trap"] and found["trap"] == []
    assert list(skipped_lines("budget", found["budget"], total=1_234, limit=1)) == [
        "budget: 1,234 links, 2 examples, 1 shown",
        "  http://a.test/1  on http://p.test/",
    ]
    assert list(skipped_lines("budget", links[1:2], total=2, limit=9))[1] == "  http://a.test/2"
    assert examples_by_reason(links, counts, reason="port") == {"port": links[2:]}
    of_domain = examples_by_reason(links, counts, domain="q.test")
    assert of_domain == {"budget": [], "port": links[2:], "trap": []}
    assert skipped_json(links[1], 1_234) == {
        "reason": "budget",
        "url": "http://a.test/2",
        "page": None,
        "noted": "2027-01-15T08:00:00.000Z",
        "reason_total": 1_234,
    }
