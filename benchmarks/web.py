"""The small web that all contestants are measured on, in processes of its own, started anew for each.

Its log is the judge: pages are counted where they are served, not where they are said to have come in.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rove.demo.log import LoggedRequest, read_log
from rove.demo.profile import BENCH, Profile, adjusted
from rove.demo.web import SmallWeb

SEED = 1


@dataclass(frozen=True, kw_only=True)
class WebPlan:
    """Which web: the BENCH profile with some knobs turned."""

    hosts: int
    knobs: tuple[str, ...] = ()
    processes: int = 1

    @cached_property
    def profile(self) -> Profile:
        """The knobs of the web."""
        return adjusted(BENCH, self.knobs)

    @cached_property
    def web(self) -> SmallWeb:
        """What is served, as a pure function."""
        return SmallWeb(SEED, self.hosts, self.profile)

    def urls(self) -> Iterator[str]:
        """Different URLs without end: a page of every host, then another one of every host."""
        names = list(self.web.seeds())
        pages = self.profile.pages_per_host[0]
        turn = 0
        while True:
            place = turn % pages
            path = f"/page-{place}" if place else "/"
            yield from (f"http://{name}{path}" for name in names)
            turn += 1


@dataclass(frozen=True, kw_only=True)
class ServedWeb:
    """A web that is being served."""

    plan: WebPlan
    process: int
    address: str
    log: Path

    @property
    def connect_to(self) -> str:
        """The rule by which its hosts are reached; no name is ever looked up."""
        return f"*.test={self.address}"

    def requests(self) -> list[LoggedRequest]:
        """All that was asked of it."""
        return read_log(self.log)


@contextmanager
def served(plan: WebPlan, folder: Path) -> Iterator[ServedWeb]:
    """Serve the web on a free port of loopback, with a log in the folder."""
    log = folder / "web.log"
    command = [sys.executable, "-m", "rove.demo.server", "--profile", "bench", "--stop-at-eof"]
    command += ["--hosts", str(plan.hosts), "--seed", str(SEED), "--log", str(log)]
    command += ["--processes", str(plan.processes), *_settings(plan.knobs)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None and server.stdout is not None, "both are pipes"
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise SystemExit("the small web did not start")
        address = line.removeprefix("listening on ").strip()
        try:
            yield ServedWeb(plan=plan, process=server.pid, address=address, log=log)
        finally:
            server.stdin.close()


def _settings(knobs: Sequence[str]) -> list[str]:
    return [word for knob in knobs for word in ("--set", knob)]
