"""The origin of a URL (scheme, host and port) and its parts."""

from __future__ import annotations

from functools import lru_cache

DEFAULT_PORTS = {"http": 80, "https": 443}
SHORTEST_ORIGIN = len("http://a")
"""The first slash after this many characters of a canonical URL starts its path."""


def origin_of(url: str) -> str:
    """Return the origin of a canonical URL.

    >>> origin_of("https://a.test:8443/x/y")
    'https://a.test:8443'
    """
    return url[: url.index("/", SHORTEST_ORIGIN)]


def is_plausible(url: str) -> bool:
    """Whether a stored URL may be in canonical form. If not, its row is damaged.

    >>> is_plausible("https://a.test/x"), is_plausible("https:/\ufffda.test/x"), is_plausible("https://a.test")
    (True, False, False)
    """
    scheme, separator, rest = url.partition("://")
    host, slash, _ = rest.partition("/")
    return (
        url.isascii()
        and bool(separator and slash)
        and scheme in DEFAULT_PORTS
        and bool(host.strip("."))
        and "@" not in host
        and not host.startswith((".", ":"))
        and not host.endswith(".")
    )


@lru_cache(maxsize=8_192)
def host_and_port(origin: str) -> tuple[str, int]:
    """Return the host of an origin and its port, which is the scheme's default if the origin has none.

    An IPv6 address keeps its brackets.

    >>> host_and_port("https://a.test"), host_and_port("http://[::1]:81")
    (('a.test', 443), ('[::1]', 81))
    """
    scheme, _, host = origin.partition("://")
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():  # an IPv6 address without a port ends with a bracket
        return host, DEFAULT_PORTS[scheme]
    return name, int(port)
