"""Applies changed rules to the URLs that are in the queue, in slices, beside the crawl.

The gate of every process applies the rules at once, when it is the turn of a URL. This brings the queue and its
counters in line with them. How far it has come is saved after each slice, so that it goes on after a kill, on any
machine.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from rove.errors import RoveError
from rove.frontier.contract import Catalog, Frontier, FrontierReader
from rove.inspect.nodes import is_alive
from rove.model.reasons import is_rejected_by_rules
from rove.notation.humanize import counted
from rove.notation.log_line import log_line
from rove.policy.rules import Rules

DOMAINS_PER_SLICE = 500
POLL_SECONDS = 1.0
RETRY_SECONDS = 30.0
LONGEST_WAIT = 600.0
"""Seconds to wait for processes of other machines that may still have the old rules."""
_LOWEST_ID = -(1 << 63)

log = logging.getLogger(__name__)


class RulesProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far rules have been applied to the queue."""

    rules: tuple[str, ...] = ()
    after: int | None = None
    """The last domain whose URLs were judged; None if all were."""
    blocked: int = 0
    reopened: int = 0


class RulesApplier:
    """Applies the rules of a crawl to its queue."""

    def __init__(
        self,
        frontier: Frontier,
        catalog: Catalog,
        rules: Rules,
        *,
        say: Callable[[str], None],
        domains_per_slice: int = DOMAINS_PER_SLICE,
    ) -> None:
        """`say` shows a sentence to the user."""
        self._frontier = frontier
        self._catalog = catalog
        self._rules = rules
        self._texts = _texts(rules)
        self._say = say
        self._slice = domains_per_slice

    async def run(self, reader: FrontierReader) -> None:
        """Apply the rules if they have changed; wait out a database that is away."""
        while True:
            try:
                if await self.begins():
                    await _old_processes_left(reader)
                    await self.apply()
                return
            except RoveError as error:
                log.warning("Could not apply the rules to the queue, and will try again: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def begins(self) -> bool:
        """Return whether there is anything to do."""
        if await _known(self._catalog) is None and await self._has_rejected():
            return True  # the crawl was moved
        return not await are_rules_applied(self._catalog, self._rules)

    async def apply(self) -> RulesProgress:
        """Judge all URLs that are pending, or that rules have blocked, from where an earlier process stopped."""
        progress = await _known(self._catalog)
        if progress is None or progress.rules != self._texts:
            progress = RulesProgress(rules=self._texts, after=_LOWEST_ID)
        began = time.monotonic()
        has_rejected = await self._has_rejected()
        while progress.after is not None:
            names = await self._frontier.domain_names(progress.after, self._slice)
            blocked, reopened = progress.blocked, progress.reopened
            for domain, _ in names:
                if has_rejected:
                    reopened += await self._frontier.reopen_rejected(domain, self._judge)
                if self._texts:
                    blocked += await self._frontier.rejudge(domain, self._judge)
            after = names[-1][0] if len(names) == self._slice else None
            progress = RulesProgress(rules=self._texts, after=after, blocked=blocked, reopened=reopened)
            await self._catalog.save_rules_applied(_encoded(progress))
        log.info("%s", log_line("rules", rules=len(self._texts), seconds=time.monotonic() - began))
        if progress.blocked or progress.reopened:
            blocked_text = counted(progress.blocked, "pending URL")
            self._say(f"the rules have changed: {blocked_text} blocked, {progress.reopened:,} pending again")
        return progress

    def _judge(self, url: str, depth: int) -> str | None:
        ruled_out = self._rules.against_known(url, depth)
        return None if ruled_out is None else ruled_out.reason

    async def _has_rejected(self) -> bool:
        return any(map(is_rejected_by_rules, (await self._frontier.counts()).blocked))


async def are_rules_applied(catalog: Catalog, rules: Rules) -> bool:
    """Whether the whole queue is in line with the rules. Until then, more URLs may become pending again."""
    known = await _known(catalog)
    if known is None:
        return not _texts(rules)
    return known.rules == _texts(rules) and known.after is None


def fully_applied(rules: Rules) -> str:
    """Return the progress to save with a new crawl, whose queue has always been in line with its rules."""
    return _encoded(RulesProgress(rules=_texts(rules)))


def _encoded(progress: RulesProgress) -> str:
    return msgspec.json.encode(progress).decode()


def _texts(rules: Rules) -> tuple[str, ...]:
    return tuple(str(rule) for rule in rules.rules if rule.decides_links)


async def _known(catalog: Catalog) -> RulesProgress | None:
    text = await catalog.rules_applied()
    try:
        return msgspec.json.decode(text, type=RulesProgress) if text else None
    except msgspec.MsgspecError:
        log.warning("The record of the rules that were applied is damaged; applying them again")
        return RulesProgress(rules=("damaged",))


async def _old_processes_left(reader: FrontierReader) -> None:
    """Wait until no process of another machine is alive that began before now: it may still have the old rules."""
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < LONGEST_WAIT:
        others = [process for process in await reader.participants() if is_alive(process) and not process.is_here]
        if all(process.since < elapsed for process in others):
            return
        await asyncio.sleep(POLL_SECONDS)
