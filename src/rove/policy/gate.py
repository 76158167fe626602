"""May this URL be fetched, and may it enter the frontier? Exclusions, scope and robots.txt, decided without I/O."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rove.model.reasons import BlockReason
from rove.model.urls import NewUrl, NotAccepted
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy import ports
from rove.policy.constants import MAX_REDIRECT_CHAIN
from rove.policy.exclusions import Exclusions
from rove.policy.retry import keeps_failing
from rove.policy.robots import MAX_CRAWL_DELAY, rules_of
from rove.policy.traps import REFUSED, penalty
from rove.urls.canonical import CrawlUrl


@dataclass(frozen=True, slots=True)
class Allowed:
    """Go ahead."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Never."""

    reason: BlockReason


@dataclass(frozen=True, slots=True)
class NeedsRobots:
    """The origin's robots.txt must be asked first."""


@dataclass(frozen=True, slots=True)
class Held:
    """Not now: the origin's robots.txt could not be had."""

    seconds: float
    failing: bool


Verdict = Allowed | Blocked | NeedsRobots | Held


class Gate:
    """The decisions of one crawl."""

    def __init__(
        self, exclusions: Exclusions, *, max_depth: int | None = None, year: int | None = None
    ) -> None:
        """`year`: the one that it is, which calendars are held against; None: now."""
        self.exclusions = exclusions
        """May be replaced while the crawl goes on."""
        self._max_depth = max_depth
        self._year = datetime.now(UTC).year if year is None else year

    def excludes(self, url: CrawlUrl) -> bool:
        """Whether a URL's host is never to be touched."""
        return self.exclusions.covers(url.host)

    def may_lead(self, target: CrawlUrl, source: CrawlUrl) -> bool:
        """Whether a robots.txt may send us from one URL to another."""
        return not self.excludes(target) and ports.may_lead(target.origin, source=source.origin)

    def refuses(
        self, url: CrawlUrl, *, depth: int, hops: int = 0, source: CrawlUrl | None = None
    ) -> NotAccepted | None:
        """Why a URL may not enter the frontier, if it may not; `source` led there, None for a seed."""
        if self.exclusions.covers(url.host):
            return NotAccepted.EXCLUDED
        if self._max_depth is not None and depth > self._max_depth:
            return NotAccepted.TOO_DEEP
        if hops > MAX_REDIRECT_CHAIN:
            return NotAccepted.REDIRECTS
        if source is not None and not ports.may_lead(url.origin, source=source.origin):
            return NotAccepted.PORT
        return None

    def admits(
        self, url: CrawlUrl, *, depth: int, hops: int = 0, source: CrawlUrl | None = None
    ) -> int | NotAccepted:
        """The penalty with which a URL that another led to may enter the frontier, or why it may not.

        Seeds are asked about with `refuses`: what a person names is no trap.
        """
        refusal = self.refuses(url, depth=depth, hops=hops, source=source)
        if refusal is not None:
            return refusal
        found = penalty(url.text, self._year)
        return found if found < REFUSED else NotAccepted.TRAP

    def admitted(
        self,
        links: Sequence[CrawlUrl],
        *,
        depth: int,
        source: CrawlUrl,
        refused: MutableMapping[str, int],
    ) -> list[NewUrl]:
        """The links of a page that may enter the frontier, to be offered to it; counts in `refused` why others may not.

        What `admits` says of each link, in one pass, as a page has sixty: what depends on the origin is asked once.
        """
        offers: list[NewUrl] = []
        refusals: dict[str, NotAccepted | None] = {}
        year = self._year
        for link in links:
            origin = link.origin
            if origin in refusals:
                refusal = refusals[origin]
            else:
                refusal = refusals[origin] = self.refuses(link, depth=depth, source=source)
            if refusal is None:
                found = penalty(link.text, year)
                if found < REFUSED:
                    offers.append(link.new_url(depth=depth, penalty=found))
                    continue
                refusal = NotAccepted.TRAP
            refused[refusal] = refused.get(refusal, 0) + 1
        return offers

    def judge(
        self, url: CrawlUrl, origin: OriginRecord | None, *, crawl_delay: float = 0.0
    ) -> Verdict:
        """Whether a URL may be asked for now, given what is known of its origin's robots.txt.

        `crawl_delay` is the longest that the origins of its domain ask for.
        """
        if self.exclusions.covers(url.host):
            return Blocked(BlockReason.EXCLUDED)
        if origin is not None and origin.crawl_delay > MAX_CRAWL_DELAY and origin.valid_for <= 0:
            return NeedsRobots()  # it may have changed its mind
        if max(crawl_delay, origin.crawl_delay if origin else 0.0) > MAX_CRAWL_DELAY:
            return Blocked(BlockReason.CRAWL_DELAY)
        if origin is None or origin.valid_for <= 0:
            return NeedsRobots()
        match origin.status:
            case RobotsStatus.UNREACHABLE:
                return Held(origin.valid_for, keeps_failing(origin.failures))
            case RobotsStatus.NONE:
                return Allowed()
            case RobotsStatus.RULES:
                rules = rules_of(origin.body)
                return Allowed() if rules.allows(url.text) else Blocked(BlockReason.ROBOTS)
