"""Connect-to rules: parsing, matching, and error messages."""

from __future__ import annotations

import pytest

from rove.errors import UsageError
from rove.fetch.connect_to import ConnectRule, ConnectTo, parse_connect_to


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("*=127.0.0.1", ConnectRule(pattern="*", address="127.0.0.1")),
        ("A.Test=10.0.0.1:81", ConnectRule(pattern="a.test", address="10.0.0.1", port=81)),
        ("*.test=[::1]:8080", ConnectRule(pattern="*.test", address="::1", port=8080)),
        ("x=[0:0:0:0:0:0:0:1]", ConnectRule(pattern="x", address="::1")),
    ],
)
def test_a_rule_is_read(text: str, rule: ConnectRule) -> None:
    assert parse_connect_to(text) == rule


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not a connect-to rule"),
        ("127.0.0.1", "is not a connect-to rule"),
        ("=127.0.0.1", "is not a connect-to rule"),
        (" =127.0.0.1", "is not a connect-to rule"),
        ("a.test=", "is not a connect-to rule"),
        ("a.test=::1", "brackets"),
        ("\udcff*=127.0.0.1", "xn--"),
        ("\u00e4.test=127.0.0.1", "xn--"),
        ("a.test=[::1", "brackets"),
        ("a.test=127.0.0.1:", "ADDRESS:PORT"),
        ("a.test=127.0.0.1:http", "ADDRESS:PORT"),
        ("a.test=127.0.0.1:0", "is not a port"),
        ("a.test=127.0.0.1:65536", "is not a port"),
        ("a.test=b.test", "'b.test' in the connect-to rule"),
        ("a.test=127.1", "is not an IP address"),
        ("a.test=[127.0.0.1]", "is not an IP address"),
        ("a.test=[]", "is not an IP address"),
        ("a=b=127.0.0.1", "is not an IP address"),
        ("a.test=[fe80::1%eth0]", "zone"),
    ],
)
def test_an_invalid_rule_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_connect_to(text)
    said = str(caught.value)
    assert complaint in said
    assert said.endswith(".") and "\n" not in said


def test_the_first_match_wins_whatever_the_case() -> None:
    table = ConnectTo(
        [
            parse_connect_to("WWW.a.test=127.0.0.1"),
            parse_connect_to("*.a.test=127.0.0.2"),
            parse_connect_to("[bc].test=127.0.0.3"),
        ]
    )
    addresses = {
        host: rule.address if (rule := table.find(host)) else None
        for host in ("www.a.test", "x.a.test", "y.x.a.test", "a.test", "b.test", "d.test")
    }
    assert addresses == {
        "www.a.test": "127.0.0.1",
        "x.a.test": "127.0.0.2",
        "y.x.a.test": "127.0.0.2",
        "a.test": None,
        "b.test": "127.0.0.3",
        "d.test": None,
    }


def test_an_ipv6_host_matches_without_its_brackets() -> None:
    rule = parse_connect_to("2001:db8::*=127.0.0.1")
    assert ConnectTo([rule]).find("[2001:db8::7]") == rule
    assert ConnectTo([rule]).find("[2001:db9::7]") is None
