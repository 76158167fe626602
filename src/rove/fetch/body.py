"""Decodes content codings, with a limit on the result.

A kilobyte of gzip can expand to gigabytes, so every step stops at the limit instead of decoding first and measuring
afterwards. Pure: takes bytes, returns bytes or an error.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import brotli

from rove.resources.gunzip import gunzip

MAX_CODINGS = 3
MAX_RATIO = 200
"""A body over RATIO_FREE may grow to this many times its size on the wire. Pages reach 20, rarely 100; decompression
bombs reach 1,000."""
RATIO_FREE = 1024 * 1024
"""Up to this size the ratio does not matter, because short files of one repeated letter are common."""

_ALIASES = {"x-gzip": "gzip"}
_ZLIB, _RAW_DEFLATE = 15, -15


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A decoded body."""

    body: bytes
    truncated: bool
    """The body was longer than the limit, or it was cut before it was decoded."""
    bomb: bool = False
    """The body was cut because it grew out of proportion to its size on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecodable:
    """A body that contradicts its Content-Encoding."""

    detail: str


def parse_codings(values: Iterable[str]) -> tuple[str, ...] | Undecodable:
    """Return the codings of Content-Encoding headers, in the order in which the server applied them.

    >>> parse_codings(["GZip, identity", "br"])
    ('gzip', 'br')
    """
    codings = []
    for value in values:
        for part in value.lower().split(","):
            name = part.strip()
            if name in ("", "identity"):
                continue
            name = _ALIASES.get(name, name)
            if name not in _DECODERS:
                return Undecodable(detail=f"unknown content coding '{name[:40]}'")
            codings.append(name)
    if len(codings) > MAX_CODINGS:
        return Undecodable(detail=f"{len(codings)} content codings on top of each other")
    return tuple(codings)


def decode(wire: bytes, codings: Sequence[str], *, limit: int, wire_cut: bool) -> Decoded | Undecodable:
    """Decode a body; `codings` come from parse_codings. No step produces more than `limit` bytes.

    A body that ends too early is an error, unless it was cut on purpose; then its beginning is decoded.
    """
    data, cut = wire, wire_cut
    bomb_size = max(RATIO_FREE, MAX_RATIO * len(wire))
    bomb = False
    for coding in reversed(codings):
        if not data:
            break
        try:
            data, finished = _DECODERS[coding](data, min(limit, bomb_size))
        except (zlib.error, brotli.error):
            return Undecodable(detail=f"the body is not valid {coding}")
        if len(data) > limit:
            data, cut = data[:limit], True
        elif len(data) > bomb_size:
            data, cut, bomb = data[:bomb_size], True, True
        elif not finished and not cut:
            return Undecodable(detail=f"the {coding} body ends too early")
    return Decoded(body=data, truncated=cut, bomb=bomb)


def _gunzip(data: bytes, limit: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    try:
        pieces.extend(gunzip(data, limit=limit, step=len(data)))
    except EOFError:
        return b"".join(pieces), False
    return b"".join(pieces), True


def _inflate(data: bytes, limit: int) -> tuple[bytes, bool]:
    """RFC 9110 8.4.1.2: deflate means the zlib format, but some servers send a raw deflate stream."""
    try:
        return _inflate_as(_ZLIB, data, limit)
    except zlib.error:
        return _inflate_as(_RAW_DEFLATE, data, limit)


def _inflate_as(wbits: int, data: bytes, limit: int) -> tuple[bytes, bool]:
    stream = zlib.decompressobj(wbits)
    return stream.decompress(data, limit + 1), stream.eof


def _unbrotli(data: bytes, limit: int) -> tuple[bytes, bool]:
    stream = brotli.Decompressor()
    return stream.process(data, output_buffer_limit=limit + 1), stream.is_finished()


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
}
