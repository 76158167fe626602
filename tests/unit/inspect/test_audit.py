"""An audit finds every planted violation, and nothing in cases that nearly are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rove.inspect.audit_findings import Check, Unverifiable
from rove.model.ledger import DelaySource, RequestKind, RequestRow, Settlement
from tests.unit.inspect.test_audit_ledger import RULES, T0, A, Ledger, ask, ask_robots, exclusion, hop, polite
from tests.urls import canonical


@pytest.fixture
def ledger() -> Ledger:
    """Return a ledger with a visit to a.test at 0 that takes 200 ms: the delay is over at 70.2."""
    return polite()


# delay


def test_a_visit_too_early(ledger: Ledger) -> None:
    ledger.visit(60, ask(f"{A}/b"))
    violation = ledger.violation()
    assert violation.check is Check.DELAY and violation.domain == "a.test"
    assert violation.numbers == {"gap_s": 59.8, "delay_s": 70.0, "delay_from": "delay", "margin_s": -10.2}
    earlier, later = violation.requests
    assert (earlier.visit, earlier.seq, earlier.url) == (1, 1, f"{A}/")
    assert (later.visit, later.seq, later.url) == (2, 0, f"{A}/b")
    assert (earlier.ended, later.began) == (T0 + 200, T0 + 60_000)
    assert "visit 2 began 59.800 s after the end of visit 1" in violation.what


@pytest.mark.parametrize(("at", "is_found"), [(70.125, False), (70.124, True)])
def test_what_clocks_may_differ_by(ledger: Ledger, at: float, is_found: bool) -> None:
    """The tolerance is 5 ms plus a thousandth of 70 s."""
    ledger.visit(at, ask(f"{A}/b"))
    assert (Check.DELAY in ledger.checks()) is is_found


@pytest.mark.parametrize(("at", "is_found"), [(0.195, False), (0.194, True)])
def test_two_visits_at_once_even_without_a_delay(at: float, is_found: bool) -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A), ask(f"{A}/"), delay=0.0)
    ledger.visit(at, ask(f"{A}/b"), delay=0.0)
    assert (Check.DELAY in ledger.checks()) is is_found
    if is_found:
        assert "0.006 s before visit 1 had ended" in ledger.violation().what


def test_the_longest_delay_of_a_visit_counts(ledger: Ledger) -> None:
    ledger.rows[0] = ledger.rows[0].replace(delay=300.0, delay_from=DelaySource.CRAWL_DELAY)
    ledger.visit(100, ask(f"{A}/b"))
    assert ledger.violation().numbers["delay_from"] == "crawl-delay"


def test_the_delay_is_that_of_the_earlier_visit(ledger: Ledger) -> None:
    ledger.visit(70.2, ask(f"{A}/b"), delay=500.0)
    assert not ledger.checks()


def test_a_visit_ends_with_its_last_request_at_whatever_host() -> None:
    ledger = Ledger()
    to = "https://www.a.test/robots.txt"
    ledger.visit(0, ask_robots(A, status=301, target=to), hop(to, status=404, took=9_900))
    ledger.visit(79, ask(f"{A}/"))
    report = ledger.audit()
    assert report.violations[Check.DELAY] == report.total == 1


def test_a_request_of_which_nothing_more_is_known_counts_from_its_beginning() -> None:
    ledger = Ledger()
    lost = ask_robots(A, error="lost", took=0)
    ledger.visit(0, lost, settlement=Settlement.LOST)
    ledger.visit(70, ledger.robots(A))
    ledger.visit(100, ask(f"{A}/"))
    assert ledger.violation().requests[0].visit == 2


def test_a_visit_that_sent_nothing_is_one() -> None:
    ledger = Ledger()
    ledger.visit(0, ask_robots(A, error="address-refused", address=""))
    ledger.visit(60, ledger.robots(A))
    assert ledger.checks() == {Check.DELAY}


def test_of_visits_that_overlap_the_one_counts_that_ended_last() -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A), ask(f"{A}/", took=100_000), settlement=Settlement.LATE)
    ledger.visit(10, ask(f"{A}/b"))
    ledger.visit(90, ask(f"{A}/c"))
    report = ledger.audit()
    assert [f.requests[1].visit for f in report.findings] == [2, 3]
    assert {f.requests[0].visit for f in report.findings} == {1}


def test_domains_do_not_wait_for_each_other(ledger: Ledger) -> None:
    ledger.visit(0, ledger.robots("http://b.test"), domain="b.test")
    assert ledger.audit().checked[Check.DELAY] == 0


def test_the_smallest_margin_of_all(ledger: Ledger) -> None:
    ledger.visit(71, ask(f"{A}/b"))
    ledger.visit(0, ledger.robots("http://b.test"), domain="b.test", delay=30.0)
    ledger.visit(30.6, ask("http://b.test/"), domain="b.test")
    margin = ledger.audit().smallest_margin
    assert margin is not None and margin.domain == "b.test"
    assert (margin.gap, margin.delay, round(margin.margin, 3)) == (30.5, 30.0, 0.5)
    assert (margin.earlier.visit, margin.later.visit) == (3, 4)


@pytest.mark.parametrize("request_", [ask("https://b.test/"), ask_robots("https://b.test", status=404)])
def test_a_request_to_another_domain_is_out_of_turn(ledger: Ledger, request_: RequestRow) -> None:
    """The domain that received the request counts, whatever the ledger says about the visit."""
    ledger.visit(100, request_)
    (finding,) = [finding for finding in ledger.audit().findings if finding.check is Check.DELAY]
    assert finding.domain == "b.test"
    assert finding.what == "requested during a visit to a.test, out of its own domain's turn"


def test_a_lost_visit_whose_delay_is_not_known(ledger: Ledger) -> None:
    ledger.visit(100, ask(f"{A}/b"), delay=0.0, settlement=Settlement.LOST)
    ledger.visit(101, ask(f"{A}/c"))
    report = ledger.audit()
    assert report.total == 0 and report.unverifiable[Unverifiable.NO_DELAY] == 1


# robots


@pytest.mark.parametrize("kind", [RequestKind.PAGE, RequestKind.SITEMAP])
def test_a_page_that_is_forbidden(ledger: Ledger, kind: RequestKind) -> None:
    ledger.visit(100, ask(f"{A}/private/x", kind=kind))
    violation = ledger.violation()
    assert violation.check is Check.ROBOTS
    assert violation.numbers == {"line": 2, "rule": "Disallow: /private"}
    robots, page = violation.requests
    assert (robots.visit, robots.seq, robots.kind) == (1, 0, RequestKind.ROBOTS)
    assert (page.visit, page.url) == (2, f"{A}/private/x")


def test_the_robots_txt_in_force_is_the_last_one(ledger: Ledger) -> None:
    ledger.visit(100, ask(f"{A}/open"))
    ledger.visit(200, ledger.robots(A, "User-agent: *\nDisallow: /open\n"), ask(f"{A}/private/x"))
    ledger.visit(300, ask(f"{A}/open/x"))
    assert ledger.violation().requests[1].visit == 4


def test_each_origin_has_its_own(ledger: Ledger) -> None:
    www = "https://www.a.test"
    ledger.visit(100, ledger.robots(www, "User-agent: *\nDisallow: /open\n"), ask(f"{www}/private"))
    ledger.visit(200, ask(f"{A}/open"))
    assert not ledger.checks()


TROUBLE = [
    {"status": 429},
    {"status": 500},
    {"status": 503},
    {"status": 304, "error": "status-304"},
    {"error": "dns"},
    {"error": "address-refused"},
    {"error": "timeout-total", "status": 200},
    {"error": "aborted"},
]


@pytest.mark.parametrize("answer", TROUBLE)
def test_a_robots_txt_that_cannot_be_had_forbids_all(ledger: Ledger, answer: dict[str, Any]) -> None:
    ledger.visit(100, ask_robots(A, **answer))
    ledger.visit(200, ask(f"{A}/open"))
    violation = ledger.violation()
    assert violation.check is Check.ROBOTS and "could not be fetched" in violation.what
    assert violation.requests[0].visit == 2
    ledger.visit(150, ledger.robots(A, RULES))
    ledger.rows[-1] = ledger.rows[-1].replace(visit=2, seq=1)
    assert not {Check.ROBOTS} & ledger.checks(), "it was asked for again in between"


def test_a_robots_txt_that_could_not_be_fetched_offline_replaces_no_earlier_one(ledger: Ledger) -> None:
    """The ledger begins with a robots.txt that forbids /private."""
    ledger.visit(100, ask_robots(A, error="connect"), settlement=Settlement.OFFLINE)
    ledger.visit(200, ask(f"{A}/open"))
    assert not ledger.checks()
    ledger.visit(300, ask(f"{A}/private"))
    assert ledger.violation().check is Check.ROBOTS


def test_a_robots_txt_that_was_never_fetched_because_of_an_outage_forbids_all(ledger: Ledger) -> None:
    www = "https://www.a.test"
    ledger.visit(100, ask_robots(www, error="connect"), settlement=Settlement.OFFLINE)
    ledger.visit(200, ask(f"{www}/open"))
    assert ledger.violation().check is Check.ROBOTS


@pytest.mark.parametrize(
    "answer",
    [
        *({"status": status} for status in (401, 403, 404, 410, 418)),
        {"status": 204, "error": "status-204"},
        {"status": 300, "error": "status-300"},
        {"status": 301, "target": "mailto:someone"},
    ],
)
def test_answers_that_mean_no_rules(ledger: Ledger, answer: dict[str, Any]) -> None:
    ledger.visit(100, ask_robots(A, **answer), ask(f"{A}/private"))
    assert not ledger.checks()


def test_a_copy_that_is_still_good(ledger: Ledger) -> None:
    unchanged = ledger.robots(A, RULES, status=304, error="status-304")
    ledger.visit(86_000, unchanged)
    ledger.visit(172_000, ask(f"{A}/open"))
    assert not ledger.checks()
    ledger.visit(172_100, ask(f"{A}/private"))
    assert ledger.violation().requests[0].visit == 2


def test_a_robots_txt_at_the_end_of_redirects() -> None:
    """Redirects cross the hosts of a domain; the rules apply to the origin where they began."""
    ledger, www, b = Ledger(), "https://www.a.test", "https://b.a.test/r"
    ledger.visit(
        0,
        ask_robots(A, status=301, target="//www.a.test/robots.txt"),
        ask_robots(www, status=302, target=b),
        ledger.robots(A, RULES).replace(url=b),
        ask(f"{A}/open"),
    )
    assert not ledger.checks()
    ledger.visit(100, ask(f"{A}/private"))
    assert ledger.violation().check is Check.ROBOTS
    ledger.visit(200, ask(f"{www}/"))
    assert ledger.checks() == {Check.ROBOTS, Check.PAGE_BEFORE_ROBOTS}, "a hop is no asking"


@pytest.mark.parametrize(("hops", "is_found"), [(4, True), (5, False)])
def test_redirects_without_an_end_mean_no_rules(hops: int, is_found: bool) -> None:
    ledger = Ledger()
    chain = [ask_robots(A, status=301, target="/1")]
    chain += [hop(f"{A}/{n}", status=301, target=f"/{n + 1}") for n in range(1, hops + 1)]
    ledger.visit(0, *chain, ask(f"{A}/private"))
    assert (Check.ROBOTS in ledger.checks()) is is_found


def test_a_redirect_that_was_not_followed_leaves_nothing_to_go_by() -> None:
    ledger = Ledger()
    ledger.visit(0, ask_robots(A, status=301, target="https://x.test/robots.txt"))
    ledger.visit(100, ask(f"{A}/"))
    assert ledger.violation().check is Check.ROBOTS


def test_after_a_redirect_that_was_not_followed_another_origin_may_be_asked() -> None:
    ledger = Ledger()
    www = "https://www.a.test"
    ledger.visit(0, ask_robots(A, status=301, target="https://x.test/robots.txt"), ledger.robots(www), ask(f"{www}/"))
    assert not ledger.checks()


def test_a_redirect_that_could_not_be_stored_to_the_letter() -> None:
    ledger = Ledger()
    ledger.visit(0, ask_robots(A, status=301, target="/\ufffd"), hop(f"{A}/%00", status=404))
    ledger.visit(100, ask(f"{A}/"))
    assert not ledger.checks()


@pytest.mark.parametrize("url", [f"{A}/other", f"{A}/x/robots.txt"])
def test_what_is_no_robots_txt_is_not_asked_for_as_one(ledger: Ledger, url: str) -> None:
    ledger.visit(100, hop(url, status=404))
    assert ledger.violation().check is Check.ROBOTS
    ledger.rows[-1] = ledger.rows[-1].replace(settlement=Settlement.LOST)
    assert not ledger.checks(), "the requests before it may be lost"


@pytest.mark.parametrize("name", ["", "5" * 32])
def test_a_copy_that_is_missing_is_counted(ledger: Ledger, name: str) -> None:
    ledger.visit(100, ask_robots(A, robots=name), ask(f"{A}/private"))
    report = ledger.audit()
    assert report.total == 0 and report.unverifiable[Unverifiable.NO_COPY] == 1
    assert report.checked[Check.ROBOTS] == 1 and report.checked[Check.PAGE_BEFORE_ROBOTS] == 2


def test_a_text_that_is_not_the_one_that_was_read_accuses_nobody(ledger: Ledger) -> None:
    forged = b"User-agent: *\nDisallow: /"
    ledger.visit(100, ledger.robots(A, "User-agent: *\nDisallow: /private"), ask(f"{A}/public"))
    ledger.texts = dict.fromkeys(ledger.texts, forged)
    report = ledger.audit()
    assert report.total == 0 and report.unverifiable[Unverifiable.OTHER_COPY] == 2


@pytest.mark.parametrize("url", [" ttp://a.test/x", "http:\ufffd", ""])
def test_a_damaged_row_is_counted_and_the_others_are_checked(ledger: Ledger, url: str) -> None:
    ledger.visit(60, ask(f"{A}/b"))
    ledger.visit(200, ask(f"{A}/c"))
    ledger.rows[-1] = ledger.rows[-1].replace(url=url)
    report = ledger.audit()
    assert report.unverifiable[Unverifiable.DAMAGED] == report.violations[Check.DELAY] == report.total == 1


# page-before-robots


@pytest.mark.parametrize(
    ("lost_at", "is_excused"),
    [(-60, True), (-90_000, False), (60, True), (300, False)],
    ids=["read before the loss", "read too long before", "in flight at the loss", "long before the loss"],
)
def test_a_robots_request_that_the_database_lost_is_no_violation(lost_at: float, is_excused: bool) -> None:
    ledger = Ledger()
    ledger.visit(0, ask(f"{A}/"))
    assert ledger.violation().check is Check.PAGE_BEFORE_ROBOTS
    ledger.lost_at = [T0 + round(lost_at * 1000)]
    report = ledger.audit()
    assert report.unverifiable[Unverifiable.LOST_REQUEST] == is_excused
    assert report.total == (not is_excused)


@pytest.mark.parametrize("kind", [RequestKind.PAGE, RequestKind.SITEMAP])
def test_a_page_of_an_origin_that_was_never_asked(ledger: Ledger, kind: RequestKind) -> None:
    ledger.visit(100, ask("http://a.test/", kind=kind), ledger.robots("http://a.test"))
    violation = ledger.violation()
    assert violation.check is Check.PAGE_BEFORE_ROBOTS
    assert violation.requests[0].url == "http://a.test/"
    assert "http://a.test/robots.txt" in violation.what


@pytest.mark.parametrize(("at", "is_found"), [(86_580.1, False), (86_580.101, True)])
def test_a_robots_txt_is_good_for_a_day_and_a_visit(ledger: Ledger, at: float, is_found: bool) -> None:
    ledger.visit(at, ask(f"{A}/b"))
    assert (Check.PAGE_BEFORE_ROBOTS in ledger.checks()) is is_found
    if is_found:
        assert ledger.violation().numbers == {"age_s": 86_580.001}


def test_a_domain_of_very_many_origins() -> None:
    """Origins with an expired robots.txt are forgotten, and a page of theirs is still a violation."""
    ledger = Ledger()
    for number in range(4_500):
        origin = f"https://h{number}.a.test"
        ledger.visit(number * 100, ledger.robots(origin), ask(f"{origin}/"))
    assert not ledger.checks()
    ledger.visit(450_000, ask("https://h4499.a.test/b"))
    assert not ledger.checks()
    ledger.visit(450_100, ask("https://h0.a.test/b"))
    assert ledger.violation().check is Check.PAGE_BEFORE_ROBOTS


# excluded


@pytest.mark.parametrize(
    ("at", "is_found"), [(104, False), (105, False), (105.001, True), (199.999, True), (200, False)]
)
def test_a_request_to_what_is_excluded(ledger: Ledger, at: float, is_found: bool) -> None:
    ledger.visit(at, ask(f"{A}/b"))
    excluded = exclusion("a.test", 100, lifted=200)
    assert (Check.EXCLUDED in ledger.checks(excluded)) is is_found
    if is_found:
        violation = ledger.violation(excluded)
        assert violation.numbers["pattern"] == "a.test"
        assert violation.numbers["excluded_at_ms"] == T0 + 100_000
        assert violation.numbers["lifted_at_ms"] == T0 + 200_000
        assert violation.requests[0].url == f"{A}/b"


def test_what_is_excluded_before_anything_was_asked(ledger: Ledger) -> None:
    whole = replace(exclusion("a.test", 0), at=0)
    assert ledger.audit(whole).violations[Check.EXCLUDED] == 2
    assert ledger.audit(whole).findings[0].requests[0].kind is RequestKind.ROBOTS


@pytest.mark.parametrize("pattern", ["a.test", "test", "www.a.test", "=www.a.test", "w*.a.test"])
def test_patterns_that_cover(pattern: str) -> None:
    ledger, www = Ledger(), "https://www.a.test:8443"
    ledger.visit(100, ledger.robots(www))
    assert ledger.violation(exclusion("b.test", 0), exclusion(pattern, 0)).check is Check.EXCLUDED


@pytest.mark.parametrize("origin", ["http://192.0.2.7:81", "http://[2001:db8::1]", "https://[::1]:8"])
def test_addresses_are_excluded_as_they_are(origin: str) -> None:
    url = canonical(origin)
    assert url is not None
    ledger = Ledger()
    ledger.visit(100, ledger.robots(origin), domain=url.host)
    assert ledger.violation(exclusion(url.host, 0)).check is Check.EXCLUDED
    assert not ledger.checks(exclusion("7", 0), exclusion("2.7", 0))


@pytest.mark.parametrize("pattern", ["www.a.test", "=a.test.test", "b*.test", "xa.test"])
def test_patterns_that_do_not_cover(ledger: Ledger, pattern: str) -> None:
    assert not ledger.checks(exclusion(pattern, -100))


def test_an_exclusion_that_was_made_lifted_and_made_again(ledger: Ledger) -> None:
    history = exclusion("a.test", 100, lifted=200), exclusion("a.test", 300)
    ledger.visit(250, ask(f"{A}/b"))
    assert not ledger.checks(*history)
    ledger.visit(350, ask(f"{A}/c"))
    assert ledger.violation(*history).requests[0].visit == 3


def test_a_robots_txt_that_leads_to_what_is_excluded() -> None:
    ledger, to = Ledger(), "https://b.a.test/robots.txt"
    ledger.visit(100, ask_robots(A, status=301, target=to), hop(to, status=404))
    violation = ledger.violation(exclusion("b.a.test", 0))
    assert (violation.check, violation.domain, violation.requests[0].url) == (Check.EXCLUDED, "a.test", to)


def test_thousands_of_exclusions(ledger: Ledger) -> None:
    many = [exclusion(f"h{number}.test", number % 50) for number in range(20_000)]
    ledger.visit(100, ask(f"{A}/b"))
    assert not ledger.checks(*many)
    assert ledger.violation(*many, exclusion("a.test", 0, lifted=1), exclusion("a.test", 2))


# twice


FINAL = [
    {},
    {"status": 404},
    {"status": 403},
    {"status": 301, "target": "/elsewhere"},
    {"error": "wrong-type", "status": 200},
    {"error": "tls"},
    {"error": "dns-not-found"},
    {"error": "encoding", "status": 200},
]
AGAIN = [
    *({"status": status} for status in (500, 503, 408, 425, 429)),
    *({"error": kind} for kind in ("dns", "connect", "timeout-connect", "timeout-first-byte")),
    *({"error": kind} for kind in ("timeout-total", "reset", "aborted")),
]


@pytest.mark.parametrize("answer", FINAL)
def test_a_page_that_is_asked_for_twice(ledger: Ledger, answer: dict[str, Any]) -> None:
    ledger.visit(100, ask(f"{A}/b", **answer))
    ledger.visit(200, ask(f"{A}/b"))
    violation = ledger.violation()
    assert violation.check is Check.TWICE and violation.numbers == {"apart_s": 100.0}
    earlier, later = violation.requests
    assert (earlier.visit, earlier.seq, earlier.began) == (2, 0, T0 + 100_000)
    assert (later.visit, later.seq, later.url) == (3, 0, f"{A}/b")


def test_what_was_excluded_in_between_may_be_asked_for_again(ledger: Ledger) -> None:
    ledger.visit(100, ask(f"{A}/b"))
    ledger.visit(300, ask(f"{A}/b"))
    assert not ledger.checks(exclusion("a.test", 101, lifted=200))
    assert not ledger.checks(exclusion("=a.test", 99.9, lifted=101))
    for too_early_or_late in (exclusion("a.test", 20, 99.9), exclusion("a.test", 300.1)):
        assert ledger.checks(too_early_or_late) == {Check.TWICE}
    assert ledger.checks(exclusion("b.test", 101, lifted=200)) == {Check.TWICE}


@pytest.mark.parametrize("answer", AGAIN)
def test_reasons_to_ask_again(ledger: Ledger, answer: dict[str, Any]) -> None:
    for number in range(3):
        ledger.visit(100 * (number + 1), ask(f"{A}/b", **answer))
    ledger.visit(400, ask(f"{A}/b"))
    assert not ledger.checks()
    ledger.visit(500, ask(f"{A}/b"))
    assert ledger.violation().requests[0].visit == 5, "the reason was for one time only"


@pytest.mark.parametrize("fate", [Settlement.LATE, Settlement.LOST])
def test_what_a_visit_brought_that_does_not_count(ledger: Ledger, fate: Settlement) -> None:
    ledger.visit(100, ask(f"{A}/b"), settlement=fate)
    ledger.visit(200, ask(f"{A}/b"))
    assert not ledger.checks()


def test_a_sitemap_is_asked_for_once(ledger: Ledger) -> None:
    for at in (100, 200):
        ledger.visit(at, ask(f"{A}/sitemap.xml", kind=RequestKind.SITEMAP))
    assert ledger.checks() == {Check.TWICE}


@pytest.mark.parametrize("error", ["tls", "protocol"])
def test_https_was_a_guess(ledger: Ledger, error: str) -> None:
    www = "https://www.a.test"
    ledger.visit(100, ledger.robots(www), ask(f"{www}/", error=error))
    ledger.visit(200, ask(f"{www}/", error=error))
    assert not ledger.checks()


def guessed(ledger: Ledger, at: float, target: str, **failure: object) -> None:
    """https cannot be reached, and http redirects."""
    ledger.visit(
        at,
        ask_robots("https://www.a.test", **failure),
        ask_robots("http://www.a.test", status=404),
        ask("http://www.a.test/", status=301, target=target),
    )


def test_http_that_leads_back_to_an_https_that_cannot_be_reached() -> None:
    ledger = Ledger()
    for at, query in ((0, ""), (100, ""), (200, "?utm_source=http"), (300, "")):
        guessed(ledger, at, f"https://www.a.test/{query}", error="connect")
    assert not ledger.checks()


@pytest.mark.parametrize(
    ("target", "failure"),
    [
        ("https://a.test/", {"error": "connect"}),
        ("https://www.a.test/x", {"error": "connect"}),
        ("https://www.a.test/", {"status": 404}),
    ],
)
def test_http_that_leads_elsewhere_or_to_an_https_that_was_reached(target: str, failure: dict[str, object]) -> None:
    ledger = Ledger()
    for at in (0, 100):
        guessed(ledger, at, target, **failure)
    assert ledger.checks() == {Check.TWICE}


# order


def test_a_request_that_is_missing(ledger: Ledger) -> None:
    ledger.visit(100, ask(f"{A}/b"), ask(f"{A}/c"), ask(f"{A}/d"))
    del ledger.rows[-2]
    violation = ledger.violation()
    assert violation.check is Check.ORDER
    assert [request.seq for request in violation.requests] == [0, 2]


def test_a_visit_without_a_beginning(ledger: Ledger) -> None:
    ledger.visit(100, ask(f"{A}/b"), seq=1)
    assert ledger.violation().check is Check.ORDER


def test_a_lost_visit_may_have_holes(ledger: Ledger) -> None:
    ledger.visit(100, ask(f"{A}/b"), ask(f"{A}/c"), ask(f"{A}/d"), settlement=Settlement.LOST)
    del ledger.rows[-2]
    ledger.visit(200, ask(f"{A}/e"), seq=3, settlement=Settlement.LOST)
    assert not ledger.checks()


@pytest.mark.parametrize(("took", "is_found"), [(0, False), (-1, True)])
@pytest.mark.parametrize("number", [0, 1])
def test_a_request_that_ends_before_it_begins(ledger: Ledger, took: int, is_found: bool, number: int) -> None:
    requests: list[RequestRow] = [ask(f"{A}/b"), ask(f"{A}/c")]
    requests[number] = requests[number].replace(ended=took)
    ledger.visit(100, *requests)
    assert (Check.ORDER in ledger.checks()) is is_found


@pytest.mark.parametrize(("count", "is_found"), [(8, False), (9, True)])
def test_a_visit_of_too_many_requests(ledger: Ledger, count: int, is_found: bool) -> None:
    ledger.visit(100, *(ask(f"{A}/{number}") for number in range(count)))
    assert (Check.ORDER in ledger.checks()) is is_found
    if is_found:
        violation = ledger.violation()
        assert violation.numbers == {"requests": 9}
        assert [request.seq for request in violation.requests] == [0, 8]


@pytest.mark.parametrize(("early", "is_found"), [(5, False), (6, True)])
def test_two_requests_of_a_visit_at_once(ledger: Ledger, early: int, is_found: bool) -> None:
    ledger.visit(100, ask(f"{A}/b"), ask(f"{A}/c"))
    last = ledger.rows[-1]
    ledger.rows[-1] = last.replace(began=last.began - early)
    assert (Check.ORDER in ledger.checks()) is is_found


# usage


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        ("", {}, ""),
        ("User-agent: *\nContent-Usage: /x train-ai=n", {}, ""),
        ("User-agent: *\nContent-Usage: / train-ai=n", {}, "https://a.test/robots.txt states train-ai=n"),
        (None, {"usage": ("train-ai=n",), "usage_from": ("tdm-meta",)}, "its site (tdm-meta) states train-ai=n"),
        ("", {"usage": ("search=n",), "usage_from": ("content-usage",)}, ""),
    ],
)
@pytest.mark.parametrize("purpose", ["training", "search", ""])
def test_a_page_that_was_kept_against_its_preference(
    body: str | None, changes: dict[str, Any], expected: str, purpose: str
) -> None:
    ledger = Ledger()
    ledger.visit(0, ledger.robots(A, body), ask(f"{A}/", purpose=purpose, **changes))
    report = ledger.audit()
    assert report.checked[Check.USAGE] == (purpose == "training")
    if expected and purpose == "training":
        (finding,) = report.findings
        assert finding.check is Check.USAGE and finding.what == f"kept for training, although {expected}"
        assert finding.numbers == {"usage": "train-ai=n"}
    else:
        assert not report.total


def test_a_page_of_a_visit_that_did_not_count_was_not_kept() -> None:
    ledger = Ledger()
    page = ask(f"{A}/", purpose="training", usage=("train-ai=n",))
    ledger.visit(0, ledger.robots(A), page, settlement=Settlement.LATE)
    assert not ledger.audit().total
