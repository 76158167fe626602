"""What libcurl's error codes mean to a crawl: the one place where they are mapped."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

import pycurl

from rove.model.outcomes import FailureKind

CurlError = tuple[int, str]
"""libcurl's code and its sentence."""

_TOO_LARGE = 100  # CURLE_TOO_LARGE, which pycurl does not name
_DETAIL_LENGTH = 200
_OUR_TROUBLES = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.EADDRNOTAVAIL,
        errno.EAGAIN,
        errno.ENOBUFS,
        errno.ENOMEM,
    }
)
"""No file, no local port, or no memory for a connection."""

_KINDS: Mapping[int, FailureKind] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: FailureKind.PROTOCOL,  # also for HTTP/0.9
    pycurl.E_URL_MALFORMAT: FailureKind.PROTOCOL,
    pycurl.E_COULDNT_RESOLVE_HOST: FailureKind.DNS,
    pycurl.E_COULDNT_CONNECT: FailureKind.CONNECT,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: FailureKind.PROTOCOL,
    pycurl.E_HTTP2: FailureKind.PROTOCOL,
    pycurl.E_PARTIAL_FILE: FailureKind.RESET,
    pycurl.E_SSL_CONNECT_ERROR: FailureKind.TLS,
    pycurl.E_INTERFACE_FAILED: FailureKind.CONNECT,
    pycurl.E_GOT_NOTHING: FailureKind.RESET,
    pycurl.E_SSL_ENGINE_NOTFOUND: FailureKind.TLS,
    pycurl.E_SSL_ENGINE_SETFAILED: FailureKind.TLS,
    pycurl.E_SEND_ERROR: FailureKind.RESET,
    pycurl.E_RECV_ERROR: FailureKind.PROTOCOL,  # see kind_of: RESET where the system says so
    pycurl.E_SSL_CERTPROBLEM: FailureKind.TLS,
    pycurl.E_SSL_CIPHER: FailureKind.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: FailureKind.TLS,
    pycurl.E_BAD_CONTENT_ENCODING: FailureKind.ENCODING,  # a transfer coding that was not asked for
    pycurl.E_SSL_CACERT_BADFILE: FailureKind.TLS,
    pycurl.E_SSL_SHUTDOWN_FAILED: FailureKind.TLS,
    _TOO_LARGE: FailureKind.PROTOCOL,
}


def kind_of(error: CurlError, *, os_errno: int) -> FailureKind:
    """The kind of a failure other than a timeout; os_errno is what the system said, or 0."""
    code = error[0]
    # libcurl says 'recv error' of a broken chunk as well as of a broken connection, and 'TLS' of a
    # connection that breaks during the handshake.
    if code in (pycurl.E_RECV_ERROR, pycurl.E_SSL_CONNECT_ERROR) and os_errno:
        return FailureKind.RESET
    if ended_unannounced(error):
        return FailureKind.RESET
    return _KINDS.get(code, FailureKind.PROTOCOL)


def is_our_trouble(error: CurlError, *, os_errno: int, address: str) -> bool:
    """Whether no connection could be made for want of files, ports or memory on this machine.

    libcurl does not say why it could not make a socket. One is made here then: if that fails for another reason, as
    without IPv6, it is not for want of anything; if it does not, there was want of something a moment ago.
    """
    if error[0] not in (pycurl.E_COULDNT_CONNECT, pycurl.E_INTERFACE_FAILED):
        return False
    if os_errno == errno.EADDRNOTAVAIL and ":" in address:
        return False  # also said where IPv6 is switched off
    if os_errno:
        return os_errno in _OUR_TROUBLES
    refusal = _refusal_of_a_socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    return refusal is None or refusal in _OUR_TROUBLES


def is_short_of_sockets() -> bool:
    """Whether this machine has none to give now."""
    return _refusal_of_a_socket(socket.AF_INET) in _OUR_TROUBLES


def _refusal_of_a_socket(family: socket.AddressFamily) -> int | None:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError as why:
        return why.errno
    return None


def ended_unannounced(error: CurlError) -> bool:
    """Whether a TLS connection just ended, without the notice that RFC 8446 6.1 asks for."""
    return error[0] == pycurl.E_RECV_ERROR and "unexpected eof" in error[1]


def detail_of(error: CurlError) -> str:
    """libcurl's sentence, or its number where it has none, at a bounded length."""
    return error[1][:_DETAIL_LENGTH] or f"libcurl error {error[0]}"
