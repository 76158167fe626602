"""The address that `--metrics` and the like are given."""

from __future__ import annotations

import pytest

from rove.errors import UsageError
from rove.observe.listening import ListenAddress, parse_listen


@pytest.mark.parametrize(
    ("text", "address", "port"),
    [
        ("9464", "127.0.0.1", 9464),
        (" 0 ", "127.0.0.1", 0),
        ("0.0.0.0:9464", "0.0.0.0", 9464),
        ("[::1]:80", "::1", 80),
        ("192.0.2.1:65535", "192.0.2.1", 65_535),
    ],
)
def test_an_address_may_be_left_out(text: str, address: str, port: int) -> None:
    assert parse_listen(text) == ListenAddress(address, port)


@pytest.mark.parametrize(
    "text", ["", "x", ":9464", "65536", "localhost:9464", "::1:9464", "1.2.3:9464", "[1.2.3.4.5]:1", "-1", "1.2.3.4:"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"neither PORT nor|is not a port|is not an IP address"):
        parse_listen(text)


def test_only_loopback_is_private() -> None:
    assert parse_listen("9464").is_loopback
    assert parse_listen("[::1]:9464").is_loopback
    assert not parse_listen("0.0.0.0:9464").is_loopback


@pytest.mark.system
def test_a_port_that_is_taken_is_refused() -> None:
    with parse_listen("0").listening() as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen on 127.0.0.1:{port}: another program uses this port"):
            parse_listen(str(port)).listening()


@pytest.mark.system
def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:0: this machine does not have that address"):
        parse_listen("192.0.2.1:0").listening()
