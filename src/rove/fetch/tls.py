"""What is doubtful about the TLS of a site, found out at little cost.

A broad crawl reads public pages and sends no secrets: a page behind a bad certificate is fetched and marked. Yet
libcurl finds out only where it would refuse. So the first connection to a site is a strict one; if it is refused, a
second one puts up with everything, and the answer is marked with the reason. What was found is remembered for a while,
so that most connections neither verify (which adds a quarter to the cost of a handshake) nor are made twice.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pycurl

from rove.errors import UsageError
from rove.fetch.failure import CurlError
from rove.resources.ttl_cache import TtlCache

EXPIRED = "tls-expired"
NOT_YET_VALID = "tls-not-yet-valid"
SELF_SIGNED = "tls-self-signed"
WRONG_HOST = "tls-wrong-host"
UNTRUSTED = "tls-untrusted"
OLD = "tls-old"
"""TLS before 1.2, or keys and ciphers that are too weak today."""

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
    9: NOT_YET_VALID,
    10: EXPIRED,
    18: SELF_SIGNED,
    62: WRONG_HOST,
    66: OLD,  # the key of the certificate is too small,
    67: OLD,  # that of an authority is,
    68: OLD,  # or its digest is too weak
}
_OTHER_NAME = "subject name"
_NO_TLS = ("wrong version number", "packet length too long", "http request", "unexpected eof")
"""What OpenSSL says of a peer that does not speak TLS at all, or hangs up. Old servers say what they miss."""


def doubt_of(error: CurlError, *, verify_result: int, os_errno: int) -> str | None:
    """The mark for what a strict connection was refused for; None where a lax one would not do better."""
    code, text = error
    if code == pycurl.E_PEER_FAILED_VERIFICATION:
        if _OTHER_NAME in text:
            return WRONG_HOST
        return _VERIFY_RESULTS.get(verify_result, UNTRUSTED)
    if code == pycurl.E_SSL_CONNECT_ERROR and not os_errno:
        return None if any(sign in text for sign in _NO_TLS) else OLD
    return None


def find_authorities() -> Path | None:
    """The file with the certificates of the authorities that this machine trusts; None if there is none to be read."""
    default = ssl.get_default_verify_paths().cafile
    for name in (default, *_BUNDLES):
        if name is not None and Path(name).is_file() and _is_readable(name):
            return Path(name)
    return None


def authorities_for(*, strict: bool) -> Path | None:
    """Likewise; a UsageError where certificates are to be enforced and cannot be checked."""
    found = find_authorities()
    if found is None and strict:
        raise UsageError(
            "--strict-tls needs the certificates of the authorities that this machine trusts, and none were found; "
            "install them (the package is often called ca-certificates), or name their file in SSL_CERT_FILE"
        )
    return found


def _is_readable(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=name)
    except OSError:  # an SSLError is one
        return False
    return True


class KnownSites:
    """The marks of sites that were checked not long ago."""

    def __init__(
        self, *, size: int = REMEMBERED_SITES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._marks = TtlCache[str, tuple[str, ...]](size)

    def marks(self, site: str) -> tuple[str, ...] | None:
        """What was doubtful about a site, by its origin; None if that is not known, or no longer."""
        return self._marks.get(site, self._clock())

    def note(self, site: str, marks: tuple[str, ...]) -> None:
        """Remember what was found."""
        self._marks.put(site, marks, expires=self._clock() + REMEMBERED_SECONDS)
