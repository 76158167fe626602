"""Finds out what is doubtful about the TLS of a site.

A broad crawl reads public pages and sends no secrets, so it fetches a page behind a bad certificate and marks it. But
libcurl reports a bad certificate only by refusing it. So the first connection to a site is strict. If it fails, a
second one accepts any TLS, and the page is marked with the reason. The result is cached for a while, so that most
connections neither verify, which adds a quarter to the cost of a handshake, nor are made twice.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pycurl

from rove.errors import UsageError
from rove.fetch.failure import CurlError
from rove.model.marks import Mark
from rove.resources.ttl_cache import TtlCache

REMEMBERED_SECONDS = 3_600.0
REMEMBERED_SITES = 50_000

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, BSD
)
# OpenSSL's X509_V_ERR_* numbers
_VERIFY_RESULTS = {
    9: Mark.TLS_NOT_YET_VALID,
    10: Mark.TLS_EXPIRED,
    18: Mark.TLS_SELF_SIGNED,
    62: Mark.TLS_WRONG_HOST,
    66: Mark.TLS_OLD,  # the certificate's key is too small
    67: Mark.TLS_OLD,  # an authority's key is too small
    68: Mark.TLS_OLD,  # an authority's digest is too weak
}
_OTHER_NAME = "subject name"
_NO_TLS = ("wrong version number", "packet length too long", "http request", "unexpected eof")
"""OpenSSL's messages for a peer that hangs up or does not speak TLS at all. Old servers send an alert instead."""


def doubt_of(error: CurlError, *, verify_result: int, os_errno: int) -> str | None:
    """Return the mark for the reason why a strict connection failed; None if a lax one would fail too."""
    code, text = error
    if code == pycurl.E_PEER_FAILED_VERIFICATION:
        if _OTHER_NAME in text:
            return Mark.TLS_WRONG_HOST
        return _VERIFY_RESULTS.get(verify_result, Mark.TLS_UNTRUSTED)
    if code == pycurl.E_SSL_CONNECT_ERROR and not os_errno:
        return None if any(sign in text for sign in _NO_TLS) else Mark.TLS_OLD
    return None


def find_authorities(bundles: Sequence[str] = _BUNDLES) -> Path | None:
    """Return the CA file of this machine, or None if there is no readable one."""
    default = ssl.get_default_verify_paths().cafile
    for name in (default, *bundles):
        if name is not None and Path(name).is_file() and _is_readable(name):
            return Path(name)
    return None


def authorities_for(*, strict: bool, bundles: Sequence[str] = _BUNDLES) -> Path | None:
    """Return the CA file of this machine; raise a UsageError if `strict` needs one and there is none."""
    authorities = find_authorities(bundles)
    if authorities is None and strict:
        raise UsageError(
            "--strict-tls needs the CA certificates of this machine, and there are none. "
            "Install them (the package is often called ca-certificates), or set SSL_CERT_FILE to their file."
        )
    return authorities


def _is_readable(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=name)
    except OSError:  # also catches SSLError
        return False
    return True


class KnownSites:
    """Remembers the marks of sites whose TLS was checked recently."""

    def __init__(self, *, size: int = REMEMBERED_SITES, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks = TtlCache[str, tuple[str, ...]](size)

    @property
    def remembered(self) -> int:
        """How many sites were checked recently."""
        return len(self._marks)

    def marks(self, origin: str) -> tuple[str, ...] | None:
        """Return the marks of an origin; None if it was not checked recently."""
        return self._marks.get(origin, self._clock())

    def note(self, origin: str, marks: tuple[str, ...]) -> None:
        """Remember the marks of an origin that was just checked."""
        self._marks.put(origin, marks, expires=self._clock() + REMEMBERED_SECONDS)
