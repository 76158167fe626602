"""Many sites on loopback that can go away and come back, and a name server that can die: real sockets, really closed.

Every page is on a host name of its own, so that every visit looks up a name. All names of a site belong to one domain.
"""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

from tests.acceptance.site import Reply, SeenRequest, Site, site

_LOOPBACK_ANSWER = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1"
"""A record of type A with a TTL of 0."""


class FragileWeb:
    """The sites h0.test, h1.test and so on. Each page is the front page of a host."""

    def __init__(self, sites: int, pages: int) -> None:
        self.sites = sites
        self.pages = pages
        self._lives: list[Site] = []
        self._open = ExitStack()
        self._port = 0

    @property
    def port(self) -> int:
        """The port of all sites, the same after each return."""
        return self._port

    @property
    def requests(self) -> list[SeenRequest]:
        """All requests that were ever received, in order."""
        return [request for life in self._lives for request in life.requests]

    @property
    def requests_since_return(self) -> list[SeenRequest]:
        """The requests since the sites came back last."""
        return list(self._lives[-1].requests)

    def come_up(self) -> None:
        """Let all sites listen."""
        life = self._open.enter_context(site(_answer, self._port))
        self._lives.append(life)
        self._port = life.port

    def go_away(self) -> None:
        """Close all sockets."""
        self._open.close()

    def write_seeds(self, path: Path) -> Path:
        """Write a seed file with every page: the first page of each site first."""
        names = [f"p{page}.h{number}.test" for page in range(self.pages) for number in range(self.sites)]
        path.write_text("".join(f"http://{name}:{self._port}/\n" for name in names))
        return path


@contextmanager
def fragile_web(sites: int, pages: int) -> Iterator[FragileWeb]:
    """Serve such a web, and close it at the end."""
    web = FragileWeb(sites, pages)
    web.come_up()
    try:
        yield web
    finally:
        web.go_away()


def shortest_pause(requests: Iterable[SeenRequest]) -> float:
    """Return the shortest pause between two visits to one site, as the sites saw it."""
    by_site: dict[str, list[SeenRequest]] = defaultdict(list)
    for request in requests:
        by_site[request.host.partition(".")[2]].append(request)
    return min(
        (
            after.at - before.ended
            for of_site in by_site.values()
            for before, after in pairwise(sorted(of_site, key=lambda request: request.at))
            # A visit requests the robots.txt of a host and then its page.
            if not (before.path == "/robots.txt" and after.host == before.host)
        ),
        default=float("inf"),
    )


def _answer(host: str, path: str) -> Reply:
    if path == "/robots.txt":
        return Reply("Nothing here.", status=404)
    return Reply(f"<title>{host}</title><p>This is the page of {host}, which no other page repeats.")


class NameServer:
    """A name server that resolves every name to loopback, until it dies."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """Its address and port, the same after each return."""
        return f"127.0.0.1:{self._port}"

    def come_up(self) -> None:
        """Answer queries."""
        here = self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here.bind(("127.0.0.1", self._port))
        self._port = here.getsockname()[1]
        self._thread = threading.Thread(target=self._answer_all, args=(here,))
        self._thread.start()

    def die(self) -> None:
        """Close the socket."""
        if self._socket is None or self._thread is None:
            return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"", ("127.0.0.1", self._port))
        self._thread.join()
        self._socket.close()
        self._socket = None

    def _answer_all(self, here: socket.socket) -> None:
        while True:
            query, peer = here.recvfrom(512)
            if not query:
                return
            question = query[12 : query.index(b"\0", 12) + 5]
            head = query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0"
            here.sendto(head + question + _LOOPBACK_ANSWER, peer)


@contextmanager
def name_server() -> Iterator[NameServer]:
    """Run a name server, and end it at the end."""
    server = NameServer()
    server.come_up()
    try:
        yield server
    finally:
        server.die()
