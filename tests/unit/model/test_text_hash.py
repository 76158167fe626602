"""The names of stored texts."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from rove.model.text_hash import robots_name, text_hash


def test_the_hash_of_a_text_never_changes() -> None:
    # With other values a resumed crawl would not recognize the texts that it has stored.
    assert text_hash(b"") == 3244421341483603138
    assert text_hash(b"a") == -1817709641818812897


@given(st.binary())
def test_a_hash_fits_a_database(text: bytes) -> None:
    assert -(1 << 63) <= text_hash(text) < 1 << 63


@given(st.binary())
def test_a_robots_txt_is_named_by_128_bits_of_blake2b(body: bytes) -> None:
    assert robots_name(body) == hashlib.blake2b(body, digest_size=16).hexdigest()
    assert len(robots_name(body)) == 32
