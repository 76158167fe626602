"""Domains that ask for a slower pace, in words or by how they answer, checked in real time in the server's log."""

from __future__ import annotations

import time
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest

from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.results import check_books, frontier_rows
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, Site, site, unreachable

DELAY = 0.3
CLOCK = 0.02
"""The server's clock and the crawl's, which counts whole milliseconds, may differ by this many seconds."""

scenario = Scenarios()


def pauses(web: Site, host: str) -> list[float]:
    """Return the seconds from the end of each page of a host to the start of the next. Each page is one visit."""
    asked = [one for one in web.requests_to(host) if one.path != "/robots.txt"]
    return [later.at - earlier.ended for earlier, later in pairwise(asked)]


def took(web: Site, host: str) -> list[float]:
    """Return the seconds that the host's answers took, as the server saw it."""
    return [one.ended - one.at for one in web.requests_to(host) if one.path != "/robots.txt"]


def delays_from(data: Path, host: str) -> list[str]:
    """Return the reason for the delay after each page of a host, in order."""
    rows = frontier_rows(
        data,
        f"SELECT delay_from FROM request WHERE kind = 'page' AND url LIKE 'http://{host}/%' ORDER BY began",
    )
    return [source for (source,) in rows]


def many_pages(host: str, count: int) -> list[str]:
    return [f"http://{host}/{number}" for number in range(count)]


@scenario
def each_host_is_asked_as_it_answers(tmp_path: Path) -> None:
    """One crawl of many different hosts. A healthy host beside them is crawled at full pace."""
    page = Reply("<title>a page</title>")
    counts: dict[str, int] = {}

    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        number = counts[host] = counts.get(host, -1) + 1
        match host:
            case "many.test":
                return Reply("too many", status=429)
            case "told.test" if number == 1:
                return Reply("later", status=503, headers={"Retry-After": "3"})
            case "dated.test" if number == 1:
                # A date has whole seconds, so this is at least three seconds from now.
                return Reply("later", status=503, headers=_until(time.time() + 4))
            case "wrong.test" if number == 1:
                # By the server's own clock, which is an hour behind.
                return Reply("later", status=503, headers=_until(time.time() - 3_600 + 3))
            case "recovers.test" if number < 3:
                return Reply("later", status=503)
            case "slow.test":
                return Reply("<title>slow</title>", after=0.05 * 2**number)
        return page

    urls = [
        *many_pages("many.test", 9),
        *many_pages("told.test", 4),
        *many_pages("dated.test", 4),
        *many_pages("wrong.test", 4),
        *many_pages("recovers.test", 12),
        *many_pages("slow.test", 5),
        *many_pages("healthy.test", 300),
    ]
    data = tmp_path / "data"
    with site(answer) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *urls)
        with started("crawl", seeds, *crawl_options(data, delay=DELAY), *web.reach) as crawl:
            wait_for(lambda: len(pauses(web, "many.test")) >= 5, seconds=40)
            wait_for(lambda: counts["recovers.test"] >= 9 and counts["slow.test"] >= 4)
            crawl.terminate()
            output, _ = crawl.communicate(timeout=20)
            assert crawl.returncode == 143, output
    for number, gap in enumerate(pauses(web, "many.test")[:5], start=1):
        assert gap >= DELAY * 2**number, f"gap {number} did not double: {gap:.3f}"
    for host in ("told.test", "dated.test", "wrong.test"):
        before, after, *_ = pauses(web, host)
        assert before >= DELAY and after >= 3, host
        assert delays_from(data, host)[1] == "retry-after"
    _check_recovery(web, data)
    times, gaps = took(web, "slow.test"), pauses(web, "slow.test")
    assert times[4] > 8 * times[0]
    for seconds, gap in zip(times, gaps, strict=False):
        # Ten times the answer's time, less the time in which our own event loop was late.
        assert gap >= max(DELAY, 5 * seconds - CLOCK), "a slow answer is a reason to wait"
    healthy = pauses(web, "healthy.test")
    assert min(healthy) >= DELAY
    assert sorted(healthy)[len(healthy) // 2] < 2 * DELAY, "it was held up by the others"
    check_books(data, web.urls)


def _until(moment: float) -> dict[str, str]:
    """Return headers that ask for a pause of at least three seconds by the server's clock."""
    return {"Retry-After": formatdate(moment, usegmt=True)} | (
        {"Date": formatdate(time.time() - 3_600, usegmt=True)} if moment < time.time() else {}
    )


def _check_recovery(web: Site, data: Path) -> None:
    """Check that three refusals double the gap to eight times the delay, and that each good answer halves it."""
    gaps = pauses(web, "recovers.test")
    for factor, gap in zip((2, 4, 8, 4, 2, 1, 1), gaps, strict=False):
        assert gap >= factor * DELAY, gaps
    # A busy machine makes gaps longer, so check the reasons for the delays instead of the times. It also makes the
    # site look slow, which counts if that delay is longer.
    kinds = delays_from(data, "recovers.test")
    assert set(kinds[5:8]) <= {"delay", "slow"}, kinds
    rows = frontier_rows(
        data,
        "SELECT delay_from, delay FROM request WHERE kind = 'page' AND url LIKE 'http://recovers.test/%' "
        "ORDER BY began",
    )
    for (source, delay), expected in zip(rows, (600, 1_200, 2_400, 1_200, 600), strict=False):
        assert (source == "backoff" and delay == expected) or (source == "slow" and delay >= expected), rows


@scenario
def each_hop_is_a_visit_of_its_own(tmp_path: Path) -> None:
    """With --redirect-hops 0. By default, a visit follows three redirects."""

    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        hop = int(path[1:])
        if hop == 3:
            return Reply("<title>at last</title>")
        return Reply(status=301, headers={"Location": f"/{hop + 1}"})

    with site(answer) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://hops.test/0")
        for hops in (0, 1, 3):
            data = tmp_path / f"data-{hops}"
            asked = len(web.requests)
            options = [*crawl_options(data, delay=DELAY), *web.reach, "--redirect-hops", hops]
            result = rove("crawl", seeds, *options)
            assert result.returncode == 0, result.stderr
            own = web.requests[asked:]
            assert [one.path for one in own] == ["/robots.txt", "/0", "/1", "/2", "/3"]
            rows = frontier_rows(data, "SELECT visit FROM request ORDER BY visit, seq")
            visits = [visit for (visit,) in rows]
            assert [visits.count(visit) for visit in dict.fromkeys(visits)] == _sizes(hops)
            if hops == 0:
                assert all(later.at - earlier.ended >= DELAY for earlier, later in pairwise(own[1:]))
            if hops == 1:
                assert own[3].at - own[2].ended >= DELAY
            check_books(data, (one.url for one in own))


def _sizes(hops: int) -> list[int]:
    """Return the number of requests of each visit, robots.txt included, if this many hops are followed in one visit."""
    return {0: [2, 1, 1, 1], 1: [3, 2], 3: [5]}[hops]


@scenario
def who_never_answers_is_asked_less_and_less(tmp_path: Path) -> None:
    """A host whose robots.txt cannot be fetched, and a domain none of whose hosts answers."""
    data, delay = tmp_path / "data", 0.1
    answers = {f"healthy.test/{number}": Reply("<title>x</title>") for number in range(300)}
    urls = [
        *many_pages("mute.test", 5),
        *(f"http://host{number}.deaf.test/" for number in range(9)),
        *many_pages("healthy.test", 300),
    ]

    def gaps(domain: str) -> list[float]:
        """Return the pauses between visits by the crawl's own ledger, because no server sees the attempts."""
        rows = frontier_rows(
            data,
            f"SELECT min(began), max(ended) FROM request WHERE url LIKE 'http://%{domain}/%' GROUP BY visit ORDER BY 1",
        )
        return [(later[0] - earlier[1]) / 1000 for earlier, later in pairwise(rows)]

    with site(answers) as web, unreachable() as nowhere:
        silent = [
            word
            for pattern in ("mute.test", "*.deaf.test")
            for word in ("--connect-to", nowhere[1].replace("*", pattern))
        ]
        seeds = write_lines(tmp_path / "seeds.txt", *urls)
        options = [*crawl_options(data, delay=delay), *silent, *web.reach]
        with started("crawl", seeds, *options) as crawl:
            wait_for(lambda: web.pages)
            wait_for(lambda: len(gaps("mute.test")) >= 3 and len(gaps("deaf.test")) >= 6)
            crawl.terminate()
            crawl.communicate(timeout=20)
    for number, gap in enumerate(gaps("mute.test")):
        assert gap >= delay * 2 * 4**number, gaps("mute.test")
    for number, gap in enumerate(gaps("deaf.test")):
        assert gap >= delay * 2**number, gaps("deaf.test")
    rows = frontier_rows(data, "SELECT delay_from, min(delay) FROM request WHERE status = 0 GROUP BY 1")
    assert dict(rows)["failures"] > 1000 * delay, "the first pause is the delay, the others are longer"
    assert set(dict(rows)) <= {"delay", "failures"}
    assert {asked.host for asked in web.requests} == {"healthy.test"}
    assert min(pauses(web, "healthy.test")) >= delay
    check_books(data, web.urls)


@pytest.mark.parametrize("scenario", scenario.names)
def test_pacing(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
