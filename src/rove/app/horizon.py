"""Shortens the horizon of a crawl, which is the only option that drops URLs that were accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rove.config import Settings
from rove.errors import UsageError
from rove.frontier.backends import policy_of
from rove.frontier.contract import Backend
from rove.notation.humanize import counted
from rove.notation.quantities import duration_text


async def shorten_horizon(
    backend: Backend, old: Settings, new: Settings, *, confirmed: bool, say: Callable[[str], None]
) -> None:
    """Drop the URLs that have no room under a shorter horizon, or refuse if that is not confirmed.

    Does nothing if the horizon is not shorter.
    """
    if new.planned_seconds >= old.planned_seconds:
        return
    # The epoch stays the old one, because opening a frontier with a new epoch lifts limits per domain.
    frontier = await backend.begin(replace(policy_of(new), limits_epoch=old.limits.epoch), None)
    excess = await frontier.excess()
    if not excess:
        return
    horizon = f"--horizon {duration_text(new.planned_seconds)}"
    before = duration_text(old.planned_seconds)
    if not confirmed:
        pending = (await backend.reader.counts()).urls_pending
        raise UsageError(
            f"{horizon} is shorter than the {before} so far and would drop {excess:,} of {pending:,} pending URLs for "
            "good; add --yes to drop them, or leave --horizon out to keep them"
        )
    dropped = await frontier.drop_excess()
    say(f"{horizon} instead of {before}: {counted(dropped, 'pending URL')} dropped")
