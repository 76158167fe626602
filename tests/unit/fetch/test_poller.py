"""Sockets that are watched together."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator

import pytest

from rove.fetch.poller import READ, WRITE, EpollSockets, ReadySockets, SelectorSockets

Pair = tuple[socket.socket, socket.socket]
KINDS = [SelectorSockets, *([EpollSockets] if hasattr(select, "epoll") else [])]


@pytest.fixture(params=KINDS)
def sockets(request: pytest.FixtureRequest) -> Iterator[ReadySockets]:
    kind: Callable[[], ReadySockets] = request.param
    made = kind()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def is_readable(sockets: ReadySockets) -> bool:
    return bool(select.select([sockets.fileno()], [], [], 0)[0])


def test_what_is_watched_for_is_told(sockets: ReadySockets, pair: Pair) -> None:
    one, other = pair
    sockets.watch(one.fileno(), READ)
    assert list(sockets.ready()) == [] and not is_readable(sockets)
    other.send(b"x")
    assert is_readable(sockets)
    assert list(sockets.ready()) == [(one.fileno(), READ)]
    sockets.watch(one.fileno(), WRITE)
    assert list(sockets.ready()) == [(one.fileno(), WRITE)]
    sockets.watch(one.fileno(), READ | WRITE)
    assert list(sockets.ready()) == [(one.fileno(), READ | WRITE)]


def test_what_is_forgotten_is_not_told(sockets: ReadySockets, pair: Pair) -> None:
    one, _ = pair
    sockets.watch(one.fileno(), WRITE)
    sockets.forget(one.fileno())
    sockets.forget(one.fileno())
    assert list(sockets.ready()) == [] and not is_readable(sockets)


def test_a_peer_that_has_gone_is_told(sockets: ReadySockets, pair: Pair) -> None:
    one, other = pair
    sockets.watch(one.fileno(), READ)
    other.close()
    ((descriptor, events),) = sockets.ready()
    assert descriptor == one.fileno() and events & READ


def test_a_descriptor_may_be_another_socket_before_the_old_one_is_forgotten(
    sockets: ReadySockets,
) -> None:
    old, old_peer = socket.socketpair()
    number = old.fileno()
    sockets.watch(number, READ)
    old.close()
    new, new_peer = socket.socketpair()
    with old_peer, new, new_peer:
        assert new.fileno() == number
        sockets.watch(number, WRITE)
        assert list(sockets.ready()) == [(number, WRITE)]
        sockets.forget(number)
        assert list(sockets.ready()) == []


def test_a_closed_socket_can_be_forgotten(sockets: ReadySockets) -> None:
    one, other = socket.socketpair()
    number = one.fileno()
    sockets.watch(number, READ)
    one.close()
    other.close()
    sockets.forget(number)
    assert list(sockets.ready()) == []
