"""Near duplicates have SimHashes that differ in few bits."""

from __future__ import annotations

from itertools import pairwise

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from rove.parse.simhash import FEWEST_LINES, MAX_BYTES, MAX_FEATURES, simhash


def of(lines: list[str]) -> int:
    hash = simhash("\n".join(lines).encode())
    assert hash is not None
    return hash


def apart(one: int, two: int) -> int:
    """Return the number of bits in which two hashes differ."""
    return ((one ^ two) & (2**64 - 1)).bit_count()


def lines(count: int, name: str = "line") -> list[str]:
    return [f"{name} {number}" for number in range(count)]


@pytest.mark.parametrize("count", [FEWEST_LINES + 10, 100, MAX_FEATURES, 2 * MAX_FEATURES])
def test_texts_that_share_most_of_their_lines_are_near(count: int) -> None:
    text = lines(count)
    assert apart(of(text), of([*text[:5], "Updated on Monday", *text[6:]])) <= 8
    assert apart(of(text), of(text[::-1])) == 0, "the order of lines does not count"
    assert apart(of(text), of(text + text)) == 0, "nor do repetitions"
    assert apart(of(text), of(lines(count, "row"))) >= 16


def test_texts_of_few_lines_are_compared_by_words() -> None:
    words = [f"word{number}" for number in range(200)]
    one, two = " ".join(words), " ".join([*words[:100], "new", *words[101:]])
    assert apart(of([one]), of([two])) <= 8
    assert apart(of([one]), of([" ".join(f"other{number}" for number in range(200))])) >= 16


@pytest.mark.parametrize("text", [b"", b"\n\n", b"  \n "])
def test_a_text_without_words_has_none(text: bytes) -> None:
    assert simhash(text) is None


def test_the_hash_is_that_of_the_definition() -> None:
    """Each bit is that of the majority of the features' hashes; one feature gives its own hash."""
    for count in (1, 2, 7, 200, 255):
        words = [f"w{number}" for number in range(count)]
        hashes = [int.from_bytes(xxhash.xxh3_64_digest(word.encode()), "little") for word in words]
        expected = sum(1 << bit for bit in range(64) if sum(h >> bit & 1 for h in hashes) > count / 2)
        assert of([" ".join(words)]) & (2**64 - 1) == expected


@given(st.binary(max_size=2_000), st.integers(1, 30))
def test_any_bytes_have_a_signed_hash_or_none(text: bytes, times: int) -> None:
    hash = simhash(text * times)
    assert hash is None or -(2**63) <= hash < 2**63


def test_only_the_beginning_of_a_long_text_counts() -> None:
    beginning = "\n".join(lines(MAX_BYTES // 7))[:MAX_BYTES]
    assert simhash(f"{beginning}\nmore".encode()) == simhash(beginning.encode())
    growing = [of(lines(100 + 10 * step)) for step in range(8)]
    assert all(apart(one, two) <= 16 for one, two in pairwise(growing))
