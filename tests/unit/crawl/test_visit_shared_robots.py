"""A robots.txt that redirects to the robots.txt of another domain: who requests what, and when."""

from __future__ import annotations

import itertools

import pytest

from rove.model.outcomes import FailureKind, Outcome
from rove.model.urls import NotAccepted
from rove.policy.exclusions import Exclusions
from tests.unit.crawl.scripted import (
    DELAY,
    NOTHING_ALLOWED,
    NOTHING_PRIVATE,
    ROBOTS,
    A,
    World,
    failed,
    new_url,
    page,
    redirect,
    refused,
    robots,
)

B = "http://b.test"
B_ROBOTS = f"{B}/robots.txt"
C = "http://c.test"
TO_B = redirect(B_ROBOTS)
DAY = 86_400.0


async def visit_until_idle(world: World, *, within: float = 10 * DELAY) -> None:
    """Visit what is due, in order, until nothing is due for a while."""
    while True:
        rows = await world.rows("SELECT min(ready_at) FROM domain WHERE ready_at IS NOT NULL")
        if rows[0][0] is None or (rows[0][0] - world.harness.now()) / 1000 > within:
            return
        await world.visit_next()


async def record_of(world: World, origin: str) -> tuple[str, str]:
    """Return the status of an origin's robots.txt and what it waits for."""
    ((status, waits_for),) = await world.rows("SELECT status, waits_for FROM origin WHERE origin = ?", origin)
    return status, waits_for


class TestWaiting:
    """The other domain is requested only in its own visit."""

    async def test_the_origin_waits_until_the_other_robots_txt_is_known(self, world: World) -> None:
        script = {ROBOTS: TO_B, B_ROBOTS: NOTHING_PRIVATE, f"{A}/open": page()}
        await world.open(f"{A}/open", f"{A}/private", script=script)
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS], "the other domain is not part of this visit"
        assert await record_of(world, A) == ("unreachable", B_ROBOTS)
        assert [row.target for row in record.requests] == [B_ROBOTS]
        _, record = await world.visit_next()
        assert record.lease.name == "b.test"
        assert world.fetcher.requested == [ROBOTS, B_ROBOTS]
        waited, _ = await world.visit_next()
        assert waited == 2 * DELAY
        assert world.fetcher.requested == [ROBOTS, B_ROBOTS, ROBOTS, f"{A}/open"]
        assert await record_of(world, A) == ("rules", "")
        await visit_until_idle(world)
        assert await world.states() == {f"{A}/open": "done", f"{A}/private": "blocked", B_ROBOTS: "read"}

    async def test_a_known_robots_txt_is_used_at_once(self, world: World) -> None:
        await world.open(f"{A}/open", script={ROBOTS: TO_B, f"{A}/open": page()})
        await world.keep_origin(B, "User-agent: *\nDisallow: /private\n", valid_for=1000.0)
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/open"]
        ((expires, now),) = await world.rows("SELECT expires_at, ? FROM origin WHERE origin = ?", world.now(), A)
        assert expires / 1000 - now <= 1000.0, "the copy is not used for longer than the other domain uses it"

    async def test_its_crawl_delay_holds_here_too(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={ROBOTS: TO_B, f"{A}/1": page()})
        await world.keep_origin(B, "User-agent: *\nCrawl-delay: 500\n")
        await world.rows("UPDATE origin SET crawl_delay = 500000")
        await world.visit()
        assert await world.next_due() == 500.0

    async def test_no_robots_txt_there_means_no_rules_here(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: TO_B, B_ROBOTS: refused(404), f"{A}/": page()})
        await visit_until_idle(world)
        assert world.fetcher.requested == [ROBOTS, B_ROBOTS, ROBOTS, f"{A}/"]

    @pytest.mark.parametrize("hosts", [30])
    async def test_any_number_of_hosts_causes_one_request(self, world: World, hosts: int) -> None:
        origins = [f"http://h{i}.test" for i in range(hosts)]
        script = {f"{origin}/robots.txt": TO_B for origin in origins} | {f"{o}/": page() for o in origins}
        await world.open(*(f"{origin}/" for origin in origins), script={**script, B_ROBOTS: NOTHING_PRIVATE})
        await visit_until_idle(world)
        assert world.fetcher.requested.count(B_ROBOTS) == 1
        assert all(f"{origin}/" in world.fetcher.requested for origin in origins)

    async def test_it_is_requested_again_when_it_has_expired(self, world: World) -> None:
        script = {ROBOTS: TO_B, B_ROBOTS: NOTHING_PRIVATE, f"{A}/1": page(), f"{A}/2": page()}
        await world.open(f"{A}/1", script=script)
        await visit_until_idle(world)
        world.advance(DAY)
        await world.frontier.add([new_url(f"{A}/2")])
        await visit_until_idle(world)
        assert world.fetcher.requested.count(B_ROBOTS) == 2
        assert await world.states() == {f"{A}/1": "done", f"{A}/2": "done", B_ROBOTS: "read"}
        counters = await world.counters()
        assert (counters["urls.read"], counters["urls.pending"]) == (1, 0)

    async def test_only_the_robots_txt_of_the_other_domain_is_requested(self, world: World) -> None:
        world.sitemaps = True
        text = f"User-agent: *\nDisallow: /private\nSitemap: {B}/sitemap.xml\n"
        script = {ROBOTS: TO_B, B_ROBOTS: robots(text), f"{A}/": page()}
        await world.open(f"{A}/", script=script)
        await world.visit()
        await world.visit_next()
        assert world.fetcher.requested == [ROBOTS, B_ROBOTS]
        assert f"{B}/sitemap.xml" not in await world.states()

    async def test_its_domain_does_not_become_a_part_of_the_crawl(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: TO_B})
        await world.visit()
        added = await world.frontier.add(
            [new_url(f"{B}/", 1), new_url(f"{A}/2", 1)], refuse_new_domains=NotAccepted.OUT_OF_SCOPE
        )
        assert added.unseen == 1
        assert f"{B}/" not in await world.states()

    async def test_it_is_read_along_with_a_page_of_its_domain(self, world: World) -> None:
        """Other hosts cannot take visits away from the pages of the domain."""
        www = "http://www.b.test"
        script = {ROBOTS: TO_B, B_ROBOTS: NOTHING_PRIVATE, f"{www}/1": page(), f"{www}/2": page()}
        await world.open(f"{A}/", script=script)
        await world.visit()
        await world.frontier.add([new_url(f"{www}/1"), new_url(f"{www}/2")])
        _, record = await world.visit_next()
        assert [row.url for row in record.requests] == [B_ROBOTS, f"{www}/robots.txt", f"{www}/1"]

    async def test_one_visit_reads_one(self, world: World) -> None:
        targets = [f"http://{name}.b.test/robots.txt" for name in ("x", "y", "z")]
        origins = ["http://h1.test", "http://h2.test", "http://h3.test"]
        script: dict[str, Outcome] = {
            f"{origin}/robots.txt": redirect(target) for origin, target in zip(origins, targets, strict=True)
        }
        script |= {f"{origin}/": page() for origin in origins}
        await world.open(*(f"{origin}/" for origin in origins), script=script)
        requested: list[list[str]] = []
        while len(requested) < len(targets):
            record = (await world.visit_next())[1]
            if record.lease.name == "b.test":
                requested.append([row.url for row in record.requests])
        assert sorted(requested) == [[target] for target in targets]


class TestFailing:
    """A robots.txt that does not come counts as unreachable, by the ordinary rules."""

    async def test_a_failing_target_is_left_alone_by_all(self, world: World) -> None:
        origins = [f"http://h{i}.test" for i in range(20)]
        busy = refused(503, ("Retry-After", "7000"))
        script = {f"{origin}/robots.txt": TO_B for origin in origins}
        await world.open(*(f"{origin}/" for origin in origins), script={**script, B_ROBOTS: [busy]})
        began = world.now()
        while world.now() - began < 6_000:
            await world.visit_next()
        assert world.fetcher.requested.count(B_ROBOTS) == 1

    async def test_the_crawl_does_not_stay_up_for_it(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: TO_B, B_ROBOTS: refused(500)})
        visits = 0
        while await world.next_due() is not None:
            await world.visit_next()
            visits += 1
        assert visits < 12
        assert world.fetcher.requested.count(B_ROBOTS) == 3
        assert await world.states() == {f"{A}/": "pending", B_ROBOTS: "pending"}

    async def test_a_target_that_does_not_exist(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: TO_B, B_ROBOTS: failed(FailureKind.DNS_NOT_FOUND)})
        visits = 0
        while await world.next_due() is not None:
            await world.visit_next()
            visits += 1
        assert visits < 12
        assert (await world.states())[f"{A}/"] == "pending"

    async def test_a_target_whose_domain_is_full_ends_as_unreachable(self, world: World) -> None:
        """The limit of pages per domain keeps the other robots.txt from ever being fetched."""
        await world.open(f"{A}/", script={ROBOTS: TO_B})
        await world.visit()
        await world.rows("UPDATE domain SET capped = 1, ready_at = NULL WHERE name = 'b.test'")
        visits = 0
        while await world.next_due() is not None:
            await world.visit_next()
            visits += 1
        assert visits == 2 and world.fetcher.requested == [ROBOTS] * 3

    @pytest.mark.parametrize("target", [f"{B}/rules.txt", f"{B}/robots.txt?q=1", f"{B}/a/robots.txt"])
    async def test_another_text_file_is_not_read(self, world: World, target: str) -> None:
        await world.open(f"{A}/", script={ROBOTS: redirect(target)})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert await world.states() == {f"{A}/": "pending"}
        assert await record_of(world, A) == ("unreachable", "")

    @pytest.mark.parametrize("target", [f"{B}/search?q=victim", f"{B}/", f"{B}/404"])
    async def test_a_page_for_everything_means_no_rules(self, world: World, target: str) -> None:
        await world.open(f"{A}/", script={ROBOTS: redirect(target), f"{A}/": page()})
        await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]

    async def test_an_exclusion_during_the_wait(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: TO_B})
        await world.visit()
        world.gate.exclusions = Exclusions(["b.test"])
        _, record = await world.visit_next()
        assert record.lease.name == "b.test" and not record.requested
        await world.visit_next()
        assert world.fetcher.requested == [ROBOTS, ROBOTS]
        assert await record_of(world, A) == ("unreachable", "")


class TestChains:
    """Redirects over several domains."""

    async def test_a_chain_of_domains(self, world: World) -> None:
        script = {ROBOTS: TO_B, B_ROBOTS: redirect(f"{C}/robots.txt"), f"{C}/robots.txt": NOTHING_PRIVATE}
        await world.open(f"{A}/", f"{A}/private", script={**script, f"{A}/": page()})
        await visit_until_idle(world)
        states = await world.states()
        assert (states[f"{A}/"], states[f"{A}/private"]) == ("done", "blocked")
        assert world.fetcher.requested.count(f"{C}/robots.txt") == 1

    @pytest.mark.parametrize(("length", "state"), [(5, "blocked"), (6, "done")])
    async def test_hops_count_across_domains(self, world: World, length: int, state: str) -> None:
        chain = [ROBOTS, *(f"http://h{i}.test/robots.txt" for i in range(1, length + 1))]
        script: dict[str, Outcome] = {url: redirect(target) for url, target in itertools.pairwise(chain)}
        await world.open(f"{A}/private", script={**script, chain[-1]: NOTHING_ALLOWED, f"{A}/private": page()})
        await visit_until_idle(world, within=200 * DELAY)
        assert (await world.states())[f"{A}/private"] == state

    @pytest.mark.parametrize("length", [2, 3])
    async def test_a_loop_over_domains_means_no_rules(self, world: World, length: int) -> None:
        ring = [A, B, C][:length]
        script: dict[str, Outcome] = {
            f"{origin}/robots.txt": redirect(f"{ring[(n + 1) % length]}/robots.txt") for n, origin in enumerate(ring)
        }
        await world.open(f"{A}/", script={**script, f"{A}/": page()})
        await visit_until_idle(world, within=100 * DELAY)
        assert (await world.states())[f"{A}/"] == "done"
        assert all(world.fetcher.requested.count(url) <= 6 for url in script)
