"""Start `rove dashboard`, and ask it over HTTP as a browser or another program does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

from tests.acceptance.command import Process, logged, wait_for

JSON = {"Content-Type": "application/json"}
_WITH_TOKEN = re.compile(r"http://[^/\s]+:(\d+)/#token=(\S+)")


@dataclass(frozen=True)
class Reply:
    """What a dashboard has answered."""

    status: int
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The sentence that says why there is no other answer."""
        return str(self.json["error"])


@dataclass(frozen=True)
class Dashboard:
    """A dashboard that runs."""

    port: int
    token: str
    process: Process | None = field(default=None, repr=False)

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def page_with_token(self) -> str:
        """The address that a person opens in order to act."""
        return f"{self.page}#token={self.token}"

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        token: bool = False,
    ) -> Reply:
        """Send a request, with the token if that is asked for."""
        given = {**(headers or {}), **({"X-Rove-Token": self.token} if token else {})}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body=body, headers=given)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, names, answer.read())

    def get(self, path: str) -> Any:
        """Return the JSON of a part of the API, which must answer."""
        reply = self.send("GET", f"/api/{path}")
        assert reply.status == 200, (path, reply)
        return reply.json

    def act(self, action: str, **given: object) -> Reply:
        """Run an action with the token."""
        body = json.dumps(given).encode()
        return self.send("POST", f"/api/actions/{action}", JSON, body=body, token=True)


@contextmanager
def dashboard(*options: object) -> Iterator[Dashboard]:
    """Start `rove dashboard` with these options, on any free port unless they name one."""
    with logged("dashboard", "--listen", "127.0.0.1:0", *options) as (process, output):
        wait_for(lambda: "Ctrl-C" in output() or process.poll() is not None)
        port, token = address_in(output())
        yield Dashboard(port, token, process)


def address_in(text: str) -> tuple[int, str]:
    """Return the port and the token of the address that was printed."""
    found = _WITH_TOKEN.search(text)
    assert found is not None, text
    return int(found[1]), found[2]
