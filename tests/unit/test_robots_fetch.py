"""What each kind of answer to /robots.txt means for its origin."""

from __future__ import annotations

import pytest

from rove.model import FailureKind, OriginRecord, Outcome, RobotsStatus
from rove.politeness import MAX_ROBOTS_HOPS, ROBOTS_VALID_SECONDS
from rove.retry import hold_for
from rove.robots import MAX_ROBOTS_BYTES
from rove.robots_fetch import RobotsAnswer, fetch_robots
from rove.url import CrawlUrl
from tests.unit.scripted import crawl_url, failed, redirect, refused, robots, wrong_type

PAGE = crawl_url("https://www.a.test:8443/some/page?q")
ROBOTS = "https://www.a.test:8443/robots.txt"
NONE, RULES, UNREACHABLE = RobotsStatus.NONE, RobotsStatus.RULES, RobotsStatus.UNREACHABLE


async def ask(
    *answers: Outcome, failures: int = 0, delay: float = 70.0
) -> tuple[RobotsAnswer, list[str]]:
    """Ask, with these answers one after the other; what came of it, and the URLs asked for."""
    asked: list[str] = []
    left = list(answers)

    async def answer(url: CrawlUrl) -> Outcome:
        asked.append(url.text)
        return left.pop(0)

    previous = OriginRecord(
        domain=PAGE.domain,
        origin=PAGE.origin,
        status=RobotsStatus.UNREACHABLE if failures else RobotsStatus.RULES,
        crawl_delay=12.0,
        failures=failures,
        valid_for=0.0,
    )
    found = await fetch_robots(
        PAGE, ask=answer, may_ask=lambda url: url.host != "x.test", previous=previous, delay=delay
    )
    return found, asked


async def test_a_host_never_to_be_touched_is_not_asked() -> None:
    answer, asked = await ask(redirect("http://x.test/robots.txt"))
    assert asked == [ROBOTS]
    assert answer.record.status is UNREACHABLE and answer.failure is None


async def test_a_crawl_delay_outlives_a_server_in_trouble() -> None:
    answer, _ = await ask(refused(503))
    assert answer.record.crawl_delay == 12.0
    answer, _ = await ask(refused(404))
    assert answer.record.crawl_delay == 0.0


async def test_rules_are_kept_for_a_day() -> None:
    answer, asked = await ask(robots("User-agent: *\nDisallow: /x\nCrawl-delay: 90\n"))
    assert asked == [ROBOTS]
    record = answer.record
    assert (record.domain, record.origin) == (PAGE.domain, PAGE.origin)
    assert record.status is RULES
    assert record.body == b"User-agent: *\nDisallow: /x\nCrawl-delay: 90\n"
    assert record.crawl_delay == 90.0
    assert record.valid_for == ROBOTS_VALID_SECONDS == 86_400.0
    assert (record.failures, answer.failure) == (0, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User-agent: *\nCrawl-delay: 0.5", 0.5),
        ("User-agent: *\nCrawl-delay: 1000000000", 86_400.0),
        ("User-agent: *\nCrawl-delay: -5", 0.0),
        ("User-agent: *\nCrawl-delay: soon", 0.0),
        ("User-agent: *\nDisallow:", 0.0),
        ("User-agent: other\nCrawl-delay: 99", 0.0),
        ("User-agent: rove\nCrawl-delay: 5\n\nUser-agent: *\nCrawl-delay: 99", 5.0),
        ("", 0.0),
    ],
)
async def test_the_crawl_delay_is_bounded(text: str, expected: float) -> None:
    answer, _ = await ask(robots(text))
    assert answer.record.crawl_delay == expected


async def test_no_more_than_the_cap_is_kept() -> None:
    answer, _ = await ask(robots("#" * (MAX_ROBOTS_BYTES + 1000)))
    assert len(answer.record.body) == MAX_ROBOTS_BYTES


@pytest.mark.parametrize("status", [300, 304, 400, 401, 403, 404, 410, 418, 451, 499])
async def test_a_4xx_means_no_rules(status: int) -> None:
    answer, _ = await ask(refused(status), failures=2)
    assert answer.record.status is NONE
    assert answer.record.failures == 0, "it answered: failures in a row are over"
    assert answer.record.valid_for == ROBOTS_VALID_SECONDS


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("failures", [0, 1, 2, 9])
async def test_a_5xx_means_do_not_fetch_for_longer_and_longer(status: int, failures: int) -> None:
    answer, _ = await ask(refused(status), failures=failures)
    record = answer.record
    assert record.status is UNREACHABLE
    assert record.failures == failures + 1
    assert record.valid_for == hold_for(failures + 1, 70.0) > 0
    assert answer.failure is None, "there was an answer"


@pytest.mark.parametrize("kind", list(FailureKind))
async def test_no_answer_means_do_not_fetch(kind: FailureKind) -> None:
    answer, _ = await ask(failed(kind), failures=1, delay=10.0)
    assert answer.record.status is UNREACHABLE
    assert (answer.record.failures, answer.record.valid_for) == (2, hold_for(2, 10.0))
    assert answer.failure == failed(kind)


async def test_a_wrong_type_means_no_rules() -> None:
    answer, _ = await ask(wrong_type())
    assert answer.record.status is NONE


@pytest.mark.parametrize("hops", range(1, MAX_ROBOTS_HOPS + 1))
async def test_up_to_five_redirects_are_followed(hops: int) -> None:
    chain = [redirect(f"https://h{i}.test/r") for i in range(hops)]
    answer, asked = await ask(*chain, robots("User-agent: *\nDisallow: /"))
    assert asked == [ROBOTS, *(f"https://h{i}.test/r" for i in range(hops))]
    assert answer.record.status is RULES
    assert answer.record.origin == PAGE.origin, "the rules are those of the origin that was asked"
    assert answer.record.domain == PAGE.domain


async def test_the_sixth_redirect_means_no_rules() -> None:
    answer, asked = await ask(*[redirect("/robots.txt?x")] * 7)
    assert len(asked) == 1 + MAX_ROBOTS_HOPS == 6
    assert answer.record.status is NONE


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/other.txt", "https://www.a.test:8443/other.txt"),
        ("other.txt", "https://www.a.test:8443/other.txt"),
        ("//b.test/robots.txt", "https://b.test/robots.txt"),
        ("http://b.test/robots.txt#x", "http://b.test/robots.txt"),
    ],
)
async def test_redirects_may_be_relative(location: str, expected: str) -> None:
    _, asked = await ask(redirect(location), refused(404))
    assert asked == [ROBOTS, expected]


async def test_each_redirect_is_relative_to_the_one_before() -> None:
    _, asked = await ask(redirect("https://b.test/dir/r"), redirect("s"), refused(404))
    assert asked == [ROBOTS, "https://b.test/dir/r", "https://b.test/dir/s"]


@pytest.mark.parametrize("location", ["ftp://a.test/robots.txt", "http://", "/" + "x" * 3000])
async def test_a_redirect_to_nowhere_means_no_rules(location: str) -> None:
    answer, asked = await ask(redirect(location))
    assert answer.record.status is NONE
    assert asked == [ROBOTS]


@pytest.mark.parametrize(
    ("last", "status"), [(refused(404), NONE), (refused(500), UNREACHABLE), (failed(), UNREACHABLE)]
)
async def test_the_end_of_the_chain_counts(last: Outcome, status: RobotsStatus) -> None:
    answer, _ = await ask(redirect("/a"), redirect("/b"), last)
    assert answer.record.status is status
