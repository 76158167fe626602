"""The last lines of a crawl and its exit code."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rove.app.application import Summary
from rove.cli.conclusion import conclude
from rove.crawl.progress import Counters
from rove.crawl.shutdown import Ending
from rove.frontier.records import FailingDomain
from rove.model.counts import Counts
from rove.model.ledger import RequestKind
from rove.model.request_counts import RequestCounts
from rove.model.urls import UrlState

DAY = 86_400.0


def counts(*, answered: int = 1, requests: int = 9, failures: dict[str, int] | None = None, **urls: int) -> Counts:
    return Counts(
        urls={state: urls.get(state.name.lower(), 0) for state in UrlState},
        domains={},
        pages=urls.get("done", 0),
        bytes=0,
        request_counts=RequestCounts(
            by_kind={RequestKind.PAGE: requests}, errors_by_kind={RequestKind.PAGE: failures or {}}
        ),
        domains_answered=answered,
    )


def concluded(
    ending: Ending, counts: Counts, *failing: FailingDomain, has_joined: bool = False, **counters: Any
) -> tuple[list[str], int]:
    """Return the lines after the first one, and the exit code."""
    summary = Summary(ending=ending, counters=Counters(**counters), seconds=2.0, counts=counts, failing=failing)
    conclusion = conclude(summary, resume_command="resume", has_joined=has_joined, now=lambda: DAY)
    assert conclusion.lines[0].startswith(f"{ending}: ")
    return conclusion.lines[1:], conclusion.exit_code


def site(name: str, ready_in: float = 60.0, error: str = "connect") -> FailingDomain:
    return FailingDomain(name=name, pending=2, ready_in=ready_in, error=error)


def test_the_first_line_has_the_numbers_of_the_run() -> None:
    summary = Summary(
        ending=Ending.EXHAUSTED,
        counters=Counters(pages=1, bytes=2048, request_counters=Counter({"requests.page": 2})),
        seconds=2.0,
        counts=counts(done=1),
    )
    assert conclude(summary, resume_command="").lines == [
        "exhausted: 1 page, 2.0 KiB, 2 requests in 2.0 s (0.5 pages/s)"
    ]


def test_nothing_left_with_a_page_stored_is_a_success() -> None:
    assert concluded(Ending.EXHAUSTED, counts(done=1, failed=7)) == ([], 0)


def test_pages_of_an_earlier_run_count() -> None:
    assert concluded(Ending.EXHAUSTED, counts(done=5), pages=0) == ([], 0)


def test_being_forbidden_by_robots_txt_is_no_failure() -> None:
    assert concluded(Ending.EXHAUSTED, counts(blocked=3)) == ([], 0)


def test_an_empty_or_wholly_excluded_crawl_is_no_failure() -> None:
    assert concluded(Ending.EXHAUSTED, counts(answered=0, requests=0, blocked=3)) == ([], 0)


def test_a_limit_per_domain_is_no_failure() -> None:
    lines, code = concluded(Ending.EXHAUSTED, counts(done=2, pending=40))
    assert lines == ["40 URLs left: their sites reached --max-pages-per-domain."]
    assert code == 0


def test_sites_that_keep_failing_are_named_with_their_next_try() -> None:
    failing = [site("a.test", 60.0), site("b.test", 3 * 3_600.0, "dns"), site("c.test", -5.0)]
    lines, code = concluded(Ending.EXHAUSTED, counts(done=100, pending=6), *failing)
    assert lines == [
        "Nothing is left but 3 sites that keep failing (connect 2, dns 1).",
        "Next tries: a.test at 1970-01-02 00:01:00Z, b.test at 1970-01-02 03:00:00Z, c.test at 1970-01-02 00:00:00Z.",
        "6 URLs are pending; continue with: resume",
    ]
    assert code == 3
    assert concluded(Ending.EXHAUSTED, counts(done=101, pending=6), *failing, pages=1) == (lines, 0)


def test_only_some_of_many_failing_sites_are_named() -> None:
    lines, code = concluded(
        Ending.EXHAUSTED, counts(done=1, pending=1), *[site(f"{n}.test", error="") for n in range(12)]
    )
    assert lines[0] == "Nothing is left but 12 sites that keep failing."
    assert lines[1].count(".test at ") == 5 and lines[1].endswith(", and 7 more.")
    assert lines[2] == "1 URL is pending; continue with: resume"
    assert code == 3


@pytest.mark.parametrize("ending", [Ending.EXHAUSTED, Ending.UNREACHABLE])
def test_seeds_that_cannot_be_reached_get_the_same_sentence_however_it_ended(ending: Ending) -> None:
    failures = {"dns": 1, "connect": 12, "dns-not-found": 4}
    unreached = counts(answered=0, pending=30, failures=failures)
    why = "No seed could be reached (connect 12, dns-not-found 4, dns 1)."
    pending = "30 URLs are pending; continue with: resume"
    assert concluded(ending, unreached) == ([why, pending], 3)
    next_try = "Next tries: a.test at 1970-01-02 00:01:00Z."
    assert concluded(ending, unreached, site("a.test")) == ([why, next_try, pending], 3)


def test_dead_names_leave_nothing_to_continue() -> None:
    lines, code = concluded(Ending.EXHAUSTED, counts(answered=0, failed=3, failures={"dns-not-found": 3}))
    assert (lines, code) == (["No seed could be reached (dns-not-found 3)."], 3)


def test_a_crawl_that_stored_nothing_because_of_errors_says_why() -> None:
    lines, code = concluded(Ending.EXHAUSTED, counts(failed=2, failures={"status-404": 3}))
    assert (lines, code) == (["No page could be stored (status-404 3)."], 3)


@pytest.mark.parametrize("ending", [Ending.STOPPED, Ending.MAX_PAGES, Ending.MAX_DURATION])
def test_a_limit_or_a_stop_is_a_success_whatever_fails(ending: Ending) -> None:
    lines, code = concluded(ending, counts(answered=0, pending=9), site("a.test"), pages=3)
    assert lines == ["9 URLs are pending; continue with: resume"]
    assert code == 0


def test_a_crawl_that_ends_before_its_seeds_are_loaded_can_be_continued() -> None:
    lines = ["No seed is loaded yet; continue with: resume"]
    assert concluded(Ending.MAX_DURATION, counts(answered=0, requests=0)) == (lines, 0)


def test_a_limit_that_the_crawl_had_reached_before_it_was_joined_is_named() -> None:
    lines, code = concluded(Ending.MAX_PAGES, counts(done=10, pending=9), has_joined=True)
    assert lines == [
        "the crawl had reached its --max-pages before; 'rove crawl --resume' continues it without the limit"
    ]
    assert code == 0
