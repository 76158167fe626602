"""Fingerprints are stored, so their values must never change."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rove.urls.fingerprint import fingerprint


def test_fingerprints_never_change() -> None:
    # With other values a resumed crawl would not recognize its own URLs.
    assert fingerprint("") == 3244421341483603138
    assert fingerprint("a") == -1817709641818812897
    assert fingerprint("http://example.com/") == -5081748069831205333


@settings(deadline=None)
@given(st.text())
def test_a_fingerprint_fits_a_database(text: str) -> None:
    assert -(1 << 63) <= fingerprint(text) < 1 << 63


def test_fingerprints_of_either_sign_occur() -> None:
    signs = {fingerprint(str(number)) < 0 for number in range(50)}
    assert signs == {True, False}
