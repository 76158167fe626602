"""How long the phases of requests take, by libcurl's own times."""

from __future__ import annotations

import enum
from collections.abc import Callable

import pycurl

from rove.model.histogram import Histogram


class Phase(enum.StrEnum):
    """A phase of a request. The figures are named `phase.<value>`."""

    DNS = "dns"
    """A lookup that asked a name server. rove resolves names itself, and most are in its cache."""
    CONNECT = "connect"
    TLS = "tls"
    FIRST_BYTE = "first_byte"
    """From the connection to the first byte of the response."""
    TRANSFER = "transfer"
    """From the first byte to the last."""


class Phases:
    """Records the phases that each request has completed."""

    def __init__(self, histogram: Callable[[str], Histogram]) -> None:
        """`histogram` returns the histogram of a name."""
        self.note_lookup = histogram(f"phase.{Phase.DNS}").add
        self._connect, self._tls, self._first_byte, self._transfer = (
            histogram(f"phase.{phase}").add for phase in (Phase.CONNECT, Phase.TLS, Phase.FIRST_BYTE, Phase.TRANSFER)
        )

    def note(self, curl: pycurl.Curl) -> None:
        """Record the phases of the request that a handle has just ended. A phase that was not completed has no time."""
        getinfo = curl.getinfo
        # Each time counts from the start of the request. A connection that was open already has none.
        connected: float = getinfo(pycurl.CONNECT_TIME)
        secured: float = getinfo(pycurl.APPCONNECT_TIME)
        if connected:
            self._connect(connected)
        if secured:
            self._tls(max(0.0, secured - connected))
        if getinfo(pycurl.HEADER_SIZE):  # libcurl sets the next time even if nothing was received
            first_byte: float = getinfo(pycurl.STARTTRANSFER_TIME)
            self._first_byte(max(0.0, first_byte - (secured or connected)))
            self._transfer(max(0.0, getinfo(pycurl.TOTAL_TIME) - first_byte))
