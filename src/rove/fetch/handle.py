"""A libcurl handle with the options that all requests have in common, and those that some change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pycurl

HEADERS = [
    "Accept: text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.1",
    "Accept-Encoding: gzip, deflate, br",
]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 5.6.2: what the name of a header is made of."""
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""RFC 9110 5.5: no line end and no other control character."""
_CURVES = "X25519:P-256:P-384:P-521"
"""Without OpenSSL's post-quantum default, which costs 0.1 ms per handshake (of 0.8 measured) and makes
a ClientHello of two packets, which some servers cannot read."""
_CIPHERS = "DEFAULT"
_ALL_CIPHERS = "DEFAULT:@SECLEVEL=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a fetcher's handles have in common."""

    user_agent: str
    authorities: Path | None = None
    """The certificates that a strict connection is checked against; None: it is not."""


def new_handle(identity: Identity) -> pycurl.Curl:
    """A handle to use again and again; its TLS is strict."""
    curl = pycurl.Curl()
    curl.setopt(pycurl.HTTPGET, 1)
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    curl.setopt(pycurl.HTTP09_ALLOWED, 0)
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.PATH_AS_IS, 1)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.FRESH_CONNECT, 1)
    curl.setopt(pycurl.FORBID_REUSE, 1)
    curl.setopt(pycurl.DNS_CACHE_TIMEOUT, 0)  # addresses only: nothing worth keeping
    curl.setopt(pycurl.PROXY, "")  # the environment's proxies would undo the address guard
    curl.setopt(pycurl.NOPROXY, "*")
    curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
    curl.setopt(pycurl.SSL_EC_CURVES, _CURVES)
    if identity.authorities is not None:
        # libcurl reads the file once, for all handles of a multi handle
        curl.setopt(pycurl.CAINFO, str(identity.authorities))
    set_strict(curl, identity, strict=True)
    curl.setopt(pycurl.USERAGENT, identity.user_agent)
    curl.setopt(pycurl.HTTPHEADER, HEADERS)
    return curl


def open_pool(curl: pycurl.Curl) -> pycurl.CurlShare:
    """Give a handle a place of its own for its connection, which may then serve more than one request.

    Without one, connections that are left open go to the multi handle, where another request would find them.
    """
    pool = pycurl.CurlShare()
    pool.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_CONNECT)
    curl.setopt(pycurl.SHARE, pool)
    curl.setopt(pycurl.FRESH_CONNECT, 0)
    return pool


def close_pool(curl: pycurl.Curl, pool: pycurl.CurlShare) -> None:
    """Close what a handle has left open; its next connections end with their requests again."""
    curl.setopt(pycurl.SHARE, None)
    curl.setopt(pycurl.FRESH_CONNECT, 1)
    curl.setopt(pycurl.FORBID_REUSE, 1)
    pool.close()


def set_strict(curl: pycurl.Curl, identity: Identity, *, strict: bool) -> None:
    """Have a handle take only TLS of today and certificates that hold, or whatever there is."""
    verifies = strict and identity.authorities is not None
    curl.setopt(pycurl.SSL_VERIFYPEER, 1 if verifies else 0)
    curl.setopt(pycurl.SSL_VERIFYHOST, 2 if verifies else 0)
    curl.setopt(pycurl.SSL_CIPHER_LIST, _CIPHERS if strict else _ALL_CIPHERS)
    curl.setopt(
        pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2 if strict else pycurl.SSLVERSION_TLSv1_0
    )


def header_lines(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    r"""Headers in libcurl's spelling, without those that could not be sent as one line of a head.

    >>> header_lines([("If-None-Match", '"caf\xe9"'), ("X-Two", "a\r\nX-Three: b"), ("X-Blank", "")])
    [b'If-None-Match: "caf\xe9"', b'X-Blank;']
    """
    lines = []
    for name, value in headers:
        if _TOKEN.fullmatch(name) and _VALUE.fullmatch(value):
            text = value.strip(" \t")
            # 'Name:' would take a header out of the request, 'Name;' sends it without a value
            lines.append(f"{name}: {text}".encode("latin-1") if text else f"{name};".encode())
    return lines
