"""The new domains that one page, and one domain in a day, may bring."""

from __future__ import annotations

from rove.crawl.new_domains import NewDomainLimits
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.model.urls import NewUrl
from rove.model.visits import Lease
from rove.policy.constants import DAY
from tests.unit.crawl.scripted import new_url, page_with_links
from tests.unit.crawl.test_loop_outage import running, until
from tests.unit.crawl.workspace import Workspace

SOURCE = new_url("http://source.test/")


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def links(first: int, count: int) -> list[NewUrl]:
    return [new_url(f"http://new{number}.test/", 1) for number in range(first, first + count)]


def visit(found: list[NewUrl]) -> VisitRecord:
    lease = Lease(domain=SOURCE.domain, name="source.test", token=1, crawl_delay=0.0, urls=())
    record = VisitRecord(HeldLease(lease=lease, deadline=0.0, origins={}))
    record.links = found
    return record


def test_an_ordinary_page_is_not_cut() -> None:
    found = links(0, 1_000)
    assert NewDomainLimits(Clock()).split(SOURCE.domain, found) == (found, ())


def test_domains_beyond_the_limit_of_a_page_are_split_off() -> None:
    limits = NewDomainLimits(Clock(), per_page=3)
    found = [*links(0, 2), SOURCE, *links(0, 5), SOURCE, *links(3, 1)]
    within, beyond = limits.split(SOURCE.domain, found)
    assert within == [*links(0, 2), SOURCE, *links(0, 3), SOURCE]
    assert beyond == [*links(3, 2), *links(3, 1)]


def test_only_domains_that_were_really_new_count_towards_the_day() -> None:
    clock = Clock()
    limits = NewDomainLimits(clock, per_page=10, per_day=12)
    first = visit(links(0, 10))
    limits.note([first, visit(links(5, 10))], made={link.domain for link in links(0, 7)})
    assert limits.split(SOURCE.domain, links(20, 5)) == (links(20, 5), ())
    within, beyond = limits.split(SOURCE.domain, links(20, 8))
    assert (within, beyond) == (links(20, 5), links(25, 3)), "seven of twelve are used"
    other = new_url("http://other.test/").domain
    assert limits.split(other, links(20, 8)) == (links(20, 8), ())


def test_the_day_ends() -> None:
    clock = Clock()
    limits = NewDomainLimits(clock, per_page=10, per_day=5)
    limits.note([visit(links(0, 5))], made={link.domain for link in links(0, 5)})
    clock.now = DAY - 1
    assert limits.split(SOURCE.domain, links(0, 1)) == ([], links(0, 1))
    limits.note([visit(links(5, 1))], made={link.domain for link in links(5, 1)})
    clock.now = DAY
    assert limits.split(SOURCE.domain, links(0, 1)) == (links(0, 1), ())


async def test_links_beyond_the_limit_count_only_if_their_domain_is_known(workspace: Workspace) -> None:
    """A page links to more new hosts than it may bring, and at last to a host that the crawl knows."""
    hosts = [f"host{number}.test" for number in range(50)]
    urls = [f"http://{host}/" for host in hosts]
    workspace.fetcher.script = {"http://a.test/": page_with_links(*urls, "http://b.test/2")}
    workspace.fetcher.full = dict.fromkeys([*hosts, "b.test"], 3_600.0)
    workspace.new_domains_per_page = 30
    await workspace.open("http://a.test/", "http://b.test/")
    async with running(workspace) as (crawl, _):
        await until(lambda: crawl.progress.pages == 1)
    counts = await workspace.counts()
    assert counts.not_accepted == {"new-domains": 20}
    assert sum(counts.domains.values()) == 2 + 30
    assert "http://b.test/2" in await workspace.states()
