"""The small web: what each host answers, as a pure function of a seed, the host and the path.

Nothing is stored, so a web of a million hosts costs no memory. It is also its own oracle: `allowed`
and `expected_pages` say, from how the web was made, what a polite crawler called `rove` may fetch
and must end with. The sockets are in server.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from rove.demo import page
from rove.demo.answer import CODINGS, SiteAnswer, redirect, refusal, success
from rove.demo.draw import Draw, number
from rove.demo.links import Target, Viewpoint, odd_spelling, offsite
from rove.demo.page import PageContent
from rove.demo.plain_page import PlainPages
from rove.demo.profile import FULL, EntryKind, Profile, RobotsKind
from rove.demo.robots import MOVED_PATH, ROBOTS_PATH
from rove.demo.site import Entry, Host, SitePlan, Spot
from rove.urls.canonical import canonical

STALL_SECONDS = 3_600.0
"""How long a stalled answer takes: longer than any client waits."""
_ANY_HOST = "http://any.test"
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"


class SmallWeb:
    """A deterministic web of so many domains, each with one host or two."""

    def __init__(self, seed: int, hosts: int, profile: Profile = FULL) -> None:
        if hosts < 1:
            raise ValueError(f"a web needs at least one host, not {hosts}")
        self.seed = seed
        self.hosts = hosts
        self.profile = profile
        self.plan = SitePlan(seed, hosts, profile)
        self._plain_pages = PlainPages(self.plan, profile)

    def host_name(self, index: int) -> str:
        """The bare host of a domain by its number."""
        return self.plan.domain_name(index)

    def seeds(self) -> Iterator[str]:
        """The bare host of every domain: what a crawl of the whole web starts from."""
        return map(self.plan.domain_name, range(self.hosts))

    def all_hosts(self) -> Iterator[str]:
        """Every host, those with www. and blog. in front included."""
        for index in range(self.hosts):
            bare = self.plan.bare_host(index)
            yield from (label + bare.domain for label in bare.siblings)

    def allowed(self, host: str, path: str) -> bool:
        """Whether the robots.txt that a host serves lets `rove` fetch a path (with query)."""
        found = self.plan.host(host)
        return found is None or found.robots.allows(normal_path(path))

    def crawl_delay(self, host: str) -> float:
        """The Crawl-delay that a host asks of `rove`, 0 if none."""
        found = self.plan.host(host)
        return 0.0 if found is None else found.robots.crawl_delay

    def expected_pages(self, host: str) -> frozenset[str]:
        """The canonical URLs of a host that a crawl from all seeds, run to its end, has stored.

        That is every text that is allowed, can be reached by links and redirects that count, is not
        marked noindex, and is answered at last. An empty text is a text.
        """
        found = self.plan.host(host)
        if found is None or not found.robots.allows("/"):
            return frozenset()
        spots = [
            spot
            for place in range(found.places)
            for spot in self._stored_spots(found, self.plan.entry(found, place))
        ]
        return frozenset(f"http://{host}{spot.path}" for spot in spots)

    def answer(
        self, host: str, target: str, *, again: bool = False, codings: tuple[str, ...] = CODINGS
    ) -> SiteAnswer:
        """What a host (by its lower-case name) says to a GET of a path with query.

        `again` asks a second time, `codings` are the content codings that the client takes.
        """
        found = self.plan.host(host)
        if found is None:
            return replace(refusal(404), body=b"No such host here.\n")
        path = normal_path(target)
        if path == ROBOTS_PATH or (path == MOVED_PATH and found.robots.kind is RobotsKind.MOVED):
            return _robots_answer(found, path)
        spot = self.plan.find(found, path)
        if spot is None:
            return refusal(404)
        draw = Draw(self.seed, found.name + path)
        hop = self._next_hop(found, spot, draw)
        if hop is not None:
            return self._redirect(found, spot, hop, draw)
        if spot.step > 0:
            return self._page(found, spot, draw, codings)
        return self._entry_answer(found, spot, draw, again, codings)

    def latency(self, host: str, target: str) -> float:
        """How long the answer to a request takes, besides what its page itself does."""
        low, high = self.profile.latency
        return (
            low
            if low == high
            else low + (high - low) * (number(self.seed, host + target) % 1_001) / 1_000
        )

    def _entry_answer(
        self, host: Host, spot: Spot, draw: Draw, again: bool, codings: tuple[str, ...]
    ) -> SiteAnswer:
        kind = spot.entry.kind
        match kind:
            case EntryKind.PAGE | EntryKind.NOINDEX | EntryKind.NOFOLLOW:
                return self._page(host, spot, draw, codings)
            case EntryKind.TEXT:
                return success(page.text_page(self.plan, host, spot, draw))
            case EntryKind.EMPTY:
                return success(PageContent(_HTML, b""))
            case EntryKind.PDF:
                return success(page.pdf(spot))
            case EntryKind.IMAGE:
                return success(page.image(spot))
            case EntryKind.JSON:
                return success(page.json_document(host, spot))
            case EntryKind.MISSING:
                return refusal(404)
            case EntryKind.GONE:
                return refusal(410)
            case EntryKind.ERROR:
                return refusal(500)
            case EntryKind.UNAVAILABLE:
                return refusal(503, retry_after=2)
            case EntryKind.FLAKY:
                if again:
                    return self._page(host, spot, draw, codings)
                return replace(refusal(503), fails_first=True)
            case EntryKind.SLOW:
                low, high = self.profile.slow_seconds
                delay = low + (high - low) * draw.below(1_001) / 1_000
                return replace(self._page(host, spot, draw, codings), delay=delay)
            case EntryKind.STALLED:
                return replace(self._page(host, spot, draw, codings), delay=STALL_SECONDS)
            case EntryKind.CUT:
                whole = self._page(host, spot, draw, codings)
                return replace(whole, chunked=False, cut_after=len(whole.body) // 2)
            case (
                EntryKind.CHAIN
                | EntryKind.LONG_CHAIN
                | EntryKind.LOOP
                | EntryKind.INWARD
                | EntryKind.AWAY
                | EntryKind.TO_WWW
            ):
                raise AssertionError(f"{kind} is a redirect")
            case _:
                assert_never(kind)

    def _next_hop(self, host: Host, spot: Spot, draw: Draw) -> Target | None:
        """Where an address redirects to, if it does."""
        entry = spot.entry
        match entry.kind:
            case EntryKind.TO_WWW:
                return Target(f"www.{host.domain}", "/")
            case EntryKind.AWAY:
                return offsite(self.plan, draw)
            case EntryKind.LOOP:
                following = spot.step % entry.steps + 1
            case EntryKind.CHAIN | EntryKind.LONG_CHAIN | EntryKind.INWARD if (
                spot.step < entry.steps
            ):
                following = spot.step + 1
            case _:
                return None
        return Target(host.name, self.plan.step(entry, following).path)

    def _redirect(self, host: Host, spot: Spot, hop: Target, draw: Draw) -> SiteAnswer:
        location = f"http://{hop.host}{hop.path}"
        if draw.chance(self.profile.odd_links):
            view = Viewpoint(host.name, spot.path, utf8=False)
            location = odd_spelling(hop, view, draw.below(1 << 16)).strip()
        return redirect(draw.pick(_REDIRECT_STATUSES), location)

    def _page(self, host: Host, spot: Spot, draw: Draw, codings: tuple[str, ...]) -> SiteAnswer:
        if self.profile.plain:
            return success(self._plain_pages.page(host, spot.entry.number))
        content = page.html_page(self.plan, self.profile, host, spot, draw)
        coding = draw.pick(CODINGS) if draw.chance(self.profile.encoded) else ""
        return success(
            content,
            coding=coding if coding in codings else "",
            chunked=draw.chance(self.profile.chunked),
        )

    def _stored_spots(self, host: Host, entry: Entry) -> Iterator[Spot]:
        """What a crawler stores of a place that it was told of."""
        spots = [self.plan.step(entry, step) for step in range(entry.steps + 1)]
        match entry.kind:
            case (
                EntryKind.PAGE
                | EntryKind.NOFOLLOW
                | EntryKind.TEXT
                | EntryKind.EMPTY
                | EntryKind.SLOW
                | EntryKind.FLAKY
            ):
                wanted, way = spots[0], spots[:1]
            case EntryKind.NOINDEX | EntryKind.CHAIN | EntryKind.LONG_CHAIN | EntryKind.INWARD:
                wanted, way = spots[-1], spots
            case _:
                return
        if all(host.robots.allows(spot.path) for spot in way):
            yield wanted


def normal_path(target: str) -> str:
    """A path with query in the canonical spelling, whatever way the client wrote it."""
    if "%" not in target and "/." not in target and "#" not in target:
        return target
    found = canonical(_ANY_HOST + target)
    return target if found is None else found.text.removeprefix(_ANY_HOST)


def _robots_answer(host: Host, path: str) -> SiteAnswer:
    plan = host.robots
    match plan.kind:
        case RobotsKind.NONE:
            return refusal(404)
        case RobotsKind.BROKEN:
            return refusal(500)
        case RobotsKind.MOVED if path == ROBOTS_PATH:
            return redirect(301, MOVED_PATH)
        case RobotsKind.HTML:
            return success(PageContent(_HTML, plan.text()))
        case _:
            return success(PageContent(_TEXT, plan.text()))
