"""Undoes content codings, with a bound on what comes out.

A kilobyte of gzip can stand for gigabytes, so every step stops at the cap instead of decoding first
and measuring after. Pure: bytes in, bytes or a complaint out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import brotli

from rove.resources.gunzip import gunzip

MAX_CODINGS = 3
MAX_RATIO = 200
"""Times its size on the wire that a body may grow to, once it is over RATIO_FREE: pages reach 20, rarely 100, and what
is made to harm 1,000."""
RATIO_FREE = 1024 * 1024
"""Decoded bytes of which no proportion is asked: short files of one letter are common."""

_ALIASES = {"x-gzip": "gzip"}
_ZLIB, _RAW_DEFLATE = 15, -15


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A body with its codings undone."""

    body: bytes
    truncated: bool
    """It was longer than the cap, or what was decoded had been cut already."""
    bomb: bool = False
    """It was cut as it grew out of all proportion to what was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecodable:
    """Not what its Content-Encoding says."""

    detail: str


def parse_codings(values: Iterable[str]) -> tuple[str, ...] | Undecodable:
    """The codings that Content-Encoding headers name, in the order in which they were applied.

    >>> parse_codings(["GZip, identity", "br"])
    ('gzip', 'br')
    """
    found = []
    for value in values:
        for part in value.lower().split(","):
            name = part.strip()
            if name in ("", "identity"):
                continue
            name = _ALIASES.get(name, name)
            if name not in _DECODERS:
                return Undecodable(detail=f"unknown content coding '{name[:40]}'")
            found.append(name)
    if len(found) > MAX_CODINGS:
        return Undecodable(detail=f"{len(found)} content codings, one over the other")
    return tuple(found)


def decode(
    wire: bytes, codings: Sequence[str], *, limit: int, wire_cut: bool
) -> Decoded | Undecodable:
    """Undo the codings (names from parse_codings); at most limit bytes come out of any step.

    A body that ends too early is an error, unless it was cut on purpose: that gives what there is.
    """
    data, cut = wire, wire_cut
    in_proportion = max(RATIO_FREE, MAX_RATIO * len(wire))
    bomb = False
    for coding in reversed(codings):
        if not data:
            break
        try:
            data, finished = _DECODERS[coding](data, min(limit, in_proportion))
        except (zlib.error, brotli.error):
            return Undecodable(detail=f"the body is not valid {coding}")
        if len(data) > limit:
            data, cut = data[:limit], True
        elif len(data) > in_proportion:
            data, cut, bomb = data[:in_proportion], True, True
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
    """RFC 9110 8.4.1.2: deflate means the zlib format, yet some servers send the bare stream."""
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
