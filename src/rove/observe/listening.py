"""The address at which this machine is looked at, for options such as `--metrics [ADDRESS:]PORT`."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from dataclasses import dataclass

from rove.errors import UsageError

LOOPBACK = "127.0.0.1"
BACKLOG = 16
"""Connections that wait to be accepted."""
_LISTEN = re.compile(r"(?:(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<v4>[0-9.]+)):)?(?P<port>[0-9]{1,5})")
_REASONS = {
    errno.EADDRINUSE: "another program uses this port; choose another one",
    errno.EADDRNOTAVAIL: "this machine does not have that address; choose one of its own",
    errno.EACCES: "this user may not use that port; choose one above 1023",
}


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An IP address of this machine and a port."""

    address: str
    port: int
    """0 stands for any free port."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def host_and_port(self) -> str:
        """The address as it stands in a URL."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    def listening(self) -> socket.socket:
        """Return a socket that listens on this address; raise a UsageError that says why that is impossible."""
        listener = socket.socket(socket.AF_INET6 if ":" in self.address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            # A program that ended a moment ago may have left connections behind; they do not block the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.address, self.port))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            reason = _REASONS.get(error.errno or 0, os.strerror(error.errno or 0))
            raise UsageError(f"cannot listen on {self.host_and_port}: {reason}") from error
        return listener


def parse_listen(text: str) -> ListenAddress:
    """Parse [ADDRESS:]PORT; without an address, only this machine can connect.

    >>> parse_listen("9464").host_and_port, parse_listen("[::]:9464").host_and_port
    ('127.0.0.1:9464', '[::]:9464')
    """
    parts = _LISTEN.fullmatch(text.strip())
    if parts is None:
        raise UsageError(f"'{text}' is neither PORT nor ADDRESS:PORT (write an IPv6 address in brackets)")
    port = int(parts["port"])
    if port > 65_535:
        raise UsageError(f"{port} is not a port (1 to 65535, or 0 for any free port)")
    address = parts["v6"] or parts["v4"] or LOOPBACK
    try:
        return ListenAddress(str(ipaddress.ip_address(address)), port)
    except ValueError:
        raise UsageError(f"'{address}' is not an IP address (write an IPv6 address in brackets)") from None
