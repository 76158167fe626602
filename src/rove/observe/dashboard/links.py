"""The addresses under which a browser finds a dashboard."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address

import msgspec

from rove.observe.listening import ListenAddress


class Links(msgspec.Struct, frozen=True):
    """The addresses that are printed at the start. As JSON they go to the crawl that has started the dashboard."""

    page: str
    with_token: str
    """With the token behind the `#`, which a browser keeps to itself."""


def own_names(address: ListenAddress, given: Sequence[str]) -> list[str]:
    """Return the names under which a browser may reach a dashboard: those given, and that of the machine.

    A dashboard on loopback does not have the name of the machine.
    """
    return [*given, socket.gethostname()] if ip_address(address.address).is_unspecified else list(given)


def links(address: ListenAddress, token: str, names: Sequence[str]) -> Links:
    """Return the addresses of a dashboard with these names."""
    is_everywhere = ip_address(address.address).is_unspecified
    host = f"{names[0]}:{address.port}" if is_everywhere else address.host_and_port
    page = f"http://{host}/"
    return Links(page, f"{page}#token={token}")
