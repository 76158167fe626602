"""A name server that lies, falls silent and goes in circles: the names under .example are its own.

No answer of it names a public address: what a crawl made of that would leave the machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import struct
from collections.abc import Callable
from typing import cast

from tests.zoo.animal import DONE, Animal, Fates, at, failed, linking, says, waiting, whole

NO_SUCH_NAME, SERVER_FAILURE = 3, 2
A, CNAME, AAAA = 1, 5, 28
UNRESOLVED: Fates = (failed("dns*"), waiting("dns*"))
REFUSED: Fates = (failed("address-refused"), waiting("address-refused"), waiting("dns"))
"""On a busy machine the answer may come too late; what matters is that nothing is reached."""
_LOOPBACK, _METADATA, _PRIVATE = "127.0.0.1", "169.254.169.254", "10.0.0.1"
_changing = itertools.cycle([_METADATA, _LOOPBACK, _PRIVATE])

Record = tuple[int, bytes]
"""The type of a record and its data."""
Reply = tuple[int, list[Record]] | bytes | None
"""A response code and records, raw bytes, or None for no answer."""


def _addresses(*texts: str) -> Reply:
    return 0, [(A, ipaddress.IPv4Address(text).packed) for text in texts]


def _both(v4: str, v6: str, type: int) -> Reply:
    """Return the records of a name with an IPv6 address, and optionally an IPv4 address."""
    if type == AAAA:
        return 0, [(AAAA, ipaddress.IPv6Address(v6).packed)]
    return _addresses(v4) if v4 else (0, [])


def _alias(name: str) -> Reply:
    return 0, [(CNAME, _encoded(name))]


ANSWERS: dict[str, tuple[Callable[[int], Reply], Fates]] = {
    "to-loopback": (lambda _: _addresses(_LOOPBACK), REFUSED),
    "to-metadata": (lambda _: _addresses(_METADATA), REFUSED),
    "to-a-mix": (lambda _: _addresses(_PRIVATE, _LOOPBACK, _METADATA, "0.0.0.0"), REFUSED),
    "to-ipv6-loopback": (lambda type: _both("", "::1", type), REFUSED),
    "to-mapped": (lambda type: _both("", "::ffff:127.0.0.1", type), REFUSED),
    "rebinding": (lambda _: _addresses(next(_changing)), REFUSED),
    "never-answers": (lambda _: None, UNRESOLVED),
    "no-such-name": (lambda _: (NO_SUCH_NAME, []), UNRESOLVED),
    "server-failure": (lambda _: (SERVER_FAILURE, []), UNRESOLVED),
    "alias-of-itself": (lambda _: _alias("alias-of-itself.example"), UNRESOLVED),
    "alias-to-and-fro": (lambda _: _alias("alias-fro-and-to.example"), UNRESOLVED),
    "alias-fro-and-to": (lambda _: _alias("alias-to-and-fro.example"), UNRESOLVED),
    "rubbish": (lambda _: b"\xff" * 40, UNRESOLVED),
}


def animal(forbidden: int) -> Animal:
    """Return the names as seeds and as links, at the port that must not be reached."""
    name = "strange-names"
    hosts = {f"http://{host}.example:{forbidden}/": fates for host, (_, fates) in ANSWERS.items()}
    links = {f"{url}link": fates for url, fates in hosts.items()}
    return Animal(
        name=name,
        what="names that lead inward, change, loop or never resolve",
        answer=says(whole(linking(name, links))),
        expects={at(name): (DONE,), **hosts, **links},
        seeds=(at(name), *hosts),
    )


class NameServer(asyncio.DatagramProtocol):
    """Answers queries from the table."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one query."""
        name, type, end = question(data)
        answer, _ = ANSWERS.get(name.removesuffix(".example"), (lambda _: (NO_SUCH_NAME, []), ()))
        reply = answer(type)
        if isinstance(reply, bytes):
            self._transport.sendto(reply, addr)
        elif reply is not None:
            self._transport.sendto(message(data[:2], data[12:end], *reply), addr)


def question(data: bytes) -> tuple[str, int, int]:
    """Return the name and the type of a query, and where it ends."""
    labels, place = [], 12
    while length := data[place]:
        labels.append(data[place + 1 : place + 1 + length].decode("ascii", "replace"))
        place += 1 + length
    (type,) = struct.unpack_from("!H", data, place + 1)
    return ".".join(labels).lower(), type, place + 5


def _encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def message(number: bytes, question: bytes, code: int, records: list[Record]) -> bytes:
    flags = 0x8580 | code
    message = number + struct.pack("!HHHHH", flags, 1, len(records), 0, 0) + question
    for type, data in records:
        message += b"\xc0\x0c" + struct.pack("!HHIH", type, 1, 0, len(data)) + data
    return message
