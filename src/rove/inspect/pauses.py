"""The pauses that hold up a crawl: who began each of them, when, and where."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Mapping
from typing import Any

from rove.datadir import DataDir, Remote
from rove.frontier.backends import DEFAULT_CRAWL_NAME
from rove.frontier.dsn import redacted
from rove.model.instructions import Instruction, Instructions
from rove.notation.harmless import one_line
from rove.notation.humanize import iso_time, utc_text


class Scope(enum.StrEnum):
    """Which machines an instruction is for."""

    HERE = "this machine"
    EVERYWHERE = "all machines"


def pauses_in_force(told: Mapping[Scope, Instructions]) -> dict[Scope, Instruction]:
    """Return the pauses among the instructions of each scope."""
    return {scope: instructions.pause for scope, instructions in told.items() if instructions.pause is not None}


def pause_text(pause: Instruction, scope: Scope) -> str:
    """Describe a pause for people.

    >>> pause_text(Instruction(who="ann@host", at=0.0), Scope.EVERYWHERE)
    'paused on all machines by ann@host'
    """
    where = "" if scope is Scope.HERE else f" on {scope}"
    since = f" since {utc_text(pause.at)}" if pause.at else ""
    return f"paused{where} by {one_line(pause.who)}{since}"


def scope_options(data: DataDir, remote: Remote | None) -> dict[Scope, str]:
    """Return the options with which `rove stop`, `pause` and `unpause` reach the machines of each scope."""
    here = f"--data-dir {shlex.quote(str(data.root))}"
    if remote is None:  # there is only one machine
        return dict.fromkeys(Scope, here)
    # Not the URL: its password must not be shown, and without it the command could not be pasted.
    return {Scope.HERE: here, Scope.EVERYWHERE: f"{here} --all-machines"}


def frontier_options(remote: Remote) -> str:
    """Return the options that name a crawl in PostgreSQL, and say what is missing: the password."""
    name = "" if remote.crawl_name == DEFAULT_CRAWL_NAME else f" --crawl-name {remote.crawl_name}"
    url = redacted(remote.url)
    missing = "" if url == remote.url else " (write the URL as you gave it: what is secret is not shown here)"
    return f"--frontier {shlex.quote(url)}{name}{missing}"


def pause_json(pause: Instruction, scope: Scope) -> dict[str, Any]:
    """Return the object that `status --json` prints for a pause."""
    return {"where": scope, "by": pause.who, "since": iso_time(pause.at) if pause.at else None}
