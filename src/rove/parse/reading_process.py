"""The process in which pages are read that may take long: `python -m rove.parse.reading_process CPU_SECONDS BYTES`.

It takes tasks from its standard input and writes documents to its standard output, one for one. A page on which it
spends more CPU time than it may kills it: no code of ours runs while the parser does, so the kernel's timer does that.
"""

from __future__ import annotations

import resource
import signal
import sys
from typing import BinaryIO

import msgspec
from selectolax.lexbor import SelectolaxError

from rove.parse.html import Answer, Document, read_html, read_plain

LENGTH_BYTES = 4
"""Before each message comes its length."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A page to be read."""

    answer: Answer
    is_plain_text: bool


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    document: Document | None = None
    failure: str = ""
    """Why there is no document."""


def main() -> None:
    """Read pages until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cpu_seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tasks, documents = sys.stdin.buffer, sys.stdout.buffer
    while (message := _next(tasks)) is not None:
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        reply = msgspec.msgpack.encode(_reply(message))
        signal.setitimer(signal.ITIMER_PROF, 0)
        documents.write(len(reply).to_bytes(LENGTH_BYTES) + reply)
        documents.flush()


def _next(tasks: BinaryIO) -> bytes | None:
    length = tasks.read(LENGTH_BYTES)
    return tasks.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else None


def _reply(message: bytes) -> Reply:
    task = msgspec.msgpack.decode(message, type=Task)
    try:
        read = read_plain if task.is_plain_text else read_html
        return Reply(document=read(task.answer))
    except (MemoryError, SelectolaxError):
        return Reply(failure="it takes too much memory")


if __name__ == "__main__":
    main()
