"""Registrable domains, by the public suffix list with its private section."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

_ANY_LABEL = "x"


@lru_cache(maxsize=8_192)
def domain_of(host: str) -> str:
    """Return the name of a host's registrable domain.

    A host without a registrable domain (an address, a public suffix) is its own domain.
    """
    return host if is_address(host) else registrable_domain(host)


def registrable_domain(name: str) -> str:
    """Return the registrable domain of a host name, or the name itself if it has none."""
    # All children of a name without rules are in the same domain, or each is its own domain, so one search of the
    # list serves all children of a parent.
    if name in _names_with_rules() or not name.islower() or "." in (name[0], name[-1]):
        return _suffixes().privatesuffix(name) or name
    return _domain_of_children(name.partition(".")[2]) or name


def is_within_domain(host: str) -> bool:
    """Whether a host has a registrable domain, so that all hosts below it share that domain."""
    return is_address(host) or _suffixes().privatesuffix(host) is not None


def is_address(host: str) -> bool:
    """Whether the host of a canonical URL is an IP address."""
    # The URL parser turns every host that ends in a number into an IPv4 address.
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


@lru_cache(maxsize=8_192)
def suffix_and_domain(host: str, *, private: bool) -> tuple[str | None, str | None]:
    """Return the public suffix of a host and the domain one level below; None where the list has none.

    With `private`, the suffixes that companies offer count too, such as github.io.
    """
    suffixes = _listed_suffixes(private)
    return suffixes.publicsuffix(host), suffixes.privatesuffix(host)


@cache
def _listed_suffixes(private: bool) -> PublicSuffixList:
    return PublicSuffixList(accept_unknown=False, only_icann=not private)


@cache
def _suffixes() -> PublicSuffixList:
    # Loading takes a while, and some commands do not need the list.
    return PublicSuffixList()


@cache
def _names_with_rules() -> frozenset[str]:
    """Return the names that have a rule of their own in the public suffix list."""
    return frozenset(re.sub(r"^!|^\*\.", "", rule) for rule in _suffixes()._publicsuffix)


@lru_cache(maxsize=8_192)
def _domain_of_children(parent: str) -> str:
    """Return the domain that all children of a name without rules share, or '' if each child is its own domain."""
    child = f"{_ANY_LABEL}.{parent}"
    domain = _suffixes().privatesuffix(child)
    return "" if domain is None or domain == child else domain
