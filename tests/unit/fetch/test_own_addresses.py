"""The machine's own addresses are read from the kernel and refused like private ones."""

from __future__ import annotations

from pathlib import Path

from rove.fetch.address import AddressGuard
from rove.fetch.own_addresses import REFRESH_SECONDS, OwnAddresses, read_own_addresses

TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 93.184.215.0/24 2 0 2
        |-- 93.184.215.0
           /24 link UNICAST
        |-- 93.184.215.14
           /32 host LOCAL
        |-- 93.184.215.255
           /32 link BROADCAST
"""
INTERFACES = "2a000000000000000000000000000001 04 40 00 82     eth0\n"


def test_addresses_are_read_from_the_kernels_tables(tmp_path: Path) -> None:
    v4, v6 = tmp_path / "fib_trie", tmp_path / "if_inet6"
    v4.write_text(TRIE)
    v6.write_text(INTERFACES)
    assert read_own_addresses(v4, v6) == {"93.184.215.14", "2a00::1"}
    assert read_own_addresses(tmp_path / "missing", tmp_path / "missing") == frozenset()


def test_the_kernel_lists_the_loopback_address() -> None:
    assert "127.0.0.1" in OwnAddresses()


def test_own_addresses_are_refused_in_every_spelling_unless_private_ones_are_allowed() -> None:
    own = OwnAddresses(read=lambda: frozenset({"93.184.215.14", "2a00::1"}))
    guard = AddressGuard(own=own)
    assert not guard.permits("93.184.215.14") and guard.permits("93.184.215.15")
    assert not guard.permits("2a00::1") and not guard.permits("2A00:0::0:1") and guard.permits("2a00::2")
    assert AddressGuard(own=own, allow_private=True).permits("93.184.215.14")


def test_a_new_address_is_noticed_after_a_while() -> None:
    addresses, now = frozenset({"93.184.215.14"}), 0.0
    own = OwnAddresses(read=lambda: addresses, clock=lambda: now)
    addresses = frozenset({"93.184.215.15"})
    assert "93.184.215.15" not in own
    now = REFRESH_SECONDS + 1
    assert "93.184.215.15" in own and "93.184.215.14" not in own
