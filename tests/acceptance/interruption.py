"""Make a rove command kill itself at an exact step, so that no test has to guess the moment by the clock."""

from __future__ import annotations

import os
from pathlib import Path

_SITECUSTOMIZE = """\
import os, signal, sys

left = {number}

def count(event, arguments):
    global left
    creates = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
    if not creates and event not in ("os.rename", "os.remove"):
        return
    if not str(arguments[0]).startswith({directory!r}):
        return
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
"""


def environment_with(folder: Path, sitecustomize: str) -> dict[str, str]:
    """Return an environment in which every Python process runs this code when it starts."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(sitecustomize)
    return {**os.environ, "PYTHONPATH": str(folder)}


def killed_before_change(folder: Path, directory: Path, number: int) -> dict[str, str]:
    """Return an environment in which a command dies just before its `number`-th change to a directory.

    A change creates, renames or deletes a file. `folder` is a new folder for the code that counts them.
    """
    code = _SITECUSTOMIZE.format(number=number, directory=str(directory))
    return environment_with(folder, code)
