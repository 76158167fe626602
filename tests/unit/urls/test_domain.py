"""Registrable domains, checked against the public suffix list itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from rove.urls.domain import domain_of, is_address, registrable_domain

SUFFIX_LIST = PublicSuffixList()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("a.b.c.example.com", "example.com"),
        ("com", "com"),
        ("example.co.uk", "example.co.uk"),
        ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("user.github.io", "user.github.io"),
        ("www.user.github.io", "user.github.io"),
        ("github.io", "github.io"),
        ("me.blogspot.com", "me.blogspot.com"),
        ("a.me.blogspot.com", "me.blogspot.com"),
        ("foo.ck", "foo.ck"),
        ("www.foo.ck", "www.foo.ck"),
        ("a.www.foo.ck", "www.foo.ck"),
        ("a.www.ck", "www.ck"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
        ("b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("www.xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        ("h1.test", "h1.test"),
        ("www.h1.test", "h1.test"),
        ("a.b.h1.test", "h1.test"),
        ("test", "test"),
        ("localhost", "localhost"),
        ("intranet", "intranet"),
        ("1.2.3.4", "1.2.3.4"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[2001:db8::a]", "[2001:db8::a]"),
    ],
)
def test_the_domain_is_the_registrable_one(host: str, name: str) -> None:
    assert domain_of(host) == name


@pytest.mark.parametrize(
    ("host", "expected"),
    [("1.2.3.4", True), ("[::1]", True), ("a.test", False), ("1.2.3.4.test", False), ("localhost", False)],
)
def test_addresses_are_distinguished_from_names(host: str, expected: bool) -> None:
    assert is_address(host) is expected


RULES = [
    line.removeprefix("!").removeprefix("*.").encode("idna").decode()
    for line in Path(PSLFILE).read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("//")
]
LABELS = st.sampled_from(["a", "www", "b-c", "city", "com", "co", "jp", "kobe", "ck", "X", "1", ""])


@settings(max_examples=1_000)
@given(st.lists(LABELS, max_size=4), st.sampled_from([*RULES, "", "test", "COM"]))
@example(["a"], "www.ck")
@example(["a", "b"], "kobe.jp")
@example(["x"], "kobe.jp")
def test_registrable_domains_match_the_list(labels: list[str], rule: str) -> None:
    name = ".".join([*labels, rule])
    assert registrable_domain(name) == (SUFFIX_LIST.privatesuffix(name) or name)
