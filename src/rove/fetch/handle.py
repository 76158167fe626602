"""A reusable libcurl handle: the options of every request, and the connection that it may hold open."""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pycurl

_HEADERS = [
    "Accept: text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.1",
    "Accept-Encoding: gzip, deflate, br",
]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header name, RFC 9110 5.6.2."""
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""A header value, RFC 9110 5.5: no line end and no other control character."""
_CURVES = "X25519:P-256:P-384:P-521"
"""OpenSSL's default without its post-quantum curve, which costs 0.1 ms of a handshake's 0.8 ms and makes a ClientHello
of two packets, which some servers cannot read."""
_CIPHERS = "DEFAULT"
_ALL_CIPHERS = "DEFAULT:@SECLEVEL=0"


class CurlHandle:
    """A libcurl handle that serves one request after the other.

    It sets only the options that differ from its previous request.
    """

    def __init__(self, *, user_agent: str, authorities: Path | None) -> None:
        """`authorities` is the CA file for strict connections; without one, certificates are not checked."""
        self._has_authorities = authorities is not None
        self.curl = _new_curl(user_agent)
        if authorities is not None:
            # libcurl reads the file once for all handles of a multi handle
            self.curl.setopt(pycurl.CAINFO, str(authorities))
        self._set_strict(True)
        self.loop = asyncio.get_running_loop()  # stored, because each call takes a system call
        self.received = 0
        """Bytes of the responses that came over the connection that is held open."""
        self._pool: pycurl.CurlShare | None = None
        self._has_extra_headers = False
        self._connect_to = ""
        self._connect_ms = self._total_ms = 0

    def prepare(
        self, url: str, *, address: str, port: int, headers: Sequence[tuple[str, str]], strict: bool, keep_open: bool
    ) -> None:
        """Set up the next request. libcurl reuses the open connection if it fits."""
        curl = self.curl
        if strict is not self.is_strict:
            self._set_strict(strict)
        curl.setopt(pycurl.URL, url)
        # '::' matches any host and any port, so libcurl connects to the checked address for every URL and has no
        # name left to resolve.
        connect_to = f"::[{address}]:{port}" if ":" in address else f"::{address}:{port}"
        if connect_to != self._connect_to:
            curl.setopt(pycurl.CONNECT_TO, [connect_to])
            self._connect_to = connect_to
        if headers or self._has_extra_headers:
            curl.setopt(pycurl.HTTPHEADER, [*_HEADERS, *header_lines(headers)])
            self._has_extra_headers = bool(headers)
        if keep_open and self._pool is None:
            self._open_pool()
        if self._pool is not None:
            curl.setopt(pycurl.FORBID_REUSE, 0 if keep_open else 1)

    def set_timeouts(self, *, connect: float, total: float) -> None:
        """Set the seconds for connecting and for the whole request."""
        milliseconds = max(1, round(connect * 1000))  # 0 would mean no limit
        if milliseconds != self._connect_ms:
            self.curl.setopt(pycurl.CONNECTTIMEOUT_MS, milliseconds)
            self._connect_ms = milliseconds
        self.set_total_timeout(total)

    def set_total_timeout(self, seconds: float) -> None:
        """Set the seconds for the whole request, also while it runs."""
        milliseconds = max(1, round(seconds * 1000))
        if milliseconds != self._total_ms:
            self.curl.setopt(pycurl.TIMEOUT_MS, milliseconds)
            self._total_ms = milliseconds

    def set_callbacks(
        self,
        on_connected: Callable[[str, str, int, int], int] | None,
        on_header: Callable[[bytes], int | None] | None,
        on_body: Callable[[bytes], int | None] | None,
    ) -> None:
        """Set the functions that libcurl calls during the request; None lets go of them."""
        self.curl.setopt(pycurl.PREREQFUNCTION, on_connected)
        self.curl.setopt(pycurl.HEADERFUNCTION, on_header)
        self.curl.setopt(pycurl.WRITEFUNCTION, on_body)

    def note_received(self, size: int) -> None:
        """Count the bytes of a response, if its connection may serve another request."""
        if self._pool is not None:
            self.received += size

    @property
    def is_open(self) -> bool:
        """Whether the connection of the last request is still open and may serve another one."""
        return self._pool is not None and self.socket >= 0

    @property
    def is_silent(self) -> bool:
        """Whether the open connection has received nothing since: only its end, or stray bytes, could come.

        libcurl itself checks at most once a second.
        """
        if self.socket < 0:
            return False
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)

    @property
    def socket(self) -> int:
        """The descriptor of the connection, -1 if there is none."""
        return int(self.curl.getinfo(pycurl.ACTIVESOCKET))

    def hang_up(self) -> None:
        """Close the connection that is held open. Later connections close with their requests again."""
        if self._pool is None:
            return
        self.curl.setopt(pycurl.SHARE, None)
        self.curl.setopt(pycurl.FRESH_CONNECT, 1)
        self.curl.setopt(pycurl.FORBID_REUSE, 1)
        self._pool.close()
        self._pool = None
        self.received = 0

    def close(self) -> None:
        """Close the connection and free the handle."""
        self.hang_up()
        self.curl.close()

    def _set_strict(self, strict: bool) -> None:
        """Accept only current TLS and valid certificates, or any TLS."""
        self.is_strict = strict
        verifies = strict and self._has_authorities
        self.curl.setopt(pycurl.SSL_VERIFYPEER, 1 if verifies else 0)
        self.curl.setopt(pycurl.SSL_VERIFYHOST, 2 if verifies else 0)
        self.curl.setopt(pycurl.SSL_CIPHER_LIST, _CIPHERS if strict else _ALL_CIPHERS)
        self.curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2 if strict else pycurl.SSLVERSION_TLSv1_0)

    def _open_pool(self) -> None:
        """Give this handle a connection pool of its own.

        Otherwise libcurl leaves open connections in the multi handle, where any other request could pick them up.
        """
        self._pool = pycurl.CurlShare()
        self._pool.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_CONNECT)
        self.curl.setopt(pycurl.SHARE, self._pool)
        self.curl.setopt(pycurl.FRESH_CONNECT, 0)


def _new_curl(user_agent: str) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.HTTPGET, 1)
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    curl.setopt(pycurl.HTTP09_ALLOWED, 0)
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.PATH_AS_IS, 1)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.FRESH_CONNECT, 1)
    curl.setopt(pycurl.FORBID_REUSE, 1)
    curl.setopt(pycurl.DNS_CACHE_TIMEOUT, 0)  # libcurl sees only addresses
    curl.setopt(pycurl.PROXY, "")  # a proxy from the environment would bypass the address guard
    curl.setopt(pycurl.NOPROXY, "*")
    curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
    curl.setopt(pycurl.SSL_EC_CURVES, _CURVES)
    curl.setopt(pycurl.USERAGENT, user_agent)
    curl.setopt(pycurl.HTTPHEADER, _HEADERS)
    return curl


def header_lines(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    r"""Format headers for libcurl. Headers that do not fit on one line of a head are dropped.

    >>> header_lines([("If-None-Match", '"caf\xe9"'), ("X-Two", "a\r\nX-Three: b"), ("X-Blank", "")])
    [b'If-None-Match: "caf\xe9"', b'X-Blank;']
    """
    lines = []
    for name, value in headers:
        if _TOKEN.fullmatch(name) and _VALUE.fullmatch(value):
            text = value.strip(" \t")
            # 'Name:' would remove a header from the request, 'Name;' sends it without a value
            lines.append(f"{name}: {text}".encode("latin-1") if text else f"{name};".encode())
    return lines
