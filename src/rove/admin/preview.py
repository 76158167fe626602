"""Tells what an exclusion would match before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.frontier.domain_list import DomainCursor, DomainQuery
from rove.policy.exclusions import Exclusions, domain_around
from rove.urls.canonical import UrlForm

MOST_FOUND = 1_000
"""Domains that are named. A pattern may cover a million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A known domain that an exclusion would touch."""

    name: str
    pending: int
    is_whole: bool
    """All its hosts would be excluded, not only some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The known domains that an exclusion would touch."""

    matches: Sequence[Match]
    has_more: bool
    """There are others, which were not read."""
    hosts_are_unknown: bool
    """A pattern may also cover single hosts of other domains, which only a search of all URLs would find."""

    @property
    def pending(self) -> int:
        """The URLs that would leave the queue, at most: of a domain in part, all are counted."""
        return sum(match.pending for match in self.matches)


async def preview(reader: FrontierReader, patterns: Sequence[str], form: UrlForm, *, most: int = MOST_FOUND) -> Preview:
    """Find the known domains that patterns would touch; of each pattern, about `most` at most."""
    covered = Exclusions(patterns)
    found: dict[str, Match] = {}
    has_more = hosts_are_unknown = False
    for pattern in patterns:
        around = domain_around(pattern)
        if around is not None:
            record = await reader.domain(form.domain_id(around))
            if record is not None and record.name == around:
                is_whole = covered.covers_all_of(around)
                found[around] = Match(name=around, pending=record.pending, is_whole=is_whole)
            continue
        hosts_are_unknown = hosts_are_unknown or "*" in pattern
        has_more = not await _search(reader, pattern, covered, found, most) or has_more
    return Preview(matches=list(found.values()), has_more=has_more, hosts_are_unknown=hosts_are_unknown)


async def _search(
    reader: FrontierReader, pattern: str, covered: Exclusions, found: dict[str, Match], most: int
) -> bool:
    """Add the domains that a pattern covers wherever they are; return whether these are all."""
    query = DomainQuery(delay=0.0, search=_longest_part(pattern))
    after: DomainCursor | None = None
    while True:
        page = await reader.domains(query, limit=most, after=after)
        for domain in page.domains:
            if covered.covers_all_of(domain.name):
                found[domain.name] = Match(name=domain.name, pending=domain.pending, is_whole=True)
        if page.next is None:
            return True
        if len(found) >= most:
            return False
        after = page.next


def _longest_part(pattern: str) -> str:
    """Return the text that the name of every covered domain contains.

    >>> _longest_part("shop*.example-*"), _longest_part("co.uk")
    ('.example-', 'co.uk')
    """
    part = max(pattern.removeprefix("=").split("*"), key=len)
    if not part:
        raise UsageError(f"{pattern!r} would exclude everything")
    return part
