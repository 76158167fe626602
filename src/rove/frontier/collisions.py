"""Two domains with one id: noticed when URLs are added, and kept apart.

A domain row belongs to the name that came first. URLs of any other name with the same id are not taken, so that they
cannot share the queue, the delay or the lease of that domain. Ids are keyed with the crawl's secret, so this happens by
chance alone, if ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from rove.model.urls import NewUrl

_domain, _domain_name = itemgetter(0), itemgetter(1)


class DomainCollision(Exception):
    """Some URLs are of a domain that has the id of another domain, so nothing was added."""


def names_by_id(urls: Sequence[NewUrl]) -> dict[int, str]:
    """Return the names of the URLs' domains by id; raise DomainCollision if two names have one id."""
    found = list(map(_domain_name, urls))
    names = dict(zip(map(_domain, urls), found, strict=True))
    # A name has one id, so there are more names than ids only if two names share one.
    if len(set(found)) > len(names):
        raise DomainCollision
    return names


def check_names(names: Mapping[int, str], rows: Iterable[tuple[int, str]]) -> None:
    """Raise DomainCollision if a domain row, given as (id, name), belongs to another name."""
    if any(names[id] != name for id, name in rows):
        raise DomainCollision


def without_collisions(urls: Sequence[NewUrl], owners: Mapping[int, str]) -> tuple[list[NewUrl], list[NewUrl]]:
    """Split URLs into those to add and those whose domain has the id of another.

    `owners` are the names of the domain rows by id. An id without a row belongs to the first URL.
    """
    owner_of = dict(owners)
    kept: list[NewUrl] = []
    collided: list[NewUrl] = []
    for url in urls:
        is_owner = owner_of.setdefault(url.domain, url.domain_name) == url.domain_name
        (kept if is_owner else collided).append(url)
    return kept, collided
