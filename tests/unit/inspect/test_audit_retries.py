"""An audit knows which requests a person asked for again, and accepts no others."""

from __future__ import annotations

import pytest

from rove.inspect.audit_findings import Check
from rove.model.ledger import DelaySource, Location
from rove.urls.domain import domain_of
from tests.unit.inspect.test_audit_ledger import A, Ledger, ask, retry
from tests.urls import FORM

DOMAIN = FORM.domain_id(domain_of("a.test"))


def repeated(*, second_at: float = 100.0, **outcome: object) -> Ledger:
    """Return a ledger with two requests for one page, at 0.1 and at `second_at`."""
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A), ask(f"{A}/x", **outcome))  # type: ignore[arg-type]
    ledger.visit(second_at, ask(f"{A}/x"))
    return ledger


@pytest.mark.parametrize(
    ("asked", "is_excused"),
    [
        ([], False),
        ([retry(50)], True),
        ([retry(50, domain=DOMAIN, domain_name="a.test")], True),
        ([retry(50, domain=DOMAIN + 1, domain_name="b.test")], False),
        ([retry(-20)], False),
        ([retry(-20, ended=50)], True),
        ([retry(150)], False),
        ([retry(-20), retry(50)], True),
    ],
)
def test_a_failed_page_may_be_requested_again_after_a_retry(asked: list[object], is_excused: bool) -> None:
    ledger = repeated(status=404)
    ledger.retries = asked  # type: ignore[assignment]
    assert ledger.checks() == (set() if is_excused else {Check.TWICE})


def test_a_retry_excuses_one_repetition_only() -> None:
    ledger = repeated(status=404)
    ledger.visit(200, ask(f"{A}/x", status=404))
    ledger.retries = [retry(50)]
    assert ledger.violation().requests[1].visit == 3


def test_no_retry_excuses_a_second_request_for_a_stored_page() -> None:
    ledger = repeated(text=Location(file="f", offset=0, length=1))
    ledger.retries = [retry(50)]
    assert ledger.checks() == {Check.TWICE}


@pytest.mark.parametrize(
    ("source", "asked", "at", "is_polite"),
    [
        (DelaySource.FAILURES, [], 500.0, False),
        (DelaySource.FAILURES, [retry(300)], 500.0, True),
        (DelaySource.FAILURES, [retry(300)], 60.0, False),
        (DelaySource.FAILURES, [retry(300, domain=DOMAIN + 1)], 500.0, False),
        (DelaySource.RETRY_AFTER, [retry(300)], 500.0, False),
        (DelaySource.CRAWL_DELAY, [retry(300)], 500.0, False),
    ],
)
def test_a_retry_ends_only_the_pause_after_failures(
    source: DelaySource, asked: list[object], at: float, is_polite: bool
) -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A), ask(f"{A}/x", error="connect"), delay=3_600.0, delay_from=source)
    ledger.visit(at, ask(f"{A}/x"))
    ledger.retries = asked  # type: ignore[assignment]
    assert ledger.checks() == (set() if is_polite else {Check.DELAY})


def test_the_smallest_margin_is_measured_by_the_delay_that_was_left() -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A), ask(f"{A}/x", error="connect"), delay=3_600.0, delay_from=DelaySource.FAILURES)
    ledger.visit(100.2, ask(f"{A}/x"))
    ledger.retries = [retry(20)]
    margin = ledger.audit().smallest_margin
    assert margin is not None
    assert (margin.delay, margin.delay_from, round(margin.margin, 3)) == (70.0, DelaySource.DELAY, 30.0)
