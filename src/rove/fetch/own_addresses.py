"""The IP addresses of this machine's own interfaces, as the Linux kernel lists them.

A cloud machine often has a public address on its interface. A link to that address leads to this machine's own
services, so the guard treats it like a private one.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from pathlib import Path

V4_ROUTES = Path("/proc/net/fib_trie")
V6_INTERFACES = Path("/proc/net/if_inet6")
REFRESH_SECONDS = 60.0
"""Addresses are read again after this time, because a machine can get a new one while the crawl runs."""


class OwnAddresses:
    """The addresses of this machine, read again from time to time."""

    def __init__(
        self, *, read: Callable[[], frozenset[str]] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read or read_own_addresses
        self._clock = clock
        self._known = self._read()
        self._read_at = clock()

    def __contains__(self, address: object) -> bool:
        """Whether an address, in any spelling, belongs to this machine."""
        if self._clock() - self._read_at > REFRESH_SECONDS:
            self._known, self._read_at = self._read(), self._clock()
        return isinstance(address, str) and (address in self._known or _normal(address) in self._known)


def read_own_addresses(v4: Path = V4_ROUTES, v6: Path = V6_INTERFACES) -> frozenset[str]:
    """Return all addresses of this machine in their usual spelling; none if the kernel does not list them."""
    return frozenset([*_v4_addresses(_lines(v4)), *_v6_addresses(_lines(v6))])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _v4_addresses(lines: list[str]) -> list[str]:
    """Return the addresses of fib_trie: each stands on a line of its own, before a line `/32 host LOCAL`."""
    addresses, last = [], ""
    for line in lines:
        words = line.split()
        if words[:1] == ["|--"]:
            last = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            addresses.append(last)
    return addresses


def _v6_addresses(lines: list[str]) -> list[str]:
    """Return the addresses of if_inet6: the first word of each line, as 32 hexadecimal digits."""
    return [str(ipaddress.IPv6Address(int(line.split()[0], 16))) for line in lines if line.strip()]


def _normal(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
