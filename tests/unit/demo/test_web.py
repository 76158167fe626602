"""The small web is reproducible, has every kind of page, and needs no memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections import Counter, defaultdict
from dataclasses import fields, replace

import brotli
import pytest

from rove.demo.draw import Draw, Weighted
from rove.demo.names import domain_index, domain_name
from rove.demo.profile import CALM, FULL, EntryKind, Profile, RobotsKind, SiteShape, adjusted
from rove.demo.prose import LANGUAGES, LEGACY_CHARSETS, paragraphs
from rove.demo.response import WebResponse
from rove.demo.web import STALL_SECONDS, SmallWeb
from rove.errors import UsageError
from rove.urls.canonical import parse_base
from rove.urls.domain import domain_of
from tests.oracle import all_hosts, allowed, expected_pages
from tests.urls import canonical

SHORT = replace(FULL, page_bytes=(300, 600), links_per_page=(6, 8))
"""Every kind of entry, with small pages."""


def entry_responses(web: SmallWeb, *, again: bool = False) -> dict[EntryKind, list[WebResponse]]:
    responses = defaultdict(list)
    for name in all_hosts(web):
        host = web.plan.host(name)
        assert host is not None
        for position in range(host.entries):
            entry = web.plan.entry(host, position)
            responses[entry.kind].append(web.respond(name, entry.path, again=again))
    return responses


def header(response: WebResponse, name: str) -> str:
    return next((value for key, value in response.headers if key == name), "")


@pytest.mark.parametrize("profile", [FULL, CALM], ids=["full", "calm"])
def test_two_webs_of_one_seed_are_the_same(profile: Profile) -> None:
    first, second, other = (SmallWeb(seed, 20, profile) for seed in (7, 7, 8))
    assert list(all_hosts(first)) == list(all_hosts(second))
    assert list(first.seeds()) != list(other.seeds())
    # In another order, because nothing may depend on earlier requests.
    hosts = list(all_hosts(first))
    paths = ["/", "/robots.txt", "/nothing"]
    forward = {(h, p): first.respond(h, p) for h in hosts for p in paths}
    backward = {(h, p): second.respond(h, p) for h in reversed(hosts) for p in reversed(paths)}
    assert forward == backward


def test_names_and_numbers_of_domains_map_to_each_other() -> None:
    numbers = [*range(2_000), 199_999, 999_999, 12_345_678]
    names = [domain_name(3, number) for number in numbers]
    assert [domain_index(3, name) for name in names] == numbers
    assert len(set(names)) == len(names)
    assert all(domain_of("www." + name) == name for name in names[:50])
    for name in ["example.test", "harbor-fern-0.test", "harbor-nothing-1.test", "harbor-fern-1.com"]:
        assert domain_index(3, name) is None


def test_unknown_hosts() -> None:
    web = SmallWeb(1, 10, CALM)
    for host in [web.host_name(10), "example.org", "", "www.www." + web.host_name(0)]:
        assert web.respond(host, "/").status == 404
        assert web.respond(host, "/robots.txt").status == 404
        assert allowed(web, host, "/")
        assert not expected_pages(web, host)


def test_a_million_hosts_cost_no_memory() -> None:
    web = SmallWeb(1, 1_000_000, FULL)
    web.respond(web.host_name(0), "/")
    tracemalloc.start()
    try:
        for index in range(0, 1_000_000, 2_000):
            web.respond(web.host_name(index), "/robots.txt")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
    assert web.plan.host.cache_info().maxsize is not None


def test_every_kind_of_entry_is_served() -> None:
    web = SmallWeb(4, 100, SHORT)
    kinds = entry_responses(web)
    assert set(kinds) == set(EntryKind)
    statuses = {kind: {response.status for response in responses} for kind, responses in kinds.items()}
    redirects = {301, 302, 303, 307, 308}
    for kind, seen in statuses.items():
        match kind:
            case EntryKind.MISSING:
                assert seen == {404}
            case EntryKind.GONE:
                assert seen == {410}
            case EntryKind.ERROR:
                assert seen == {500}
            case EntryKind.UNAVAILABLE | EntryKind.FLAKY:
                assert seen == {503}
            case _ if kinds[kind][0].location:
                assert seen <= redirects
            case _:
                assert seen == {200}
    assert all(0.2 <= response.delay <= 2.0 for response in kinds[EntryKind.SLOW])
    assert all(response.delay == STALL_SECONDS for response in kinds[EntryKind.STALLED])
    assert all(0 < (response.cut_after or 0) < len(response.body) for response in kinds[EntryKind.CUT])
    assert all(response.fails_first for response in kinds[EntryKind.FLAKY])
    assert all(response.body == b"" for response in kinds[EntryKind.EMPTY])
    later = entry_responses(web, again=True)[EntryKind.FLAKY]
    assert all(response.status == 200 and not response.fails_first for response in later)


def test_a_calm_web_never_fails_and_never_waits() -> None:
    web = SmallWeb(4, 60, CALM)
    responses = [response for responses in entry_responses(web).values() for response in responses]
    responses += [web.respond(host, "/robots.txt") for host in all_hosts(web)]
    assert {response.status for response in responses} <= {200, 301, 302, 303, 307, 308, 404, 410}
    assert not any(a.delay or a.fails_first or a.cut_after is not None for a in responses)


def test_pages_come_in_many_codings_and_charsets() -> None:
    web = SmallWeb(4, 60, SHORT)
    pages = entry_responses(web)[EntryKind.PAGE]
    codings = Counter(header(response, "Content-Encoding") for response in pages)
    assert set(codings) == {"", "gzip", "deflate", "br"}
    types = Counter(header(response, "Content-Type") for response in pages)
    assert set(types) == {
        "text/html",
        "text/html; charset=utf-8",
        "text/html; charset=iso-8859-1",
        "text/html; charset=windows-1251",
        "text/html; charset=shift_jis",
    }
    assert {response.chunked for response in pages} == {True, False}


def test_only_accepted_codings_are_used() -> None:
    web = SmallWeb(4, 30, FULL)
    decoders = {"gzip": gzip.decompress, "deflate": zlib.decompress, "br": brotli.decompress}
    seen = set()
    for host in all_hosts(web):
        coded, plain = web.respond(host, "/"), web.respond(host, "/", codings=())
        coding = header(coded, "Content-Encoding")
        seen.add(coding)
        assert not header(plain, "Content-Encoding")
        assert plain.body == (decoders[coding](coded.body) if coding else coded.body)
    assert seen == {"", *decoders}


def test_texts_fit_their_charset() -> None:
    for language in LANGUAGES:
        text = "".join(paragraphs(Draw(1, "x"), language, 100_000))
        assert len(text.encode()) >= 100_000
        assert text.encode(LEGACY_CHARSETS.get(language, "utf-8"))


def test_redirect_chains_have_the_right_length() -> None:
    web = SmallWeb(4, 80, SHORT)
    redirects = {EntryKind.CHAIN, EntryKind.LONG_CHAIN, EntryKind.LOOP, EntryKind.INWARD}
    lengths = defaultdict(set)
    for name in all_hosts(web):
        host = web.plan.host(name)
        assert host is not None
        for position in range(host.entries):
            entry = web.plan.entry(host, position)
            if entry.kind not in redirects:
                continue
            url = canonical(f"http://{name}{entry.path}")
            hops = 0
            while url is not None and url.host == name and hops < 20:
                response = web.respond(name, url.text.removeprefix(url.origin))
                if not response.location:
                    break
                url = canonical(response.location, parse_base(url.text))
                hops += 1
            lengths[entry.kind].add(hops)
    assert lengths[EntryKind.CHAIN] == {1, 2, 3}
    assert lengths[EntryKind.LONG_CHAIN] == {5}
    assert lengths[EntryKind.LOOP] == {20}
    assert lengths[EntryKind.INWARD] == {1}


def test_every_kind_of_robots_txt_and_site_shape_occurs() -> None:
    web = SmallWeb(4, 400, FULL)
    hosts = [web.plan.host(name) for name in all_hosts(web)]
    assert {host.robots.kind for host in hosts if host} == set(RobotsKind)
    assert {host.siblings for host in hosts if host} == {("",), ("", "www."), ("", "blog.")}
    moved = [host for host in hosts if host and host.at_www]
    assert moved
    for host in moved:
        target = canonical(web.respond(host.name, "/").location, parse_base(f"http://{host.name}/"))
        assert target is not None
        assert target.text == f"http://www.{host.name}/"


def test_every_spelling_of_a_path_is_served() -> None:
    web = SmallWeb(4, 20, CALM)
    for name in web.seeds():
        host = web.plan.host(name)
        assert host is not None
        for position in range(host.entries):
            path = web.plan.entry(host, position).path
            odd = path.lower().replace("~", "%7e").replace("/notes/", "/./%6eotes/")
            assert web.respond(name, odd) == web.respond(name, path)
            assert allowed(web, name, odd) == allowed(web, name, path)


def test_settings_can_be_changed_by_name() -> None:
    settings = ["crawl_delay=0.5", "pages_per_host=2,9", "page_bytes=700"]
    settings += ["entries.slow=0", "robots.shut-out=1.5", "shapes.at-www=3", "slow_seconds=0.1,0.2"]
    profile = adjusted(FULL, settings)
    assert profile.crawl_delay == 0.5
    assert profile.pages_per_host == (2, 9)
    assert profile.page_bytes == (700, 700)
    assert profile.slow_seconds == (0.1, 0.2)
    assert profile.entries == {**FULL.entries, EntryKind.SLOW: 0}
    assert profile.robots == {**FULL.robots, RobotsKind.SHUT_OUT: 1.5}
    assert profile.shapes == {**FULL.shapes, SiteShape.AT_WWW: 3}
    changed = {f.name for f in fields(Profile) if getattr(profile, f.name) != getattr(FULL, f.name)}
    assert len(changed) == 7


@pytest.mark.parametrize("setting", ["colour=red", "entries.dream=1", "crawl_delay=soon"])
def test_an_invalid_setting_is_an_error(setting: str) -> None:
    with pytest.raises(UsageError, match=setting):
        adjusted(FULL, [setting])


def test_a_web_needs_hosts() -> None:
    with pytest.raises(UsageError, match="at least one host"):
        SmallWeb(1, 0)


def test_choices_follow_their_weights() -> None:
    choice = Weighted({"often": 3.0, "never": 0.0, "seldom": 1.0})
    draw = Draw(1, "choices")
    drawn = Counter(choice.pick(draw.below(1 << 40)) for _ in range(8_000))
    assert set(drawn) == {"often", "seldom"}
    assert 0.70 < drawn["often"] / 8_000 < 0.80


def test_draws_stay_in_their_bounds() -> None:
    draw = Draw(1, "bounds")
    assert {draw.between((3, 5)) for _ in range(100)} == {3, 4, 5}
    assert {draw.below(2) for _ in range(100)} == {0, 1}
    assert all(draw.chance(1.0) for _ in range(100))
    assert not any(draw.chance(0.0) for _ in range(100))
