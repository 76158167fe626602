"""The guard refuses every special range and permits the addresses next to it."""

from __future__ import annotations

import pytest

from rove.fetch.address import AddressGuard, is_ip, is_public, same_address

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "3ffe::1",
]
NOT_ADDRESSES = [
    "",
    "example.com",
    "1.2.3",
    "1.2.3.4.5",
    "127.1",
    "0x7f.0.0.1",
    "1.2.3.4:80",
    "[2606:4700::1111]",
    "2606:4700::1111%eth0",
    "fe80::1%1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_special_addresses_need_permission(address: str) -> None:
    assert not AddressGuard().permits(address)
    assert AddressGuard(allow_private=True).permits(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    assert is_public(address)
    assert AddressGuard().permits(address)


@pytest.mark.parametrize("text", NOT_ADDRESSES)
def test_text_that_is_no_address_never_passes(text: str) -> None:
    assert not is_ip(text)
    assert not AddressGuard().permits(text)
    assert not AddressGuard(allow_private=True).permits(text)


def test_addresses_are_compared_as_numbers() -> None:
    assert same_address("::1", "0:0:0:0:0:0:0:1")
    assert same_address("::ffff:1.2.3.4", "::ffff:102:304")
    assert not same_address("1.2.3.4", "1.2.3.5")
    assert not same_address("::1", "")
