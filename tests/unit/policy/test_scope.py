"""Which URLs are within the hosts or directories of the seeds."""

from __future__ import annotations

import pytest

from rove.policy.scope import ScopeRoots, SeedScope, directory_of

HOST, PATH = SeedScope.HOST, SeedScope.PATH
DOCS = [("https://a.test/docs/", True), ("http://a.test/blog/2026/index.html?x=/y/", True)]


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("http://a.test/", "/"),
        ("http://a.test/docs", "/"),
        ("http://a.test/docs/", "/docs/"),
        ("http://a.test/docs/a.b/c.html?d/e", "/docs/a.b/"),
        ("http://a.test/?d/e/", "/"),
    ],
)
def test_the_directory_of_a_url(url: str, directory: str) -> None:
    assert directory_of(url) == directory


@pytest.mark.parametrize(
    ("url", "by_host", "by_path"),
    [
        ("http://a.test/docs/", True, True),
        ("https://a.test:8443/docs/a/b?c", True, True),
        ("http://a.test/docs", True, False),
        ("http://a.test/docs2/x", True, False),
        ("http://a.test/", True, False),
        ("http://a.test/blog/2026/05/", True, True),
        ("http://a.test/blog/2025/", True, False),
        ("http://www.a.test/docs/", False, False),
        ("http://a.test.b.test/docs/", False, False),
    ],
)
def test_what_is_within_the_scope(url: str, by_host: bool, by_path: bool) -> None:
    assert ScopeRoots(DOCS, HOST).covers(url) is by_host
    assert ScopeRoots(DOCS, PATH).covers(url) is by_path


def test_a_seed_may_redirect_to_another_host_but_not_above_its_directory() -> None:
    redirected = [*DOCS, ("https://www.a.test/docs/en/", False), ("https://login.a.test/", False)]
    by_host, by_path = ScopeRoots(redirected, HOST), ScopeRoots(redirected, PATH)
    assert by_host.covers("http://www.a.test/x") and by_host.covers("http://login.a.test/x")
    assert by_path.covers("http://www.a.test/docs/en/x") and not by_path.covers("http://www.a.test/docs/de/")
    assert not by_path.covers("http://login.a.test/x")
    assert by_host.may_be_root("http://new.a.test/")
    assert by_path.may_be_root("http://new.a.test/docs/x/") and not by_path.may_be_root("http://new.a.test/")


@pytest.mark.parametrize("scope", [HOST, PATH])
def test_without_a_seed_nothing_is_in_scope(scope: SeedScope) -> None:
    roots = ScopeRoots([("http://a.test/", False)], scope)
    assert not roots.covers("http://a.test/") and not roots.may_be_root("http://a.test/")
