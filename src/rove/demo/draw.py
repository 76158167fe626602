"""Numbers out of names: everything in the small web follows from hashing, so that nothing is kept.

`number` is one cheap draw, `Draw` a stream of them, `Weighted` a choice by shares. The same seed
and name give the same numbers on every machine and in every version of Python, which `random`
does not promise.
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
    """A 64-bit number that follows from a seed and a name."""
    value: int = xxhash.xxh3_64_intdigest(name.encode(), seed % _BITS_64)
    return value


class Draw:
    """A stream of numbers that follows from a seed and a name."""

    __slots__ = ("_numbers",)

    def __init__(self, seed: int, name: str) -> None:
        self._numbers = _numbers(f"{seed}/{name}".encode())

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1."""
        return next(self._numbers) % bound

    def between(self, span: tuple[int, int]) -> int:
        """A number of a span, both ends included."""
        low, high = span
        return low if low == high else low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """True in so large a share of all draws."""
        return share > 0 and next(self._numbers) < share * _BITS_64

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[next(self._numbers) % len(options)]


class Weighted(Generic[T]):
    """A choice among options, each as likely as its weight says."""

    __slots__ = ("_bounds", "_options")

    def __init__(self, weights: Mapping[T, float]) -> None:
        chosen = {option: weight for option, weight in weights.items() if weight > 0}
        total = sum(chosen.values())
        self._options = tuple(chosen)
        self._bounds = [int(part / total * _BITS_32) for part in accumulate(chosen.values())][:-1]

    def pick(self, drawn: int) -> T:
        """The option that the low 32 bits of a drawn number fall on."""
        return self._options[bisect_right(self._bounds, drawn % _BITS_32)]


def _numbers(key: bytes) -> Iterator[int]:
    for block in count():
        yield from unpack("<32Q", shake_128(key + block.to_bytes(4, "big")).digest(256))
