"""A proxy in the environment is named, and its value is not shown."""

from __future__ import annotations

import pytest

from rove.app.proxies import proxy_note


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "https_proxy", "Https_Proxy", "all_proxy", "ALL_PROXY"])
def test_a_proxy_is_named(name: str) -> None:
    note = proxy_note({name: "http://me:s3cret@proxy.test", "PATH": "/bin"})
    assert note is not None and note.startswith(f"{name} in the environment: ignored")
    assert "s3cret" not in note


def test_several_proxies_are_one_sentence() -> None:
    note = proxy_note({"http_proxy": "a", "HTTPS_PROXY": "b"})
    assert note is not None and note.startswith("HTTPS_PROXY and http_proxy in the environment")


@pytest.mark.parametrize("environment", [{}, {"http_proxy": ""}, {"no_proxy": "*"}, {"proxy": "a"}])
def test_nothing_is_said_without_a_proxy(environment: dict[str, str]) -> None:
    assert proxy_note(environment) is None
