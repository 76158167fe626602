"""Maps libcurl's error codes to kinds of failure."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

import pycurl

from rove.model.outcomes import FailureKind

CurlError = tuple[int, str]
"""libcurl's error code and message."""

_DETAIL_LENGTH = 200
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM})
"""No file, local port or memory for a connection."""

# Every other error is a violation of the protocol.
_KINDS: Mapping[int, FailureKind] = {
    pycurl.E_COULDNT_RESOLVE_HOST: FailureKind.DNS,
    pycurl.E_COULDNT_CONNECT: FailureKind.CONNECT,
    pycurl.E_PARTIAL_FILE: FailureKind.RESET,
    pycurl.E_SSL_CONNECT_ERROR: FailureKind.TLS,
    pycurl.E_INTERFACE_FAILED: FailureKind.CONNECT,
    pycurl.E_GOT_NOTHING: FailureKind.RESET,
    pycurl.E_SEND_ERROR: FailureKind.RESET,
    pycurl.E_SSL_CERTPROBLEM: FailureKind.TLS,
    pycurl.E_SSL_CIPHER: FailureKind.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: FailureKind.TLS,
    pycurl.E_BAD_CONTENT_ENCODING: FailureKind.ENCODING,  # an unrequested transfer coding
    pycurl.E_SSL_CACERT_BADFILE: FailureKind.TLS,
    pycurl.E_SSL_SHUTDOWN_FAILED: FailureKind.TLS,
}


def kind_of(error: CurlError, *, os_errno: int) -> FailureKind:
    """Return the kind of a failure that is not a timeout; os_errno is the system's error number, or 0."""
    code = error[0]
    # libcurl reports a broken chunk and a broken connection both as a receive error, and a connection that breaks
    # during the handshake as a TLS error.
    if code in (pycurl.E_RECV_ERROR, pycurl.E_SSL_CONNECT_ERROR) and os_errno:
        return FailureKind.RESET
    if ended_without_notice(error):
        return FailureKind.RESET
    return _KINDS.get(code, FailureKind.PROTOCOL)


def is_local_shortage(error: CurlError, *, os_errno: int, address: str) -> bool:
    """Whether this machine had no file, port or memory left for the connection.

    libcurl does not say why it could not create a socket, so this creates one to find out. If that works, something was
    short a moment ago. If it fails for another reason, such as missing IPv6, nothing is short.
    """
    if error[0] not in (pycurl.E_COULDNT_CONNECT, pycurl.E_INTERFACE_FAILED):
        return False
    if os_errno == errno.EADDRNOTAVAIL and ":" in address:
        return False  # also the error of a machine without IPv6
    if os_errno:
        return os_errno in _SHORTAGES
    number = _socket_errno(socket.AF_INET6 if ":" in address else socket.AF_INET)
    return number is None or number in _SHORTAGES


def is_short_of_sockets() -> bool:
    """Whether this machine cannot create a socket now."""
    return _socket_errno(socket.AF_INET) in _SHORTAGES


def _socket_errno(family: socket.AddressFamily) -> int | None:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError as error:
        return error.errno
    return None


def ended_without_notice(error: CurlError) -> bool:
    """Whether a TLS connection ended without the close_notify that RFC 8446 6.1 requires."""
    return error[0] == pycurl.E_RECV_ERROR and "unexpected eof" in error[1]


def detail_of(error: CurlError) -> str:
    """Return libcurl's message, shortened, or its error number if there is no message."""
    return error[1][:_DETAIL_LENGTH] or f"libcurl error {error[0]}"
