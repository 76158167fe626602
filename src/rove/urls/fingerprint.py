"""64-bit fingerprints of texts, as signed integers because the databases store them so."""

from __future__ import annotations

import xxhash

_SIGN_BIT = 1 << 63


def fingerprint(text: str) -> int:
    """Return the fingerprint of a text's UTF-8 bytes."""
    return fingerprint_bytes(text.encode())


def fingerprint_bytes(data: bytes) -> int:
    """Return the fingerprint of some bytes."""
    return signed(xxhash.xxh3_64_intdigest(data))


def signed(value: int) -> int:
    """Turn an unsigned 64-bit integer into the signed one with the same bits."""
    return value - 2 * _SIGN_BIT if value >= _SIGN_BIT else value
