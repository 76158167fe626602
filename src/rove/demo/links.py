"""The links of a page: their targets, and the many spellings of one URL.

All spellings of a URL have the same canonical form, so a crawler with a correct canonical form fetches it once.
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
"""Links that do not lead to a web page."""


class Target(NamedTuple):
    """The target of a link. A named tuple because a page has dozens."""

    host: str
    path: str
    counts: bool = True
    """False for a link with rel=nofollow."""


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """The properties of a page that the spelling of its links depends on."""

    host: str
    base_path: str
    """The base of relative links: the path of the page or of its base href."""
    utf8: bool
    """The page declares UTF-8, so that URLs may contain letters outside ASCII."""


def targets(plan: SitePlan, profile: Profile, host: Host, spot: Spot, draw: Draw) -> list[Target]:
    """Return the link targets of a page: first those that only it links to, then random ones."""
    entry = spot.entry
    links: list[Target] = []
    if spot.step == 0:
        links.extend(Target(host.name, child.path) for child in plan.children(host, entry))
        if entry.number == 0:
            links.extend(Target(label + host.domain, "/") for label in host.siblings if label)
        if entry.steps:
            links.append(Target(host.name, plan.step(entry, 1).path, entry.kind is not EntryKind.PAGE))
    for _ in range(draw.between(profile.links_per_page) - len(links)):
        if draw.chance(profile.offsite_share):
            links.append(offsite(plan, draw))
        else:
            links.append(Target(host.name, plan.entry(host, draw.below(host.entries)).path))
    return links


def offsite(plan: SitePlan, draw: Draw) -> Target:
    """Pick a URL anywhere on the web, mostly a home page."""
    index = draw.below(plan.hosts)
    if draw.below(4):
        return Target(plan.domain_name(index), "/")
    host = plan.bare_host(index)
    host = plan.sibling(host, draw.pick(host.siblings))
    return Target(host.name, plan.entry(host, draw.below(host.entries)).path)


def anchor(target: Target, view: Viewpoint, oddity: int | None) -> str:
    """Return the link in HTML. `oddity` selects an unusual spelling, None the plain one."""
    href = _plain(target, view) if oddity is None else odd_spelling(target, view, oddity)
    rel = "" if target.counts else ' rel="external nofollow"'
    return f'<a href="{_attribute(href)}"{rel}>{_attribute(target.path)}</a>'


def _attribute(address: str) -> str:
    """Escape a URL for HTML. The URLs of the small web contain no other special character."""
    return address.replace("&", "&amp;")


def _plain(target: Target, view: Viewpoint) -> str:
    return target.path if target.host == view.host else f"http://{target.host}{target.path}"


def odd_spelling(target: Target, view: Viewpoint, oddity: int) -> str:
    """Return one of the spellings of a URL. Some exist only for URLs on the page's own host."""
    host, path = target.host, target.path
    absolute = f"http://{host}{path}"
    spellings = [
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
        spellings.append(f"http://{host}{_unescaped(path)}")
    if host == view.host:
        up = "../" * (view.base_path.partition("?")[0].count("/") - 1)
        spellings += [
            f"{up or './'}{path[1:]}",
            f"./{up}{path[1:]}",
            f"{path}#",
            _lower_escapes(path),
            _escaped_letter(path),
        ]
    return spellings[oddity % len(spellings)]


def _escaped_letter(path: str) -> str:
    """Percent-encode the first letter or tilde of a path."""
    if len(path) < 2 or path[1] == "%":
        return path
    return f"/%{ord(path[1]):02x}{path[2:]}"


def _lower_escapes(path: str) -> str:
    return path.replace("%C3%A9", "%c3%a9").replace("~", "%7e")


def _unescaped(path: str) -> str:
    """Decode the path but not the query, whose encoding would follow the charset."""
    before, mark, query = path.partition("?")
    return unquote(before) + mark + query
