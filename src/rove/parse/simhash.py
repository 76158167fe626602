"""A 64-bit SimHash of a text: near duplicates differ in few bits (Charikar, 2002).

The features are the different lines of a text, or its different words if it has few lines. A page that repeats another
one with a new date, counter or teaser shares nearly all its lines. Of a text with many features, those with the
smallest hashes count, which are the same ones in both texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import xxhash

from rove.model.text_hash import signed

FEWEST_LINES: Final = 32
"""Texts with fewer lines are compared by words."""
MAX_FEATURES: Final = 255
"""A count of features fits into a byte."""
MAX_BYTES: Final = 16 * 1024
"""Only the beginning of a longer text counts."""

# Byte lanes: each table keeps one bit of a byte. Added up, the bytes of 256 hashes count that bit in each of 8 columns.
_BITS: Final = [bytes((byte >> bit) & 1 for byte in range(256)) for bit in range(8)]
_LANES: Final = 256
_FOLDS: Final = [(64 * half, (1 << 64 * half) - 1) for half in (128, 64, 32, 16, 8, 4, 2, 1)]


def simhash(utf8: bytes) -> int | None:
    """Return the SimHash of a text, signed because the databases store it so; None for a text without words."""
    if len(utf8) > MAX_BYTES:
        utf8 = utf8[:MAX_BYTES]
    features = set(utf8.split(b"\n"))
    if len(features) < FEWEST_LINES:
        features = set(utf8.split())
    features.discard(b"")
    if not features:
        return None
    hashes: Iterable[bytes] = map(xxhash.xxh3_64_digest, features)
    if len(features) > MAX_FEATURES:
        hashes = sorted(hashes)[:MAX_FEATURES]
    return signed(_majority(b"".join(hashes)))


def _majority(hashes: bytes) -> int:
    """Return the number whose bits are those that more than half of at most 255 hashes have."""
    half = len(hashes) // 16
    result = 0
    for bit, table in enumerate(_BITS):
        sums = int.from_bytes(hashes.translate(table), "little")
        for shift, mask in _FOLDS:
            if sums > mask:
                sums = (sums >> shift) + (sums & mask)
        for column, count in enumerate(sums.to_bytes(8, "little")):
            if count > half:
                result |= 1 << (8 * column + bit)
    return result
