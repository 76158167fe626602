"""Which ports rove connects to: those that web servers use, and those that a seed names.

A link can name any port, and most ports belong to something else: mail, databases, remote shells. A link must not
make rove talk to them. So rove follows a link to an unusual port only from a page of the same host and port; the
first page of such a port can only come from a seed. Some ports are closed to seeds too, because the server behind
them might take an HTTP request for commands of its own protocol.
"""

from __future__ import annotations

from rove.urls.origin import host_and_port

WEB_PORTS = frozenset({80, 81, 443, 8000, 8008, 8080, 8081, 8088, 8443, 8880, 8888})
"""Ports of public web servers."""
# The list of the Fetch standard (section 'Port blocking') as of 2026.
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
    """Whether the target's port allows rove to follow a link or redirect from one origin to another.

    >>> may_lead("http://a.test:8080", source="http://b.test")
    True
    >>> may_lead("http://a.test:6379", source="http://b.test")
    False
    >>> may_lead("https://a.test:6379", source="http://a.test:6379")
    True
    """
    if target.count(":") == 1:
        return True  # no port: the scheme's default
    host, port = host_and_port(target)
    return port in WEB_PORTS or (host, port) == host_and_port(source)


def port_of(origin: str) -> int:
    """Return the port of an origin.

    >>> port_of("https://a.test"), port_of("http://[2001:db8::1]:81")
    (443, 81)
    """
    return host_and_port(origin)[1]
