"""`rove stop`, `pause` and `unpause`: tell a crawl to stop, or to start no new visits, and wait until it has obeyed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from rove.admin.exclude import current_user
from rove.datadir import DataDir
from rove.errors import RoveError, Unreachable, UsageError
from rove.frontier.backends import opened_backend, remote_named
from rove.frontier.contract import Backend
from rove.frontier.runs import Participant
from rove.inspect.nodes import is_alive
from rove.inspect.pauses import Scope, frontier_options, pauses_in_force, scope_options
from rove.model.counts import Counts
from rove.model.instructions import Instruction, InstructionKind, Instructions

POLL_SECONDS = 0.2
DATABASE_SECONDS = 10.0
"""How long one question to the database may take."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Obeyed:
    """How a crawl has followed an instruction."""

    was_running: bool
    late: Sequence[str] = ()
    """The processes that have not followed it in time."""
    in_flight: int = 0
    """Visits that were in flight when all processes had followed it."""
    counts: Counts | None = None
    """The counters of the crawl, if the database can be read."""


class Machines(Protocol):
    """The machines of a crawl that an instruction is for."""

    scope: Scope
    options: dict[Scope, str]
    """The options of the command line that name each scope."""

    async def instructions(self) -> dict[Scope, Instructions]:
        """Return everything that these machines were told."""

    async def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        """Tell these machines something; None withdraws what they were told."""

    async def starts(self) -> dict[str, str]:
        """Return the starts of the crawl that are running: a key, and a name for people."""

    async def processes(self) -> list[Participant]:
        """Return the crawling processes that are alive; none if the database cannot be read."""

    async def counts(self) -> Counts | None:
        """Return the counters of the crawl; None if the database cannot be read."""


class ThisMachine:
    """The crawl of a data directory, which obeys even while its database is away."""

    scope = Scope.HERE

    def __init__(self, data: DataDir) -> None:
        self._data = data
        self.options = scope_options(data, data.remote())

    async def instructions(self) -> dict[Scope, Instructions]:
        everywhere = await self._read(lambda backend: backend.catalog.instructions())
        return {Scope.HERE: self._data.instructions(), Scope.EVERYWHERE: everywhere or Instructions()}

    async def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        self._data.instruct(kind, instruction)

    async def starts(self) -> dict[str, str]:
        return {str(self._data.taken_at()): f"process {self._data.holder}"} if self._data.in_use() else {}

    async def processes(self) -> list[Participant]:
        participants = await self._read(lambda backend: backend.reader.participants())
        return [process for process in participants or () if process.is_here and is_alive(process)]

    async def counts(self) -> Counts | None:
        return await self._read(lambda backend: backend.reader.counts())

    async def _read(self, question: Callable[[Backend], Awaitable[T]]) -> T | None:
        try:
            async with asyncio.timeout(DATABASE_SECONDS), opened_backend(self._data, read_only=True) as backend:
                return await question(backend)
        except (RoveError, TimeoutError):
            return None


class AllMachines:
    """Every machine that takes part in a crawl in PostgreSQL."""

    scope = Scope.EVERYWHERE

    def __init__(self, backend: Backend, options: str) -> None:
        """`backend` is open. `options` are those that name all machines."""
        self._backend = backend
        self.options = {Scope.EVERYWHERE: options}

    async def instructions(self) -> dict[Scope, Instructions]:
        return {Scope.EVERYWHERE: await self._answer(self._backend.catalog.instructions())}

    async def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        await self._answer(self._backend.catalog.instruct(kind, instruction))

    async def starts(self) -> dict[str, str]:
        return {str(process.process): _name(process) for process in await self.processes()}

    async def processes(self) -> list[Participant]:
        return [process for process in await self._backend.reader.participants() if is_alive(process)]

    async def counts(self) -> Counts | None:
        return await self._answer(self._backend.reader.counts())

    async def _answer(self, question: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                return await question
        except TimeoutError:
            raise Unreachable(f"{self._backend.location} does not answer; try again when it does") from None


@asynccontextmanager
async def machines_given(
    data_dir: Path, url: str | None, crawl_name: str | None, *, all_machines: bool = False
) -> AsyncIterator[Machines]:
    """Open the machines that the options name: all of a crawl, or the one of the directory.

    All are named by a database URL, or with `all_machines` by the directory of one of them.
    """
    data = DataDir(data_dir)
    if url is None and not data.holds_crawl and not data.in_use():
        raise UsageError(f"{data.root} holds no crawl; give another --data-dir, or --frontier for one in PostgreSQL")
    remote = remote_named(url, crawl_name) if url is not None else data.remote() if all_machines else None
    if remote is None:  # with --all-machines too: a crawl on SQLite has one machine
        yield ThisMachine(data)
        return
    options = frontier_options(remote) if url is not None else scope_options(data, remote)[Scope.EVERYWHERE]
    async with opened_backend(DataDir(Path()), remote=remote, read_only=True) as backend:
        yield AllMachines(backend, options)


async def stop(machines: Machines, *, patience: float, on_told: Callable[[], None]) -> Obeyed:
    """Stop the crawl and wait until it has ended; a start of the crawl after this call goes on.

    `on_told` is called when the crawl has been told and the wait begins.
    """
    told = frozenset(await machines.starts())
    if not told:
        return Obeyed(was_running=False, counts=await machines.counts())
    await machines.instruct(InstructionKind.STOP, _new_instruction())
    on_told()

    async def still_running() -> list[str]:
        return [name for key, name in (await machines.starts()).items() if key in told]

    late = await _wait(still_running, patience)
    return Obeyed(was_running=True, late=late, counts=None if late else await machines.counts())


async def pause(machines: Machines, *, patience: float) -> Obeyed:
    """Let no new visit start, and wait until all processes have paused."""
    await machines.instruct(InstructionKind.PAUSE, _new_instruction())
    return await _until_processes_are(machines, paused=True, patience=patience)


async def unpause(machines: Machines, *, patience: float) -> Obeyed:
    """End the pause of these machines, and wait until their processes continue unless another pause holds them up.

    The processes of a machine that has a pause of its own are returned as late.
    """
    await machines.instruct(InstructionKind.PAUSE, None)
    if await pauses_of(machines):
        return Obeyed(was_running=bool(await machines.starts()))
    return await _until_processes_are(machines, paused=False, patience=patience)


async def pauses_of(machines: Machines) -> dict[Scope, Instruction]:
    """Return the pauses that hold up these machines."""
    return pauses_in_force(await machines.instructions())


async def _until_processes_are(machines: Machines, *, paused: bool, patience: float) -> Obeyed:
    if not await machines.starts():
        return Obeyed(was_running=False)
    in_flight = 0

    async def others() -> list[str]:
        nonlocal in_flight
        processes = await machines.processes()
        in_flight = sum(process.in_flight for process in processes)
        return [_name(process) for process in processes if process.is_paused is not paused]

    late = await _wait(others, patience)
    return Obeyed(was_running=True, late=late, in_flight=in_flight)


def _name(process: Participant) -> str:
    return f"process {process.pid} of {process.node}"


async def _wait(others: Callable[[], Awaitable[list[str]]], patience: float) -> list[str]:
    """Wait until `others` returns nothing; after `patience` seconds, return its last answer."""
    late = ["nobody knows, because the database does not answer"]
    try:
        async with asyncio.timeout(patience):
            while True:
                late = await others()
                if not late:
                    return []
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        return late


def _new_instruction() -> Instruction:
    return Instruction(who=current_user(), at=time.time())
