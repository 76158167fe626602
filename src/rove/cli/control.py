"""`rove stop`, `pause` and `unpause`: control a running crawl from another terminal or another machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

import click

from rove.admin import control
from rove.admin.control import Machines
from rove.cli.options import DEFAULT_DATA_DIR, POSTGRESQL, Command, crawl_name_option, option
from rove.cli.output import changing, print_line, print_note, reading
from rove.cli.resume import RESUME_EVERYWHERE, resume_command
from rove.cli.types import Number
from rove.errors import RoveError, UsageError
from rove.inspect.pauses import Scope, pause_text
from rove.model.counts import Counts
from rove.notation.humanize import counted

STOP_SECONDS = 60.0
PAUSE_SECONDS = 30.0
UNPAUSE_SECONDS = 10.0

F = TypeVar("F", bound=Callable[..., Any])


def _which_machines(command: F) -> F:
    """Declare the options that choose this machine or all machines of a crawl."""
    for declare in (
        crawl_name_option,
        option(
            "--frontier",
            group=POSTGRESQL,
            metavar="POSTGRESQL_URL",
            help="All machines of the crawl in this database.",
        ),
        option(
            "--all-machines",
            is_flag=True,
            group=POSTGRESQL,
            help="With --data-dir: all machines of the crawl, not only this one.",
        ),
        option(
            "--data-dir",
            type=click.Path(path_type=Path),
            metavar="DIR",
            default_text=str(DEFAULT_DATA_DIR),
            help="The crawl in this directory, on this machine only.",
        ),
    ):
        command = declare(command)
    return command


def _timeout_option(seconds: float) -> Callable[[F], F]:
    return option(
        "--timeout",
        "patience",
        type=Number(0, min_open=True),
        default=seconds,
        metavar="SECONDS",
        help="How long to wait until the crawl has obeyed.",
    )


@click.command(cls=Command, short_help="Stop a running crawl cleanly.")
@_which_machines
@_timeout_option(STOP_SECONDS)
@changing
@reading
async def stop(patience: float, **which: Any) -> None:
    """Stop a running crawl like Ctrl-C does, wait until it has stopped, and say how far it is.

    A crawl that is started later is not affected. Exit code 0: the crawl has stopped or was not running. 1: it has not
    stopped in time.
    """
    async with _machines(**which) as machines:
        obeyed = await control.stop(machines, patience=patience, on_told=_say_stopping)
        if obeyed.late:
            raise RoveError(
                f"not stopped after {patience:g} s: {', '.join(obeyed.late)}; see its rove.log, or end it with kill"
            )
        print_line(("stopped" if obeyed.was_running else "not running") + _how_far(obeyed.counts))
        for scope, pause in (await control.pauses_of(machines)).items():
            print_line(f"it stays {pause_text(pause, scope)}; end that with: rove unpause {machines.options[scope]}")
        if obeyed.counts is None or obeyed.counts.urls_pending:
            print_line(f"continue with: {_resume_command(machines, which['data_dir'])}")


@click.command(cls=Command, short_help="Start no new visits until 'rove unpause'.")
@_which_machines
@_timeout_option(PAUSE_SECONDS)
@changing
@reading
async def pause(patience: float, **which: Any) -> None:
    """Let a crawl start no new visits. Visits in flight finish, and limits and stops keep working.

    The crawl stays paused when it is started again. It never ends because nothing is left while it is paused.
    """
    async with _machines(**which) as machines:
        own = (await control.pauses_of(machines)).get(machines.scope)
        if own is not None:
            print_line(f"already {pause_text(own, machines.scope)}")
        else:
            obeyed = await control.pause(machines, patience=patience)
            if obeyed.late:
                late = ", ".join(obeyed.late)
                raise RoveError(f"not paused after {patience:g} s: {late}; they pause when they read the instruction")
            if obeyed.was_running:
                print_line(f"paused: no new visit starts; {counted(obeyed.in_flight, 'visit')} in flight may finish")
            else:
                print_line("paused: the crawl is not running, and starts no visits when it is resumed")
        print_line(f"continue with: rove unpause {machines.options[machines.scope]}")


@click.command(cls=Command, short_help="Continue a paused crawl.")
@_which_machines
@_timeout_option(UNPAUSE_SECONDS)
@changing
@reading
async def unpause(patience: float, **which: Any) -> None:
    """Let a paused crawl start visits again."""
    async with _machines(**which) as machines:
        own = (await control.pauses_of(machines)).get(machines.scope)
        if own is None:
            print_line("not paused" if machines.scope is Scope.HERE else f"not paused on {machines.scope}")
        else:
            obeyed = await control.unpause(machines, patience=patience)
            print_line(
                "no longer paused" + (": visits start again" if obeyed.was_running else "; the crawl is not running")
            )
            for name in obeyed.late:
                print_line(f"still paused: {name}; there, continue with: rove unpause")
        for scope, pause in (await control.pauses_of(machines)).items():
            print_line(f"still {pause_text(pause, scope)}; continue with: rove unpause {machines.options[scope]}")


def _machines(
    data_dir: Path | None, frontier: str | None, crawl_name: str | None, all_machines: bool
) -> AbstractAsyncContextManager[Machines]:
    if frontier is None and crawl_name is not None:
        raise UsageError("--crawl-name names a crawl in PostgreSQL; give --frontier too")
    if frontier is not None and data_dir is not None:
        raise UsageError("--data-dir means this machine and --frontier all machines of the crawl; give one of them")
    directory = data_dir or DEFAULT_DATA_DIR
    return control.machines_given(directory, frontier, crawl_name, all_machines=all_machines)


def _say_stopping() -> None:
    print_note("stopping: visits in flight get a few seconds")


def _how_far(counts: Counts | None) -> str:
    if counts is None:
        return "; the database cannot be read at the moment"
    return f": {counted(counts.pages, 'page')} stored, {counted(counts.urls_pending, 'URL')} pending"


def _resume_command(machines: Machines, data_dir: Path | None) -> str:
    if machines.scope is Scope.EVERYWHERE:
        return RESUME_EVERYWHERE
    return resume_command(data_dir or DEFAULT_DATA_DIR)
