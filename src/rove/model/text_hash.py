"""Hashes that name stored texts.

The text of a page is found by a quick 64-bit hash, and its SHA-1 confirms it (docs/architecture.md). A robots.txt
serves as evidence, so nobody must be able to make another text with the same name.

>>> robots_name(b"User-agent: *")
'512d0bc8efe9a69510ae128fb69ed675'
"""

from __future__ import annotations

import hashlib

import xxhash

ROBOTS_NAME_BYTES = 16

_SIGN_BIT = 1 << 63


def text_hash(text: bytes) -> int:
    """Return the 64-bit hash by which the text of a page is found. It is signed, because the databases store it so."""
    return signed(xxhash.xxh3_64_intdigest(text))


def signed(value: int) -> int:
    """Turn an unsigned 64-bit integer into the signed one with the same bits."""
    return value - 2 * _SIGN_BIT if value >= _SIGN_BIT else value


def robots_name(body: bytes) -> str:
    """Return the name of a robots.txt: the BLAKE2b-128 of its bytes in hexadecimal."""
    return hashlib.blake2b(body, digest_size=ROBOTS_NAME_BYTES).hexdigest()
