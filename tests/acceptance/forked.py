"""Run rove commands in processes that are forked from one that has imported rove already.

Importing takes most of the time of a short command, and the tests run hundreds of them. A forked command is a process
like any other: it has its own arguments, standard streams, working directory and exit code, and it runs the same
`main`. What a test starts in the background, or with an environment of its own, is not forked (command.py).

    python -m tests.acceptance.forked DESCRIPTOR

is the process that forks. It reads commands from a socket, together with their standard streams and a pipe on which it
reports the process number and then the exit code.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import click

from rove.__main__ import main
from rove.cli import rove
from rove.urls.domain import domain_of

ROOT = Path(__file__).parent.parent.parent
MAX_COMMAND = 100_000
"""Bytes of a command as JSON."""
_starting = threading.Lock()


class Forker:
    """The process that forks, seen from the tests."""

    def __init__(self) -> None:
        self._commands, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            number = theirs.fileno()
            program = [sys.executable, "-m", "tests.acceptance.forked", str(number)]
            self._process = subprocess.Popen(program, cwd=ROOT, pass_fds=[number], start_new_session=True)
        atexit.register(self._end)

    def _end(self) -> None:
        self._commands.close()
        self._process.wait()

    def run(self, arguments: list[str], *, cwd: str, stdin: int, stdout: int, stderr: int) -> Forked:
        """Start a command with these descriptors as its standard streams."""
        order = json.dumps({"arguments": arguments, "cwd": cwd}).encode()
        reports, theirs = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._commands, [order], [theirs, stdin, stdout, stderr])
        finally:
            os.close(theirs)
        return Forked(reports)


class Forked:
    """A command that was started."""

    def __init__(self, reports: int) -> None:
        self._reports = os.fdopen(reports)
        line = self._reports.readline()
        assert line, "the process that forks commands has died"
        self._pid = int(line)

    def kill(self) -> None:
        """Kill the command, if it still runs."""
        try:
            os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def wait(self) -> int:
        """Wait for the end of the command; return its exit code, or minus the signal that ended it."""
        with self._reports:
            return int(self._reports.readline())


@cache
def _forker() -> Forker:
    return Forker()


def forker() -> Forker:
    """Return the process that forks for these tests; start it on first use."""
    with _starting:
        return _forker()


def completed(
    arguments: list[str], *, cwd: str | None, input: str | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` does with `capture_output` and `text`."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    in_read, in_write = os.pipe()
    command = forker().run(arguments, cwd=cwd or str(Path.cwd()), stdin=in_read, stdout=out_write, stderr=err_write)
    for descriptor in (in_read, out_write, err_write):
        os.close(descriptor)
    killer = threading.Timer(timeout, command.kill)
    killer.start()
    outputs: dict[int, str] = {}

    def read(descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            outputs[descriptor] = stream.read()

    readers = [threading.Thread(target=read, args=(descriptor,)) for descriptor in (out_read, err_read)]
    for reader in readers:
        reader.start()
    _feed(in_write, (input or "").encode())
    code = command.wait()
    was_in_time = killer.is_alive()
    killer.cancel()
    for reader in readers:
        reader.join()
    if not was_in_time:
        raise subprocess.TimeoutExpired(["rove", *arguments], timeout)
    return subprocess.CompletedProcess(["rove", *arguments], code, outputs[out_read], outputs[err_read])


def _feed(descriptor: int, data: bytes) -> None:
    """Write data to a command that may end before it has read all of it."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        return
    finally:
        os.close(descriptor)


def _import_everything() -> None:
    context = click.Context(rove)
    for name in rove.list_commands(context):
        rove.get_command(context, name)
    domain_of("a.test")  # loads the public suffix list
    gc.freeze()


def _serve(commands: socket.socket) -> list[str] | None:
    """Fork a process for each command. Return its arguments in that process, and None in this one, at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes that wait for commands
    while True:
        order, descriptors, _, _ = socket.recv_fds(commands, MAX_COMMAND, 4)
        if not order:
            return None
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    commands.close()
    reports, *streams = descriptors
    pid = os.fork()
    if pid:
        for descriptor in streams:
            os.close(descriptor)
        os.write(reports, f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(reports, f"{code}\n".encode())
        os._exit(0)
    os.close(reports)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    asked = json.loads(order)
    os.chdir(asked["cwd"])
    arguments: list[str] = asked["arguments"]
    return arguments


def _open_streams() -> None:
    """Open the standard streams on their new descriptors, in the way of the interpreter."""
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdin = os.fdopen(0, encoding=encoding, errors=errors, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, errors=errors, closefd=False)
    sys.stderr = io.TextIOWrapper(
        os.fdopen(2, "wb", closefd=False), encoding=encoding, errors="backslashreplace", line_buffering=True
    )


if __name__ == "__main__":
    _import_everything()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        words = _serve(control)
    if words is not None:
        _open_streams()
        sys.argv = ["rove", *words]
        main()
