"""Rules that map hosts to a fixed address instead of a DNS lookup: `PATTERN=ADDRESS[:PORT]`.

Use them to crawl a server that is not public yet, or to test against a web on loopback.
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
    """Maps the hosts that match a pattern to an address."""

    pattern: str
    address: str
    """An IP address, without brackets."""
    port: int | None = None
    """None means the port of the URL."""


def parse_connect_to(text: str) -> ConnectRule:
    """Parse one rule; raise a UsageError that says what is wrong with it.

    >>> parse_connect_to("*.test=127.0.0.1:8080")
    ConnectRule(pattern='*.test', address='127.0.0.1', port=8080)
    """
    pattern, equals, target = text.partition("=")
    if not equals or not pattern.strip() or not target:
        raise UsageError(f"'{text}' is not a connect-to rule: write PATTERN=ADDRESS or PATTERN=ADDRESS:PORT.")
    if not pattern.isascii():
        raise UsageError(f"'{pattern}' is not a pattern of host names as they are requested: write 'xn--...'.")
    parts = ADDRESS_AND_PORT.fullmatch(target)
    if parts is None:
        raise UsageError(
            f"'{target}' in the connect-to rule '{text}' is not ADDRESS or ADDRESS:PORT"
            " (write an IPv6 address in brackets)."
        )
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and not 1 <= port <= 65_535:
        raise UsageError(f"{port} in the connect-to rule '{text}' is not a port (1 to 65535).")
    try:
        address = ipaddress.IPv4Address(parts["v4"]) if parts["v6"] is None else ipaddress.IPv6Address(parts["v6"])
    except ValueError:
        raise UsageError(
            f"'{parts['v4'] or parts['v6'] or ''}' in the connect-to rule '{text}'"
            " is not an IP address. Host names are not allowed here."
        ) from None
    if "%" in str(address):
        raise UsageError(f"The address in the connect-to rule '{text}' must not have a zone.")
    return ConnectRule(pattern=pattern.strip().lower(), address=str(address), port=port)


class ConnectTo:
    """The connect-to rules of a crawl. The first match counts."""

    def __init__(self, rules: Iterable[ConnectRule]) -> None:
        self._rules = tuple((re.compile(fnmatch.translate(rule.pattern.lower())).match, rule) for rule in rules)

    def find(self, host: str) -> ConnectRule | None:
        """Return the first rule that matches the host of a URL. IPv6 hosts match without their brackets."""
        if not self._rules:
            return None
        name = host.strip("[]")
        for matches, rule in self._rules:
            if matches(name):
                return rule
        return None
