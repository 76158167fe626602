"""Whether seeds are still being loaded."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.seed_source import SeedSource


def seeds_loading(sources: Sequence[SeedSource]) -> int | None:
    """Return how many seeds were loaded so far, if more are being loaded; None if all are loaded.

    Seeds on a machine that has left are not waited for.
    """
    if all(source.finished or source.is_abandoned for source in sources):
        return None
    return sum(source.good for source in sources)
