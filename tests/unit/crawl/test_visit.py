"""Visits to one domain: pages, pacing, tags and how a visit ends."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from rove.fetch.contract import Request
from rove.model.outcomes import TEMPORARY_FAILURES, FailureKind, Fetched, Outcome
from rove.model.text_hash import text_hash
from rove.policy.constants import VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.languages import OTHER_LANGUAGE
from tests.unit.crawl.scripted import (
    DELAY,
    ROBOTS,
    A,
    World,
    bare_domain,
    crawl_url,
    failed,
    new_url,
    page,
    page_with_links,
    redirect,
    refused,
    wrong_type,
)

GERMAN = "Alle Menschen sind frei und gleich an Würde und Rechten geboren."
ENGLISH = "All human beings are born free and equal in dignity and rights."


class TestPages:
    """Reading and storing a page."""

    async def test_a_page_is_recorded_with_its_title_text_and_links(self, world: World) -> None:
        html = "<title>A title</title><p>Some text.<a href=/b>b</a><a href=http://c.test/>c</a>"
        await world.open(new_url(f"{A}/", depth=2), script={f"{A}/": page(html)})
        record = await world.visit()
        (saved,) = world.pages
        assert saved.url == f"{A}/" and b"Some text." in saved.text
        assert saved.source is None, "the outcome is not kept if only texts are stored"
        row = record.requests[-1]
        assert (row.title, row.status, row.size) == ("A title", 200, len(html))
        assert row.content_hash == text_hash(saved.text)
        assert saved.fetched_at == row.started
        rows = await world.rows("SELECT url, depth, hops, assume_https FROM url WHERE depth = 3 ORDER BY url")
        assert rows == [(f"{A}/b", 3, 0, 0), ("http://c.test/", 3, 0, 0)]

    async def test_the_languages_of_a_page_are_recorded_and_rank_its_links(self, world: World) -> None:
        german = f"<p>{GERMAN}<a href=/de>x</a><a href=/x/x/x>x</a>"
        await world.open(
            f"{A}/", f"{A}/en", script={f"{A}/": page(german), f"{A}/en": page(f"{ENGLISH}<a href=/next>")}
        )
        world.gate = Gate(Exclusions(), languages=("deu",))
        record = await world.visit()
        assert [language.code for language in record.requests[-1].languages] == ["deu"]
        assert world.pages[0].languages == ("deu",)
        world.advance(DELAY)
        assert [language.code for language in (await world.visit()).requests[-1].languages] == ["eng"]
        rows = dict(await world.rows("SELECT url, priority FROM url WHERE state = 0"))
        assert rows[f"{A}/de"] == 1
        assert (rows[f"{A}/next"], rows[f"{A}/x/x/x"]) == (1 + OTHER_LANGUAGE, 5 + OTHER_LANGUAGE)

    async def test_the_answer_is_kept_if_it_is_to_be_stored(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page("<p>raw")})
        world.keep_raw = True
        await world.visit()
        (saved,) = world.pages
        assert saved.source is not None and saved.source.body == b"<p>raw"

    async def test_plain_text_is_a_page_without_links(self, world: World) -> None:
        text = "Some <a href=/b>text</a>\nhttp://c.test/"
        await world.open(f"{A}/", script={f"{A}/": page(text, "text/plain")})
        await world.visit()
        (saved,) = world.pages
        assert saved.text.decode() == text
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_page_with_too_many_links_is_marked(self, world: World) -> None:
        world.max_links = 1
        await world.open(f"{A}/", script={f"{A}/": page_with_links("/b", "/c")})
        record = await world.visit()
        assert record.requests[-1].marks == ("links-cut",)
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}
        assert (await world.counters())["marks.links-cut"] == 1

    async def test_no_more_of_a_page_is_read_than_allowed(self, world: World) -> None:
        html = "<p>Some text.<a href=/b>b</a>" + " " * 2_000 + "<a href=/c>c</a>"
        world.max_parsed_size = 1_024
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        record = await world.visit()
        assert record.requests[-1].marks == ("parse-cut",)
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}

    @pytest.mark.parametrize("status", [200, 403])
    async def test_nothing_is_taken_from_a_bot_wall(self, world: World, status: int) -> None:
        html = "<title>Just a moment...</title><script>_cf_chl_opt={}</script><a href=/b>b</a>"
        outcome = page(html) if status == 200 else refused(403, ("cf-mitigated", "challenge"))
        await world.open(f"{A}/", script={f"{A}/": outcome})
        record = await world.visit()
        assert world.pages == [] and record.requests[-1].marks == ("challenged",)
        assert record.requests[-1].error == ("challenged" if status == 200 else "status-403")
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == "challenged"
        assert record.pacing(70.0).reason == "backoff", "as after a 429"

    async def test_links_are_relative_to_the_url_after_redirects(self, world: World) -> None:
        await world.open(f"{A}/x", script={f"{A}/x": redirect("/dir/")})
        world.fetcher.script[f"{A}/dir/"] = page_with_links("b")
        await world.visit()
        assert (await world.states())[f"{A}/dir/b"] == "pending"

    async def test_noindex_keeps_nothing_and_follows_links(self, world: World) -> None:
        html = '<meta name="robots" content="noindex"><a href=/b>b</a>'
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        await world.visit()
        assert world.pages == []
        assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending"}
        assert await world.reason(f"{A}/") == "noindex"

    async def test_nofollow_keeps_the_page_and_follows_nothing(self, world: World) -> None:
        html = '<meta name="robots" content="nofollow"><p>Text<a href=/b>b</a>'
        await world.open(f"{A}/", script={f"{A}/": page(html)})
        await world.visit()
        assert len(world.pages) == 1
        assert await world.states() == {f"{A}/": "done"}

    @pytest.mark.parametrize(
        ("outcome", "reason"),
        [
            (wrong_type("image/png"), "type image/png"),
            (wrong_type("x/" + "y" * 500), "type x/" + "y" * 93),
            (wrong_type(""), "type "),
            (refused(400), "status 400"),
            (refused(404), "status 404"),
            (refused(410), "status 410"),
            (refused(304), "status 304"),
        ],
    )
    async def test_a_response_that_is_no_page_fails_at_once(self, world: World, outcome: Outcome, reason: str) -> None:
        await world.open(f"{A}/", script={f"{A}/": outcome})
        await world.visit()
        assert await world.states() == {f"{A}/": "failed"}
        assert await world.reason(f"{A}/") == reason
        assert len(reason) <= 100

    @pytest.mark.parametrize("outcome", [refused(500), refused(503), refused(429), refused(408)])
    async def test_a_temporary_failure_is_tried_again_three_times(self, world: World, outcome: Outcome) -> None:
        await world.open(f"{A}/", script={f"{A}/": outcome})
        await world.visit()
        waits = []
        for attempt in (1, 2, 3):
            assert await world.rows("SELECT state, attempts FROM url") == [(0, attempt)]
            waits.append((await world.visit_next())[0])
        assert waits == [2 * DELAY, 8 * DELAY, 32 * DELAY]
        assert await world.states() == {f"{A}/": "failed"}
        assert (await world.reason(f"{A}/")).startswith("status ")
        assert len(world.fetcher.pages_requested) == 4

    async def test_a_page_that_succeeds_on_a_retry_is_done(self, world: World) -> None:
        outcomes = [refused(503), failed(FailureKind.RESET), page()]
        await world.open(f"{A}/", script={f"{A}/": outcomes})
        await world.visit()
        await world.visit_next()
        await world.visit_next()
        assert await world.states() == {f"{A}/": "done"}

    async def test_a_url_to_retry_waits_behind_the_others(self, world: World) -> None:
        await world.open(f"{A}/bad", new_url(f"{A}/good", depth=9))
        world.fetcher.script |= {f"{A}/bad": [refused(500), page()], f"{A}/good": page()}
        await world.visit()
        await world.visit_next()
        await world.visit_next()
        assert world.fetcher.pages_requested == [f"{A}/bad", f"{A}/good", f"{A}/bad"]

    async def test_a_busy_address_does_not_count_as_a_failure(self, world: World) -> None:
        await world.open(f"{A}/", f"{A}/2", script={f"{A}/": failed(FailureKind.BUSY)})
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert record.pacing(DELAY).pace.failures == 0
        assert await world.states() == {f"{A}/": "pending", f"{A}/2": "pending"}
        ((attempts,),) = await world.rows("SELECT max(attempts) FROM url")
        assert attempts == 0
        assert await world.next_due() == DELAY

    @pytest.mark.parametrize("kind", sorted(set(FailureKind) - {FailureKind.ABORTED, FailureKind.BUSY}))
    async def test_each_kind_of_failure_without_an_answer(self, world: World, kind: FailureKind) -> None:
        await world.open(f"{A}/", script={f"{A}/": failed(kind)})
        record = await world.visit()
        assert record.requests[-1].error == kind.value
        if kind in TEMPORARY_FAILURES:
            assert await world.states() == {f"{A}/": "pending"}
            assert await world.next_due() == 2 * DELAY
        else:
            assert await world.states() == {f"{A}/": "failed"}
            assert await world.reason(f"{A}/") == kind.value

    async def test_links_that_are_too_deep_are_counted(self, world: World) -> None:
        links = page_with_links("/1", "/2", "http://b.test/")
        await world.open(new_url(f"{A}/", depth=1), script={f"{A}/": links}, max_depth=1)
        await world.visit()
        assert await world.states() == {f"{A}/": "done"}
        assert (await world.frontier.counts()).not_accepted == {"too-deep": 3}

    async def test_links_to_unusual_ports_are_counted(self, world: World) -> None:
        links = page_with_links("http://b.test:8080/", "http://b.test:6379/", f"{A}:9999/")
        await world.open(f"{A}/", script={f"{A}/": links})
        await world.visit()
        assert set(await world.states()) == {f"{A}/", "http://b.test:8080/"}
        assert (await world.frontier.counts()).not_accepted == {"port": 2}

    async def test_links_to_the_port_of_a_seed_are_accepted_on_its_host(self, world: World) -> None:
        odd = "http://a.test:9999"
        links = page_with_links("/1", "https://a.test:9999/2", "http://www.a.test:9999/", f"{A}/")
        await world.open(f"{odd}/", script={f"{odd}/": links})
        await world.visit()
        assert set(await world.states()) == {*(f"{odd}/", f"{odd}/1"), *("https://a.test:9999/2", f"{A}/")}
        assert (await world.frontier.counts()).not_accepted == {"port": 1}

    async def test_links_to_excluded_hosts_are_counted(self, world: World) -> None:
        links = page_with_links("/1", "http://x.test/", "http://www.x.test/", "http://nox.test/")
        await world.open(f"{A}/", script={f"{A}/": links}, exclude=["x.test"])
        await world.visit()
        assert set(await world.states()) == {f"{A}/", f"{A}/1", "http://nox.test/"}
        assert (await world.frontier.counts()).not_accepted == {"excluded": 2}

    @pytest.mark.parametrize("href", ["/a??", "/%%341", "/?x?", "http://1.2.3.4../", "/a%%37Eb"])
    async def test_an_odd_link_is_fetched_once_and_settled(self, world: World, href: str) -> None:
        """The fingerprint that is settled must be the one that was claimed, or the URL is fetched again for ever."""
        await world.open(f"{A}/", script={f"{A}/": page_with_links(href)})
        await world.visit()
        (link,) = set(await world.states()) - {f"{A}/"}
        world.fetcher.script |= {link: page(), crawl_url(link).text: page()}
        await world.visit_next()
        assert await world.states() == {f"{A}/": "done", link: "done"}

    async def test_an_invalid_link_does_not_affect_the_others(self, world: World) -> None:
        links = page_with_links("/b", "http://foo.1../", "/c")
        await world.open(f"{A}/", script={f"{A}/": links})
        await world.visit()
        assert set(await world.states()) == {f"{A}/", f"{A}/b", f"{A}/c"}


class TestPacing:
    """How long a domain is left alone, depending on its responses."""

    @pytest.mark.parametrize("status", [429, 503])
    async def test_retry_after_is_obeyed(self, world: World, status: int) -> None:
        outcome = refused(status, ("Retry-After", "5000"))
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": outcome, f"{A}/2": page()})
        await world.visit()
        waited, _ = await world.visit_next()
        assert waited == 5_000.0
        assert world.fetcher.pages_requested == [f"{A}/1", f"{A}/2"]

    async def test_an_overloaded_domain_is_visited_less_often_and_then_more_often_again(self, world: World) -> None:
        urls = [f"{A}/{i}" for i in range(7)]
        await world.open(*urls, script=dict.fromkeys(urls, page()))
        world.fetcher.script |= dict.fromkeys(urls[:3], refused(429))
        await world.visit()
        waits = []
        while len(world.fetcher.pages_requested) < 7:
            waits.append((await world.visit_next())[0] / DELAY)
        assert waits == [2, 4, 8, 4, 2, 1]

    async def test_a_slow_domain_is_left_alone_for_longer(self, world: World) -> None:
        await world.open(f"{A}/1", f"{A}/2", script={f"{A}/1": page(), f"{A}/2": page()})

        async def slowly(request: Request) -> None:
            world.advance(20)

        world.fetcher.before_answer = slowly
        await world.visit()
        waited, _ = await world.visit_next()
        assert waited == 200.0

    async def test_a_domain_with_a_page_that_takes_long_to_read_is_left_alone_for_longer(self, world: World) -> None:
        large = page("<p>x" * 40_000)
        await world.open(f"{A}/1", f"{A}/2", f"{A}/3", script={f"{A}/1": large, f"{A}/2": page(), f"{A}/3": page()})
        await world.visit()
        waits = [(await world.visit_next())[0] for _ in range(2)]
        assert waits == [pytest.approx(10_000 * (160_000 * 8e-9 + 40_000 * 5e-7), abs=0.01), DELAY]

    async def test_a_bare_domain_that_answers_over_http_has_not_failed(self, world: World) -> None:
        script = {"https://a.test/robots.txt": failed(), f"{A}/": page()}
        await world.open(bare_domain("a.test"), script=script)
        record = await world.visit()
        assert record.result(world.now(), DELAY).pace.failures == 0

    @pytest.mark.parametrize("kind", [FailureKind.CONNECT, FailureKind.TIMEOUT_TOTAL])
    async def test_visits_without_an_answer_are_counted(self, world: World, kind: FailureKind) -> None:
        await world.open(f"{A}/", script={ROBOTS: [failed(kind)] * 3 + [refused(404)]})
        world.fetcher.script[f"{A}/"] = page()
        failures = [(await world.visit()).result(world.now(), DELAY).pace.failures]
        for _ in range(3):
            _, record = await world.visit_next()
            failures.append(record.result(world.now(), DELAY).pace.failures)
        assert failures == [1, 2, 3, 0]
        assert await world.states() == {f"{A}/": "done"}


class TestTags:
    """The X-Robots-Tag header."""

    async def test_noindex_keeps_nothing_and_follows_links(self, world: World) -> None:
        outcome = tagged(page_with_links("/b"), "noindex")
        await world.open(f"{A}/", script={f"{A}/": outcome})
        await world.visit()
        assert world.pages == []
        assert await world.states() == {f"{A}/": "blocked", f"{A}/b": "pending"}
        assert await world.reason(f"{A}/") == "noindex"

    async def test_nofollow_keeps_the_page_and_follows_nothing(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": tagged(page_with_links("/b"), "nofollow")})
        await world.visit()
        assert len(world.pages) == 1
        assert await world.states() == {f"{A}/": "done"}

    async def test_every_header_counts(self, world: World) -> None:
        outcome = tagged(page_with_links("/b"), "googlebot: noindex", "nofollow", "rove: noindex")
        await world.open(f"{A}/", script={f"{A}/": outcome})
        await world.visit()
        assert await world.states() == {f"{A}/": "blocked"}

    async def test_headers_for_other_crawlers_do_not_count(self, world: World) -> None:
        outcome = tagged(page_with_links("/b"), "googlebot: noindex, nofollow")
        await world.open(f"{A}/", script={f"{A}/": outcome})
        await world.visit()
        assert await world.states() == {f"{A}/": "done", f"{A}/b": "pending"}

    async def test_it_applies_to_plain_text_too(self, world: World) -> None:
        outcome = tagged(page("Some text", "text/plain"), "noindex")
        await world.open(f"{A}/", script={f"{A}/": outcome})
        await world.visit()
        assert world.pages == []
        assert await world.states() == {f"{A}/": "blocked"}


def tagged(outcome: Fetched, *tags: str) -> Fetched:
    """Return a page with X-Robots-Tag headers."""
    head = outcome.response
    more = [("X-Robots-Tag", tag) for tag in tags]
    return replace(outcome, response=replace(head, headers=[*head.headers, *more]))


class TestEnds:
    """Visits that end early."""

    async def test_no_request_starts_after_the_deadline(self, world: World) -> None:
        await world.open(f"{A}/")
        held = await world.claim()
        world.advance(VISIT_BUDGET - 0.1)
        record, visit = world.start(held)
        await visit.run()
        assert world.fetcher.requested == [] and not record.requested
        await world.write(record)
        assert await world.states() == {f"{A}/": "pending"}

    async def test_a_visit_ends_when_its_time_is_up(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": redirect("/b")})

        async def slowly(request: Request) -> None:
            world.advance(VISIT_BUDGET / 2 - 0.2)

        world.fetcher.before_answer = slowly
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert world.fetcher.requests[1].timeout == pytest.approx(VISIT_BUDGET / 2 + 0.2)
        assert record.requested
        assert await world.states() == {f"{A}/": "redirected", f"{A}/b": "pending"}

    async def test_the_delay_counts_from_the_end_of_the_last_request(self, world: World) -> None:
        await world.open(f"{A}/", f"{A}/2", script={f"{A}/": page()})

        async def slowly(request: Request) -> None:
            world.advance(5)

        world.fetcher.before_answer = slowly
        held = await world.claim()
        record, visit = world.start(held)
        await visit.run()
        world.advance(30)
        await world.write(record)
        assert await world.next_due() == DELAY - 30

    async def test_a_shutdown_ends_the_visit(self, world: World) -> None:
        await world.open(f"{A}/")

        async def stop(request: Request) -> None:
            world.stop()

        world.fetcher.before_answer = stop
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert record.requested and len(record.origins(world.now())) == 1, "the robots.txt is saved"
        assert await world.states() == {f"{A}/": "pending"}
        assert await world.next_due() == DELAY

    async def test_after_a_shutdown_no_request_is_made(self, world: World) -> None:
        await world.open(f"{A}/")
        world.stop()
        record = await world.visit()
        assert not record.requested
        assert await world.next_due() == 0.0

    @pytest.mark.parametrize("during", ["robots.txt", ""])
    async def test_a_cancelled_request_counts_as_made(self, world: World, during: str) -> None:
        await world.open(f"{A}/")
        started = asyncio.Event()

        async def hang(request: Request) -> None:
            if request.url.text == f"{A}/{during}":
                started.set()
                await asyncio.Event().wait()

        world.fetcher.before_answer = hang
        held = await world.claim()
        record, visit = world.start(held)
        task = asyncio.ensure_future(visit.run())
        await started.wait()
        world.advance(20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert record.requested and record.finished_at == world.now()
        assert record.requests[-1].error == "aborted"
        await world.write(record)
        assert await world.states() == {f"{A}/": "pending"}
        assert await world.next_due() == DELAY

    async def test_a_request_that_raises_counts_as_made(self, world: World) -> None:
        await world.open(f"{A}/")

        async def break_down(request: Request) -> None:
            raise RuntimeError("broken")

        world.fetcher.before_answer = break_down
        held = await world.claim()
        record, visit = world.start(held)
        with pytest.raises(RuntimeError):
            await visit.run()
        assert record.requested
