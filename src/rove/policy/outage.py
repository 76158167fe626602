"""Decides whether this machine has lost its connection, or its resolver, when no site responds. Pure functions.

Sites fail all the time, but they do not fail all at once. So the visits without a response are judged together, from
the first one after the last response of any site. A domain that responded to its last visit is a witness: if it fails
now, something has changed. A domain that never responded, or that has failed before, proves nothing.

- Several witnesses fail, and no site responds for a minute: the connection is lost.
- Too few domains are left that could be witnesses: the sites are to blame.
- In a crawl in which no site has ever responded, there are no witnesses. If it has many domains, the connection is
  taken to be lost at first, and given up after a while.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageRules:
    """The numbers by which a lost connection is noticed and waited out."""

    silence: float = 60.0
    """Seconds without a response after which the connection counts as lost."""
    witnesses: int = 5
    """Domains that must fail after they had responded to their last visit."""
    max_held: int = 1_000
    """Visits without a response that are held back until the cause is known."""
    few_domains: int = 20
    """With no more domains than this, a crawl in which no site has ever responded blames the sites."""
    patience: float = 600.0
    """Seconds after the start at which a crawl in which no site has ever responded ends."""
    probes: int = 3
    """Domains visited at a time to find out whether the connection is back."""
    first_probe: float = 1.0
    """Seconds until the first probe. The wait doubles with each further one."""
    longest_probe: float = 30.0


DEFAULT_OUTAGE_RULES = OutageRules()


class Cause(enum.Enum):
    """Why no site responds."""

    SITES = enum.auto()
    UNKNOWN = enum.auto()
    CONNECTION = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """The visits without a response since the last response of any site."""

    began: float
    """When the first of them ended, or when a site last responded to an earlier request."""
    witnesses: int
    """Domains that had responded to their last visit."""
    strangers: int
    """Domains that never responded, or that had failed before."""


def cause_of(
    silence: Silence, *, now: float, domains: int, answered: int, possible_witnesses: int, rules: OutageRules
) -> Cause:
    """Return why no site responds.

    `domains` counts all domains of the crawl, `answered` those that have ever responded, and `possible_witnesses`
    those that may still respond or fail.
    """
    lasts_long = now - silence.began >= rules.silence
    if not answered:
        is_suspicious = domains > rules.few_domains
    else:
        is_suspicious = silence.witnesses >= rules.witnesses
        could_be = silence.witnesses + possible_witnesses >= rules.witnesses and silence.strangers < rules.max_held
        if not is_suspicious and could_be:
            return Cause.UNKNOWN
    if not is_suspicious:
        return Cause.SITES
    return Cause.CONNECTION if lasts_long else Cause.UNKNOWN


def is_hopeless(*, answered: int, started: float, now: float, rules: OutageRules) -> bool:
    """Whether a crawl that waits for its connection ends: no site has ever responded, and it has waited long enough."""
    return not answered and now - started >= rules.patience


def probe_wait(probes: int, rules: OutageRules) -> float:
    """Return the seconds until the next probe, given the number of probes so far.

    >>> [probe_wait(probes, OutageRules()) for probes in (0, 1, 2, 5, 1_000)]
    [1.0, 2.0, 4.0, 30.0, 30.0]
    """
    return min(rules.longest_probe, rules.first_probe * 2.0 ** min(probes, 40))
