"""Gzip data in steps: several members, garbage, truncation, damage, and bombs."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from rove.resources.gunzip import MAX_MEMBERS, gunzip

LIMIT = 1_000_000
PLAIN = b"".join(random.Random(1).choices([b"one ", b"two ", b"three "], k=40_000))


def gunzip_all(data: bytes, *, limit: int = LIMIT, step: int = 1_000) -> bytes:
    return b"".join(gunzip(data, limit=limit, step=step))


@pytest.mark.parametrize("step", [1, 1_000, LIMIT])
def test_the_step_does_not_change_the_result(step: int) -> None:
    for size in (0, 1, 1_000, 50_000):
        assert gunzip_all(gzip.compress(PLAIN[:size]), step=step) == PLAIN[:size]


def test_members_are_joined_and_trailing_garbage_is_ignored() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two") + b"garbage"
    assert gunzip_all(data) == b"one two"


def test_too_many_members_are_an_error() -> None:
    assert gunzip_all(gzip.compress(b"x") * MAX_MEMBERS) == b"x" * MAX_MEMBERS
    with pytest.raises(zlib.error, match="too many members"):
        gunzip_all(gzip.compress(b"x") * (MAX_MEMBERS + 1))


@pytest.mark.parametrize("limit", [0, 1, 999, len(PLAIN) - 1])
def test_output_stops_one_byte_after_the_limit(limit: int) -> None:
    data = gzip.compress(PLAIN)
    assert gunzip_all(data, limit=limit) == PLAIN[: limit + 1]
    assert gunzip_all(data * 2, limit=len(PLAIN) + limit) == (PLAIN * 2)[: len(PLAIN) + limit + 1]


def test_everything_before_a_cut_is_yielded() -> None:
    data = gzip.compress(PLAIN)
    for end in (10, len(data) // 2, len(data) - 1):
        pieces = []
        with pytest.raises(EOFError):
            for piece in gunzip(data[:end], limit=LIMIT, step=1_000):
                pieces.append(piece)
        assert b"".join(pieces) == zlib.decompressobj(31).decompress(data[:end])


def test_only_the_step_with_the_damage_is_lost() -> None:
    data = gzip.compress(PLAIN)
    whole_steps = len(data) // 1_000
    pieces = []
    with pytest.raises(zlib.error):
        for piece in gunzip(data[:-8] + bytes(8), limit=LIMIT, step=1_000):
            pieces.append(piece)
    assert b"".join(pieces) == zlib.decompressobj(31).decompress(data[: 1_000 * whole_steps])
