"""Serve the demo's small web from a process of its own, with a log of every request."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from rove.demo.log import LoggedRequest, LogKind, read_log
from rove.demo.profile import PROFILES, adjusted
from rove.demo.web import SmallWeb
from tests.acceptance.command import wait_for
from tests.oracle import all_hosts, expected_pages

_MARKER_HOST = "the-test-itself.invalid"


@dataclass(frozen=True)
class ServedWeb:
    """A small web that is being served."""

    web: SmallWeb
    port: int
    log: Path

    @property
    def reach(self) -> list[str]:
        """The options that make rove connect to this web."""
        return ["--connect-to", f"*.test=127.0.0.1:{self.port}", "--allow-private-addresses"]

    def write_seeds(self, path: Path, *, assume_https: bool = False) -> Path:
        """Write a seed file with every site of this web."""
        prefix = "" if assume_https else "http://"
        path.write_text("".join(f"{prefix}{host}\n" for host in self.web.seeds()))
        return path

    def requests(self) -> list[LoggedRequest]:
        """Return all log entries for requests answered before this call; none before the first request.

        The server writes its log with a short delay. So this method sends a request with a unique path and waits
        until that request is in the log: then everything answered before it is there too.
        """
        marker = f"/{uuid.uuid4().hex}"
        with suppress(ConnectionRefusedError):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", marker, headers={"Host": _MARKER_HOST})
            connection.getresponse().read()
            connection.close()
            wait_for(lambda: self.log.exists() and marker.encode() in self.log.read_bytes())
        return [entry for entry in read_log(self.log) if entry.host != _MARKER_HOST]

    def requested_urls(self) -> list[str]:
        """Return the URL of every request answered so far. Connections that sent rubbish do not count."""
        return [entry.url for entry in self.requests() if entry.kind is LogKind.REQUEST]

    def expected(self, hosts: Sequence[str] | None = None) -> set[str]:
        """Return the pages that a finished crawl of these hosts (default: all) must have stored."""
        return {
            url for host in (all_hosts(self.web) if hosts is None else hosts) for url in expected_pages(self.web, host)
        }


@contextmanager
def served(folder: Path, *, hosts: int, profile: str, seed: int = 1, knobs: Sequence[str] = ()) -> Iterator[ServedWeb]:
    """Serve a small web on a free port, and log its requests to a file in `folder`."""
    log = folder / "web.log"
    command = [sys.executable, "-m", "rove.demo.server", "--port", "0", "--hosts", str(hosts)]
    command += ["--seed", str(seed), "--profile", profile, "--log", str(log), "--stop-at-eof"]
    for knob in knobs:
        command += ["--set", knob]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdin is not None
    try:
        line = server.stdout.readline()
        assert line.startswith("listening on "), line
        web = SmallWeb(seed=seed, hosts=hosts, profile=adjusted(PROFILES[profile], list(knobs)))
        yield ServedWeb(web, int(line.rpartition(":")[2]), log)
    finally:
        server.terminate()
        server.wait(10)
        server.stdin.close()
        server.stdout.close()
