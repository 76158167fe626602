"""Groups of addresses that usually have one owner, so that an address literal is not a name that costs nothing."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from rove.urls.domain import is_address

_PREFIXES = {4: 24, 6: 64}


@lru_cache(maxsize=8_192)
def address_group(domain: str) -> str:
    """Return the network that the address of a domain shares with its neighbours; '' if the domain is a name.

    >>> address_group("[2001:db8:0:1::7]"), address_group("192.0.2.7"), address_group("a.test")
    ('2001:db8:0:1::/64', '192.0.2.0/24', '')
    """
    if not is_address(domain):
        return ""
    try:
        address = ipaddress.ip_address(domain.strip("[]"))
    except ValueError:
        return ""
    return str(ipaddress.ip_network((address, _PREFIXES[address.version]), strict=False))
