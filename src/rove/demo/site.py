"""The plan of the small web: the hosts of each domain, the entries of each host, and how links lead to them.

Each host has a number of entries. Every fourth entry is a hub: an open page that links to the three entries after it
and to two further hubs. So every entry can be reached from the home page (entry 0), and the links that lead to an entry
follow from its number. Some entries have steps: the hops of a redirect, or a page that only one link leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rove.demo import words
from rove.demo.draw import Weighted, number
from rove.demo.names import domain_index, domain_name
from rove.demo.profile import EntryKind, Profile, RobotsKind, SiteShape
from rove.demo.robots import RobotsPlan

HUB_EVERY = 4
_LABELS = {
    SiteShape.BARE: ("",),
    SiteShape.BARE_AND_BLOG: ("", "blog."),
    SiteShape.BARE_AND_WWW: ("", "www."),
    SiteShape.AT_WWW: ("", "www."),
}
_SHUT_KINDS = frozenset({RobotsKind.CLOSED, RobotsKind.SHUT_OUT, RobotsKind.BROKEN})
_OPEN_SECTIONS = ("notes", "guides", "caf%C3%A9", "tips%20and%20tricks", "news/2024/may")
_RESTRICTED_SECTIONS = ("private", "private/drafts", "archive", "archive/open")
_STYLES = 5
_HUB_STYLES = 4
"""Styles without a query, because no robots.txt may close a hub."""
_WORDS = words.OF_PATHS.split()
_REDIRECTS = frozenset({EntryKind.CHAIN, EntryKind.LONG_CHAIN, EntryKind.LOOP, EntryKind.INWARD, EntryKind.AWAY})
_STEP_SECTIONS = {
    EntryKind.PAGE: "sponsored",
    EntryKind.NOINDEX: "found",
    EntryKind.NOFOLLOW: "beyond",
    EntryKind.CHAIN: "go",
    EntryKind.LONG_CHAIN: "go",
    EntryKind.LOOP: "go",
    EntryKind.INWARD: "private",
}
_LONG_CHAIN_HOPS = 5
_LOOP_HOPS = 2
_NUMBER = re.compile(r"-([0-9]{1,9})(?:\.([0-9]))?")


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the web."""

    name: str
    domain: str
    siblings: tuple[str, ...]
    """The labels of all hosts of the domain: '', `www.` or `blog.`"""
    robots: RobotsPlan
    entries: int
    """The number of entries."""
    at_www: bool
    """The host only redirects to www."""


class Entry(NamedTuple):
    """A numbered address of a host. A named tuple because a page needs dozens."""

    number: int
    kind: EntryKind
    path: str
    """Canonical, with query."""
    word: str
    """A name that is also part of the paths of its steps."""
    steps: int
    """The number of further addresses that it leads to."""


@dataclass(frozen=True, slots=True)
class Spot:
    """An address of a host: an entry, or one of its steps."""

    entry: Entry
    step: int
    path: str


class SitePlan:
    """All hosts and entries, computed on demand."""

    def __init__(self, seed: int, hosts: int, profile: Profile) -> None:
        self.seed = seed
        self.hosts = hosts
        self._pages_per_host = profile.pages_per_host
        self._crawl_delay = profile.crawl_delay
        self._restricted = int(profile.restricted * 256)
        self._kinds = Weighted(profile.entries)
        self._robots = Weighted(profile.robots)
        self._shapes = Weighted(profile.shapes)
        self.host = lru_cache(maxsize=20_000)(self._host)
        """Returns the host with a name, or None. The cache bounds the memory for any number of hosts."""

    def domain_name(self, index: int) -> str:
        """Return the name of a domain."""
        return domain_name(self.seed, index)

    def bare_host(self, index: int) -> Host:
        """Return the host with the name of a domain."""
        host = self.host(self.domain_name(index))
        assert host is not None
        return host

    def sibling(self, host: Host, label: str) -> Host:
        """Return another host of the same domain."""
        sibling = self.host(label + host.domain)
        assert sibling is not None
        return sibling

    def entry(self, host: Host, position: int) -> Entry:
        """Return the entry with this number."""
        bits = number(self.seed, f"{host.name} {position}")
        is_hub = position % HUB_EVERY == 0
        kind = EntryKind.PAGE if is_hub else self._kinds.pick(bits)
        bits >>= 32
        word = f"{_WORDS[bits % 26]}-{position}"
        if position == 0:
            path, kind = "/", EntryKind.TO_WWW if host.at_www else EntryKind.PAGE
        elif kind in _REDIRECTS:
            path = f"/go/{word}"
        else:
            is_restricted = not is_hub and (bits >> 8) % 256 < self._restricted
            sections = _RESTRICTED_SECTIONS if is_restricted else _OPEN_SECTIONS
            section = sections[(bits >> 16) % len(sections)]
            path = _path((bits >> 24) % (_HUB_STYLES if is_hub else _STYLES), section, word)
        return Entry(position, kind, path, word, _steps(kind, is_hub, bits))

    def step(self, entry: Entry, step: int) -> Spot:
        """Return the address that an entry leads to after this many steps."""
        if step == 0:
            return Spot(entry, 0, entry.path)
        return Spot(entry, step, f"/{_STEP_SECTIONS[entry.kind]}/{entry.word}.{step}")

    def find(self, host: Host, path: str) -> Spot | None:
        """Return the address with a canonical path, or None."""
        if path == "/":
            return self.step(self.entry(host, 0), 0)
        match = _NUMBER.search(path)
        if match is None or int(match[1]) >= host.entries:
            return None
        entry = self.entry(host, int(match[1]))
        step = int(match[2] or 0)
        if step > entry.steps:
            return None
        spot = self.step(entry, step)
        return spot if spot.path == path else None

    def children(self, host: Host, entry: Entry) -> Iterator[Entry]:
        """Yield the entries that this one must link to so that every entry can be reached."""
        if entry.number % HUB_EVERY:
            return
        for position in range(entry.number + 1, entry.number + HUB_EVERY):
            if position < host.entries:
                yield self.entry(host, position)
        hub = entry.number // HUB_EVERY
        for position in ((2 * hub + 1) * HUB_EVERY, (2 * hub + 2) * HUB_EVERY):
            if position < host.entries:
                yield self.entry(host, position)

    def _host(self, name: str) -> Host | None:
        label, domain = _split(name)
        index = domain_index(self.seed, domain)
        if index is None or index >= self.hosts:
            return None
        bare_robots = self._robots.pick(number(self.seed, f"robots of {domain}"))
        shape = self._shapes.pick(number(self.seed, f"shape of {domain}"))
        if bare_robots in _SHUT_KINDS:
            # The other hosts are linked only from the home page of the bare host.
            shape = SiteShape.BARE
        labels = _LABELS[shape]
        if label not in labels:
            return None
        kind = self._robots.pick(number(self.seed, f"robots of {name}")) if label else bare_robots
        low, high = self._pages_per_host
        at_www = shape is SiteShape.AT_WWW and not label
        return Host(
            name=name,
            domain=domain,
            siblings=labels,
            robots=RobotsPlan(kind, self._crawl_delay if kind is RobotsKind.DELAYED else 0.0),
            entries=1 if at_www else low + number(self.seed, f"size of {name}") % (high - low + 1),
            at_www=at_www,
        )


def _split(name: str) -> tuple[str, str]:
    for label in ("www.", "blog."):
        if name.startswith(label):
            return label, name.removeprefix(label)
    return "", name


def _path(style: int, section: str, word: str) -> str:
    match style:
        case 0:
            return f"/{section}/{word}"
        case 1:
            return f"/{section}/{word}.html"
        case 2:
            return f"/{section}/{word}/"
        case 3:
            return f"/~{word}/{section}"
        case _:
            return f"/{section}/view?id={word}&lang=en"


def _steps(kind: EntryKind, is_hub: bool, bits: int) -> int:
    match kind:
        case EntryKind.CHAIN:
            return 1 + (bits >> 30) % 3
        case EntryKind.LONG_CHAIN:
            return _LONG_CHAIN_HOPS
        case EntryKind.LOOP:
            return _LOOP_HOPS
        case EntryKind.INWARD | EntryKind.NOINDEX | EntryKind.NOFOLLOW:
            return 1
        case EntryKind.PAGE if is_hub:
            return 1
        case _:
            return 0
