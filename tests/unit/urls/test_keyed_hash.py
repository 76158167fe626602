"""Ids are keyed with the secret of a crawl."""

from __future__ import annotations

import hashlib

import msgspec
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from rove.urls.canonical import FormKey, UrlForm, form_with
from rove.urls.keyed_hash import SECRET_BYTES, keyed_hash
from tests.urls import FORM, KEY

VICTIM, FORGED = "victim.test", "hzlp9bfxcebr3ldmteijrv7ebawtyuj9xzqqu7d93dw69is66d6mfsnt2px.test"
"""Two names with the same XXH3-64, which took seconds to find."""

number = keyed_hash(KEY.secret)


def test_ids_never_change() -> None:
    # With other values a resumed crawl would not recognize its own URLs.
    assert number(b"") == -890710454394885544
    assert number(b"a.test") == 7298980985171600594
    assert number(b"http://a.test/") == -9190986826409926428


@given(st.binary(max_size=300), st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES))
def test_an_id_is_blake2b_with_a_key(data: bytes, secret: bytes) -> None:
    digest = hashlib.blake2b(data, key=secret, digest_size=8).digest()
    assert keyed_hash(secret)(data) == int.from_bytes(digest, "little", signed=True)


@given(st.text())
def test_an_id_fits_a_database(text: str) -> None:
    assert -(1 << 63) <= number(text.encode("utf-8", "replace")) < 1 << 63


def test_ids_of_either_sign_occur() -> None:
    assert {number(str(n).encode()) < 0 for n in range(50)} == {True, False}


def test_names_that_were_made_to_collide_do_not() -> None:
    assert xxhash.xxh3_64_intdigest(VICTIM.encode()) == xxhash.xxh3_64_intdigest(FORGED.encode())
    assert FORM.domain_id(VICTIM) != FORM.domain_id(FORGED)
    victim, forged = FORM.canonical(f"https://{VICTIM}/"), FORM.canonical(f"https://{FORGED}/")
    assert victim is not None and forged is not None
    assert victim.domain != forged.domain and victim.fingerprint != forged.fingerprint


def test_two_crawls_have_different_ids_and_two_processes_of_one_crawl_the_same() -> None:
    other = UrlForm(FormKey(secret=b"another secret ."))
    here = FORM.canonical("http://a.test/x")
    there = other.canonical("http://a.test/x")
    assert here is not None and there is not None
    assert here[:4] == there[:4] and here.domain != there.domain and here.fingerprint != there.fingerprint
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(KEY), type=FormKey)
    assert form_with(sent).canonical("http://a.test/x") == here


def test_no_text_of_a_form_shows_its_secret() -> None:
    key = FormKey(secret=bytes(range(16)), drop_params=("mark",))
    shown = f"{key!r} {key} {UrlForm(key)!r} {UrlForm(key)}"
    assert "mark" in shown
    assert not any(form in shown for form in ("\\x0e", "0e0f", "14, 15", "DA0O"))
