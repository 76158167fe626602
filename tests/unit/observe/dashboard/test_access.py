"""Who may read the dashboard and who may act."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rove.observe.dashboard.access import TOKEN_HEADER, Access, new_token
from rove.observe.listening import ListenAddress, parse_listen

TOKEN = "the-token"
LOOPBACK = parse_listen("8700")
EVERYWHERE = parse_listen("0.0.0.0:8700")
READ = "/api/overview"
ACT = "/api/actions/exclude"


def status(
    path: str,
    host: str,
    *,
    listen: ListenAddress = LOOPBACK,
    names: tuple[str, ...] = (),
    token: str = "",
    headers: Mapping[str, str] | None = None,
) -> int:
    """Return the status of the refusal; 200 if there is none."""
    given = {"host": host, **(headers or {}), **({TOKEN_HEADER: token} if token else {})}
    refusal = Access(listen, token=TOKEN, names=names).refusal(path, given)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8700", "localhost:9000", "LOCALHOST", "[::1]:8700", "127.0.0.9", "localhost."]
)
def test_loopback_answers_under_its_own_names_whatever_the_port(host: str) -> None:
    assert status(READ, host) == status("/", host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8700", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.7", "[fe80::1]"],
)
def test_loopback_refuses_every_other_name(host: str) -> None:
    assert status(READ, host) == status("/", host) == status("/static/main.js", host) == 403


@pytest.mark.parametrize("host", ["", " ", "a b", "a@b", "[::1", "a:b:c", "evil/127.0.0.1"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    assert status("/", host) == 400


def test_a_name_can_be_allowed() -> None:
    assert status(READ, "crawler.EXAMPLE:80", names=("Crawler.example",)) == 200
    assert status(READ, "other.example", names=("crawler.example",)) == 403


def test_on_another_address_reading_needs_the_token_and_names_must_be_allowed() -> None:
    here = "192.0.2.7:8700"
    assert status(READ, here, listen=EVERYWHERE) == 401
    assert status(READ, here, listen=EVERYWHERE, token=TOKEN) == 200
    assert status("/", here, listen=EVERYWHERE) == 200, "the page itself holds nothing of the crawl"
    assert status(READ, "evil.example", listen=EVERYWHERE, token=TOKEN) == 403


@pytest.mark.parametrize("token", ["", "the-toke", "the-token ", "THE-TOKEN", "\xe9"])
def test_actions_need_the_token(token: str) -> None:
    assert status(ACT, "localhost", token=token) == 401
    assert status(ACT, "localhost", token=TOKEN) == 200


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 200),  # not a browser
        ({"origin": "http://localhost:9000", "sec-fetch-site": "same-origin"}, 200),
        ({"origin": "http://localhost:9000"}, 200),
        ({"sec-fetch-site": "none"}, 200),  # typed into the address bar
        ({"origin": "http://localhost:9001"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://localhost:9000", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_a_page_of_another_site_can_neither_act_nor_read(headers: dict[str, str], expected: int) -> None:
    for path in (ACT, READ):
        assert status(path, "localhost:9000", token=TOKEN, headers=headers) == expected


def test_a_link_from_another_site_opens_the_page() -> None:
    assert status("/", "localhost", headers={"sec-fetch-site": "cross-site"}) == 200


def test_a_hostile_name_is_harmless_in_the_message() -> None:
    refusal = Access(LOOPBACK, token=TOKEN).refusal("/", {"host": "evil\x1b[2J"})
    assert refusal is not None and "\x1b" not in refusal.sentence


def test_a_token_has_128_bits_and_differs_each_time() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 22 for token in tokens)
