"""The small web as a process, and the `rove` command as a user runs it: what acceptance tests are made of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rove.demo.log import LoggedRequest, read_log
from rove.demo.profile import PROFILES, adjusted
from rove.demo.web import SmallWeb

EMAIL = "tester@example.org"


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

    def write_seeds(self, path: Path, *, bare: bool = False) -> Path:
        """A seed file of all its sites."""
        prefix = "" if bare else "http://"
        path.write_text("".join(f"{prefix}{host}\n" for host in self.web.seeds()))
        return path

    def requests(self) -> list[LoggedRequest]:
        """What the server has logged so far."""
        return list(read_log(self.log))


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


def rove(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a rove command to its end."""
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "timeout": 200, **options}
    return subprocess.run(command, **settings)  # type: ignore[call-overload, no-any-return]


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a rove command in a process group of its own."""
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill_hard(process: subprocess.Popen[str]) -> None:
    """kill -9 the command and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
