"""Run reading commands as somebody who may not write: another user, or a user of a read-only mount.

    python -m tests.acceptance.readers [UID] < COMMANDS > RESULTS

reads a list of commands as JSON, runs them one after the other in one process, and prints a list of exit codes and
outputs. With a UID it becomes that user first.
"""

from __future__ import annotations

import io
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from rove.__main__ import run
from rove.cli import rove
from rove.urls.domain import domain_of
from tests.acceptance.namespace import NAMESPACES, ROOT

UNPRIVILEGED = "nobody"
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


class Answer(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str


def as_another_user(commands: Sequence[Sequence[object]]) -> list[Answer]:
    """Run commands as an unprivileged user. Skip if this user may not become another one."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a command as another user")
    return _answers([str(pwd.getpwnam(UNPRIVILEGED).pw_uid)], commands)


def in_one_process(commands: Sequence[Sequence[object]]) -> list[Answer]:
    """Run commands as the same user, which is faster than to start each."""
    return _answers([], commands)


def on_read_only_mount(folder: Path, commands: Sequence[Sequence[object]]) -> list[Answer]:
    """Run commands while a folder is mounted read-only. Skip if mounting is forbidden."""
    for namespace in NAMESPACES:
        mounting = [*namespace, "sh", "-c", MOUNT, str(folder)]
        try:
            if subprocess.run([*mounting, "true"], capture_output=True).returncode == 0:
                return _answers([], commands, before=mounting)
        except FileNotFoundError:
            continue
    pytest.skip("mounting a file system is not permitted here")


def _answers(words: list[str], commands: Sequence[Sequence[object]], before: Sequence[str] = ()) -> list[Answer]:
    order = json.dumps([[str(word) for word in command] for command in commands])
    program = [*before, sys.executable, "-m", "tests.acceptance.readers", *words]
    result = subprocess.run(program, cwd=ROOT, input=order, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    return [Answer(*answer) for answer in json.loads(result.stdout)]


def _main() -> None:
    commands = json.load(sys.stdin)
    for name, *_ in commands:
        # Import it now, because another user may not be allowed to read the program.
        rove.get_command(click.Context(rove), name)
    domain_of("a.test")  # loads the public suffix list and a codec on first use
    if sys.argv[1:]:
        os.setgroups([])
        os.setgid(int(sys.argv[1]))
        os.setuid(int(sys.argv[1]))
    answers = []
    for command in commands:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = run(command)
        answers.append([code, *(_written(stream) for stream in (out, err))])
    print(json.dumps(answers))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


if __name__ == "__main__":
    _main()
