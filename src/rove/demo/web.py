"""The small web: each response is a pure function of a seed, the host and the path.

Nothing is stored, so a web of a million hosts needs no memory. server.py serves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from rove.demo import page
from rove.demo.draw import Draw, number
from rove.demo.links import Target, Viewpoint, odd_spelling, offsite
from rove.demo.page import PageContent
from rove.demo.profile import FULL, EntryKind, Profile, RobotsKind
from rove.demo.response import CODINGS, WebResponse, redirect, refusal, success
from rove.demo.robots import MOVED_PATH, ROBOTS_PATH
from rove.demo.site import Host, SitePlan, Spot
from rove.errors import UsageError
from rove.urls.canonical import plain_url

STALL_SECONDS = 3_600.0
"""The delay of a stalled response, longer than any client waits."""
_ANY_HOST = "http://any.test"
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"


class SmallWeb:
    """A deterministic web of `hosts` domains, each with one or two hosts."""

    def __init__(self, seed: int, hosts: int, profile: Profile = FULL) -> None:
        if hosts < 1:
            raise UsageError(f"a web needs at least one host, not {hosts}")
        self.seed = seed
        self.hosts = hosts
        self.profile = profile
        self.plan = SitePlan(seed, hosts, profile)

    def host_name(self, index: int) -> str:
        """Return the name of the bare host of a domain."""
        return self.plan.domain_name(index)

    def seeds(self) -> Iterator[str]:
        """Return the bare host of every domain, the seeds of a crawl of the whole web."""
        return map(self.plan.domain_name, range(self.hosts))

    def seed_file(self) -> str:
        """Return the seeds as the text of a seed file."""
        return "".join(f"http://{name}/\n" for name in self.seeds())

    def respond(self, host: str, path: str, *, again: bool = False, codings: tuple[str, ...] = CODINGS) -> WebResponse:
        """Return the response to a GET request for a path with query on a host, given by its lower-case name.

        `again` is for repeated requests; `codings` are the content codings that the client accepts.
        """
        site = self.plan.host(host)
        if site is None:
            return replace(refusal(404), body=b"No such host here.\n")
        path = normal_path(path)
        if path == ROBOTS_PATH or (path == MOVED_PATH and site.robots.kind is RobotsKind.MOVED):
            return _robots_response(site, path)
        spot = self.plan.find(site, path)
        if spot is None:
            return refusal(404)
        draw = Draw(self.seed, site.name + path)
        hop = self._next_hop(site, spot, draw)
        if hop is not None:
            return self._redirect(site, spot, hop, draw)
        if spot.step > 0:
            return self.page(site, spot, draw, codings)
        return self._entry_response(site, spot, draw, again, codings)

    def latency(self, host: str, target: str) -> float:
        """Return the seconds before the response to a request, without the delay of the page itself."""
        low, high = self.profile.latency
        return low if low == high else low + (high - low) * (number(self.seed, host + target) % 1_001) / 1_000

    def _entry_response(self, host: Host, spot: Spot, draw: Draw, again: bool, codings: tuple[str, ...]) -> WebResponse:
        kind = spot.entry.kind
        match kind:
            case EntryKind.PAGE | EntryKind.NOINDEX | EntryKind.NOFOLLOW:
                return self.page(host, spot, draw, codings)
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
                    return self.page(host, spot, draw, codings)
                return replace(refusal(503), fails_first=True)
            case EntryKind.SLOW:
                low, high = self.profile.slow_seconds
                delay = low + (high - low) * draw.below(1_001) / 1_000
                return replace(self.page(host, spot, draw, codings), delay=delay)
            case EntryKind.STALLED:
                return replace(self.page(host, spot, draw, codings), delay=STALL_SECONDS)
            case EntryKind.CUT:
                whole = self.page(host, spot, draw, codings)
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
        """Return the target of the redirect at an address, or None."""
        entry = spot.entry
        match entry.kind:
            case EntryKind.TO_WWW:
                return Target(f"www.{host.domain}", "/")
            case EntryKind.AWAY:
                return offsite(self.plan, draw)
            case EntryKind.LOOP:
                following = spot.step % entry.steps + 1
            case EntryKind.CHAIN | EntryKind.LONG_CHAIN | EntryKind.INWARD if spot.step < entry.steps:
                following = spot.step + 1
            case _:
                return None
        return Target(host.name, self.plan.step(entry, following).path)

    def _redirect(self, host: Host, spot: Spot, hop: Target, draw: Draw) -> WebResponse:
        location = f"http://{hop.host}{hop.path}"
        if draw.chance(self.profile.odd_links):
            view = Viewpoint(host.name, spot.path, utf8=False)
            location = odd_spelling(hop, view, draw.below(1 << 16)).strip()
        return redirect(draw.pick(_REDIRECT_STATUSES), location)

    def page(self, host: Host, spot: Spot, draw: Draw, codings: tuple[str, ...]) -> WebResponse:
        """Make the response for a page that is served without trouble."""
        content = page.html_page(self.plan, self.profile, host, spot, draw)
        coding = draw.pick(CODINGS) if draw.chance(self.profile.encoded) else ""
        return success(content, coding=coding if coding in codings else "", chunked=draw.chance(self.profile.chunked))


def normal_path(target: str) -> str:
    """Return the canonical spelling of a path with query."""
    if "%" not in target and "/." not in target and "#" not in target:
        return target
    url = plain_url(_ANY_HOST + target)
    return target if url is None else url.text.removeprefix(_ANY_HOST)


def _robots_response(host: Host, path: str) -> WebResponse:
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
