"""Hosts whose robots.txt redirects to a site that has nothing to do with them, and what that site sees.

Half of the hosts name a path of their own choice, the others the victim's robots.txt. The victim has some pages of its
own, so that the requests which those cause can be told from the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from tests.acceptance.site import Reply, SeenRequest, Site, site

VICTIM = "victim.test"
RULES = "User-agent: *\nDisallow: /private\n"
PATHS = ("/", "/private")


@dataclass(frozen=True, kw_only=True)
class Reflection:
    """An attack: the number of hosts that redirect, and how the victim answers."""

    hosts: int
    pages: int = 3
    """Pages of the victim that the crawl knows as seeds."""
    is_busy: bool = False
    """The victim answers 503 with a Retry-After of an hour."""

    @property
    def choosing(self) -> list[str]:
        """Hosts that redirect to a path of their choice."""
        return [f"choosing{number}.test" for number in range(self.hosts // 2)]

    @property
    def honest(self) -> list[str]:
        """Hosts that redirect to the victim's robots.txt."""
        return [f"honest{number}.test" for number in range(self.hosts - self.hosts // 2)]

    @property
    def seeds(self) -> list[str]:
        """An open and a private page of each host, and the victim's own pages."""
        of_hosts = [f"http://{host}{path}" for host in (*self.choosing, *self.honest) for path in PATHS]
        return [*of_hosts, *(f"http://{VICTIM}/{number}" for number in range(self.pages))]

    def answer(self, host: str, path: str) -> Reply:
        """Answer for all hosts."""
        if host.endswith(VICTIM):
            if self.is_busy:
                return Reply("busy", status=503, headers={"Retry-After": "3600"})
            return Reply(RULES, type="text/plain") if path == "/robots.txt" else Reply(f"<title>{path}</title>")
        if path != "/robots.txt":
            return Reply(f"<title>{host}</title>")
        target = f"search?q={host}" if host in self._chooses else "robots.txt"
        return Reply(status=302, headers={"Location": f"http://{VICTIM}/{target}"})

    @property
    def _chooses(self) -> frozenset[str]:
        return frozenset(self.choosing)


@contextmanager
def attacking(reflection: Reflection) -> Iterator[Site]:
    """Serve the hosts and the victim."""
    with site(reflection.answer) as web:
        yield web


def visits_to(web: Site, host: str) -> list[list[SeenRequest]]:
    """Return the requests to a host in groups: a robots.txt and the page after it are one visit."""
    visits: list[list[SeenRequest]] = []
    for request in sorted(web.requests_to(host), key=lambda request: request.at):
        if visits and visits[-1][-1].path == "/robots.txt" and request.path != "/robots.txt":
            visits[-1].append(request)
        else:
            visits.append([request])
    return visits


def shortest_gap(web: Site, host: str) -> float:
    """Return the shortest time between two visits to a host, in seconds; infinite if there were not two."""
    gaps = (later[0].at - earlier[-1].ended for earlier, later in pairwise(visits_to(web, host)))
    return min(gaps, default=float("inf"))
