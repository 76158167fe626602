"""The texts of robots.txt files, in every frontier: each is stored once, and a domain has a bounded share."""

from __future__ import annotations

import random
from collections.abc import Collection

from rove.frontier.contract import Frontier
from rove.frontier.records import MAX_ROBOTS_BYTES_A_DAY
from rove.model.text_hash import robots_name
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.constants import DAY
from tests.contract.harness import Harness

BODY = b"User-agent: *\nDisallow: /private\n"
LARGE = MAX_ROBOTS_BYTES_A_DAY // 4
"""Bytes of a text of which three fit into a domain's share."""


def record(body: bytes, origin: str = "http://a.test", *, domain: int = 1, **more: object) -> OriginRecord:
    values: dict[str, object] = {"status": RobotsStatus.RULES, "etag": '"1"', "source": f"{origin}/robots.txt"}
    values |= {"domain": domain, "origin": origin, "body": body, "valid_for": 3600.0, "crawl_delay": 5.0}
    return OriginRecord(**{**values, **more})  # type: ignore[arg-type]


def large(number: int) -> bytes:
    """Return a text that cannot be compressed."""
    return random.Random(number).randbytes(LARGE)


async def stored(frontier: Frontier, domain: int = 1, origin: str = "http://a.test") -> OriginRecord:
    (found,) = await frontier.origins([(domain, origin)])
    return found


async def kept(harness: Harness, bodies: Collection[bytes]) -> list[bool]:
    return [await harness.reader().robots_text(robots_name(body)) == body for body in bodies]


async def test_one_text_of_many_origins_is_stored_once(harness: Harness) -> None:
    frontier = await harness.open()
    records = [record(BODY, f"http://h{i}.test", domain=i) for i in range(20)]
    assert not await frontier.put_origins(records[:10])
    assert not await frontier.put_origins(records[5:])
    assert len(await harness.statement("SELECT name FROM robots_text")) == 1
    for old in records:
        assert (await stored(frontier, old.domain, old.origin)).body == BODY


async def test_an_unreachable_record_keeps_its_text(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.put_origins([record(BODY)])
    await frontier.put_origins([record(BODY, status=RobotsStatus.UNREACHABLE)])
    found = await stored(frontier)
    assert (found.status, found.body, found.etag) == (RobotsStatus.UNREACHABLE, BODY, '"1"')


async def test_a_domain_stores_a_bounded_share_a_day(harness: Harness) -> None:
    frontier = await harness.open()
    bodies = [large(number) for number in range(5)]
    for body in bodies[:3]:
        assert await frontier.put_origins([record(body)]) == set()
    for body in bodies[3:]:
        assert await frontier.put_origins([record(body)]) == {robots_name(body)}
    assert await kept(harness, bodies) == [True] * 3 + [False] * 2
    found = await stored(frontier)
    assert (found.status, found.body, found.etag, found.source) == (RobotsStatus.NOT_KEPT, b"", "", "")
    assert found.valid_for <= 0, "it must be read again"
    assert found.crawl_delay == 5.0


async def test_known_texts_and_other_domains_are_not_affected(harness: Harness) -> None:
    frontier = await harness.open()
    bodies = [large(number) for number in range(4)]
    for body in bodies:
        await frontier.put_origins([record(body)])
    assert await frontier.put_origins([record(bodies[0]), record(BODY, "http://b.test")]) == set(), (
        "there is room for it"
    )
    assert (await stored(frontier)).body == bodies[0]
    assert await frontier.put_origins([record(bodies[3], "http://other.test", domain=2)]) == set()
    assert await kept(harness, bodies) == [True] * 4


async def test_there_is_room_again_a_day_later(harness: Harness) -> None:
    frontier = await harness.open()
    for number in range(4):
        await frontier.put_origins([record(large(number))])
    harness.advance(DAY + 1)
    assert await frontier.put_origins([record(large(3))]) == set()
    assert (await stored(frontier)).body == large(3)


async def test_rules_whose_text_is_lost_are_read_again(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.put_origins([record(BODY)])
    await harness.statement("DELETE FROM robots_text")
    found = await stored(frontier)
    assert (found.status, found.body, found.etag) == (RobotsStatus.NOT_KEPT, b"", "")
    assert found.valid_for <= 0
