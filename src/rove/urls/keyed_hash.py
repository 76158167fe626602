"""The hash that makes ids of domain names and URLs. It is keyed with the secret of a crawl.

Sites choose their own names and URLs. With a hash that anyone can compute, one of them could choose a name with the id
of another site. BLAKE2b with a key is a pseudorandom function: without the secret, finding a text with a given id takes
as many guesses as there are ids, and a guess cannot be checked from outside. docs/urls.md says what rove relies on.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

SECRET_BYTES = 16
"""Length of a crawl's secret."""
_NUMBER = struct.Struct("<q")
"""The databases store ids as signed 64-bit integers."""

KeyedHash = Callable[[bytes], int]
"""Returns the id of a text, given in UTF-8."""


def keyed_hash(secret: bytes) -> KeyedHash:
    """Return the hash of a crawl with this secret."""
    # Copying a state that has taken in the key is quicker than making a new one.
    keyed_state = hashlib.blake2b(key=secret, digest_size=_NUMBER.size).copy
    unpack = _NUMBER.unpack

    def number(data: bytes) -> int:
        state = keyed_state()
        state.update(data)
        id: int = unpack(state.digest())[0]
        return id

    return number
