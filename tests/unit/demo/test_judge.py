"""The judge accepts the log of a polite crawl and finds every kind of violation."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rove.demo.log import LoggedRequest, LogKind
from rove.demo.profile import CALM, FULL, EntryKind, Profile, RobotsKind, SiteShape
from rove.demo.web import STALL_SECONDS, SmallWeb
from rove.urls.canonical import CrawlUrl, parse_base
from tests.judge import LoggedVisit, LogVerdict, Rule, judge
from tests.oracle import all_hosts, allowed, crawl_delay
from tests.urls import canonical

DELAY = 10.0
TIDY = replace(CALM, entries={EntryKind.PAGE: 1}, robots={RobotsKind.PRIVATE: 1}, shapes={SiteShape.BARE_AND_BLOG: 1})
WEB = SmallWeb(1, 5, TIDY)
HOST = WEB.host_name(0)
BLOG = f"blog.{HOST}"
OTHER = WEB.host_name(1)


def logged(
    start: float,
    path: str,
    *,
    host: str = HOST,
    took: float = 0.1,
    status: int = 200,
    to: str = "",
    complete: bool = True,
) -> LoggedRequest:
    return LoggedRequest(
        start=start, end=start + took, host=host, path=path, status=status, agent="rove", location=to, complete=complete
    )


def broken_rules(*requests: LoggedRequest, delay: float = DELAY, **options: float) -> list[Rule]:
    verdict = judge(WEB, requests, delay, **options)  # type: ignore[arg-type]
    return [violation.broken for violation in verdict.violations]


def visits_in(requests: list[LoggedRequest], pause: float = math.inf) -> tuple[LoggedVisit, ...]:
    return judge(WEB, requests, pause).visits


RULES = logged(0.0, "/robots.txt")


class PoliteCrawler:
    """Crawls a web without sockets and with its own clock, and writes the log of the server."""

    def __init__(self, web: SmallWeb, delay: float) -> None:
        self.web = web
        self.delay = delay
        self.log: list[LoggedRequest] = []
        self.clock: dict[str, float] = defaultdict(float)
        self.rules: set[str] = set()
        self.done: set[str] = set()

    def crawl_domain(self, index: int) -> None:
        bare_host = self.web.plan.bare_host(index)
        hosts = [self.web.plan.sibling(bare_host, label) for label in bare_host.siblings]
        entries = [(h, self.web.plan.entry(h, position)) for h in hosts for position in range(h.entries)]
        for host, entry in entries:
            url = canonical(f"http://{host.name}{entry.path}")
            assert url is not None
            self.visit(url)

    def visit(self, url: CrawlUrl) -> None:
        for hop in range(4):
            if url.text in self.done:
                break
            self.learn_rules(url)
            path = url.text.removeprefix(url.origin)
            if not allowed(self.web, url.host, path):
                break
            response = self.ask(url, path)
            self.done.add(url.text)
            if not response.location or hop == 3:
                break
            target = canonical(response.location, parse_base(url.text))
            assert target is not None
            if target.domain != url.domain:
                break
            url = target
        known = [host for host in self.rules if host.endswith(url.domain_name)]
        required = max((crawl_delay(self.web, host) for host in known), default=0.0)
        self.clock[url.domain_name] += max(self.delay, required)

    def learn_rules(self, url: CrawlUrl) -> None:
        if url.host not in self.rules:
            self.rules.add(url.host)
            response = self.ask(url, "/robots.txt")
            if response.location:
                self.ask(url, response.location)

    def ask(self, url: CrawlUrl, path: str) -> LoggedRequest:
        response = self.web.respond(url.host, path)
        start = self.clock[url.domain_name] + 0.01
        entry = LoggedRequest(
            start=start,
            end=start + min(response.delay, 5.0),
            host=url.host,
            path=path,
            status=0 if response.delay == STALL_SECONDS else response.status,
            location=response.location,
            complete=response.delay < STALL_SECONDS and response.cut_after is None,
        )
        self.clock[url.domain_name] = entry.end
        self.log.append(entry)
        return entry


@pytest.mark.parametrize("profile", [CALM, FULL], ids=["calm", "full"])
def test_a_polite_crawl_has_no_violations(profile: Profile) -> None:
    web = SmallWeb(6, 40, replace(profile, crawl_delay=25.0, page_bytes=(9, 9)))
    crawler = PoliteCrawler(web, DELAY)
    for index in range(web.hosts):
        crawler.crawl_domain(index)
    verdict = judge(web, reversed(crawler.log), DELAY)
    assert verdict.polite, str(verdict)
    assert verdict.requests == len(crawler.log)
    assert (verdict.domains, verdict.refetches) == (40, 0)
    assert verdict.hosts == len(list(all_hosts(web)))
    assert verdict.smallest_margin == pytest.approx(0.01)
    assert len(verdict.visits) > 100
    assert "0 violations" in str(verdict)
    # The same crawl violates a longer delay, and a Crawl-delay that it ignores.
    assert {v.broken for v in judge(web, crawler.log, DELAY + 1).violations} == {Rule.TOO_SOON}
    slower = SmallWeb(6, 40, replace(profile, crawl_delay=26.0, page_bytes=(9, 9)))
    assert {v.broken for v in judge(slower, crawler.log, DELAY).violations} == {Rule.TOO_SOON}


def test_an_empty_log_has_no_violations() -> None:
    verdict = judge(WEB, [], DELAY)
    assert verdict == LogVerdict(
        violations=(), requests=0, visits=(), domains=0, hosts=0, refetches=0, smallest_margin=math.inf
    )


def test_bytes_that_are_not_http_are_not_requests() -> None:
    rubbish = LoggedRequest(kind=LogKind.NOT_HTTP, start=0.05, end=0.06)
    assert judge(WEB, [RULES, rubbish], DELAY).requests == 1


def test_a_visit_too_soon() -> None:
    first = logged(0.2, "/")
    assert broken_rules(RULES, first, logged(10.31, "/a")) == []
    assert broken_rules(RULES, first, logged(10.29, "/a")) == [Rule.TOO_SOON]
    assert broken_rules(RULES, first, logged(10.29, "/a"), tolerance=0.02) == []
    verdict = judge(WEB, [RULES, first, logged(5.3, "/a"), logged(30.0, "/b")], DELAY)
    assert verdict.smallest_margin == pytest.approx(-5.0)
    assert verdict.violations[0].evidence == (first, logged(5.3, "/a"))
    assert "5.000 s after the last visit, 10 s required" in str(verdict)
    assert f"http://{HOST}/a" in str(verdict)


def test_the_delay_counts_from_the_end_of_the_last_request() -> None:
    slow = logged(0.2, "/", took=5.0)
    assert broken_rules(RULES, slow, logged(11.0, "/a")) == [Rule.TOO_SOON]
    assert broken_rules(RULES, slow, logged(15.3, "/a")) == []


def test_hosts_of_one_domain_share_the_delay_and_other_domains_do_not() -> None:
    blog = logged(1.0, "/robots.txt", host=BLOG)
    assert broken_rules(RULES, logged(0.2, "/"), blog) == [Rule.TOO_SOON]
    assert broken_rules(RULES, logged(0.2, "/"), replace(blog, host=OTHER)) == []


def test_a_crawl_delay_counts_once_it_was_served() -> None:
    web = SmallWeb(1, 1, replace(TIDY, robots={RobotsKind.DELAYED: 1}, crawl_delay=20.0))
    rules, page, later = RULES, logged(0.2, "/"), logged(15.0, "/a")
    own = [replace(request, host=web.host_name(0)) for request in (rules, page, later)]
    (violation,) = judge(web, own, DELAY).violations
    assert violation.broken is Rule.TOO_SOON
    assert "20 s required" in violation.detail
    assert judge(web, [*own[:2], replace(own[2], start=21.0, end=21.1)], DELAY).polite
    # An incomplete robots.txt does not count.
    unheard = replace(own[0], complete=False)
    again = replace(own[0], start=15.0, end=15.1)
    assert judge(web, [unheard, again], DELAY).polite


def test_a_crawl_delay_that_was_served_just_before_a_kill_counts_once_a_page_was_requested() -> None:
    web = SmallWeb(1, 1, replace(TIDY, robots={RobotsKind.DELAYED: 1}, crawl_delay=20.0))
    host = web.host_name(0)
    robots = logged(0.0, "/robots.txt", host=host)
    unread = [robots, logged(robots.end + DELAY, "/robots.txt", host=host)]
    assert judge(web, unread, DELAY).violations
    assert judge(web, unread, DELAY, killed_at=[robots.end + 2.0]).violations, "there was time to read it"
    assert judge(web, unread, DELAY, killed_at=[robots.end + 0.5]).polite
    page = logged(1.0, "/", host=host)
    read = [robots, page, logged(page.end + DELAY, "/a", host=host)]
    verdict = judge(web, read, DELAY, killed_at=[robots.end + 0.5])
    assert Rule.TOO_SOON in [violation.broken for violation in verdict.violations]


def test_a_forbidden_path() -> None:
    assert broken_rules(RULES, logged(0.2, "/private/x")) == [Rule.FORBIDDEN]
    assert broken_rules(RULES, logged(0.2, "/%70rivate/x")) == [Rule.FORBIDDEN]


def test_a_page_before_robots_txt() -> None:
    assert broken_rules(logged(0.0, "/")) == [Rule.RULES_UNKNOWN]
    assert broken_rules(logged(0.0, "/"), logged(20.0, "/robots.txt")) == [Rule.RULES_UNKNOWN]
    assert broken_rules(RULES, logged(20.0, "/", host=BLOG)) == [Rule.RULES_UNKNOWN]
    assert broken_rules(replace(RULES, complete=False), logged(0.3, "/")) == [Rule.RULES_UNKNOWN]
    moved = replace(RULES, status=301, location="/robots2.txt")
    assert broken_rules(moved, logged(0.2, "/")) == [Rule.RULES_UNKNOWN]
    assert broken_rules(moved, logged(0.2, "/robots2.txt"), logged(0.4, "/")) == []
    assert broken_rules(replace(RULES, status=404), logged(0.2, "/")) == []


def test_a_repeated_url() -> None:
    page, again = logged(0.2, "/a"), logged(20.0, "/a")
    assert broken_rules(RULES, page, again) == [Rule.REPEATED]
    assert broken_rules(RULES, page, replace(again, path="/%61")) == [Rule.REPEATED]
    assert broken_rules(RULES, replace(page, status=404), again) == [Rule.REPEATED]
    assert broken_rules(RULES, replace(page, status=503), again) == []
    assert broken_rules(RULES, replace(page, complete=False), again) == []
    assert broken_rules(RULES, page, logged(20.0, "/robots.txt")) == []
    assert broken_rules(RULES, page, again, logged(40.0, "/a"), allowed_refetches=2) == []
    three = broken_rules(RULES, page, again, logged(40.0, "/a"), allowed_refetches=1)
    assert three == [Rule.REPEATED, Rule.REPEATED]
    assert judge(WEB, [RULES, page, again], DELAY, allowed_refetches=1).refetches == 1


def test_overlapping_requests() -> None:
    assert broken_rules(RULES, logged(0.05, "/")) == [Rule.OVERLAP, Rule.RULES_UNKNOWN]
    assert broken_rules(RULES, logged(0.2, "/", took=30.0), logged(20.0, "/a")) == [Rule.OVERLAP]
    # A short request during a long one does not hide a third.
    log = [RULES, logged(0.2, "/", took=30.0), logged(1.0, "/a"), logged(20.0, "/b")]
    assert broken_rules(*log) == [Rule.OVERLAP, Rule.OVERLAP]


def test_a_cancelled_request_may_have_ended_before_the_server_noticed() -> None:
    given_up = logged(0.2, "/", took=5.05, status=0, complete=False)
    assert broken_rules(RULES, given_up, logged(15.2, "/a")) == []
    assert broken_rules(RULES, given_up, logged(15.2, "/a"), cut_slack=0.0) == [Rule.TOO_SOON]
    assert broken_rules(RULES, logged(0.2, "/", took=5.05), logged(15.2, "/a")) == [Rule.TOO_SOON]


def hops(count: int) -> Iterator[LoggedRequest]:
    """A chain of redirects that is followed at once."""
    for hop in range(count):
        yield logged(0.2 + hop * 0.2, f"/go/{hop}", status=302, to=f"{hop + 1}")


def test_redirects_belong_to_the_visit() -> None:
    end = logged(5.0, "/go/3")
    (visit,) = visits_in([RULES, *hops(3), end])
    assert (visit.pages, visit.hops, len(visit.requests)) == (1, 3, 5)
    assert broken_rules(RULES, *hops(3), end) == []
    assert broken_rules(RULES, *hops(4), logged(5.0, "/go/4")) == [Rule.LARGE_VISIT]
    # A request after the delay is another visit, even if a redirect led there.
    assert broken_rules(RULES, *hops(4), logged(11.0, "/go/4")) == []
    assert len(visits_in([RULES, *hops(4), logged(11.0, "/go/4")], pause=DELAY)) == 2
    assert broken_rules(RULES, *hops(3), logged(5.0, "/elsewhere")) == [Rule.TOO_SOON]


def test_a_redirect_to_another_host_of_the_domain_may_fetch_its_robots_txt() -> None:
    across = logged(0.2, "/go", status=301, to=f"//{BLOG}/here")
    rules = logged(0.4, "/robots.txt", host=BLOG)
    moved = replace(rules, status=301, location="/robots2.txt")
    assert broken_rules(RULES, across, rules, logged(0.6, "/here", host=BLOG)) == []
    hop = [moved, logged(0.6, "/robots2.txt", host=BLOG), logged(0.8, "/here", host=BLOG)]
    (visit,) = visits_in([RULES, across, *hop])
    assert (visit.pages, visit.hops) == (1, 1)
    assert broken_rules(RULES, across, *hop) == []
    # Without the redirect, another robots.txt is another visit. With it, another page is one too many.
    assert broken_rules(RULES, logged(0.2, "/go"), rules) == [Rule.TOO_SOON]
    assert broken_rules(RULES, across, logged(0.4, "/robots.txt")) == [Rule.TOO_SOON]
    within = replace(across, location="/here")
    assert broken_rules(RULES, within, logged(0.4, "/robots.txt")) == [Rule.TOO_SOON]
    assert broken_rules(RULES, across, rules, logged(0.6, "/there", host=BLOG)) == [Rule.LARGE_VISIT]


def test_a_visit_of_too_many_requests() -> None:
    across = [RULES]
    hosts = [HOST, BLOG]
    for turn in range(4):
        here, there = hosts[turn % 2], hosts[(turn + 1) % 2]
        start = 0.2 + turn * 0.4
        across.append(logged(start, f"/{turn}", host=here, status=302, to=f"//{there}/{turn + 1}"))
        across.append(logged(start + 0.2, "/robots.txt", host=there))
    assert len(across) == 9
    assert len(visits_in(across)) == 1
    assert broken_rules(*across) == [Rule.LARGE_VISIT]
    assert broken_rules(*across[:8]) == []


def test_robots_txt_and_its_page_are_one_visit() -> None:
    assert len(visits_in([RULES, logged(0.2, "/")])) == 1
    assert len(visits_in([RULES, logged(0.2, "/"), logged(0.4, "/a")])) == 2
    assert len(visits_in([RULES, logged(0.2, "/robots.txt")])) == 2
    assert len(visits_in([RULES, logged(0.2, "/", host=BLOG)])) == 2
    assert [visit.domain for visit in visits_in([RULES, logged(9.0, "/", host=OTHER)])] == [HOST, OTHER]
    assert visits_in([]) == ()
