"""What `rove domains` says about a domain."""

from __future__ import annotations

from typing import Any

import pytest

from rove.frontier.domain_list import DomainState, ListedDomain
from rove.inspect.domain_rows import domain_json, domain_lines, next_visit_text
from rove.model.ledger import DelaySource
from rove.model.visits import Pace

DELAY = 70.0


def listed(state: DomainState = DomainState.WAITING, **more: Any) -> ListedDomain:
    facts: dict[str, Any] = {
        "id": 1,
        "name": "a.test",
        "pending": 1_200,
        "pages": 3,
        "ready_in": 30.0,
        "free_in": 30.0,
        "crawl_delay": 0.0,
        "pace": Pace(),
        "is_failing": False,
        "is_capped": False,
        "error": "",
        "last_delay": DELAY,
        "last_delay_from": DelaySource.DELAY,
    }
    return ListedDomain(state=state, **facts | more)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (listed(), "in 30 s"),
        (listed(DomainState.READY, ready_in=-200.0), "due for 3 min 20 s"),
        (listed(DomainState.LEASED, ready_in=240.0), "in progress"),
        (listed(DomainState.IDLE, ready_in=None, is_capped=True), "none: it has its pages"),
        (listed(DomainState.WAITING, ready_in=None), "tries a suspect"),
        (listed(DomainState.EXCLUDED, ready_in=None), "none"),
    ],
)
def test_when_a_domain_is_visited_next(domain: ListedDomain, expected: str) -> None:
    assert next_visit_text(domain) == expected


@pytest.mark.parametrize(
    ("domain", "source", "seconds"),
    [
        (listed(), "delay", 70.0),
        (listed(crawl_delay=300.0), "crawl-delay", 300.0),
        (listed(pace=Pace(failures=3)), "failures", 280.0),
        (listed(pace=Pace(repeats=0.9)), "repeats", 350.0),
        (listed(last_delay=900.0, last_delay_from=DelaySource.RETRY_AFTER), "retry-after", 900.0),
        (listed(last_delay=900.0, last_delay_from=DelaySource.RETRY_AFTER, free_in=-1.0), "delay", 70.0),
    ],
)
def test_the_delay_and_its_cause(domain: ListedDomain, source: str, seconds: float) -> None:
    row = domain_json(domain, DELAY)
    assert row["delay_from"] == source and row["delay_s"] == pytest.approx(seconds)


def test_the_table() -> None:
    failing = listed(name="x" * 60, pace=Pace(failures=2), error="dns\x1b", ready_in=3_700.0)
    titles, first, second = domain_lines([listed(), failing], DELAY)
    assert titles.startswith("domain ") and titles.endswith("delay")
    assert first.split() == ["a.test", "waiting", "3", "1,200", "in", "30", "s", "0", "70", "s"]
    assert second.startswith("x" * 60) and second.endswith("2  dns\\x1b     140 s: it did not answer")
