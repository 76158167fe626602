"""Servers whose answers are not valid HTTP."""

from __future__ import annotations

import gzip
import zlib

import brotli

from tests.zoo.animal import DONE, Animal, Fate, failed, head, linking, says, single, whole

BODY = linking("a page that came a strange way", ())
BROKEN = failed("protocol")
"""If DONE is given beside it, releases of libcurl differ."""
UNREADABLE = failed("encoding")


def _raw(name: str, what: str, data: bytes, *fates: Fate) -> Animal:
    return single(name, what, says(data), *fates)


def _length(name: str, what: str, length: str, *fates: Fate) -> Animal:
    return _raw(name, what, head("200 OK", f"Content-Length: {length}") + BODY, *fates)


def _coded(name: str, what: str, coding: str, body: bytes, *fates: Fate) -> Animal:
    return _raw(name, what, whole(body, f"Content-Encoding: {coding}"), *fates)


def animals() -> list[Animal]:
    """Return all animals of this kind."""
    packed, bare = gzip.compress(BODY), zlib.compressobj(wbits=-15)
    raw_deflate = bare.compress(BODY) + bare.flush()
    two = f"{len(BODY)}\r\nContent-Length: {len(BODY) + 7}"
    chunked = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
    both = head("200 OK", "Transfer-Encoding: chunked", "Content-Length: 5") + chunked
    kind = b"Content-Type: text/html\r\n"
    return [
        _raw("bad-status-line", "an invalid status line", b"ICY 2OO\r\n\r\n" + BODY, BROKEN),
        _raw("http-0-9", "a body without a head (HTTP/0.9)", BODY, BROKEN),
        _raw("status-999", "a status of 999", head("999 Go Away"), failed("status 999")),
        _raw(
            "status-of-words",
            "a status that is not a number",
            b"HTTP/1.1 fine\r\n" + kind + b"\r\n",
            BROKEN,
        ),
        _raw(
            "body-after-204",
            "204 with a body",
            head("204 No Content", f"Content-Length: {len(BODY)}") + BODY,
            failed("status 204"),
        ),
        _length("length-too-long", "a Content-Length over what it sends", "5000", failed("reset")),
        _length("length-too-short", "a Content-Length below what it sends", "60", DONE),
        _length("length-negative", "a negative Content-Length", "-5", BROKEN),
        _length("length-huge", "a Content-Length of 1e18", str(10**18), failed("reset")),
        _length(
            "length-overflowing",
            "a Content-Length over 64 bits",
            str(10**30),
            DONE,
            BROKEN,
        ),
        _length("two-lengths", "two different Content-Lengths", two, BROKEN, DONE),
        _raw("chunked-and-length", "chunked and a Content-Length at once", both, DONE),
        _raw(
            "bad-chunk",
            "a chunk whose size is not a number",
            head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n" + BODY,
            BROKEN,
        ),
        _raw(
            "nul-in-head",
            "NUL bytes in the head",
            head("200 OK", "X-Nul: a\0b") + BODY,
            BROKEN,
        ),
        _raw(
            "nul-in-body",
            "NUL bytes in the body",
            whole(b"<title>n\0l</title>\0<p>a\0b" + BODY),
            DONE,
        ),
        _raw(
            "header-without-colon",
            "a header line without a colon",
            head("200 OK", "no colon here") + BODY,
            BROKEN,
        ),
        _raw(
            "folded-header",
            "a header folded over lines",
            head("200 OK", "X-Fold: a\r\n b\r\n\tc") + BODY,
            DONE,
        ),
        _raw(
            "bare-newlines",
            "a head with bare newlines",
            b"HTTP/1.1 200 OK\n" + kind.replace(b"\r", b"") + b"\n" + BODY,
            DONE,
        ),
        _coded("gzip-that-is-none", "gzip that is not gzip", "gzip", BODY, UNREADABLE),
        _coded("gzip-cut-short", "truncated gzip", "gzip", packed[:-20], UNREADABLE),
        _coded("unknown-coding", "an unknown coding", "rot13", BODY, UNREADABLE),
        _coded(
            "stacked-codings",
            "three nested codings",
            "gzip, br, gzip",
            gzip.compress(brotli.compress(packed)),
            DONE,
        ),
        _coded("too-many-codings", "50 codings", ", ".join(["gzip"] * 50), packed, UNREADABLE),
        _coded("deflate-raw", "deflate without its wrapping", "deflate", raw_deflate, DONE),
    ]
