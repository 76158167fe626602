"""Which ports are asked: those of the web, and what a seed names.

A link can name any port, and behind most of them there is something else than a web server: mail, databases, remote
shells. What a link says to them would be ours. So a link leads to another port only where the page that holds it
came from there; since only a seed can bring in such a port at first, it stays with what somebody asked for by name.
Some ports are not asked for a seed either: what listens there may take a request for orders of its own protocol.
"""

from __future__ import annotations

from rove.urls.origin import host_and_port

WEB_PORTS = frozenset({80, 81, 443, 8000, 8008, 8080, 8081, 8088, 8443, 8880, 8888})
"""Ports on which public web servers are found."""
# The fetch standard's list (section 'Port blocking') as of 2026; 0 is in it too.
BAD_PORTS = frozenset(
    {
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95),
        *(101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161),
        *(179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563),
        *(587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060),
        *(5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    }
)


def may_lead(target: str, *, source: str) -> bool:
    """Whether a link or redirect may lead from one origin to another, as far as the port goes.

    >>> may_lead("http://a.test:8080", source="http://b.test")
    True
    >>> may_lead("http://a.test:6379", source="http://b.test")
    False
    >>> may_lead("https://a.test:6379", source="http://a.test:6379")
    True
    """
    if target.count(":") == 1:
        return True  # it names no port, so it is the scheme's own
    host, port = host_and_port(target)
    return port in WEB_PORTS or (host, port) == host_and_port(source)


def port_of(origin: str) -> int:
    """The port of an origin.

    >>> port_of("https://a.test"), port_of("http://[2001:db8::1]:81")
    (443, 81)
    """
    return host_and_port(origin)[1]
