"""Random ledgers of a small polite scheduler have no violations, and one planted violation is always found.

Also: the memory of an audit is bounded by the current domain, however long the ledger is.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from random import Random
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.frontier.records import Exclusion
from rove.inspect.audit import Auditor
from rove.inspect.audit_findings import Check
from rove.model.ledger import RequestKind, RequestRow, Settlement
from rove.urls.canonical import UrlForm
from tests.unit.inspect.test_audit_ledger import T0, Ledger, ask, ask_robots, exclusion, hop
from tests.urls import KEY

BODY = "User-agent: *\nDisallow: /private\n"
EVERY_DAY = 86_400.0


class Scheduler:
    """Visits one domain after the other as rove does: robots.txt if needed, then a page, then the delay."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.ledger = Ledger()
        self.exclusions: list[Exclusion] = []

    def run(self, domains: int, visits: int) -> None:
        for number in range(domains):
            self._visit_domain(f"d{number}.test", visits)

    def _visit_domain(self, domain: str, visits: int) -> None:
        random, now, waiting = self._random, float(self._random.randint(0, 500)), list[str]()
        known: dict[str, tuple[float, bool]] = {}
        for number in range(visits):
            origin = random.choice([f"https://{domain}", f"http://www.{domain}"])
            requests: list[RequestRow] = []
            took = 0.0
            asked, is_open = known.get(origin, (-EVERY_DAY, False))
            if now - asked > EVERY_DAY or not is_open:
                requests, is_open = self._robots(origin)
                took = sum(request.ended for request in requests) / 1000
                known[origin] = (now + took, is_open)
            if is_open:
                url = waiting.pop() if waiting and random.random() < 0.5 else f"{origin}/{number}"
                if not url.startswith(f"{origin}/"):
                    url = f"{origin}/{number}"
                page, is_due_again = self._page(url)
                requests.append(page)
                took += page.ended / 1000
                if is_due_again:
                    waiting.append(url)
            delay = random.choice([1.0, 70.0, 600.0])
            fate = random.choice([Settlement.SETTLED] * 8 + [Settlement.LATE, Settlement.LOST])
            self.ledger.visit(now, *requests, delay=delay, domain=domain, settlement=fate)
            now += took + delay + random.choice([0.0, 0.5, random.random() * 50_000])
        if random.random() < 0.3:
            self.exclusions.append(exclusion(domain, now))
        if random.random() < 0.3:
            self.exclusions.append(exclusion(f"www.{domain}", -1_000, lifted=0))

    def _robots(self, origin: str) -> tuple[list[RequestRow], bool]:
        way = self._random.randint(0, 4)
        if way == 0:
            return [ask_robots(origin, error="timeout-connect", took=10_000)], False
        if way == 1:
            return [ask_robots(origin, status=404)], True
        if way == 2:
            to = f"{origin}/rules"
            first = ask_robots(origin, status=301, target=to)
            return [first, self.ledger.robots(origin, BODY).replace(url=to)], True
        if way == 3:
            return [ask_robots(origin, status=301, target="/x"), hop(f"{origin}/x", status=500)], False
        return [self.ledger.robots(origin, BODY)], True

    def _page(self, url: str) -> tuple[RequestRow, bool]:
        if self._random.random() < 0.2:
            return ask(url, error="reset"), True
        return ask(url, took=self._random.randint(0, 60_000)), False


def made(seed: int, domains: int = 4, visits: int = 12) -> Scheduler:
    scheduler = Scheduler(Random(seed))
    scheduler.run(domains, visits)
    return scheduler


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_polite_crawl_is_found_polite(seed: int) -> None:
    crawl = made(seed)
    report = crawl.ledger.audit(*crawl.exclusions)
    assert report.total == 0, report.findings
    assert report.checked[Check.DELAY] == 4 * 11
    assert report.smallest_margin is not None and report.smallest_margin.margin >= -0.0015


def _pages(ledger: Ledger) -> list[int]:
    return [n for n, row in enumerate(ledger.rows) if row.kind is RequestKind.PAGE]


def break_delay(crawl: Scheduler, random: Random) -> None:
    """Move a visit into the delay of the previous one."""
    rows = crawl.ledger.rows
    later = [n for n in range(1, len(rows)) if rows[n].seq == 0]
    number = random.choice([n for n in later if rows[n - 1].domain == rows[n].domain])
    before, first = rows[number - 1], rows[number]
    early = first.began - before.ended - round(before.delay * 1000) + 800
    for index, row in enumerate(rows):
        if row.visit == first.visit:
            rows[index] = row.replace(began=row.began - early, ended=row.ended - early)


def break_robots(crawl: Scheduler, random: Random) -> None:
    """Make the robots.txt of a page unreachable."""
    rows = crawl.ledger.rows
    number = random.choice(_pages(crawl.ledger))
    origin = rows[number].url[: rows[number].url.index("/", 8)]
    while not (rows[number].kind is RequestKind.ROBOTS and rows[number].url.startswith(origin)):
        number -= 1
    rows[number] = rows[number].replace(status=503, error="status-503", target="")


def break_page_before_robots(crawl: Scheduler, random: Random) -> None:
    """Move a page to an origin whose robots.txt was never requested."""
    number = random.choice(_pages(crawl.ledger))
    row = crawl.ledger.rows[number]
    crawl.ledger.rows[number] = row.replace(url=row.url.replace("://", "://new."))


def break_excluded(crawl: Scheduler, random: Random) -> None:
    """Exclude a host while the crawl runs."""
    row = random.choice([row for row in crawl.ledger.rows if row.began > T0 + 6_000])
    pattern = row.url.partition("://")[2].partition("/")[0]
    crawl.exclusions.append(exclusion(f"={pattern}", (row.began - T0) / 1000 - 5.001))


def break_twice(crawl: Scheduler, random: Random) -> None:
    """Request a page again that was answered."""
    rows = crawl.ledger.rows
    number = random.choice(_pages(crawl.ledger))
    rows[number] = rows[number].replace(settlement=Settlement.SETTLED, status=200, error="")
    again = rows[number].replace(seq=rows[number].seq + 1, began=rows[number].ended)
    rows.insert(number + 1, again)


def break_order(crawl: Scheduler, random: Random) -> None:
    """Drop a request."""
    rows = crawl.ledger.rows
    number = random.randrange(len(rows))
    visit = rows[number].visit
    for index, row in enumerate(rows):
        if row.visit == visit:
            rows[index] = row.replace(seq=row.seq + 1, settlement=Settlement.SETTLED)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (Check.DELAY, break_delay),
        (Check.ROBOTS, break_robots),
        (Check.PAGE_BEFORE_ROBOTS, break_page_before_robots),
        (Check.EXCLUDED, break_excluded),
        (Check.TWICE, break_twice),
        (Check.ORDER, break_order),
    ],
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_one_break_is_found(check: Check, broken: Callable[[Scheduler, Random], None], seed: int) -> None:
    crawl = made(seed)
    if not _pages(crawl.ledger):
        return
    broken(crawl, Random(seed))
    report = crawl.ledger.audit(*crawl.exclusions)
    assert report.violations[check] > 0, report.findings


def held(auditor: Auditor) -> tuple[int, int]:
    """Return the number of objects that an auditor keeps alive and their bytes, without classes and modules."""
    shared = (type, ModuleType, FunctionType, MethodType)
    seen: dict[int, Any] = {}
    waiting: list[Any] = [auditor]
    while waiting:
        item = waiting.pop()
        if id(item) not in seen and not isinstance(item, shared):
            seen[id(item)] = item
            waiting += gc.get_referents(item)
    return len(seen), sum(map(sys.getsizeof, seen.values()))


async def test_a_long_ledger_is_not_held() -> None:
    """200,000 requests to 50,000 domains: memory is bounded by the caches, which fill early."""
    ledger = Ledger()
    robots = ledger.robots("https://a.test", BODY)
    page = ask("https://a.test/")
    auditor = Auditor([exclusion("b.test", 0)], ledger.robots_text, ledger.visits, UrlForm(KEY))
    sizes = []
    for domain in range(50_000):
        origin = f"https://d{domain}.test"
        began = T0 + domain
        for seq, row in enumerate((robots, page, page, page)):
            url = f"{origin}/robots.txt" if not seq else f"{origin}/{seq}"
            await auditor.take(
                row.replace(
                    visit=domain,
                    seq=seq,
                    domain=domain,
                    url=url,
                    fingerprint=(domain << 40) + seq,
                    began=began,
                    ended=began,
                    process=1,
                    delay=70.0,
                )
            )
        if domain % 10_000 == 9_999:
            sizes.append(held(auditor))
    assert auditor.report().total == 0
    assert all(objects < 30_000 and size < 4_000_000 for objects, size in sizes), sizes
    assert sizes[-1][0] <= sizes[0][0] * 1.1, sizes


async def test_a_domain_of_many_pages_is_held_in_few_bytes() -> None:
    ledger = Ledger()
    auditor = Auditor([], ledger.robots_text, ledger.visits, UrlForm(KEY))
    page = ask("https://a.test/", process=1, delay=70.0)
    for number in range(50_000):
        fingerprint = (number * 0x9E3779B97F4A7C15 & (1 << 63) - 1) - (1 << 62)
        at = T0 + number * 80_000
        await auditor.take(page.replace(visit=number, domain=1, fingerprint=fingerprint, began=at, ended=at))
    _, size = held(auditor)
    assert size < 50_000 * 160 + 2_000_000, size
    assert auditor.report().violations[Check.TWICE] == 0
