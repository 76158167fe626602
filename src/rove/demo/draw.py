"""Reproducible random choices by hashing names, so that the small web needs no storage.

`number` is a single draw, `Draw` a stream of them, `Weighted` a weighted choice. Unlike `random`, they give the same
numbers for the same seed and name on every machine and with every version of Python.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from hashlib import shake_128
from itertools import accumulate, count
from struct import unpack
from typing import Generic, TypeVar

import xxhash

T = TypeVar("T")

_BITS_64 = 1 << 64
_BITS_32 = 1 << 32


def number(seed: int, name: str) -> int:
    """Return the 64-bit number that belongs to a seed and a name."""
    value: int = xxhash.xxh3_64_intdigest(name.encode(), seed % _BITS_64)
    return value


class Draw:
    """The stream of numbers that belongs to a seed and a name."""

    __slots__ = ("_numbers",)

    def __init__(self, seed: int, name: str) -> None:
        self._numbers = _numbers(f"{seed}/{name}".encode())

    def below(self, bound: int) -> int:
        """Draw a number from 0 to bound - 1."""
        return next(self._numbers) % bound

    def between(self, span: tuple[int, int]) -> int:
        """Draw a number from a range that includes both ends."""
        low, high = span
        return low if low == high else low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return share > 0 and next(self._numbers) < share * _BITS_64

    def pick(self, options: Sequence[T]) -> T:
        """Pick one of the options."""
        return options[next(self._numbers) % len(options)]


class Weighted(Generic[T]):
    """A weighted choice among options."""

    __slots__ = ("_bounds", "_options")

    def __init__(self, weights: Mapping[T, float]) -> None:
        chosen = {option: weight for option, weight in weights.items() if weight > 0}
        total = sum(chosen.values())
        self._options = tuple(chosen)
        self._bounds = [int(part / total * _BITS_32) for part in accumulate(chosen.values())][:-1]

    def pick(self, drawn: int) -> T:
        """Return the option selected by the low 32 bits of a number."""
        return self._options[bisect_right(self._bounds, drawn % _BITS_32)]


def _numbers(key: bytes) -> Iterator[int]:
    for block in count():
        yield from unpack("<32Q", shake_128(key + block.to_bytes(4, "big")).digest(256))
