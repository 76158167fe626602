"""Why a URL is fetched or not: every verdict, and the facts that explain prints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from click.testing import CliRunner, Result

from rove.cli import crawl_given, webmasters
from rove.config import Settings
from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.frontier.records import DomainRecord, Exclusion, UrlRecord
from rove.inspect.explain import Explanation, UrlVerdict, explain_url
from rove.inspect.explain_text import as_json, as_lines
from rove.inspect.lookup import url_given
from rove.inspect.url_facts import HISTORY_SHOWN, UrlFacts, UrlHistory, read_url_facts
from rove.model.ledger import DelaySource, RequestKind, RequestRow, Settlement
from rove.model.urls import UrlState
from rove.model.visits import OriginRecord, Pace, RobotsStatus
from rove.notation.harmless import one_line, whole_text
from rove.policy.robots_lines import MAX_CRAWL_DELAY
from rove.policy.scope import SeedScope
from rove.urls.canonical import UrlForm
from tests.urls import FORM

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00Z
URL = url_given("https://www.a.test/x", FORM.in_full)
SETTINGS = Settings(email="ops@crawler.test")
REJECTING = replace(SETTINGS, reject=('path ~ "x"',)).with_numbers()
RECORD = UrlRecord(
    domain=URL.domain,
    fingerprint=URL.fingerprint,
    url=URL.text,
    state=UrlState.PENDING,
    depth=2,
    attempts=0,
    reason="",
    visit=None,
)
DOMAIN = DomainRecord(
    id=URL.domain,
    name="a.test",
    ready_in=43.0,
    free_in=43.0,
    crawl_delay=0.0,
    pace=Pace(),
    pending=12,
    is_leased=False,
    is_excluded=False,
    is_capped=False,
    has_urls=True,
)
ORIGIN = OriginRecord(
    domain=URL.domain,
    origin=URL.origin,
    status=RobotsStatus.RULES,
    body=b"User-agent: *\nDisallow: /private\n",
    valid_for=80_000.0,
    age=6_400.0,
    source=f"{URL.origin}/robots.txt",
)
FORBIDDING = ORIGIN.replace(body=b"# no\nUser-agent: rove\nAllow: /y\nDisallow: /x # <script>\n")
EXCLUSION = Exclusion(pattern="a.test", at=5, wall=NOW - 3_600, who="alice", reason="asked by mail")
ROW = RequestRow(
    visit=7,
    seq=1,
    domain=URL.domain,
    kind=RequestKind.PAGE,
    url=URL.text,
    fingerprint=URL.fingerprint,
    started=NOW - 1_000,
    began=1_000,
    ended=1_500,
    status=200,
    size=100,
    delay=70.0,
)
FACTS = UrlFacts(
    settings=SETTINGS,
    record=RECORD,
    domain=DOMAIN,
    origin=ORIGIN,
    wanted_robots=None,
    exclusions=(),
    history=UrlHistory(),
    is_running=True,
)


def explained(**changes: Any) -> Explanation:
    return explain_url(URL.text, URL, replace(FACTS, **changes), now=NOW)


def settled(state: UrlState, reason: str = "", **changes: Any) -> dict[str, Any]:
    """Return the facts of a URL that was settled by the visit of ROW."""
    record = replace(RECORD, state=state, reason=reason, visit=7)
    return {"record": record, "history": UrlHistory(requests=1, newest=[ROW]), **changes}


FETCHED_ON = "was fetched on 2027-01-15 07:43:20Z"
UNREACHABLE = ORIGIN.replace(status=RobotsStatus.UNREACHABLE, failures=2, valid_for=140.0)
DAY_LONG = replace(DOMAIN, crawl_delay=MAX_CRAWL_DELAY + 1)
FALLBACK = "if robots.txt, which is fetched first, allows it"
ACCEPTED = "is not known to this crawl; a link to it would be accepted"
REFUSED = "is not known to this crawl; a link to it would be refused"


@pytest.mark.parametrize(
    ("changes", "verdict", "sentence"),
    [
        ({}, UrlVerdict.FETCH, "would be fetched when its domain is due, in 43.0 s"),
        (
            {"domain": replace(DOMAIN, ready_in=-5.0)},
            UrlVerdict.FETCH,
            "would be fetched when its domain is due, which is now",
        ),
        (
            {"domain": replace(DOMAIN, ready_in=None, free_in=20.0)},
            UrlVerdict.FETCH,
            "would be fetched when its domain is due, in 20.0 s",
        ),
        (
            {"domain": replace(DOMAIN, is_leased=True)},
            UrlVerdict.FETCH,
            "would be fetched in the current visit to its domain or in a later one",
        ),
        (
            {"is_running": False},
            UrlVerdict.FETCH,
            "would be fetched when its domain is due, in 43.0 s (but the crawl is not running)",
        ),
        ({"origin": None}, UrlVerdict.FETCH, f"would be fetched when its domain is due, in 43.0 s, {FALLBACK}"),
        (
            {"origin": ORIGIN.replace(valid_for=0.0)},
            UrlVerdict.FETCH,
            f"would be fetched when its domain is due, in 43.0 s, {FALLBACK}",
        ),
        (
            {"origin": ORIGIN.replace(status=RobotsStatus.NONE, body=b"")},
            UrlVerdict.FETCH,
            "would be fetched when its domain is due, in 43.0 s",
        ),
        ({"origin": FORBIDDING}, UrlVerdict.FORBIDDEN, "would not be fetched: robots.txt forbids it"),
        (
            {"origin": FORBIDDING.replace(valid_for=-1.0)},
            UrlVerdict.FORBIDDEN,
            (
                "would not be fetched: robots.txt forbade it 1 h 46 min ago; "
                "rove fetches robots.txt again before it decides"
            ),
        ),
        (
            {"origin": UNREACHABLE},
            UrlVerdict.HELD,
            "would not be fetched now: robots.txt could not be fetched; rove tries again in 2 min 20 s",
        ),
        (
            {"origin": UNREACHABLE.replace(valid_for=-1.0)},
            UrlVerdict.FETCH,
            f"would be fetched when its domain is due, in 43.0 s, {FALLBACK}",
        ),
        (
            {"domain": DAY_LONG},
            UrlVerdict.LEFT_ALONE,
            "would not be fetched: its domain asks for a Crawl-delay of more than a day",
        ),
        (
            {"origin": ORIGIN.replace(crawl_delay=MAX_CRAWL_DELAY + 1)},
            UrlVerdict.LEFT_ALONE,
            "would not be fetched: its domain asks for a Crawl-delay of more than a day",
        ),
        (
            {"domain": replace(DOMAIN, is_capped=True)},
            UrlVerdict.CAPPED,
            "would not be fetched: its domain has reached --max-pages-per-domain",
        ),
        ({"exclusions": [EXCLUSION]}, UrlVerdict.EXCLUDED, "is excluded and would not be fetched"),
        ({"domain": replace(DOMAIN, is_excluded=True)}, UrlVerdict.EXCLUDED, "is excluded and would not be fetched"),
        (settled(UrlState.DONE, exclusions=[EXCLUSION]), UrlVerdict.EXCLUDED, f"is excluded, but {FETCHED_ON}"),
        (
            {"exclusions": [EXCLUSION], "record": None, "domain": None},
            UrlVerdict.EXCLUDED,
            "is excluded and would not be fetched",
        ),
        (settled(UrlState.DONE), UrlVerdict.FETCHED, f"{FETCHED_ON}; a URL is fetched only once"),
        (settled(UrlState.DONE, history=UrlHistory()), UrlVerdict.FETCHED, "was fetched; a URL is fetched only once"),
        (settled(UrlState.READ), UrlVerdict.FETCHED, f"{FETCHED_ON} as a sitemap; a URL is fetched only once"),
        (
            settled(UrlState.REDIRECTED, "https://b.test/"),
            UrlVerdict.REDIRECTED,
            f"{FETCHED_ON} and redirects to https://b.test/",
        ),
        (
            settled(UrlState.REDIRECTED, "http://www.a.test/x", history=UrlHistory()),
            UrlVerdict.REDIRECTED,
            "was replaced by http://www.a.test/x",
        ),
        (settled(UrlState.FAILED, "status 404"), UrlVerdict.FAILED, "was given up: status 404"),
        (settled(UrlState.FAILED), UrlVerdict.FAILED, "was given up: it could not be fetched"),
        (
            settled(UrlState.BLOCKED, "robots.txt", origin=FORBIDDING),
            UrlVerdict.FORBIDDEN,
            "was not fetched: robots.txt forbids it",
        ),
        (
            settled(UrlState.BLOCKED, "robots.txt"),
            UrlVerdict.FORBIDDEN,
            ("was not fetched: robots.txt forbade it; the present copy allows it, but rove checks a URL only once"),
        ),
        (
            settled(UrlState.BLOCKED, "noindex"),
            UrlVerdict.BLOCKED,
            f"{FETCHED_ON} but not stored: the page says noindex",
        ),
        (settled(UrlState.BLOCKED, "excluded"), UrlVerdict.BLOCKED, "was not fetched: it was excluded at that time"),
        (
            settled(UrlState.BLOCKED, "Crawl-delay over a day"),
            UrlVerdict.LEFT_ALONE,
            "was not fetched: its domain asks for a Crawl-delay of more than a day",
        ),
        (settled(UrlState.BLOCKED, "why\x1b[2J"), UrlVerdict.BLOCKED, r"was not fetched: why\x1b[2J"),
        (
            {"settings": REJECTING},
            UrlVerdict.RULED_OUT,
            'would not be fetched: rejected by rule 1: path ~ "x"',
        ),
        (
            {**settled(UrlState.BLOCKED, 'rejected by rule 1: path ~ "x"'), "settings": REJECTING},
            UrlVerdict.RULED_OUT,
            'was not fetched: rejected by rule 1: path ~ "x"',
        ),
        (
            settled(UrlState.BLOCKED, 'rejected by rule 1: path ~ "x"'),
            UrlVerdict.RULED_OUT,
            (
                'was not fetched: rejected by rule 1: path ~ "x"; the rules in force take it, '
                "so it will be pending again"
            ),
        ),
        (
            settled(UrlState.BLOCKED, "not stored by rule 1: store only if seed"),
            UrlVerdict.RULED_OUT,
            f"{FETCHED_ON} but not stored by rule 1: store only if seed",
        ),
        (
            {"record": None, "settings": REJECTING},
            UrlVerdict.REFUSED,
            f'{REFUSED}: rejected by rule 1: path ~ "x"',
        ),
        (
            {"record": None, "settings": replace(SETTINGS, accept=("same_host",)).with_numbers()},
            UrlVerdict.REFUSED,
            f"{REFUSED} if it is on a page of another site: rejected by rule 1: accept only same_host",
        ),
        ({"record": None}, UrlVerdict.ACCEPTED, ACCEPTED),
        ({"record": None, "domain": None, "origin": None}, UrlVerdict.ACCEPTED, ACCEPTED),
        (
            {"record": None, "settings": replace(SETTINGS, max_depth=3)},
            UrlVerdict.ACCEPTED,
            f"{ACCEPTED} from pages less than 3 links away from a seed",
        ),
        ({"record": None, "settings": replace(SETTINGS, scope=SeedScope.DOMAIN)}, UrlVerdict.ACCEPTED, ACCEPTED),
        (
            {"record": None, "settings": replace(SETTINGS, scope=SeedScope.PATH), "roots": [("http://a.test/x", True)]},
            UrlVerdict.REFUSED,
            f"{REFUSED}: only links into the directories of the seeds are followed, and it is in none of them",
        ),
        (
            {
                "record": None,
                "settings": replace(SETTINGS, scope=SeedScope.HOST),
                "roots": [("http://www.a.test/", True)],
            },
            UrlVerdict.ACCEPTED,
            ACCEPTED,
        ),
        (
            {"record": None, "domain": None, "settings": replace(SETTINGS, scope=SeedScope.DOMAIN)},
            UrlVerdict.REFUSED,
            f"{REFUSED}: only links into the domains of the seeds are followed, and it is in none of them",
        ),
        (
            {"record": None, "settings": replace(SETTINGS, max_depth=0)},
            UrlVerdict.REFUSED,
            f"{REFUSED}: only seeds are fetched (--max-depth 0)",
        ),
        (
            {"record": None, "origin": FORBIDDING},
            UrlVerdict.ACCEPTED,
            f"{ACCEPTED}, but the URL would not be fetched: robots.txt forbids it",
        ),
        (
            {"record": None, "domain": replace(DOMAIN, pending=148_112)},
            UrlVerdict.REFUSED,
            (
                f"{REFUSED}: its domain already has 148,112 URLs pending and no room for more; "
                "only a link nearer to a seed than the last of them would be accepted"
            ),
        ),
        ({"record": None, "domain": replace(DOMAIN, pending=148_111)}, UrlVerdict.ACCEPTED, ACCEPTED),
        (
            {"record": None, "domain": DAY_LONG},
            UrlVerdict.ACCEPTED,
            f"{ACCEPTED}, but the URL would not be fetched: its domain asks for a Crawl-delay of more than a day",
        ),
        (
            {"record": None, "domain": replace(DOMAIN, is_capped=True)},
            UrlVerdict.ACCEPTED,
            (f"{ACCEPTED}, but the URL would not be fetched: its domain has reached --max-pages-per-domain"),
        ),
    ],
)
def test_the_verdict(changes: dict[str, Any], verdict: UrlVerdict, sentence: str) -> None:
    answer = explained(**changes)
    assert (answer.verdict, answer.sentence) == (verdict, sentence)
    assert as_lines(answer)[0] == f"{URL.text} {sentence}."
    as_object = as_json(answer)
    assert as_object["verdict"] == verdict.value
    assert msgspec.json.decode(msgspec.json.encode(as_object)) == as_object


def test_every_verdict_is_tested() -> None:
    (mark,) = (mark for mark in test_the_verdict.pytestmark if mark.name == "parametrize")
    assert {verdict for _, verdict, _ in mark.args[1]} == set(UrlVerdict)


def section(answer: Explanation, name: str) -> list[str]:
    """Return the lines of one part of the output, without its name."""
    lines = as_lines(answer)
    start = next(i for i, line in enumerate(lines[2:], 2) if line.startswith(f"{name:<14}"))
    end = next((i for i in range(start + 1, len(lines)) if lines[i][0] != " "), len(lines))
    assert all(line[13] == " " and line[14] != " " for line in lines[start:end]), "aligned"
    return [line[14:] for line in lines[start:end]]


def test_the_parts_come_in_their_order() -> None:
    names = [line[:14].strip() for line in as_lines(explained())[2:]]
    assert [name for name in names if name] == [
        *("url", "domain", "excluded", "scope", "robots.txt"),
        *("delay", "next visit", "site", "state", "history"),
    ]


def test_the_canonical_form_is_shown_where_it_differs() -> None:
    assert section(explained(), "url") == [URL.text]
    answer = explain_url("HTTPS://WWW.a.test:443/x#y", URL, FACTS, now=NOW)
    assert section(answer, "url") == [URL.text, "canonical form of HTTPS://WWW.a.test:443/x#y"]
    assert section(answer, "domain") == ["a.test (host www.a.test)"]


def test_ignored_parameters_are_named() -> None:
    given = "www.a.test/x;jsessionid=1?utm_source=a&utm_source=b&gclid=\x1b"
    answer = explain_url(given, URL, FACTS, now=NOW)
    assert section(answer, "url")[2] == "without jsessionid, utm_source, gclid"
    assert as_json(answer)["dropped"] == ["jsessionid", "utm_source", "gclid"]
    assert as_json(explained())["dropped"] == []


def test_the_signs_of_a_trap_are_named() -> None:
    unknown = replace(FACTS, record=None)
    answer = explain_url("a.test/x/x/x?sort=up", url_given("a.test/x/x/x?sort=up", FORM.in_full), unknown, now=NOW)
    assert answer.verdict is UrlVerdict.ACCEPTED
    assert section(answer, "trap signs") == [
        "a path segment that occurs 3 times (4)",
        "parameters that sort or filter: 1 (1)",
        "it waits like a URL that is 5 links deeper",
    ]
    assert as_json(explained())["trap"] == {"penalty": 0, "refused": False, "signs": []}


def test_a_trap_would_not_be_accepted() -> None:
    url = url_given("a.test/calendar/2099/01", FORM.in_full)
    answer = explain_url(url.text, url, replace(FACTS, record=None), now=NOW)
    assert answer.verdict is UrlVerdict.REFUSED
    assert answer.sentence == (
        "is not known to this crawl; a link to it would be refused, unless it is a seed: it looks like a trap"
    )
    assert section(answer, "trap signs")[-1] == "a link to it is not accepted"
    trap = as_json(answer)["trap"]
    assert trap["refused"] and trap["signs"] == [{"what": "a calendar 70 years too far ahead", "penalty": 20}]
    assert explain_url(url.text, url, FACTS, now=NOW).verdict is UrlVerdict.FETCH, "a seed is no trap"


def test_a_file_without_text_would_not_be_accepted() -> None:
    url = url_given("a.test/Photo.JPG?w=8", FORM.in_full)
    answer = explain_url(url.text, url, replace(FACTS, record=None), now=NOW)
    assert answer.verdict is UrlVerdict.REFUSED
    assert answer.sentence == f"{REFUSED}, unless it is a seed: links to .jpg files are not taken"
    assert section(answer, "file type") == [".jpg: links to such files are not taken (--file-types, --skip-extension)"]
    assert as_json(answer)["file_type"] == "jpg"
    assert as_json(explained())["file_type"] is None
    assert explain_url(url.text, url, FACTS, now=NOW).verdict is UrlVerdict.FETCH, "a seed is visited"
    visiting = replace(FACTS, record=None, settings=replace(SETTINGS, file_types="visit"))
    assert explain_url(url.text, url, visiting, now=NOW).verdict is UrlVerdict.ACCEPTED


@pytest.mark.parametrize(
    ("exclusions", "expected"),
    [
        ([], "no"),
        ([replace(EXCLUSION, pattern="b.test")], "no"),
        ([replace(EXCLUSION, pattern="=a.test")], "no"),
        ([EXCLUSION], "yes, by a.test since 2027-01-15 07:00:00Z, by alice: asked by mail"),
        (
            [replace(EXCLUSION, pattern="=www.a.test", who="", reason="")],
            "yes, by =www.a.test since 2027-01-15 07:00:00Z",
        ),
        (
            [replace(EXCLUSION, pattern="w*.a.test", at=0, wall=0.0, who="", reason="")],
            "yes, by w*.a.test since before the crawl",
        ),
        (
            [replace(EXCLUSION, lifted_at=9, lifted_wall=NOW - 60, lifted_by="bob")],
            (
                "no longer; excluded by a.test since 2027-01-15 07:00:00Z until 2027-01-15 07:59:00Z, "
                "by alice, lifted by bob: asked by mail"
            ),
        ),
    ],
)
def test_who_excluded_it_and_why(exclusions: Sequence[Exclusion], expected: str) -> None:
    answer = explained(exclusions=exclusions)
    assert section(answer, "excluded") == [expected]
    assert (as_json(answer)["exclusion"] is not None) is expected.startswith("yes")


def test_an_exclusion_in_force_goes_before_one_that_was_lifted() -> None:
    lifted = replace(EXCLUSION, pattern="www.a.test", lifted_at=9, lifted_wall=NOW)
    answer = explained(exclusions=[EXCLUSION, lifted])
    assert answer.verdict is UrlVerdict.EXCLUDED
    assert answer.exclusion == EXCLUSION


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["depth 2 (no limit)"]),
        ({"settings": replace(SETTINGS, max_depth=3)}, ["depth 2 (at most 3)"]),
        ({"record": None}, ["links are followed to any depth"]),
        ({"record": None, "settings": replace(SETTINGS, max_depth=3)}, ["links are followed to depth 3"]),
        (
            {"settings": replace(SETTINGS, scope=SeedScope.DOMAIN)},
            ["depth 2 (no limit)", "in scope: links are followed only into the domains of the seeds"],
        ),
        (
            {"record": None, "domain": None, "settings": replace(SETTINGS, scope=SeedScope.DOMAIN)},
            ["links are followed to any depth", "out of scope: links are followed only into the domains of the seeds"],
        ),
    ],
)
def test_the_scope(changes: dict[str, Any], expected: list[str]) -> None:
    assert section(explained(**changes), "scope") == expected


REQUESTED = "requested 2027-01-15 06:13:20Z, 1 h 46 min ago; "
VALID = f"{REQUESTED}next request in 22 h 13 min at the earliest"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, ["never requested from https://www.a.test"]),
        (ORIGIN, ["has rules", "no line applies to this URL: it is allowed", VALID]),
        (FORBIDDING, ["has rules", "line 4 forbids it: Disallow: /x # <script> (User-agent: rove)", VALID]),
        (
            ORIGIN.replace(body=b"User-agent: *\nAllow: /x\nDisallow: /"),
            ["has rules", "line 2 allows it: Allow: /x (User-agent: *)", VALID],
        ),
        (
            ORIGIN.replace(status=RobotsStatus.NONE, body=b"", source=""),
            ["there is none: everything is allowed", VALID],
        ),
        (
            UNREACHABLE,
            [
                "could not be fetched: nothing else is requested until it can (2 failures in a row)",
                f"{REQUESTED}next request in 2 min 20 s at the earliest",
            ],
        ),
        (
            ORIGIN.replace(valid_for=-1.0),
            [
                "has rules",
                "no line applies to this URL: it is allowed",
                f"{REQUESTED}expired: requested again before the next page",
            ],
        ),
        (
            ORIGIN.replace(source="https://b.test/robots.txt"),
            [
                "has rules",
                "no line applies to this URL: it is allowed",
                VALID,
                "redirected to https://b.test/robots.txt",
            ],
        ),
    ],
)
def test_what_robots_txt_says(origin: OriginRecord | None, expected: list[str]) -> None:
    assert section(explained(origin=origin), "robots.txt") == expected


def test_the_deciding_rule_for_programs() -> None:
    robots = as_json(explained(origin=FORBIDDING))["robots"]
    assert robots["rule"] == {"line": 4, "text": "Disallow: /x # <script>", "group": "rove"}
    assert (robots["status"], robots["allowed"], robots["age_s"]) == ("rules", False, 6_400.0)
    assert as_json(explained(origin=None))["robots"]["status"] == "never-asked"


def test_a_robots_txt_cannot_control_the_terminal() -> None:
    body = b"User-agent: rove\nDisallow: /x\x1b]0;mine\x07\n"
    (_, line, _) = section(explained(origin=ORIGIN.replace(body=body + b"Disallow: /x")), "robots.txt")
    assert "\x1b" not in line
    answer = explained(**settled(UrlState.FAILED, "a\x1b[31m\u202eb"))
    assert section(answer, "state") == [r"failed (a\x1b[31m\u202eb)"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["70 s: set by the operator"]),
        (
            {"domain": replace(DOMAIN, crawl_delay=300.0)},
            ["300 s: the Crawl-delay of robots.txt", "(shorter: 70 s, set by the operator)"],
        ),
        (
            {"domain": replace(DOMAIN, pace=Pace(backoff=140.0))},
            ["140 s: it answered 429 or 503, or with a bot wall", "(shorter: 70 s, set by the operator)"],
        ),
        (
            {"domain": replace(DOMAIN, pace=Pace(failures=3))},
            ["280 s: it did not answer", "(shorter: 70 s, set by the operator)", "3 visits in a row without an answer"],
        ),
        (
            {"domain": replace(DOMAIN, crawl_delay=100.0, pace=Pace(failures=2))},
            [
                "200 s: it did not answer",
                "(shorter: 100 s, the Crawl-delay of robots.txt)",
                "(shorter: 70 s, set by the operator)",
                "2 visits in a row without an answer",
            ],
        ),
        (
            {"domain": DAY_LONG},
            [
                "24 h 00 min: the Crawl-delay of robots.txt",
                "a Crawl-delay of more than a day: rove does not visit the domain",
                "(shorter: 70 s, set by the operator)",
            ],
        ),
        ({"settings": replace(SETTINGS, delay=0.0)}, ["0 s: set by the operator"]),
    ],
)
def test_the_delay_and_where_it_comes_from(changes: dict[str, Any], expected: list[str]) -> None:
    assert section(explained(**changes), "delay") == expected


def test_the_delay_of_the_last_visit_is_in_force_until_it_ends() -> None:
    last = ROW.replace(delay=900.0, delay_from=DelaySource.RETRY_AFTER)
    answer = explained(history=UrlHistory(last_of_domain=last))
    assert section(answer, "delay")[0] == "15 min 00 s: the Retry-After of its response"
    assert as_json(answer)["delay"]["from"] == "retry-after"
    over = explained(history=UrlHistory(last_of_domain=last), domain=replace(DOMAIN, free_in=-1.0))
    assert as_json(over)["delay"] == {
        "seconds": 70.0,
        "from": "delay",
        "all": {"delay": 70.0},
        "leaves_alone": False,
        "failures": 0,
    }


WAITING = "12 URLs pending; a visit fetches one page"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["not before 2027-01-15 08:00:43Z, in 43.0 s", WAITING]),
        ({"domain": replace(DOMAIN, ready_in=0.0)}, ["possible now", WAITING]),
        ({"domain": replace(DOMAIN, is_leased=True)}, ["in progress"]),
        (
            {"domain": replace(DOMAIN, ready_in=0.0), "is_running": False},
            ["possible now", WAITING, "the crawl is not running"],
        ),
        ({"domain": None}, ["the domain was never visited"]),
        ({"domain": replace(DOMAIN, is_excluded=True)}, ["none"]),
        ({"exclusions": [EXCLUSION]}, ["none"]),
        ({"domain": DAY_LONG}, ["none"]),
        ({"domain": replace(DOMAIN, ready_in=None, free_in=-3.0)}, ["possible now, but none is planned"]),
    ],
)
def test_the_next_visit(changes: dict[str, Any], expected: list[str]) -> None:
    assert section(explained(**changes), "next visit") == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (None, "not known"),
        (RECORD, "pending"),
        (replace(RECORD, attempts=1), "pending, 1 failed attempt"),
        (
            replace(RECORD, state=UrlState.FAILED, reason="timeout-connect", attempts=4),
            "failed (timeout-connect), 4 failed attempts",
        ),
    ],
)
def test_the_state(record: UrlRecord | None, expected: str) -> None:
    assert section(explained(record=record), "state") == [expected]


def test_the_history() -> None:
    rows = [
        ROW.replace(visit=3, status=0, error="timeout-connect", settlement=Settlement.LATE),
        ROW.replace(visit=5, started=NOW - 10, status=301, target="/\x1by"),
    ]
    lines = section(explained(history=UrlHistory(requests=2, newest=rows)), "history")
    assert lines == [
        "2 requests",
        "2027-01-15 07:43:20Z  timeout-connect     page     visit 3  too late to count",
        r"2027-01-15 07:59:50Z  301                 page     visit 5  -> /\x1by",
    ]
    assert section(explained(), "history") == ["never requested"]


class Reader:
    """A reader that knows one URL."""

    def __init__(self, visits: Iterable[RequestRow] = ()) -> None:
        self._visits = visits

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        return RECORD if (domain, fingerprint) == (URL.domain, URL.fingerprint) else None

    async def domain(self, id: int) -> DomainRecord | None:
        return DOMAIN if id == URL.domain else None

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        return [ORIGIN for key in keys if key == (URL.domain, URL.origin)]

    async def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        for row in self._visits:
            yield row


async def facts_from(reader: Reader, text: str = URL.text) -> UrlFacts:
    return await read_url_facts(
        cast(FrontierReader, reader),
        url_given(text, FORM.in_full),
        FORM,
        settings=SETTINGS,
        exclusions=[EXCLUSION],
        is_running=True,
    )


def test_a_robots_txt_that_waits_for_another() -> None:
    waiting = ORIGIN.replace(
        status=RobotsStatus.UNREACHABLE, body=b"", valid_for=140.0, waits_for="https://b.test/robots.txt"
    )
    answer = explained(origin=waiting)
    assert answer.verdict is UrlVerdict.HELD
    assert "robots.txt redirects to https://b.test/robots.txt, which is not known" in answer.sentence
    assert "redirected to https://b.test/robots.txt, whose answer applies here too" in section(answer, "robots.txt")
    assert as_json(answer)["robots"]["waits_for"] == "https://b.test/robots.txt"


@pytest.mark.parametrize(("state", "words"), [(UrlState.PENDING, "; they wait for it"), (UrlState.READ, "")])
def test_a_robots_txt_that_others_redirect_to(state: UrlState, words: str) -> None:
    answer = explained(origin=None, wanted_robots=replace(RECORD, state=state))
    assert section(answer, "robots.txt")[-1] == f"the robots.txt of other domains redirects to it{words}"


def test_a_domain_that_is_known_only_for_its_robots_txt_is_out_of_scope() -> None:
    settings = replace(SETTINGS, scope=SeedScope.DOMAIN)
    answer = explained(settings=settings, record=None, domain=replace(DOMAIN, has_urls=False))
    assert answer.verdict is UrlVerdict.REFUSED
    assert "out of scope: links are followed only into the domains of the seeds" in section(answer, "scope")


async def test_all_facts_are_read() -> None:
    facts = await facts_from(Reader())
    assert facts == replace(FACTS, exclusions=[EXCLUSION], history=replace(UrlHistory(), newest=[]), retries=[])
    other = await facts_from(Reader(), "https://b.test/")
    assert (other.record, other.domain, other.origin) == (None, None, None)


async def test_the_newest_requests_for_the_url_are_kept() -> None:
    others = ROW.replace(fingerprint=1, url="https://a.test/other")
    rows = [
        row
        for visit in range(30)
        for row in (
            ROW.replace(visit=visit, started=NOW + visit),
            others.replace(visit=visit, seq=2, started=NOW + visit),
        )
    ]
    history = (await facts_from(Reader(rows))).history
    assert history.requests == 30
    assert [row.visit for row in history.newest] == list(range(10, 30))
    assert len(history.newest) == HISTORY_SHOWN
    assert history.last_of_domain == rows[-1]
    answer = explained(history=history)
    assert section(answer, "history")[0] == "30 requests; the last 20:"
    assert len(as_json(answer)["history"]) == 20


def test_untrusted_text_is_escaped() -> None:
    assert one_line("a\x00\x7f\x9b\u2028\ud800b") == r"a\x00\x7f\x9b\u2028\ud800b"
    assert one_line("größe 日本") == "größe 日本"
    assert whole_text(b"\xef\xbb\xbfa\r\nb\rc\n\td\xff\x1b") == "a\nb\nc\n\td\ufffd\\x1b"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    """Run `rove explain` on a running crawl."""
    reader = Reader([ROW])

    async def is_running() -> bool:
        return True

    async def settings() -> Settings:
        return SETTINGS

    async def form() -> UrlForm:
        return FORM

    async def exclusion_history() -> list[Exclusion]:
        return []

    async def retries() -> list[object]:
        return []

    @asynccontextmanager
    async def opened(data_dir: Path, **others: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(
            reader=reader,
            settings=settings,
            form=form,
            catalog=SimpleNamespace(exclusion_history=exclusion_history, retries=retries),
            is_running=is_running,
        )

    monkeypatch.setattr(crawl_given, "opened", opened)
    return CliRunner().invoke(webmasters.explain, words)


def test_the_command_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "www.a.test/x")
    assert result.exit_code == 0, result.exception
    lines = result.stdout.splitlines()
    assert lines[0] == f"{URL.text} would be fetched when its domain is due, in 43.0 s."
    assert "              canonical form of www.a.test/x" in lines
    assert "history       1 request" in lines


def test_the_command_explains_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "https://b.test/", "--json")
    answer = msgspec.json.decode(result.stdout)
    assert (result.exit_code, answer["verdict"]) == (0, "unknown-would-be-accepted")
    assert (answer["record"], answer["next_visit"], answer["running"]) == (None, None, True)


def test_an_invalid_url_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "two words")
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == "'two words' is not a URL"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("http://a.test:6379/", "on a page of a.test at the same port: port 6379 is not a usual port"),
        ("http://a.test:25/", "refused: port 25 does not belong to web servers"),
    ],
)
def test_a_link_to_another_port_would_not_be_accepted(given: str, words: str) -> None:
    answer = explain_url(given, url_given(given, FORM.in_full), replace(FACTS, record=None), now=NOW)
    assert answer.verdict is UrlVerdict.REFUSED and words in answer.sentence
    web = url_given("http://a.test:8080/", FORM.in_full)
    assert explain_url(web.text, web, replace(FACTS, record=None), now=NOW).verdict is (UrlVerdict.ACCEPTED)


@pytest.mark.parametrize(
    ("requests", "answers", "errors", "expected"),
    [
        (0, 0, {}, "never requested"),
        (1, 1, {}, "requested once, always answered"),
        (7, 0, {"connect": 2, "dns": 5}, "requested 7 times, no answer (dns 5, connect 2)"),
        (7, 6, {"dns": 1}, "requested 7 times, answered 6 times (dns 1)"),
    ],
)
def test_whether_the_site_answers(requests: int, answers: int, errors: dict[str, int], expected: str) -> None:
    history = UrlHistory(domain_requests=requests, domain_answers=answers, domain_errors=errors)
    explanation = explained(history=history)
    assert f"site          {expected}" in as_lines(explanation)
    record = as_json(explanation)
    assert (record["domain_requests"], record["domain_answers"], record["domain_errors"]) == (requests, answers, errors)
