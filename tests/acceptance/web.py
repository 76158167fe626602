"""The small web as a process, and the `rove` command as a user runs it: what acceptance tests are made of."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rove.demo.log import LoggedRequest, read_log
from rove.demo.profile import PROFILES, adjusted
from rove.demo.web import SmallWeb

EMAIL = "tester@example.org"
_MARKER_HOST = "the-test-itself.invalid"
SIDE_BY_SIDE = 4
"""Scenarios of one file that are under way at a time."""

Completed = subprocess.CompletedProcess[str]
Process = subprocess.Popen[str]


@dataclass(frozen=True)
class ServedWeb:
    """A small web that is being served."""

    web: SmallWeb
    port: int
    log: Path

    @property
    def reach(self) -> list[str]:
        """The options with which rove finds it."""
        return ["--connect-to", f"*.test=127.0.0.1:{self.port}", "--allow-private-addresses"]

    def write_seeds(self, path: Path, *, assume_https: bool = False) -> Path:
        """A seed file of all its sites."""
        prefix = "" if assume_https else "http://"
        path.write_text("".join(f"{prefix}{host}\n" for host in self.web.seeds()))
        return path

    def requests(self) -> list[LoggedRequest]:
        """What the server has answered so far, all of it.

        The server writes its log a moment late. While it runs, it is asked for something by a name
        of this call alone: once that is in the log, so is all that was answered before.
        """
        marker = f"/{uuid.uuid4().hex}"
        with suppress(ConnectionRefusedError):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", marker, headers={"Host": _MARKER_HOST})
            connection.getresponse().read()
            connection.close()
            wait_for(lambda: marker.encode() in self.log.read_bytes())
        return [entry for entry in read_log(self.log) if entry.host != _MARKER_HOST]

    def expected(self, hosts: Sequence[str] | None = None) -> set[str]:
        """The pages that a crawl of these hosts (all of them), run to its end, has stored."""
        return {
            url
            for host in (self.web.all_hosts() if hosts is None else hosts)
            for url in self.web.expected_pages(host)
        }


@contextmanager
def served(
    folder: Path, *, hosts: int, profile: str, seed: int = 1, knobs: Sequence[str] = ()
) -> Iterator[ServedWeb]:
    """Serve a small web on a free port, with a log."""
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


@dataclass(frozen=True)
class Reply:
    """What a site says to a request."""

    body: bytes | str = b""
    status: int = 200
    type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False
    """The body is repeated until the client goes; what could be sent is in `Site.sent`."""
    after: float = 0.0
    """Seconds that the server takes to answer."""
    held: bool = False
    """No answer before the site closes, or lets go of what it holds."""
    reset: bool = False
    """The connection is broken off without an answer."""
    keep: bool = False
    """The connection is left open for the next request."""


@dataclass(frozen=True)
class Asked:
    """A request as a site saw it."""

    at: float
    host: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    ends: list[float] = field(default_factory=list)
    """When the site began to send its answer, or saw that the client had left; empty until then."""

    @property
    def ended(self) -> float:
        """When it was over; never later than for who asked."""
        return self.ends[0] if self.ends else time.monotonic()

    @property
    def url(self) -> str:
        """What was asked for."""
        return f"http://{self.host}{self.path}"


Answers = Mapping[str, Reply] | Callable[[str, str], Reply]


class Site:
    """A server in this process whose every answer a test writes: by host and path, or by a function of both."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.asked: list[Asked] = []
        self.connections = 0
        self.sent: dict[str, int] = {}
        """Bytes of endless bodies that the kernel took, by URL."""
        self.let_go = threading.Event()
        """Set it to have what is held answered."""
        self.left: dict[str, float] = {}
        """When clients left that had no answer yet, by URL."""
        self.at_once = 0
        """The most connections at one time that waited for an answer."""
        self.port = 0

    @property
    def reach(self) -> list[str]:
        """The options with which rove finds it, whatever the host."""
        return ["--connect-to", f"*=127.0.0.1:{self.port}", "--allow-private-addresses"]

    @property
    def urls(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.url for asked in self.asked]

    @property
    def pages(self) -> list[str]:
        """What was asked for, but for robots.txt."""
        return [asked.url for asked in self.asked if asked.path != "/robots.txt"]

    def asked_of(self, host: str, path: str | None = None) -> list[Asked]:
        """The requests to a host, in order; those for one path alone."""
        return [asked for asked in self.asked if asked.host == host and path in (None, asked.path)]

    def reply(self, host: str, path: str) -> Reply:
        """What is said to a request; robots.txt and pages that the test does not name are not there."""
        if callable(self._answers):
            return self._answers(host, path)
        return self._answers.get(f"{host}{path}", Reply("Nothing here.", status=404))


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site
    unanswered: set[object]
    """The connections that wait for an answer."""

    def setup(self) -> None:
        super().setup()
        self.site.connections += 1
        self.unanswered.add(self)
        self.site.at_once = max(self.site.at_once, len(self.unanswered))

    def finish(self) -> None:
        self.unanswered.discard(self)
        with suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = headers.get("host", "").partition(":")[0]
        asked = Asked(time.monotonic(), host, self.path, headers)
        self.site.asked.append(asked)
        reply = self.site.reply(host, self.path)
        self.close_connection = not reply.keep
        with suppress(OSError):
            if reply.held or reply.after:
                self._hold(asked, reply.after or 120)
            asked.ends.append(time.monotonic())
            self.unanswered.discard(self)
            if reply.reset:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                os.close(self.connection.detach())
                return
            self._send(asked, reply)

    def _hold(self, asked: Asked, seconds: float) -> None:
        """Wait before answering, until the client leaves."""
        deadline = time.monotonic() + seconds
        self.connection.settimeout(0.02)
        while time.monotonic() < deadline and not self.site.let_go.is_set():
            with suppress(TimeoutError):
                if not self.connection.recv(1, socket.MSG_PEEK):
                    break
        else:
            self.connection.settimeout(None)
            return
        asked.ends.append(time.monotonic())
        self.site.left[asked.url] = asked.ends[0]
        raise ConnectionResetError

    def _send(self, asked: Asked, reply: Reply) -> None:
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        if "Date" in reply.headers:
            self.send_response_only(reply.status)
        else:
            self.send_response(reply.status)
        self.send_header("Content-Type", reply.type)
        if not reply.keep:
            self.send_header("Connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.endless:
            self.end_headers()
            self.site.sent[asked.url] = 0
            while True:
                self.wfile.write(body)
                self.site.sent[asked.url] += len(body)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A server in a test does not talk."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no error of ours."""


@contextmanager
def site(answers: Answers) -> Iterator[Site]:
    """Serve what a test writes on a free port."""
    served = Site(answers)
    handler = type("Connection", (_Connection,), {"site": served, "unanswered": set()})
    with _Server(("127.0.0.1", 0), handler) as server:
        served.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield served
        finally:
            served.let_go.set()
            server.shutdown()
            thread.join()


@contextmanager
def nowhere() -> Iterator[list[str]]:
    """The options with which every host is at a port where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        yield ["--connect-to", f"*=127.0.0.1:{port}", "--allow-private-addresses"]


def crawl_options(
    data: Path, *, delay: float = 0.1, concurrency: int = 20, processes: int = 1
) -> list[object]:
    """What nearly every crawl of a test is given."""
    return [
        *["--email", EMAIL, "--data-dir", data, "--delay", delay, "--allow-short-delay"],
        *["--concurrency", concurrency, "--processes", processes],
    ]


def rove(*arguments: object, **options: object) -> Completed:
    """Run a rove command to its end."""
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "timeout": 200, **options}
    return subprocess.run(command, **settings)  # type: ignore[call-overload, no-any-return]


def rove_each(commands: Sequence[Sequence[object]], **options: object) -> list[Completed]:
    """Run many rove commands side by side; how each ended, in their order."""
    with ThreadPoolExecutor(max_workers=3) as threads:
        return list(threads.map(lambda words: rove(*words, **options), commands))


def start(*arguments: object, **options: object) -> Process:
    """Start a rove command in a process group of its own."""
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    settings = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "start_new_session": True,
        **options,
    }
    return subprocess.Popen(command, **settings)  # type: ignore[call-overload, no-any-return]


@contextmanager
def started(*arguments: object, **options: object) -> Iterator[Process]:
    """A rove command under way, which does not outlive the test."""
    process = start(*arguments, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def kill_hard(process: Process) -> None:
    """kill -9 the command and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_for(holds: Callable[[], object], *, seconds: float = 30.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.02)


class Scenarios:
    """Tests of one file that run side by side, since most of their time they wait for a delay to pass.

    A scenario is a function of a folder. Those that were chosen are begun together; each is a test of its own, which
    waits for it and fails as it did.
    """

    def __init__(self) -> None:
        self._all: dict[str, Callable[[Path], None]] = {}

    def __call__(self, scenario: Callable[[Path], None]) -> Callable[[Path], None]:
        self._all[scenario.__name__] = scenario
        return scenario

    @property
    def names(self) -> list[str]:
        """What the tests are called."""
        return list(self._all)

    @contextmanager
    def under_way(
        self, request: pytest.FixtureRequest, factory: pytest.TempPathFactory
    ) -> Iterator[dict[str, Future[None]]]:
        """The scenarios that the run of the tests has chosen, begun; each has a folder of its own."""
        folder = factory.mktemp("side-by-side")
        chosen = (item.callspec for item in request.session.items if item.path == request.path)
        names = [spec.params["scenario"] for spec in chosen]
        with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE) as threads:
            begun = {}
            for name in names:
                own = folder / name
                own.mkdir()
                begun[name] = threads.submit(self._all[name], own)
            try:
                yield begun
            finally:
                threads.shutdown(cancel_futures=True)


def exported(data: Path, *options: object) -> list[dict[str, Any]]:
    """All pages that the crawl says it has, each with a text that can be read."""
    result = rove("export", "--data-dir", data, *options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def exported_urls(data: Path, *options: object) -> set[str]:
    """The URLs of these pages, of which there are no two of one URL."""
    urls = [page["url"] for page in exported(data, *options)]
    assert len(urls) == len(set(urls)), "a page is in the export twice"
    return set(urls)


def status_of(data: Path) -> dict[str, Any]:
    """What `rove status --json` prints."""
    result = rove("status", "--data-dir", data, "--json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def frontier_rows(data: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of the frontier, read from outside; none while there is no frontier yet."""
    path = data / "frontier.sqlite"
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error) or "unable to open" in str(error):
            return []
        raise


def check_books(data: Path, seen: Iterable[str]) -> dict[str, Any]:
    """The ledger has every request that was seen, none that was answered unseen, and `audit` finds nothing in it.

    Returns what the audit says.
    """
    rows = frontier_rows(data, "SELECT url, status FROM request")
    asked, known = Counter(seen), Counter(url for url, _ in rows)
    answered = Counter(url for url, status in rows if status)
    assert not asked - known, f"not in the ledger: {list(asked - known)[:5]}"
    assert not answered - asked, f"never asked: {list(answered - asked)[:5]}"
    result = rove("audit", "--json", "--data-dir", data)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr
    said: dict[str, Any] = json.loads(result.stdout)
    assert said["polite"] and said["requests"] == len(rows), said
    return said


def write_lines(path: Path, *lines: str) -> Path:
    """A file of lines."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
