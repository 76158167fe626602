"""What `rove exclude`, `include` and `purge` say that they cover."""

from __future__ import annotations

import pytest

from rove.policy.coverage import coverage_text
from rove.policy.exclusions import is_public_suffix, parse_pattern


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x.org", "x.org and all its subdomains"),
        ("*.x.org", "x.org and all its subdomains"),
        ("https://x.org/", "x.org and all its subdomains"),
        ("https://x.org/a/b?c=d", "x.org and all its subdomains (all pages, not only /a/b?c=d)"),
        ("x.org/a", "x.org and all its subdomains (all pages, not only /a)"),
        ("https://www.x.org/foo", "www.x.org and its subdomains, but not the rest of x.org (all pages, not only /foo)"),
        ("a.github.io", "a.github.io and all its subdomains"),
        ("=www.x.org", "www.x.org alone, without its subdomains"),
        ("=https://www.x.org/foo", "www.x.org alone, without its subdomains (all pages, not only /foo)"),
        ("shop*.x.org", "every host that matches shop*.x.org, and its subdomains"),
        ("192.0.2.1", "192.0.2.1"),
        ("co.uk", "every domain below co.uk, a public suffix"),
    ],
)
def test_the_hosts_that_a_pattern_covers_are_named(given: str, said: str) -> None:
    assert coverage_text(parse_pattern(given), given) == said


@pytest.mark.parametrize("given", ["com", "*.com", "co.uk", "github.io", "https://com/", "kawasaki.jp"])
def test_a_public_suffix_is_recognised(given: str) -> None:
    assert is_public_suffix(parse_pattern(given))


@pytest.mark.parametrize("given", ["x.com", "=com", "a.github.io", "192.0.2.1", "[::1]", "*-ads.*", "a*.com"])
def test_everything_else_is_no_public_suffix(given: str) -> None:
    assert not is_public_suffix(parse_pattern(given))
