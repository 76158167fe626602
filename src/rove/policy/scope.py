"""How far a crawl goes from its seeds: to their domains, hosts or directories, or anywhere. Pure.

The scheme and the port do not count. The directory of `https://a.test/docs/index.html` is `/docs/`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from rove.errors import UsageError
from rove.policy.expressions.facts import host_of, path_of


class SeedScope(enum.StrEnum):
    """Which links are followed, relative to the seeds; the values are those of `--scope`."""

    ANYWHERE = "anywhere"
    DOMAIN = "domain"
    HOST = "host"
    PATH = "path"

    @property
    def needs_roots(self) -> bool:
        """Whether it depends on the seeds of a domain, and not only on whether the domain has any."""
        return self in (SeedScope.HOST, SeedScope.PATH)


class ScopeRoots:
    """Where the seeds of one domain allow a crawl to go: the hosts, or the directories on each host.

    What a seed redirects to widens the scope, because the seed is there in truth: to its host, or to a directory that
    is not above all of the seeds' own.

    >>> docs = ScopeRoots([("http://a.test/docs/", True), ("https://www.a.test/docs/en/", False)], SeedScope.PATH)
    >>> [docs.covers(f"https://{url}") for url in ("a.test/docs/x/y", "a.test/blog", "www.a.test/docs/en/")]
    [True, False, True]
    """

    def __init__(self, roots: Iterable[tuple[str, bool]], scope: SeedScope) -> None:
        """`roots`: the pages of depth 0, and whether each is a seed. The others are what seeds redirect to."""
        roots = list(roots)
        self._scope = scope
        self._paths = {directory_of(url) for url, is_seed in roots if is_seed}
        self._places = {self._place(url) for url, is_seed in roots if is_seed or self.may_be_root(url)}

    def may_be_root(self, url: str) -> bool:
        """Whether a seed may redirect here: to another host of its domain, but not above its directory."""
        if not self._paths:
            return False
        return self._scope is not SeedScope.PATH or any(path in self._paths for path in _directories(url))

    def covers(self, url: str) -> bool:
        """Whether a link to a URL of the domain may be followed."""
        if self._scope is not SeedScope.PATH:
            return self._place(url) in self._places
        host = host_of(url)
        return any((host, path) in self._places for path in _directories(url))

    def _place(self, url: str) -> tuple[str, str]:
        return host_of(url), directory_of(url) if self._scope is SeedScope.PATH else ""


def parse_scope(text: str) -> SeedScope:
    """Return the scope that a text names."""
    try:
        return SeedScope(text.strip().lower())
    except ValueError as error:
        raise UsageError(f"{text!r} is not one of {', '.join(SeedScope)}") from error


def directory_of(url: str) -> str:
    """Return the path of a canonical URL up to its last slash."""
    path = path_of(url)
    return path[: path.rindex("/") + 1]


def _directories(url: str) -> Iterable[str]:
    """Return the directory of a URL and all above it."""
    directory = directory_of(url)
    while True:
        yield directory
        if directory == "/":
            return
        directory = directory[: directory.rindex("/", 0, -1) + 1]
