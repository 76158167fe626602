"""The links of a page: where they lead, and the many ways to spell one address.

All spellings of an address come to one canonical URL, so a crawler that fetches a page twice did
not see that two links were the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from rove.demo.draw import Draw
from rove.demo.profile import EntryKind, Profile
from rove.demo.site import Host, SitePlan, Spot

NOT_THE_WEB = (
    '<a href="mailto:keeper@example.test">write to us</a>',
    '<a href="javascript:void(0)">open</a>',
    '<a href="tel:+15550100">call</a>',
    '<a href="data:text/plain,hello">small print</a>',
    '<a href="http://[broken/">broken</a>',
    '<a name="here">no address at all</a>',
)
"""What stands in links besides web addresses."""


class Target(NamedTuple):
    """Where a link leads. A named tuple is made in a third of the time; a page has dozens."""

    host: str
    path: str
    counts: bool = True
    """False for a link that says nofollow."""


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """What the spelling of a page's links depends on."""

    host: str
    base_path: str
    """The path that relative links start from: the page's own, or its base href."""
    utf8: bool
    """The page says that it is UTF-8, so that letters outside of ASCII may stand in an address."""


def targets(plan: SitePlan, profile: Profile, host: Host, spot: Spot, draw: Draw) -> list[Target]:
    """Where the links of a page lead: first what only it can tell of, then anywhere."""
    entry = spot.entry
    found: list[Target] = []
    if spot.step == 0:
        found.extend(Target(host.name, child.path) for child in plan.children(host, entry))
        if entry.number == 0:
            found.extend(Target(label + host.domain, "/") for label in host.siblings if label)
        if entry.steps:
            found.append(
                Target(host.name, plan.step(entry, 1).path, entry.kind is not EntryKind.PAGE)
            )
    for _ in range(draw.between(profile.links_per_page) - len(found)):
        if draw.chance(profile.offsite_share):
            found.append(offsite(plan, draw))
        else:
            found.append(Target(host.name, plan.entry(host, draw.below(host.places)).path))
    return found


def offsite(plan: SitePlan, draw: Draw) -> Target:
    """An address anywhere on the web, mostly a home page."""
    index = draw.below(plan.hosts)
    if draw.below(4):
        return Target(plan.domain_name(index), "/")
    host = plan.bare_host(index)
    host = plan.sibling(host, draw.pick(host.siblings))
    return Target(host.name, plan.entry(host, draw.below(host.places)).path)


def anchor(target: Target, view: Viewpoint, oddity: int | None) -> str:
    """The link in HTML; oddity chooses one of the unusual spellings, None the plain one."""
    href = _plain(target, view) if oddity is None else odd_spelling(target, view, oddity)
    rel = "" if target.counts else ' rel="external nofollow"'
    return f'<a href="{_attribute(href)}"{rel}>{_attribute(target.path)}</a>'


def _attribute(address: str) -> str:
    """An address for HTML: of what has to be escaped there, ours hold only this."""
    return address.replace("&", "&amp;")


def _plain(target: Target, view: Viewpoint) -> str:
    return target.path if target.host == view.host else f"http://{target.host}{target.path}"


def odd_spelling(target: Target, view: Viewpoint, oddity: int) -> str:
    """One of the ways to write an address; some are for addresses on the page's own host only."""
    host, path = target.host, target.path
    absolute = f"http://{host}{path}"
    ways = [
        absolute,
        f"//{host}{path}",
        f"HTTP://{host.upper()}{path}",
        f"http://{host}:80{path}",
        f"http://{host}.{path}",
        f"http://{host}{_escaped_letter(path)}",
        f"http://{host}/nowhere/..{path}",
        f"http://{host}/.{path}",
        f"{absolute}#part-2",
        f"  {absolute}\n",
    ]
    if view.utf8:
        ways.append(f"http://{host}{_unescaped(path)}")
    if host == view.host:
        up = "../" * (view.base_path.partition("?")[0].count("/") - 1)
        ways += [
            f"{up or './'}{path[1:]}",
            f"./{up}{path[1:]}",
            f"{path}#",
            _lower_escapes(path),
            _escaped_letter(path),
        ]
    return ways[oddity % len(ways)]


def _escaped_letter(path: str) -> str:
    """The path with its first letter or tilde percent-encoded."""
    if len(path) < 2 or path[1] == "%":
        return path
    return f"/%{ord(path[1]):02x}{path[2:]}"


def _lower_escapes(path: str) -> str:
    return path.replace("%C3%A9", "%c3%a9").replace("~", "%7e")


def _unescaped(path: str) -> str:
    """The path with its letters written out; the query stays, it would follow the charset."""
    before, mark, query = path.partition("?")
    return unquote(before) + mark + query
