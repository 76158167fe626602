"""A lease as the process that claimed it holds it."""

from __future__ import annotations

import msgspec

from rove.model.visits import Lease, OriginRecord


class HeldLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A lease, and what this process needs to use it."""

    lease: Lease
    deadline: float
    """No request starts after this, by the process's steady clock."""
    clock_offset: float = 0.0
    """Seconds by which the crawl's clock is ahead of the process's steady clock."""
    origins: dict[str, OriginRecord | None]
    """The robots.txt records of the origins of the lease's URLs, None where the frontier has none."""
