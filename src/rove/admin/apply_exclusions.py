"""Applies exclusions to the frontier, and tells running processes when they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from rove.errors import RoveError
from rove.frontier.contract import Catalog, Frontier
from rove.model.reasons import BlockReason
from rove.model.urls import UrlState
from rove.notation.log_line import log_line
from rove.policy.exclusions import Exclusions, domain_around, whole_domains
from rove.urls.canonical import UrlForm

POLL_SECONDS = 1.0
"""How often a running process checks for changed exclusions."""
DOMAINS_PER_SLICE = 10_000
_LOWEST_ID = -(1 << 63)

log = logging.getLogger(__name__)


async def block_covered(
    frontier: Frontier, patterns: Sequence[str], form: UrlForm, *, domains_per_slice: int = DOMAINS_PER_SLICE
) -> int:
    """Take the URLs that patterns cover out of the queue; return how many."""
    covered = Exclusions(patterns)
    blocked = await frontier.exclude(domains_excluded(patterns, form))
    in_part = _domains_in_part(patterns, form)
    async for names in _domains_to_search(frontier, patterns, domains_per_slice):
        whole = {id: name for id, name in names.items() if covered.covers_all_of(name)}
        blocked += await frontier.exclude(whole)
        in_part |= names.keys() - whole.keys()
    for domain in sorted(in_part):
        blocked += await frontier.withdraw(domain, UrlState.BLOCKED, BlockReason.EXCLUDED, covered.covers_url)
    return blocked


async def reopen_covered(
    frontier: Frontier,
    patterns: Sequence[str],
    remaining: Exclusions,
    form: UrlForm,
    *,
    domains_per_slice: int = DOMAINS_PER_SLICE,
) -> int:
    """Make the URLs pending that lifted patterns cover and no remaining exclusion does; return how many."""
    lifted = Exclusions(patterns)

    def is_free(url: str) -> bool:
        return lifted.covers_url(url) and not remaining.covers_url(url)

    whole = domains_excluded(patterns, form)
    in_part = _domains_in_part(patterns, form)
    async for names in _domains_to_search(frontier, patterns, domains_per_slice):
        whole |= {id: name for id, name in names.items() if lifted.covers_all_of(name)}
        in_part |= names.keys()
    free = sorted(id for id, name in whole.items() if not remaining.covers_all_of(name))
    await frontier.include(free)
    return sum([await frontier.reopen(domain, is_free) for domain in sorted(in_part.union(free))])


async def follow_exclusions(
    catalog: Catalog, on_change: Callable[[Exclusions], None], *, interval: float = POLL_SECONDS
) -> None:
    """Report the exclusions at once and whenever they change, until cancelled."""
    known: int | None = None
    while True:
        try:
            revision = await catalog.exclusions_revision()
            if revision != known:
                patterns = await catalog.exclusions()
                on_change(Exclusions(patterns))
                log.info("%s", log_line("exclusions", patterns=len(patterns)))
                known = revision
        except RoveError as error:
            log.warning("Could not check for changed exclusions: %s", error)
        await asyncio.sleep(interval)


def domains_excluded(patterns: Iterable[str], form: UrlForm) -> dict[int, str]:
    """Return the registrable domains that patterns exclude by name, by their ids."""
    return {form.domain_id(name): name for name in whole_domains(patterns)}


def _domains_in_part(patterns: Sequence[str], form: UrlForm) -> set[int]:
    """Return the domains of which patterns cover only some hosts."""
    around = {domain_around(pattern) for pattern in patterns}.difference(whole_domains(patterns))
    return {form.domain_id(name) for name in around if name is not None}


async def _domains_to_search(frontier: Frontier, patterns: Iterable[str], limit: int) -> AsyncIterator[dict[int, str]]:
    """Yield all domains, in slices, if a pattern may cover hosts of any domain; else nothing."""
    last = _LOWEST_ID
    while any(domain_around(pattern) is None for pattern in patterns):
        names = await frontier.domain_names(last, limit)
        yield dict(names)
        if len(names) < limit:
            return
        last = names[-1][0]
