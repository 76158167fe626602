"""Which sockets of many have something to do, asked of the system for all of them at once.

An event loop can watch sockets too, but keeps a handle and a callback for each of them; that costs more than the rest
of a short life of a connection. Here they are watched together, by something that has a descriptor itself: it is
readable when one of them is ready, so the event loop watches that alone.
"""

from __future__ import annotations

import select
import selectors
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

Ready = Sequence[tuple[int, int]]
"""Descriptors with what each is ready for: READ, WRITE, or both, as after an error."""


class ReadySockets(Protocol):
    """Sockets that are watched; the same descriptor may soon be another socket."""

    def fileno(self) -> int:
        """What is readable when a socket is ready."""

    def watch(self, descriptor: int, events: int) -> None:
        """From now on, watch a socket for these events and no others."""

    def forget(self, descriptor: int) -> None:
        """Watch it no longer, if it was watched; it may be closed already."""

    def ready(self) -> Ready:
        """Those that are ready now, without waiting."""

    def close(self) -> None:
        """Watch nothing any more."""


class EpollSockets:
    """As Linux has it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        self._events = {
            READ: select.EPOLLIN,
            WRITE: select.EPOLLOUT,
            READ | WRITE: select.EPOLLIN | select.EPOLLOUT,
        }
        self._meaning = {select.EPOLLIN: READ, select.EPOLLOUT: WRITE}

    def fileno(self) -> int:
        """See ReadySockets."""
        return self._epoll.fileno()

    def watch(self, descriptor: int, events: int) -> None:
        """See ReadySockets."""
        if descriptor in self._watched:
            try:
                self._epoll.modify(descriptor, self._events[events])
                return
            except FileNotFoundError:
                pass  # the system forgets what is closed
        self._watched.add(descriptor)
        self._epoll.register(descriptor, self._events[events])

    def forget(self, descriptor: int) -> None:
        """See ReadySockets."""
        if descriptor in self._watched:
            self._watched.discard(descriptor)
            try:
                self._epoll.unregister(descriptor)
            except OSError:
                return  # the system forgets what is closed

    def ready(self) -> Ready:
        """See ReadySockets."""
        meaning = self._meaning
        return [
            (descriptor, meaning.get(events, READ | WRITE))
            for descriptor, events in self._epoll.poll(0)
        ]

    def close(self) -> None:
        """See ReadySockets."""
        self._epoll.close()


class SelectorSockets:
    """As the standard library has it, for other systems."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        """See ReadySockets."""
        return self._selector.fileno()

    def watch(self, descriptor: int, events: int) -> None:
        """See ReadySockets."""
        self.forget(descriptor)
        self._selector.register(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """See ReadySockets."""
        with suppress(KeyError, OSError):
            self._selector.unregister(descriptor)

    def ready(self) -> Ready:
        """See ReadySockets."""
        return [(key.fd, events) for key, events in self._selector.select(0)]

    def close(self) -> None:
        """See ReadySockets."""
        self._selector.close()


def ready_sockets() -> ReadySockets:
    """The best that the system has."""
    return EpollSockets() if hasattr(select, "epoll") else SelectorSockets()
