"""The judge of a crawler's manners: it passes a clean log and finds each kind of breach."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rove.demo.log import (
    LoggedRequest,
    LogKind,
    LogVerdict,
    Manners,
    decode,
    encode,
    judge,
    read_log,
    visits,
)
from rove.demo.profile import CALM, FULL, EntryKind, Profile, RobotsKind, SiteShape
from rove.demo.web import STALL_SECONDS, SmallWeb
from rove.urls.canonical import CrawlUrl, canonical, parse_base

DELAY = 10.0
TIDY = replace(
    CALM,
    entries={EntryKind.PAGE: 1},
    robots={RobotsKind.PRIVATE: 1},
    shapes={SiteShape.BARE_AND_BLOG: 1},
)
WEB = SmallWeb(1, 5, TIDY)
HOST = WEB.host_name(0)
BLOG = f"blog.{HOST}"
OTHER = WEB.host_name(1)


def asked(
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
        start=start,
        end=start + took,
        host=host,
        path=path,
        status=status,
        agent="rove",
        location=to,
        complete=complete,
    )


def found(*requests: LoggedRequest, delay: float = DELAY, **options: float) -> list[Manners]:
    verdict = judge(WEB, requests, delay, **options)  # type: ignore[arg-type]
    return [violation.broken for violation in verdict.violations]


RULES = asked(0.0, "/robots.txt")


class PoliteCrawler:
    """Crawls a web without sockets, by a clock of its own, and writes what a server would log."""

    def __init__(self, web: SmallWeb, delay: float) -> None:
        self.web = web
        self.delay = delay
        self.log: list[LoggedRequest] = []
        self.clock: dict[str, float] = defaultdict(float)
        self.rules: set[str] = set()
        self.done: set[str] = set()

    def crawl_domain(self, index: int) -> None:
        assume_https = self.web.plan.bare_host(index)
        hosts = [self.web.plan.sibling(assume_https, label) for label in assume_https.siblings]
        entries = [(h, self.web.plan.entry(h, place)) for h in hosts for place in range(h.places)]
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
            if not self.web.allowed(url.host, path):
                break
            answer = self.ask(url, path)
            self.done.add(url.text)
            if not answer.location or hop == 3:
                break
            target = canonical(answer.location, parse_base(url.text))
            assert target is not None
            if target.domain != url.domain:
                break
            url = target
        known = [host for host in self.rules if host.endswith(url.domain_name)]
        asked_for = max((self.web.crawl_delay(host) for host in known), default=0.0)
        self.clock[url.domain_name] += max(self.delay, asked_for)

    def learn_rules(self, url: CrawlUrl) -> None:
        if url.host not in self.rules:
            self.rules.add(url.host)
            answer = self.ask(url, "/robots.txt")
            if answer.location:
                self.ask(url, answer.location)

    def ask(self, url: CrawlUrl, path: str) -> LoggedRequest:
        answer = self.web.answer(url.host, path)
        start = self.clock[url.domain_name] + 0.01
        entry = LoggedRequest(
            start=start,
            end=start + min(answer.delay, 5.0),
            host=url.host,
            path=path,
            status=0 if answer.delay == STALL_SECONDS else answer.status,
            location=answer.location,
            complete=answer.delay < STALL_SECONDS and answer.cut_after is None,
        )
        self.clock[url.domain_name] = entry.end
        self.log.append(entry)
        return entry


@pytest.mark.parametrize("profile", [CALM, FULL], ids=["calm", "full"])
def test_a_polite_crawl_is_found_polite(profile: Profile) -> None:
    web = SmallWeb(6, 40, replace(profile, crawl_delay=25.0, page_bytes=(9, 9)))
    crawler = PoliteCrawler(web, DELAY)
    for index in range(web.hosts):
        crawler.crawl_domain(index)
    verdict = judge(web, reversed(crawler.log), DELAY)
    assert verdict.polite, str(verdict)
    assert verdict.requests == len(crawler.log)
    assert (verdict.domains, verdict.refetches) == (40, 0)
    assert verdict.hosts == len(list(web.all_hosts()))
    assert verdict.smallest_margin == pytest.approx(0.01)
    assert verdict.visits > 100
    assert "0 violations" in str(verdict)
    # The same crawl is too fast for a longer delay, and for the Crawl-delay it then ignores.
    assert {v.broken for v in judge(web, crawler.log, DELAY + 1).violations} == {Manners.TOO_SOON}
    slower = SmallWeb(6, 40, replace(profile, crawl_delay=26.0, page_bytes=(9, 9)))
    assert {v.broken for v in judge(slower, crawler.log, DELAY).violations} == {Manners.TOO_SOON}


def test_an_empty_log_shows_nothing() -> None:
    verdict = judge(WEB, [], DELAY)
    assert verdict == LogVerdict(
        violations=(),
        requests=0,
        visits=0,
        domains=0,
        hosts=0,
        refetches=0,
        smallest_margin=math.inf,
    )


def test_rubbish_is_no_request() -> None:
    rubbish = LoggedRequest(kind=LogKind.RUBBISH, start=0.05, end=0.06)
    assert judge(WEB, [RULES, rubbish], DELAY).requests == 1


def test_a_visit_too_soon() -> None:
    first = asked(0.2, "/")
    assert found(RULES, first, asked(10.31, "/a")) == []
    assert found(RULES, first, asked(10.29, "/a")) == [Manners.TOO_SOON]
    assert found(RULES, first, asked(10.29, "/a"), tolerance=0.02) == []
    verdict = judge(WEB, [RULES, first, asked(5.3, "/a"), asked(30.0, "/b")], DELAY)
    assert verdict.smallest_margin == pytest.approx(-5.0)
    assert verdict.violations[0].evidence == (first, asked(5.3, "/a"))
    assert "5.000 s after the visit before, 10 s are due" in str(verdict)
    assert f"http://{HOST}/a" in str(verdict)


def test_the_delay_counts_from_the_end_of_the_last_request() -> None:
    slow = asked(0.2, "/", took=5.0)
    assert found(RULES, slow, asked(11.0, "/a")) == [Manners.TOO_SOON]
    assert found(RULES, slow, asked(15.3, "/a")) == []


def test_hosts_of_one_domain_share_the_delay_and_other_domains_do_not() -> None:
    blog = asked(1.0, "/robots.txt", host=BLOG)
    assert found(RULES, asked(0.2, "/"), blog) == [Manners.TOO_SOON]
    assert found(RULES, asked(0.2, "/"), replace(blog, host=OTHER)) == []


def test_a_crawl_delay_counts_once_it_was_served() -> None:
    web = SmallWeb(1, 1, replace(TIDY, robots={RobotsKind.DELAYED: 1}, crawl_delay=20.0))
    rules, page, later = RULES, asked(0.2, "/"), asked(15.0, "/a")
    own = [replace(request, host=web.host_name(0)) for request in (rules, page, later)]
    (violation,) = judge(web, own, DELAY).violations
    assert violation.broken is Manners.TOO_SOON
    assert "20 s are due" in violation.detail
    assert judge(web, [*own[:2], replace(own[2], start=21.0, end=21.1)], DELAY).polite
    # Rules that did not come through tell nothing.
    unheard = replace(own[0], complete=False)
    again = replace(own[0], start=15.0, end=15.1)
    assert judge(web, [unheard, again], DELAY).polite


def test_a_forbidden_path() -> None:
    assert found(RULES, asked(0.2, "/private/x")) == [Manners.FORBIDDEN]
    assert found(RULES, asked(0.2, "/%70rivate/x")) == [Manners.FORBIDDEN]


def test_a_page_before_the_rules() -> None:
    assert found(asked(0.0, "/")) == [Manners.RULES_UNKNOWN]
    assert found(asked(0.0, "/"), asked(20.0, "/robots.txt")) == [Manners.RULES_UNKNOWN]
    assert found(RULES, asked(20.0, "/", host=BLOG)) == [Manners.RULES_UNKNOWN]
    assert found(replace(RULES, complete=False), asked(0.3, "/")) == [Manners.RULES_UNKNOWN]
    moved = replace(RULES, status=301, location="/robots2.txt")
    assert found(moved, asked(0.2, "/")) == [Manners.RULES_UNKNOWN]
    assert found(moved, asked(0.2, "/robots2.txt"), asked(0.4, "/")) == []
    assert found(replace(RULES, status=404), asked(0.2, "/")) == []


def test_a_url_twice() -> None:
    page, again = asked(0.2, "/a"), asked(20.0, "/a")
    assert found(RULES, page, again) == [Manners.REPEATED]
    assert found(RULES, page, replace(again, path="/%61")) == [Manners.REPEATED]
    assert found(RULES, replace(page, status=404), again) == [Manners.REPEATED]
    assert found(RULES, replace(page, status=503), again) == []
    assert found(RULES, replace(page, complete=False), again) == []
    assert found(RULES, page, asked(20.0, "/robots.txt")) == []
    assert found(RULES, page, again, asked(40.0, "/a"), allowed_refetches=2) == []
    three = found(RULES, page, again, asked(40.0, "/a"), allowed_refetches=1)
    assert three == [Manners.REPEATED, Manners.REPEATED]
    assert judge(WEB, [RULES, page, again], DELAY, allowed_refetches=1).refetches == 1


def test_two_requests_at_once() -> None:
    assert found(RULES, asked(0.05, "/")) == [Manners.OVERLAP, Manners.RULES_UNKNOWN]
    assert found(RULES, asked(0.2, "/", took=30.0), asked(20.0, "/a")) == [Manners.OVERLAP]
    # Under a long request, a short one does not hide a third.
    log = [RULES, asked(0.2, "/", took=30.0), asked(1.0, "/a"), asked(20.0, "/b")]
    assert found(*log) == [Manners.OVERLAP, Manners.OVERLAP]


def test_a_request_that_was_given_up_may_be_over_sooner_than_noticed() -> None:
    given_up = asked(0.2, "/", took=5.05, status=0, complete=False)
    assert found(RULES, given_up, asked(15.2, "/a")) == []
    assert found(RULES, given_up, asked(15.2, "/a"), cut_slack=0.0) == [Manners.TOO_SOON]
    assert found(RULES, asked(0.2, "/", took=5.05), asked(15.2, "/a")) == [Manners.TOO_SOON]


def hops(count: int) -> Iterator[LoggedRequest]:
    """A chain of redirects, followed at once."""
    for hop in range(count):
        yield asked(0.2 + hop * 0.2, f"/go/{hop}", status=302, to=f"{hop + 1}")


def test_redirects_belong_to_the_visit() -> None:
    end = asked(5.0, "/go/3")
    (visit,) = visits([RULES, *hops(3), end])
    assert (visit.pages, visit.hops, len(visit.requests)) == (1, 3, 5)
    assert found(RULES, *hops(3), end) == []
    assert found(RULES, *hops(4), asked(5.0, "/go/4")) == [Manners.LARGE_VISIT]
    # What comes a delay later is a visit of its own, even if a redirect led there.
    assert found(RULES, *hops(4), asked(11.0, "/go/4")) == []
    assert len(visits([RULES, *hops(4), asked(11.0, "/go/4")], pause=DELAY)) == 2
    assert found(RULES, *hops(3), asked(5.0, "/elsewhere")) == [Manners.TOO_SOON]


def test_a_redirect_to_another_host_of_the_domain_brings_its_rules() -> None:
    across = asked(0.2, "/go", status=301, to=f"//{BLOG}/here")
    rules = asked(0.4, "/robots.txt", host=BLOG)
    moved = replace(rules, status=301, location="/robots2.txt")
    assert found(RULES, across, rules, asked(0.6, "/here", host=BLOG)) == []
    hop = [moved, asked(0.6, "/robots2.txt", host=BLOG), asked(0.8, "/here", host=BLOG)]
    (visit,) = visits([RULES, across, *hop])
    assert (visit.pages, visit.hops) == (1, 1)
    assert found(RULES, across, *hop) == []
    # Without the redirect, other rules are another visit; with it, another page is one too many.
    assert found(RULES, asked(0.2, "/go"), rules) == [Manners.TOO_SOON]
    assert found(RULES, across, asked(0.4, "/robots.txt")) == [Manners.TOO_SOON]
    within = replace(across, location="/here")
    assert found(RULES, within, asked(0.4, "/robots.txt")) == [Manners.TOO_SOON]
    assert found(RULES, across, rules, asked(0.6, "/there", host=BLOG)) == [Manners.LARGE_VISIT]


def test_a_visit_of_too_many_requests() -> None:
    across = [RULES]
    hosts = [HOST, BLOG]
    for turn in range(4):
        here, there = hosts[turn % 2], hosts[(turn + 1) % 2]
        start = 0.2 + turn * 0.4
        across.append(asked(start, f"/{turn}", host=here, status=302, to=f"//{there}/{turn + 1}"))
        across.append(asked(start + 0.2, "/robots.txt", host=there))
    assert len(across) == 9
    assert len(visits(across)) == 1
    assert found(*across) == [Manners.LARGE_VISIT]
    assert found(*across[:8]) == []


def test_rules_alone_are_a_visit_and_their_page_belongs_to_it() -> None:
    assert len(visits([RULES, asked(0.2, "/")])) == 1
    assert len(visits([RULES, asked(0.2, "/"), asked(0.4, "/a")])) == 2
    assert len(visits([RULES, asked(0.2, "/robots.txt")])) == 2
    assert len(visits([RULES, asked(0.2, "/", host=BLOG)])) == 2
    assert [visit.domain for visit in visits([RULES, asked(9.0, "/", host=OTHER)])] == [HOST, OTHER]
    assert visits([]) == []


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    entries = [
        RULES,
        asked(0.2, '/caf\u00e9?q="x"\n', to="http://a.test/"),
        replace(RULES, host=""),
    ]
    lines = encode(entries)
    assert lines.count(b"\n") == len(entries)
    assert decode(lines) == entries
    # The last line may be under way.
    assert decode(lines + b'{"kind":"requ') == entries
    assert decode(b"") == []
    path = tmp_path / "log"
    path.write_bytes(lines)
    assert read_log(path) == entries
