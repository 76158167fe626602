"""Tells whether a database still has all transactions that a crawl knows, and how long domains rest if it may not.

A standby that is promoted, a restored backup or a copied file may lack the last claims. Each such event begins a new
era of the crawl, recorded in its database. A data directory remembers the last era that it has seen, so that it also
recognises a database that lacks an era: a former primary that came back.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from rove.notation.humanize import seconds_text

JUMP = 1_000_000
"""Numbers of visits and adds that a new era skips, because the lost past may have used them."""

LOST = (
    ", so its last transactions may be lost; every domain rests for as long as a visit may take plus its delay, "
    "then the crawl goes on"
)


class Server(NamedTuple):
    """What identifies a PostgreSQL server and its past."""

    system: str = ""
    """The system identifier, which a standby shares with its primary; '' if it cannot be read."""
    timeline: int = 0
    """Grows with each promotion; 0 if it cannot be read."""


class Era(NamedTuple):
    """A time in which the crawl's database had one unbroken past."""

    id: str
    server: Server
    rest_from: int | None = None
    """When it began, in milliseconds of the crawl's clock, if claims of the era before may have been lost."""


class Remembered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a data directory remembers of its database."""

    crawl: str = ""
    """The first era of the crawl, which tells it from other crawls."""
    era: str = ""
    """The last era that was seen."""
    system: str = ""
    timeline: int = 0
    visits: int = 0
    """The highest visit number that this directory was given."""


class Past(enum.Enum):
    """How the past of a database compares with what is known of it."""

    FIRST = "first"
    """A new crawl, or the first look at it."""
    SAME = "same"
    PROMOTED = "promoted"
    """A standby was promoted, or a backup was recovered: the last transactions may be lost."""
    OLDER = "older"
    """It does not know visits or an era that this directory knows."""
    FOREIGN = "foreign"
    """It is on another server, which is not a copy of the known one."""
    BEHIND = "behind"
    """It is a former primary: its server was left behind by a promotion."""


def compare(server: Server, eras: Sequence[Era], visits: int, known: Remembered) -> Past:
    """Compare a database with what a data directory remembers.

    `eras` and `visits` (the highest visit number given out) are from the database.
    """
    if not eras:
        return Past.OLDER if visits and (known.era or known.visits > visits) else Past.FIRST
    if known.crawl != eras[0].id:
        known = Remembered()  # of another crawl
    last = eras[-1].server
    witnesses = [last]
    is_known = not known.era or any(era.id == known.era for era in eras)
    if not is_known:
        witnesses.append(Server(known.system, known.timeline))
    if any(differ(server.system, witness.system) for witness in witnesses):
        return Past.FOREIGN
    if any(server.timeline and witness.timeline > server.timeline for witness in witnesses):
        return Past.BEHIND
    if last.timeline and server.timeline > last.timeline:
        return Past.PROMOTED
    return Past.SAME if is_known and known.visits <= visits else Past.OLDER


def older_text(location: str) -> str:
    """Say that a database is older than the data directory."""
    return f"{location} holds a database that is older than its data directory{LOST}"


def resting_text(milliseconds: int) -> str:
    """Say for how long no domain may be claimed; '' if some may."""
    if not milliseconds:
        return ""
    first = seconds_text(milliseconds / 1000, whole=True)
    return f"every domain rests, because the database may have lost its last transactions; the first for {first} more"


def differ(first: str, second: str) -> bool:
    """Whether two identifiers are known and different."""
    return bool(first and second) and first != second


class Rest(NamedTuple):
    """The rest of all domains at the beginning of an era. Times are milliseconds of the crawl's clock."""

    start: int
    """By then, every visit that the database may have forgotten has ended."""
    delay: int
    """The operator's delay."""

    def end(self, crawl_delay: int = 0, backoff: int = 0) -> int:
        """Return when a domain with these delays may be visited again."""
        return self.start + max(self.delay, crawl_delay, backoff)


def rest_of(rest_from: int | None, *, budget: float, delay_ms: int) -> Rest | None:
    """Return the rest of an era, None if nothing was lost."""
    return None if rest_from is None else Rest(rest_from + round(budget * 1000), delay_ms)
