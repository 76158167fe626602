"""The contact e-mail address and the User-Agent."""

from __future__ import annotations

import pytest

from rove import __version__
from rove.policy.identity import is_plausible_email, user_agent


@pytest.mark.parametrize(
    "text",
    [
        "me@crawler.test",
        "Me.And.You@Example.ORG",
        "me+crawl@crawler.test",
        "me_1-2@sub.example.co.uk",
        "o'neil@crawler.test",
        "1@crawler.test",
        "a@b.co",
        "a@xn--mnchen-3ya.de",
        "a@1a.org",
        "a@" + "x" * 63 + ".org",
        "me@example.xn--p1ai",
        "me@xn--80a1acny.xn--p1ai",
    ],
)
def test_addresses_that_a_webmaster_could_write_to(text: str) -> None:
    assert is_plausible_email(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "me",
        "@",
        "me@",
        "@crawler.test",
        "me@example",
        "me@localhost",
        "me@example.o",
        "me@.org",
        "me@example..org",
        "me@-example.org",
        "me@example-.org",
        "me@crawler.test.",
        "me@exa mple.org",
        "me @crawler.test",
        " me@crawler.test",
        "me@crawler.test ",
        "me@crawler.test\n",
        "me@crawler.test\r\nX-Evil: 1",
        "me@you@crawler.test",
        ".me@crawler.test",
        "me.@crawler.test",
        "m..e@crawler.test",
        "me(comment)@crawler.test",
        "me;you@crawler.test",
        "<me@crawler.test>",
        "mailto:me@crawler.test",
        "me@192.0.2.1",
        "me@[192.0.2.1]",
        "me@example.123",
        "mé@crawler.test",
        "me@exämple.org",
        "me@" + "x" * 64 + ".org",
        "m" * 250 + "@crawler.test",
    ],
)
def test_texts_that_are_no_address(text: str) -> None:
    assert not is_plausible_email(text)


@pytest.mark.parametrize(
    ("info_url", "expected"),
    [
        (None, f"rove/{__version__} (mailto:me@crawler.test)"),
        ("https://example.org/bot", f"rove/{__version__} (+https://example.org/bot; mailto:me@crawler.test)"),
    ],
)
def test_the_user_agent_names_a_page_and_an_address(info_url: str | None, expected: str) -> None:
    assert user_agent("me@crawler.test", info_url) == expected
