"""The patterns that exclude domains and hosts from a crawl, without I/O.

- `example.com` excludes that host and all its subdomains. So does `*.example.com`, because excluding too much is the
  smaller mistake.
- `=www.example.com` excludes that host alone.
- A `*` anywhere else matches any characters, dots included: `shop*.example.com`, `*-ads.*`. Subdomains of a matching
  host are excluded too.
- An IP address excludes itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rove.errors import UsageError
from rove.urls.canonical import plain_url
from rove.urls.domain import domain_of, is_address, is_within_domain

_NO_PATTERN = re.compile(r"[\x00-\x20\x7f]|^=?/")
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_GLOB = re.compile(r"[a-z0-9_*-]+(\.[a-z0-9_*-]+)*")


class Exclusions:
    """The exclusion patterns of a crawl."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._hosts: set[str] = set()
        self._globs: dict[str, re.Pattern[str]] = {}
        for pattern in patterns:
            if pattern.startswith("="):
                self._hosts.add(pattern[1:])
            elif "*" in pattern:
                self._globs[pattern] = _glob(pattern)
            else:
                self._names.add(pattern)
        self._any_glob = re.compile("|".join(f"(?:{g.pattern})" for g in self._globs.values()))

    def covers(self, host: str) -> bool:
        """Whether a host is excluded, by itself or by a parent domain."""
        if self._names and self._name_covering(host) is not None:
            return True
        return host in self._hosts or (bool(self._globs) and self._any_glob.fullmatch(host) is not None)

    def covers_all_of(self, name: str) -> bool:
        """Whether a name is excluded with all its subdomains."""
        return self._name_covering(name) is not None or (
            bool(self._globs) and self._any_glob.fullmatch(name) is not None
        )

    def covers_url(self, text: str) -> bool:
        """Whether the host of a URL is excluded."""
        url = plain_url(text)
        return url is not None and self.covers(url.host)

    def covering(self, host: str) -> str | None:
        """Return the pattern that excludes a host, None if there is none."""
        name = self._name_covering(host)
        if name is not None:
            return name
        if host in self._hosts:
            return f"={host}"
        for pattern, glob in self._globs.items():
            if glob.fullmatch(host):
                return pattern
        return None

    def _name_covering(self, host: str) -> str | None:
        if is_address(host):
            return host if host in self._names else None
        name = host
        while name not in self._names:
            _, dot, name = name.partition(".")
            if not dot:
                return None
        return name


def parse_pattern(text: str) -> str:
    """Return the normal form of a pattern; raise UsageError if it matches nothing or everything."""
    given = text.strip().lower()
    if given.startswith("*.") and "*" not in given[2:]:
        given = given[2:]
    if "*" in given:
        if _GLOB.fullmatch(given) is None:
            raise UsageError(f"{text!r} is not a domain or a domain pattern")
        if not given.strip("*."):
            raise UsageError(f"{text!r} would exclude everything")
        return given
    is_exact = given.startswith("=")
    host = given.removeprefix("=")
    url = plain_url(host if "://" in host else f"http://{host}")
    if url is None or _NO_PATTERN.search(given) or not (is_address(url.host) or _HOST.fullmatch(url.host)):
        raise UsageError(f"{text!r} is not a domain")
    return f"={url.host}" if is_exact else url.host


def parse_exclusions(lines: Iterable[str], name: str) -> list[str]:
    """Return the patterns in a file; raise UsageError for an invalid line, because a typo would be impolite."""
    patterns: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.lstrip("\ufeff").partition("#")[0].strip()
        if not text:
            continue
        try:
            patterns.append(parse_pattern(text))
        except UsageError as error:
            raise UsageError(f"{name}, line {number}: {error}") from error
    return patterns


def is_public_suffix(pattern: str) -> bool:
    """Whether a pattern excludes every domain below a public suffix, such as `com`, `co.uk` or `github.io`."""
    return not pattern.startswith("=") and "*" not in pattern and domain_around(pattern) is None


def whole_domains(patterns: Iterable[str]) -> list[str]:
    """Return the registrable domains that patterns exclude by name, each once."""
    plain = (pattern for pattern in patterns if not pattern.startswith("=") and "*" not in pattern)
    return list(dict.fromkeys(pattern for pattern in plain if domain_of(pattern) == pattern))


def domain_around(pattern: str) -> str | None:
    """Return the domain that contains all hosts of a pattern; None if they may be in any domain."""
    host = pattern.removeprefix("=").rpartition("*")[2]
    if "*" in pattern:
        _, dot, host = host.partition(".")
        if not dot or is_address(host):
            return None
    return domain_of(host) if is_within_domain(host) else None


def _glob(pattern: str) -> re.Pattern[str]:
    # Each part matches where it first occurs, without backtracking: that leaves the most text for the later parts,
    # and keeps hostile host names from costing time.
    first, *middle, last = (re.escape(part) for part in pattern.split("*"))
    start = rf"(?>(?:.*?\.)??{first})" if first else ""
    return re.compile(start + "".join(rf"(?>.*?{part})" for part in middle if part) + rf".*{last}")
