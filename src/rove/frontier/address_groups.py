"""Limits the address literals of one group that links may bring into a frontier.

A /64 has more addresses than there are names on the web, and each of them is a domain of its own. So only the first few
addresses of a group are accepted. Addresses that a person gives as seeds are always accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from rove.model.urls import NewUrl, NotAccepted
from rove.urls.address_group import address_group

MAX_ADDRESSES = 64
"""Address literals of one group that links may add."""
_LAST_OF_ADDRESS = frozenset("]0123456789")


def groups_in(urls: Sequence[NewUrl]) -> dict[int, str]:
    """Return the groups of the domains that are address literals and were found by a link; most batches have none."""
    literals = [url for url in urls if url.domain_name[-1] in _LAST_OF_ADDRESS and url.depth]
    groups = {url.domain: address_group(url.domain_name) for url in literals}
    return {domain: group for domain, group in groups.items() if group}


def within_groups(
    urls: Sequence[NewUrl],
    groups: Mapping[int, str],
    *,
    known: Collection[int],
    addresses: Mapping[str, int],
    changes: Counter[str],
) -> tuple[list[NewUrl], list[NewUrl]]:
    """Split URLs into those to insert and those of new addresses for which their group has no room.

    `known` domains are in the frontier already, and `addresses` counts the addresses of each group there.
    """
    counts = Counter(addresses)
    refused = set()
    for domain, group in groups.items():
        if domain in known:
            continue
        if counts[group] < MAX_ADDRESSES:
            counts[group] += 1
        else:
            refused.add(domain)
    dropped = [url for url in urls if url.domain in refused and url.depth]
    changes[f"not_accepted.{NotAccepted.ADDRESS_GROUP}"] += len(dropped)
    return [url for url in urls if url.domain not in refused or not url.depth], dropped
