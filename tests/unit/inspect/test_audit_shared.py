"""The audit of origins whose robots.txt redirects to that of another domain."""

from __future__ import annotations

import pytest

from rove.inspect.audit_findings import Check
from rove.model.ledger import RequestRow
from tests.unit.inspect.test_audit_ledger import RULES, A, Ledger, ask, ask_robots

B, C = "https://b.test", "https://c.test"


def led_to(ledger: Ledger, origin: str, *, body: str | None = None, by: str = A) -> RequestRow:
    """Return the request for a robots.txt that redirects; `body` is the text that it found there."""
    found = {} if body is None else {"robots": ledger.robots(origin, body).robots}
    return ask_robots(by, status=301, target=f"{origin}/robots.txt", **found)


def ledger_with(*answers: RequestRow, at: float = 0.0) -> Ledger:
    """Return a ledger in which b.test answered a request for its robots.txt."""
    ledger = Ledger()
    for number, answer in enumerate(answers):
        ledger.visit(at + 100 * number, answer, domain="b.test")
    return ledger


def test_the_rules_of_the_other_domain_apply() -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(B, RULES), domain="b.test")
    ledger.visit(10, led_to(ledger, B, body=RULES), ask(f"{A}/open"))
    ledger.visit(100, ask(f"{A}/also-open"))
    assert not ledger.checks()
    ledger.visit(200, ask(f"{A}/private"))
    assert "forbidden by line 2 of https://a.test/robots.txt" in ledger.violation().what


def test_no_rules_there_are_no_rules_here() -> None:
    ledger = ledger_with(ask_robots(B, status=404))
    ledger.visit(10, led_to(ledger, B), ask(f"{A}/private"))
    assert not ledger.checks()


@pytest.mark.parametrize("answers", [(), (ask_robots(B, status=503),), (ask_robots(B, error="dns"),)])
def test_a_page_before_the_other_domain_has_answered(answers: tuple[RequestRow, ...]) -> None:
    ledger = ledger_with(*answers)
    ledger.visit(500, led_to(ledger, B), ask(f"{A}/"))
    violation = ledger.violation()
    assert violation.check is Check.ROBOTS and "could not be fetched" in violation.what


def test_a_text_that_the_other_domain_never_gave() -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(B, RULES), domain="b.test")
    ledger.visit(10, led_to(ledger, B, body="User-agent: *\nAllow: /\n"), ask(f"{A}/"))
    assert ledger.violation().check is Check.ROBOTS


def test_an_answer_that_came_later_does_not_count() -> None:
    ledger = ledger_with(ask_robots(B, status=503), at=0.0)
    ledger.visit(200, led_to(ledger, B), ask(f"{A}/"))
    ledger.visit(300, ask_robots(B, status=404), domain="b.test")
    assert ledger.checks() == {Check.ROBOTS}


@pytest.mark.parametrize("found", [RULES, "User-agent: *\nDisallow: /other\n"])
def test_the_text_may_change_while_the_redirect_is_requested(found: str) -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(B, "User-agent: *\nDisallow: /other\n"), domain="b.test")
    ledger.visit(99.95, ledger.robots(B, RULES), domain="b.test")
    ledger.visit(100, led_to(ledger, B, body=found), ask(f"{A}/"))
    assert not ledger.checks()


@pytest.mark.parametrize(("at", "is_found"), [(86_000.0, False), (90_000.0, True)])
def test_a_copy_is_not_used_for_longer_than_a_day(at: float, is_found: bool) -> None:
    """The day counts from the answer of the other domain, not from the redirect."""
    ledger = Ledger()
    ledger.visit(0, ledger.robots(B, RULES), domain="b.test")
    ledger.visit(80_000, led_to(ledger, B, body=RULES), ask(f"{A}/1"))
    ledger.visit(at, ask(f"{A}/2"))
    assert (ledger.checks() == {Check.PAGE_BEFORE_ROBOTS}) is is_found


def test_a_chain_over_three_domains() -> None:
    ledger = Ledger()
    ledger.visit(0, led_to(ledger, C, by=B), domain="b.test")
    ledger.visit(10, ledger.robots(C, RULES), domain="c.test")
    ledger.visit(20, led_to(ledger, B, body=RULES), ask(f"{A}/open"))
    assert not ledger.checks()
    ledger.visit(200, ask(f"{A}/private"))
    assert ledger.checks() == {Check.ROBOTS}


def test_a_loop_means_no_rules() -> None:
    ledger = Ledger()
    ledger.visit(0, led_to(ledger, B))
    ledger.visit(10, led_to(ledger, A, by=B), domain="b.test")
    ledger.visit(200, led_to(ledger, B), ask(f"{A}/private"))
    assert not ledger.checks()


@pytest.mark.parametrize(("length", "is_found"), [(5, True), (6, False)])
def test_hops_count_across_domains(length: int, is_found: bool) -> None:
    ledger = Ledger()
    origins = [A, *(f"https://h{i}.test" for i in range(1, length + 1))]
    ledger.visit(0, ask_robots(origins[-1], status=503), domain=f"h{length}.test")
    for number in range(length - 1, 0, -1):
        hop = led_to(ledger, origins[number + 1], by=origins[number])
        ledger.visit(1, hop, domain=f"h{number}.test")
    ledger.visit(10, led_to(ledger, origins[1]), ask(f"{A}/"))
    assert (Check.ROBOTS in ledger.checks()) is is_found


@pytest.mark.parametrize(
    ("target", "is_found"),
    [
        ("https://b.test/", False),
        ("https://b.test/search?q=x.txt", False),
        ("https://b.test/rules.txt", True),
        ("https://b.test/robots.txt?x", True),
    ],
)
def test_other_targets(target: str, is_found: bool) -> None:
    ledger = Ledger()
    ledger.visit(0, ask_robots(A, status=302, target=target), ask(f"{A}/"))
    assert (Check.ROBOTS in ledger.checks()) is is_found


def test_a_redirect_inside_the_domain_that_leads_back_means_no_rules() -> None:
    ledger = Ledger()
    www = "https://www.a.test"
    ledger.visit(
        0,
        ask_robots(A, status=301, target=f"{www}/robots.txt"),
        ask_robots(www, status=301, target=f"{A}/robots.txt"),
        ask(f"{A}/"),
    )
    assert not ledger.checks()
