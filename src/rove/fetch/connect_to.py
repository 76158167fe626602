"""Rules that send a host to a fixed address instead of asking DNS: `PATTERN=ADDRESS[:PORT]`.

For a crawl of a server that is not public yet, and for tests, in which the whole web lives on
loopback.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rove.errors import UsageError
from rove.fetch.address import ADDRESS_AND_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRule:
    """Hosts that match the pattern are reached at the address."""

    pattern: str
    address: str
    """An IP address, without brackets."""
    port: int | None = None
    """None: the URL's own."""


def parse_connect_to(text: str) -> ConnectRule:
    """One rule from its text; a UsageError says what is wrong with it.

    >>> parse_connect_to("*.test=127.0.0.1:8080")
    ConnectRule(pattern='*.test', address='127.0.0.1', port=8080)
    """
    pattern, equals, target = text.partition("=")
    if not equals or not pattern.strip() or not target:
        raise UsageError(
            f"'{text}' is not a connect-to rule: write PATTERN=ADDRESS or PATTERN=ADDRESS:PORT."
        )
    found = ADDRESS_AND_PORT.fullmatch(target)
    if found is None:
        raise UsageError(
            f"'{target}' in the connect-to rule '{text}' is not ADDRESS or ADDRESS:PORT"
            " (an IPv6 address goes in brackets)."
        )
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 1 <= port <= 65_535:
        raise UsageError(f"{port} in the connect-to rule '{text}' is not a port (1 to 65535).")
    try:
        address = (
            ipaddress.IPv4Address(found["v4"])
            if found["v6"] is None
            else ipaddress.IPv6Address(found["v6"])
        )
    except ValueError:
        raise UsageError(
            f"'{found['v4'] or found['v6'] or ''}' in the connect-to rule '{text}'"
            " is not an IP address; names are not looked up here."
        ) from None
    if "%" in str(address):
        raise UsageError(f"The connect-to rule '{text}' must not name a zone in its address.")
    return ConnectRule(pattern=pattern.strip().lower(), address=str(address), port=port)


class ConnectTo:
    """The rules of a crawl in their order."""

    def __init__(self, rules: Iterable[ConnectRule]) -> None:
        self._rules = tuple(
            (re.compile(fnmatch.translate(rule.pattern.lower())).match, rule) for rule in rules
        )

    def find(self, host: str) -> ConnectRule | None:
        """The first rule for a host as it stands in a URL; IPv6 hosts match without brackets."""
        if not self._rules:
            return None
        bare = host.strip("[]")
        for matches, rule in self._rules:
            if matches(bare):
                return rule
        return None
