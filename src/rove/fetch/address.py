"""Decides which addresses a crawl may connect to.

A link or a DNS answer can lead anywhere: to services on this machine, to its local network, to a cloud's metadata
server. So the fetcher connects only to addresses that this guard permits, whether they come from DNS or from a URL.
The address of a connect-to rule is exempt, because the user wrote it. Pure: takes text, returns a decision.

The ranges are those of IANA's special-purpose registries (RFC 6890). They are listed here because the results of
`ipaddress.is_global` differ between releases of Python.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache

ADDRESS_AND_PORT = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<v4>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?")
"""ADDRESS or ADDRESS:PORT; an IPv6 address is in brackets."""
_SPECIAL_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, withdrawn
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# All public IPv6 unicast addresses. Loopback, unspecified, IPv4-mapped, NAT64, unique local, link-local and multicast
# addresses are outside.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # IETF protocol assignments, Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which contains an IPv4 address
        "3fff::/20",  # documentation
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressGuard:
    """Decides whether the fetcher may connect to an address."""

    allow_private: bool = False
    """Permit every address, to crawl a private network or a test server."""
    own: Container[str] = ()
    """Addresses of this machine, which are refused like private ones."""

    def permits(self, address: str) -> bool:
        """Whether the fetcher may connect. Text that is not an IP address is never permitted."""
        if self.allow_private:
            return is_ip(address)
        return is_public(address) and address not in self.own


@lru_cache(maxsize=65_536)
def is_public(address: str) -> bool:
    """Whether the text is an IP address of the public Internet.

    >>> is_public("93.184.215.14"), is_public("169.254.169.254"), is_public("::ffff:93.184.215.14")
    (True, False, False)
    """
    parsed = _parse(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _SPECIAL_V4)
    if isinstance(parsed, ipaddress.IPv6Address):
        return parsed in _UNICAST_V6 and not any(parsed in network for network in _SPECIAL_V6)
    return False


@lru_cache(maxsize=1_024)
def is_ip(address: str) -> bool:
    """Whether the text is an IP address without brackets, port or zone."""
    return _parse(address) is not None


def same_address(one: str, other: str) -> bool:
    """Whether two texts name the same IP address, however they spell it."""
    return one == other or (is_ip(one) and _parse(one) == _parse(other))


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if "%" in address:
        return None
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None
