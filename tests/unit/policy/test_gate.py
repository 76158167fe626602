"""What may enter the frontier and what may be requested: exclusions, scope and robots.txt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rove.config import Settings
from rove.errors import UsageError
from rove.frontier.priority import FOREIGN
from rove.model.languages import Language
from rove.model.reasons import BlockReason
from rove.model.urls import NewUrl, NotAccepted
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.exclusions import Exclusions, parse_exclusions
from rove.policy.file_types import file_types_with
from rove.policy.gate import Allowed, Blocked, Gate, Held, NeedsRobots, Refusal, Verdict
from rove.policy.languages import OTHER_LANGUAGE
from rove.policy.rules import RuledOut, Rules
from rove.urls.canonical import CrawlUrl
from tests.unit.crawl.scripted import crawl_url

EXCLUDED = ["example.org", "www.only.test", "192.0.2.1", "[2001:db8::1]", "gov", "4"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.org", True),
        ("www.example.org", True),
        ("a.b.c.example.org", True),
        ("notexample.org", False),
        ("www.notexample.org", False),
        ("example.org.evil.test", False),
        ("example.com", False),
        ("org", False),
        ("www.only.test", True),
        ("a.www.only.test", True),
        ("only.test", False),
        ("mail.only.test", False),
        ("agency.gov", True),
        ("notgov", False),
        ("192.0.2.1", True),
        ("192.0.2.11", False),
        ("1.192.0.2", False),
        ("1.2.3.4", False),
        ("[2001:db8::1]", True),
        ("[2001:db8::2]", False),
    ],
)
def test_an_exclusion_covers_a_host_and_its_subdomains(host: str, expected: bool) -> None:
    assert Exclusions(EXCLUDED).covers(host) is expected


def test_no_exclusions_cover_nothing() -> None:
    assert not Exclusions().covers("example.org")


@pytest.mark.parametrize(
    ("depth", "hops", "max_depth", "expected"),
    [
        (0, 0, None, None),
        (1_000_000, 0, None, None),
        (0, 0, 0, None),
        (1, 0, 0, NotAccepted.TOO_DEEP),
        (3, 0, 3, None),
        (4, 0, 3, NotAccepted.TOO_DEEP),
        (0, 20, None, None),
        (0, 21, None, NotAccepted.REDIRECTS),
        (4, 21, 3, NotAccepted.TOO_DEEP),
    ],
)
def test_what_may_enter_the_frontier(
    depth: int, hops: int, max_depth: int | None, expected: NotAccepted | None
) -> None:
    gate = Gate(Exclusions(["excluded.test"]), max_depth=max_depth)
    assert gate.refuses(crawl_url("http://a.test/"), depth=depth, hops=hops) is expected
    refusal = gate.refuses(crawl_url("http://www.excluded.test/"), depth=depth, hops=hops)
    assert refusal is NotAccepted.EXCLUDED


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", 0),
        ("/list?sort=price", 1),
        ("/x/x/x", 4),
        ("/a/b/a/b/a/b", NotAccepted.TRAP),
        ("/calendar/2031/05", 6),
        ("/calendar/2036/05", NotAccepted.TRAP),
    ],
)
def test_what_looks_like_a_trap_is_held_back(path: str, expected: int | NotAccepted) -> None:
    gate = Gate(Exclusions(["excluded.test"]), max_depth=3, year=2026)
    assert gate.admits(crawl_url(f"http://a.test{path}"), depth=3) == expected
    assert gate.refuses(crawl_url(f"http://a.test{path}"), depth=0) is None, "as a seed it is taken"
    deep = gate.admits(crawl_url(f"http://a.test{path}"), depth=4)
    excluded = gate.admits(crawl_url(f"http://excluded.test{path}"), depth=0)
    assert (deep, excluded) == (NotAccepted.TOO_DEEP, NotAccepted.EXCLUDED)


def test_a_link_to_a_file_without_text_is_not_taken() -> None:
    picture, page = crawl_url("http://a.test/a.jpg?w=8"), crawl_url("http://a.test/a.html")
    gate = Gate(Exclusions(["excluded.test"]))
    assert gate.admits(picture, depth=1) is NotAccepted.FILE_TYPE
    assert gate.admits(picture, depth=1, any_file=True) == 0
    assert gate.admits(page, depth=1) == 0
    assert gate.refuses(picture, depth=0) is None, "as a seed it is taken"
    assert gate.admits(crawl_url("http://excluded.test/a.jpg"), depth=1) is NotAccepted.EXCLUDED
    own = Gate(Exclusions(), file_types=file_types_with(("html",), built_in=False))
    assert (own.admits(picture, depth=1), own.admits(page, depth=1)) == (0, NotAccepted.FILE_TYPE)


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ([Language("deu", 99)], {"/x": 0, "/list?sort=price": 1 + OTHER_LANGUAGE}),
        ([Language("eng", 99)], {"/x": OTHER_LANGUAGE, "/list?sort=price": 1 + OTHER_LANGUAGE}),
        ([], {"/x": OTHER_LANGUAGE, "/list?sort=price": 1 + OTHER_LANGUAGE}),
    ],
    ids=["preferred", "other", "unknown"],
)
@pytest.mark.parametrize("preferred", [("deu", "fra"), ()])
def test_links_of_pages_in_other_languages_and_possible_traps_wait_behind(
    languages: list[Language], expected: dict[str, int], preferred: tuple[str, ...]
) -> None:
    gate = Gate(Exclusions(), languages=preferred, year=2026)
    source = crawl_url("http://a.test/")
    refused: list[tuple[Refusal, CrawlUrl]] = []
    links = [crawl_url(f"http://a.test{path}") for path in expected]
    offers = gate.admitted(
        links, depth=1, source=source, own_domains=(source.domain,), refused=refused, languages=languages
    )
    assert [offer.penalty for offer in offers] == (list(expected.values()) if preferred else [0, 1])
    assert not refused and OTHER_LANGUAGE + 1_000 < FOREIGN


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_the_links_of_a_page_are_admitted_as_each_of_them_is(depth: int) -> None:
    gate = Gate(Exclusions(["excluded.test"]), max_depth=3, year=2026)
    source = crawl_url("http://a.test:9999/from")
    texts = [
        *(f"http://{host}/{path}" for host in ("a.test", "b.test", "excluded.test") for path in "xy"),
        *("http://a.test:9999/x", "http://b.test:9999/x", "http://b.test:9999/y"),
        *("http://b.test/list?sort=price", "http://b.test/a/b/a/b/a/b", "http://b.test/x/x/x"),
        *("http://b.test/a.pdf", "http://b.test/a/b/a/b/a/b.jpg", "http://excluded.test/x.jpg"),
    ]
    links = [crawl_url(text) for text in texts]
    one_by_one = [gate.admits(link, depth=depth, source=source) for link in links]
    refused: list[tuple[Refusal, CrawlUrl]] = []
    offers = gate.admitted(links, depth=depth, source=source, own_domains=(source.domain,), refused=refused)
    assert offers == [
        link.new_url(depth=depth, penalty=answer, is_foreign=link.host != "a.test")
        for link, answer in zip(links, one_by_one, strict=True)
        if isinstance(answer, int)
    ]
    assert all(isinstance(offer, NewUrl) for offer in offers)
    refusals = zip(one_by_one, links, strict=True)
    assert refused == [(answer, link) for answer, link in refusals if isinstance(answer, NotAccepted)]


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("http://b.test/", "http://a.test/", None),
        ("http://b.test:8080/", "http://a.test/", None),
        ("https://b.test:80/", "http://a.test/", None),
        ("http://b.test:6379/", "http://a.test/", NotAccepted.PORT),
        ("http://b.test:22/", "http://a.test/", NotAccepted.PORT),
        ("http://a.test:9999/", "http://a.test/", NotAccepted.PORT),
        ("http://a.test:9999/x", "http://a.test:9999/", None),
        ("https://a.test:9999/x", "http://a.test:9999/", None),
        ("http://www.a.test:9999/", "http://a.test:9999/", NotAccepted.PORT),
        ("http://a.test:9998/", "http://a.test:9999/", NotAccepted.PORT),
        ("http://a.test/", "http://a.test:9999/", None),
        ("http://[2606:4700::1111]/", "http://a.test/", None),
        ("http://[2606:4700::1111]:9999/", "http://a.test/", NotAccepted.PORT),
        ("http://[2606:4700::1111]:9999/x", "http://[2606:4700::1111]:9999/", None),
    ],
)
def test_a_link_leads_to_a_port_of_the_web_or_stays_where_it_is(
    target: str, source: str, expected: NotAccepted | None
) -> None:
    gate = Gate(Exclusions(["excluded.test"]))
    url = crawl_url(target)
    assert gate.refuses(url, depth=1, source=crawl_url(source)) is expected
    assert gate.refuses(url, depth=0) is None, "a seed names what it names"
    assert gate.may_lead(url, crawl_url(source)) is (expected is None)
    assert not gate.may_lead(crawl_url("http://excluded.test/"), crawl_url(source))


def rules_of(**rules: Any) -> Rules:
    return Settings(email="me@crawler.test", **rules).with_numbers().rules


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_rules_decide_last_about_links(depth: int) -> None:
    rules = rules_of(
        accept=('domain in ("a.test", "b.test")',), reject=('path ~ "^/(x|tag)"', 'same_domain and path == "/own"')
    )
    gate = Gate(Exclusions(["excluded.test"]), max_depth=3, year=2026, rules=rules)
    source = crawl_url("http://www.a.test/from")
    paths = ("", "x", "tag/y", "own", "a.jpg", "a/b/a/b/a/b")
    links = [crawl_url(f"http://{host}/{path}") for host in HOSTS for path in paths]
    one_by_one = [gate.admits(link, depth=depth, source=source) for link in links]
    refused: list[tuple[Refusal, CrawlUrl]] = []
    taken = gate.admitted(links, depth=depth, source=source, own_domains=(source.domain,), refused=refused)
    answers = zip(one_by_one, links, strict=True)
    assert refused == [(answer, link) for answer, link in answers if not isinstance(answer, int)]
    assert [link.url for link in taken] == [
        link.text for link, answer in zip(links, one_by_one, strict=True) if isinstance(answer, int)
    ]
    counts = Counter(answer.counter if isinstance(answer, RuledOut) else answer.value for answer, _ in refused)
    if depth < 4:
        assert counts == {"excluded": 6, "file-type": 4, "trap": 4, "rule-1": 4, "rule-2": 6, "rule-3": 2}
    else:
        assert counts == {"excluded": 6, "too-deep": 24}


HOSTS = ("a.test", "www.a.test", "b.test", "c.test", "excluded.test")


def test_rules_decide_about_seeds_and_urls_of_the_frontier_and_not_about_sitemaps() -> None:
    gate = Gate(Exclusions(["x.test"]), rules=rules_of(accept=("same_host",), reject=('path ~ "/tag/"', "seed")))
    tag, page = crawl_url("http://a.test/tag/1"), crawl_url("http://a.test/1")
    record = origin(NONE)
    assert gate.rejects_seed(tag) == RuledOut((2,), 'path ~ "/tag/"')
    assert gate.rejects_seed(page) == RuledOut((3,), "seed")
    assert gate.admits(tag, depth=1, source=page, is_sitemap=True) == 0
    reason = 'rejected by rule 2: path ~ "/tag/"'
    assert gate.judge(tag, record, depth=1) == gate.judge(tag, None, depth=1) == Blocked(reason)
    assert gate.judge(page, record, depth=1) == Allowed(), "nobody knows which host led to it"
    assert gate.judge(page, record, depth=0) == Blocked("rejected by rule 3: seed")
    assert gate.judge(tag, record) == Allowed(), "it is no page"
    assert gate.judge(crawl_url("http://x.test/tag/"), record, depth=1) == Blocked(BlockReason.EXCLUDED)


def origin(status: RobotsStatus, *, body: bytes = b"", failures: int = 0, valid_for: float = 100.0) -> OriginRecord:
    url = crawl_url("http://a.test/")
    return OriginRecord(
        domain=url.domain, origin=url.origin, status=status, body=body, failures=failures, valid_for=valid_for
    )


RULES, NONE, UNREACHABLE = RobotsStatus.RULES, RobotsStatus.NONE, RobotsStatus.UNREACHABLE
PRIVATE = b"User-agent: *\nDisallow: /private\n"
OURS = b"User-agent: rove\nDisallow: /page\n\nUser-agent: *\nDisallow: /private\n"


@pytest.mark.parametrize(
    ("path", "record", "expected"),
    [
        ("/page", None, NeedsRobots()),
        ("/page", origin(NONE), Allowed()),
        ("/page", origin(NONE, valid_for=0.001), Allowed()),
        ("/page", origin(NONE, valid_for=0.0), NeedsRobots()),
        ("/page", origin(NONE, valid_for=-5.0), NeedsRobots()),
        ("/page", origin(RULES), Allowed()),
        ("/page", origin(RULES, body=PRIVATE), Allowed()),
        ("/private", origin(RULES, body=PRIVATE), Blocked(BlockReason.ROBOTS)),
        ("/private/x?y", origin(RULES, body=PRIVATE), Blocked(BlockReason.ROBOTS)),
        ("/robots.txt", origin(RULES, body=b"User-agent: *\nDisallow: /"), Allowed()),
        ("/page", origin(RULES, body=OURS), Blocked(BlockReason.ROBOTS)),
        ("/private", origin(RULES, body=OURS), Allowed()),
        ("/private", origin(RULES, body=PRIVATE, valid_for=0.0), NeedsRobots()),
        ("/page", origin(UNREACHABLE, failures=1, valid_for=9.5), Held(9.5, failing=False)),
        ("/page", origin(UNREACHABLE, failures=2), Held(100.0, failing=False)),
        ("/page", origin(UNREACHABLE, failures=3), Held(100.0, failing=True)),
        ("/page", origin(UNREACHABLE, failures=7, valid_for=0.0), NeedsRobots()),
        ("/page", origin(UNREACHABLE, failures=7, valid_for=-1.0), NeedsRobots()),
    ],
)
def test_the_verdict(path: str, record: OriginRecord | None, expected: Verdict) -> None:
    assert Gate(Exclusions()).judge(crawl_url(f"http://a.test{path}"), record) == expected


@pytest.mark.parametrize(
    "record", [None, origin(NONE), origin(RULES), origin(UNREACHABLE), origin(NONE, valid_for=0.0)]
)
def test_an_excluded_host_is_blocked_whatever_its_robots_txt_says(record: OriginRecord | None) -> None:
    gate = Gate(Exclusions(["a.test"]))
    assert gate.judge(crawl_url("http://www.a.test/"), record) == Blocked(BlockReason.EXCLUDED)


def test_exclusions_may_be_replaced() -> None:
    gate, url = Gate(Exclusions()), crawl_url("http://a.test/")
    assert gate.refuses(url, depth=0) is None
    gate.exclusions = Exclusions(["a.test"])
    assert gate.refuses(url, depth=0) is NotAccepted.EXCLUDED
    assert gate.judge(url, origin(NONE)) == Blocked(BlockReason.EXCLUDED)
    gate.exclusions = Exclusions()
    assert gate.judge(url, origin(NONE)) == Allowed()


TOO_LONG = Blocked(BlockReason.CRAWL_DELAY)
DAY = 86_400.0


@pytest.mark.parametrize(
    ("own", "of_domain", "expected"),
    [
        (0.0, 0.0, Allowed()),
        (DAY, 0.0, Allowed()),
        (0.0, DAY, Allowed()),
        (DAY + 0.1, 0.0, TOO_LONG),
        (0.0, DAY + 0.1, TOO_LONG),
        (5.0, 10 * DAY, TOO_LONG),
    ],
)
@pytest.mark.parametrize("status", [NONE, RULES])
def test_a_crawl_delay_over_a_day_blocks(status: RobotsStatus, own: float, of_domain: float, expected: Verdict) -> None:
    record = origin(status).replace(crawl_delay=own)
    url = crawl_url("http://a.test/page")
    assert Gate(Exclusions()).judge(url, record, crawl_delay=of_domain) == expected


def test_a_crawl_delay_over_a_day_may_have_changed_when_robots_txt_has_run_out() -> None:
    record = origin(RULES, valid_for=0.0).replace(crawl_delay=10 * DAY)
    gate, url = Gate(Exclusions()), crawl_url("http://a.test/")
    assert gate.judge(url, record, crawl_delay=10 * DAY) == NeedsRobots()
    assert gate.judge(url, None, crawl_delay=10 * DAY) == Blocked(BlockReason.CRAWL_DELAY)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("example.org", "example.org"),
        ("Example.ORG", "example.org"),
        ("  example.org  ", "example.org"),
        ("example.org # not this one", "example.org"),
        ("example.org#x", "example.org"),
        ("example.org.", "example.org"),
        ("*.example.org", "example.org"),
        ("\ufeffexample.org", "example.org"),
        ("münchen.test", "xn--mnchen-3ya.test"),
        ("https://www.example.org/path", "www.example.org"),
        ("http://example.org:8080/", "example.org"),
        ("com", "com"),
        ("192.0.2.1", "192.0.2.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://[::1]/", "[::1]"),
        ("[::1]", "[::1]"),
    ],
)
def test_a_line_of_an_exclusion_file(line: str, expected: str) -> None:
    assert parse_exclusions([line], "file") == [expected]


def test_comments_and_blank_lines_exclude_nothing() -> None:
    lines = ["# comment\n", "\n", "  \t\n", "a.test\r\n", "#b.test\n", "c.test\n"]
    assert parse_exclusions(lines, "file") == ["a.test", "c.test"]


@pytest.mark.parametrize("line", ["two words", "http://", "a|b", "ftp://a.test", "[::1", "a<b>"])
def test_a_bad_line_is_an_error_that_names_it(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exclusions(["a.test", "# comment", line], "list.txt")
    assert "list.txt, line 3" in str(caught.value)
    assert repr(line) in str(caught.value)
