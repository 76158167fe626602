"""Exclusions put into force: in the frontier by whoever makes or lifts them, and in the processes of a crawl."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from rove.errors import RoveError
from rove.frontier.contract import Catalog, Frontier
from rove.model.reasons import BlockReason
from rove.model.urls import UrlState
from rove.policy.exclusions import Exclusions, domain_around, whole_domains

FOLLOW_SECONDS = 1.0
"""How often a running crawl looks whether other exclusions hold."""
NAMES_PER_SLICE = 10_000
_LOWEST = -(1 << 63)

log = logging.getLogger(__name__)


async def exclude(frontier: Frontier, patterns: Sequence[str]) -> int:
    """Take out of the queue what patterns cover; return how many URLs left it."""
    covered = Exclusions(patterns)
    left = await frontier.exclude(whole_domains(patterns))
    in_part = _domains_in_part(patterns)
    async for names in _domains_to_search(frontier, patterns):
        whole = {id: name for id, name in names.items() if covered.covers_all_of(name)}
        left += await frontier.exclude(whole)
        in_part |= names.keys() - whole.keys()
    for domain in sorted(in_part):
        left += await frontier.withdraw(
            domain, UrlState.BLOCKED, BlockReason.EXCLUDED, covered.covers_url
        )
    return left


async def include(frontier: Frontier, patterns: Sequence[str], still: Exclusions) -> int:
    """Let go on what patterns covered and nothing else covers; return how many URLs are pending again."""
    lifted = Exclusions(patterns)

    def is_free(url: str) -> bool:
        return lifted.covers_url(url) and not still.covers_url(url)

    whole = whole_domains(patterns)
    in_part = _domains_in_part(patterns)
    async for names in _domains_to_search(frontier, patterns):
        whole |= {id: name for id, name in names.items() if lifted.covers_all_of(name)}
        in_part |= names.keys()
    free = sorted(id for id, name in whole.items() if not still.covers_all_of(name))
    await frontier.include(free)
    return sum([await frontier.reopen(domain, is_free) for domain in sorted(in_part.union(free))])


async def follow_exclusions(catalog: Catalog, on_change: Callable[[Exclusions], None]) -> None:
    """Tell, for as long as it runs, when other exclusions hold."""
    known: int | None = None
    while True:
        try:
            revision = await catalog.exclusions_revision()
            if revision != known:
                on_change(Exclusions(await catalog.exclusions()))
                known = revision
        except RoveError as error:
            log.warning("whether exclusions have changed could not be seen: %s", error)
        await asyncio.sleep(FOLLOW_SECONDS)


def _domains_in_part(patterns: Iterable[str]) -> set[int]:
    """The domains of which patterns cover some hosts."""
    whole = whole_domains(patterns)
    around = {domain_around(pattern) for pattern in patterns}
    return {domain for domain in around if domain is not None and domain not in whole}


async def _domains_to_search(
    frontier: Frontier, patterns: Iterable[str]
) -> AsyncIterator[dict[int, str]]:
    """All domains, in slices, where a pattern may cover hosts of any."""
    last = _LOWEST
    while any(domain_around(pattern) is None for pattern in patterns):
        names = await frontier.domain_names(last, NAMES_PER_SLICE)
        yield dict(names)
        if len(names) < NAMES_PER_SLICE:
            return
        last = names[-1][0]
