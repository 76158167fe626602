"""The small webs that all contestants are measured on. Each run starts a new server process.

Pages are counted in the server's log, not by the contestants.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from benchmarks.plain_web import BENCH, PlainProfile, PlainWeb
from benchmarks.real_web import RealWeb
from rove.demo.log import LoggedRequest, decode
from rove.demo.profile import adjusted

SEED = 1
STOP_SECONDS = 30.0


class BenchmarkFailed(Exception):
    """A run failed. The message says why; the other runs continue."""


@dataclass(frozen=True, kw_only=True)
class WebPlan:
    """A web: the BENCH profile with some knobs set."""

    hosts: int
    knobs: tuple[str, ...] = ()
    processes: int = 1
    pages: str = ""
    """A folder of real pages, which a real web serves instead of generated ones."""
    clogged: int = 0
    """Number of seeds ahead of all others, which belong to the hosts that all links lead to."""

    @cached_property
    def profile(self) -> PlainProfile:
        """The knobs of the web."""
        return adjusted(BENCH, self.knobs)

    @cached_property
    def web(self) -> PlainWeb:
        """The content of the web, as a pure function."""
        if self.profile.real:
            return RealWeb(SEED, self.hosts, self.profile, self.pages)
        return PlainWeb(SEED, self.hosts, self.profile)

    @property
    def scheme(self) -> str:
        """The scheme of all its URLs."""
        return "https" if self.profile.secure else "http"

    @cached_property
    def few(self) -> frozenset[str]:
        """The hosts that all links lead to, if they do not lead to all."""
        linked = int(self.profile.linked_hosts)
        return frozenset(map(self.web.host_name, range(linked if linked < self.hosts else 0)))

    def is_other(self, host: str) -> bool:
        """Tell whether a host is neither one that all links lead to nor a hostile one."""
        return host not in self.few and not self.web.is_hostile(host)

    def with_knobs(self, *knobs: str) -> WebPlan:
        """Return the same web with more knobs set."""
        return replace(self, knobs=(*self.knobs, *knobs))

    def seeds(self) -> Iterator[str]:
        """Return the seeds of a crawl: first those that clog the queue, then the home page of every host."""
        names = [self.web.host_name(index) for index in range(len(self.few))]
        for number in range(self.clogged):
            page, host = divmod(number, len(names))
            yield f"{self.scheme}://{names[host]}{self.web.path(page + 1)}"
        yield from (f"{self.scheme}://{host}/" for host in self.web.seeds())

    def urls(self) -> Iterator[str]:
        """Yield different URLs without end: a page of every host, then another page of every host."""
        names = list(self.web.seeds())
        pages = self.profile.pages_per_host[0]
        turn = 0
        while True:
            place = turn % pages
            path = self.web.path(place)
            yield from (f"{self.scheme}://{name}{path}" for name in names)
            turn += 1


@dataclass(frozen=True, kw_only=True)
class ServedWeb:
    """A web that is being served."""

    plan: WebPlan
    process: int
    address: str
    log: Path
    stop: Callable[[], None]
    """Ends the server, which completes its log. May be called again."""

    @property
    def connect_to(self) -> str:
        """The --connect-to rule for its hosts. No name is ever looked up."""
        return f"*.test={self.address}"

    @property
    def port(self) -> int:
        """The address that it listens on."""
        return int(self.address.rpartition(":")[2])

    @property
    def log_size(self) -> int:
        """The size of the log in bytes."""
        return self.log.stat().st_size if self.log.exists() else 0

    def requests(self, after: int = 0) -> list[LoggedRequest]:
        """Return the logged requests, from a byte of the log on."""
        return decode(self.log.read_bytes()[after:]) if self.log.exists() else []


@contextmanager
def served(plan: WebPlan, folder: Path) -> Iterator[ServedWeb]:
    """Serve the web on a free port of loopback, with a log in the folder."""
    log = folder / "web.log"
    command = [sys.executable, "-m", "benchmarks.web_server", "--hosts", str(plan.hosts), "--log", str(log)]
    command += ["--processes", str(plan.processes), *settings(plan.knobs)]
    if plan.pages:
        command += ["--pages", plan.pages]
    if plan.profile.secure:
        command += ["--certificate", str(certificate(folder))]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert server.stdin is not None and server.stdout is not None, "both are pipes"
    try:
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise BenchmarkFailed("the small web did not start")
        address = line.removeprefix("listening on ").strip()
        stop = partial(_stop, server)
        yield ServedWeb(plan=plan, process=server.pid, address=address, log=log, stop=stop)
    finally:
        _stop(server)
        server.stdout.close()


def _stop(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None, "it is a pipe"
    with suppress(OSError):
        server.stdin.close()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def certificate(folder: Path) -> Path:
    """Make one certificate for all names. P-256 is the cheapest to sign with."""
    program = shutil.which("openssl")
    if program is None:
        raise BenchmarkFailed("a web over https needs the program openssl, to make a certificate")
    key, file = folder / "key.pem", folder / "server.pem"
    command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "30", "-subj", "/CN=*.test", "-keyout", str(key)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=STOP_SECONDS)
    if made.returncode:
        raise BenchmarkFailed(f"openssl made no certificate: {made.stderr}")
    file.write_text(key.read_text() + made.stdout)
    return file


def settings(knobs: Sequence[str]) -> list[str]:
    """Return the knobs as command-line options."""
    return [word for knob in knobs for word in ("--set", knob)]
