"""Decoding of content codings: its limits and its errors."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.fetch.body import Decoded, Undecodable, decode, parse_codings
from rove.resources.gunzip import MAX_MEMBERS

TEXT = b"The quick brown fox jumps over the lazy dog. " * 200
LIMIT = 1_000_000


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "brotli": ("br", partial(brotli.compress, quality=5)),
}
each_encoder = pytest.mark.parametrize(("coding", "encode"), list(ENCODERS.values()), ids=list(ENCODERS))


def body_of(result: Decoded | Undecodable) -> bytes:
    assert isinstance(result, Decoded), result
    return result.body


@pytest.mark.parametrize(
    ("values", "codings"),
    [
        ([], ()),
        ([""], ()),
        (["identity"], ()),
        (["gzip"], ("gzip",)),
        (["X-GZip"], ("gzip",)),
        ([" deflate , BR "], ("deflate", "br")),
        (["gzip", "identity, br"], ("gzip", "br")),
    ],
)
def test_codings_are_read(values: list[str], codings: tuple[str, ...]) -> None:
    assert parse_codings(values) == codings


@pytest.mark.parametrize("values", [["zstd"], ["gzip, foo"], ["utf-8"], ["gzip"] * 4])
def test_unknown_or_too_many_codings_are_refused(values: list[str]) -> None:
    assert isinstance(parse_codings(values), Undecodable)


@each_encoder
@given(data=st.binary(max_size=2_000))
def test_decoding_reverses_encoding(coding: str, encode: Callable[[bytes], bytes], data: bytes) -> None:
    result = decode(encode(data), (coding,), limit=2_000, wire_cut=False)
    assert result == Decoded(body=data, truncated=False)


def test_no_coding_leaves_the_same_object() -> None:
    assert body_of(decode(TEXT, (), limit=LIMIT, wire_cut=False)) is TEXT


def test_several_codings_are_decoded_last_first() -> None:
    wire = brotli.compress(zlib.compress(gzip.compress(TEXT)))
    result = decode(wire, ("gzip", "deflate", "br"), limit=LIMIT, wire_cut=False)
    assert result == Decoded(body=TEXT, truncated=False)


@each_encoder
def test_an_empty_body_needs_no_coding(coding: str, encode: Callable[[bytes], bytes]) -> None:
    assert decode(b"", (coding,), limit=LIMIT, wire_cut=False) == Decoded(body=b"", truncated=False)


@each_encoder
def test_the_cap_cuts_exactly(coding: str, encode: Callable[[bytes], bytes]) -> None:
    wire = encode(TEXT)
    for limit in (0, 1, 100, len(TEXT) - 1):
        result = decode(wire, (coding,), limit=limit, wire_cut=False)
        assert result == Decoded(body=TEXT[:limit], truncated=True)
    whole = decode(wire, (coding,), limit=len(TEXT), wire_cut=False)
    assert whole == Decoded(body=TEXT, truncated=False)


@each_encoder
def test_a_body_cut_on_the_wire_is_decoded_as_far_as_it_goes(coding: str, encode: Callable[[bytes], bytes]) -> None:
    data = random.Random(7).randbytes(100_000)
    wire = encode(data)
    result = decode(wire[: len(wire) // 2], (coding,), limit=LIMIT, wire_cut=True)
    assert isinstance(result, Decoded) and result.truncated
    assert len(result.body) > 10_000 and data.startswith(result.body)


@each_encoder
def test_a_body_that_ends_early_by_itself_is_bad(coding: str, encode: Callable[[bytes], bytes]) -> None:
    result = decode(encode(TEXT)[:-4], (coding,), limit=LIMIT, wire_cut=False)
    assert isinstance(result, Undecodable)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
@pytest.mark.parametrize("wire_cut", [False, True])
def test_garbage_is_bad_even_when_cut(coding: str, wire_cut: bool) -> None:
    result = decode(b"<html>plain" * 10, (coding,), limit=LIMIT, wire_cut=wire_cut)
    assert isinstance(result, Undecodable)


def test_a_broken_checksum_is_bad() -> None:
    wire = bytearray(gzip.compress(TEXT))
    wire[-5] ^= 0xFF
    assert isinstance(decode(bytes(wire), ("gzip",), limit=LIMIT, wire_cut=False), Undecodable)


def test_gzip_may_have_members_and_padding() -> None:
    wire = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 100
    assert decode(wire, ("gzip",), limit=LIMIT, wire_cut=False) == Decoded(body=b"one two", truncated=False)
    assert decode(wire, ("gzip",), limit=5, wire_cut=False) == Decoded(body=b"one t", truncated=True)


def test_endless_members_are_bad() -> None:
    wire = gzip.compress(b"") * (MAX_MEMBERS + 1)
    assert isinstance(decode(wire, ("gzip",), limit=LIMIT, wire_cut=False), Undecodable)


@each_encoder
def test_a_bomb_stays_small(coding: str, encode: Callable[[bytes], bytes]) -> None:
    wire = encode(bytes(50_000_000))
    assert len(wire) < 60_000
    tracemalloc.start()
    try:
        result = decode(wire, (coding,), limit=100_000, wire_cut=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result == Decoded(body=bytes(100_000), truncated=True)
    assert peak < 1_000_000


def test_a_bomb_within_a_bomb_stays_small() -> None:
    wire = gzip.compress(gzip.compress(gzip.compress(bytes(100_000_000))))
    result = decode(wire, ("gzip", "gzip", "gzip"), limit=50_000, wire_cut=False)
    assert result == Decoded(body=bytes(50_000), truncated=True)
