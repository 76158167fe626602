"""Decides, without I/O, whether a URL may enter the frontier and whether it may be requested now.

Exclusions, scope, ports, file types, trap signs, rules and robots.txt come together here. The decisions are values,
which the visit acts upon and `rove explain` renders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rove.model.languages import Language
from rove.model.reasons import BlockReason
from rove.model.urls import NewUrl, NotAccepted
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy import ports
from rove.policy.constants import MAX_REDIRECT_CHAIN
from rove.policy.exclusions import Exclusions
from rove.policy.expressions.facts import Subject, host_of
from rove.policy.file_types import FileTypes, file_types_with
from rove.policy.languages import OTHER_LANGUAGE, is_in
from rove.policy.retry import keeps_failing
from rove.policy.robots import rules_of
from rove.policy.robots_lines import MAX_CRAWL_DELAY
from rove.policy.rules import NO_RULES, RuledOut, Rules
from rove.policy.traps import REFUSED, penalty
from rove.urls.canonical import CrawlUrl


@dataclass(frozen=True, slots=True)
class Allowed:
    """The URL may be requested now."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The URL must never be requested."""

    reason: str
    """A BlockReason, or the rules that reject it."""


@dataclass(frozen=True, slots=True)
class NeedsRobots:
    """The origin's robots.txt must be fetched first."""


@dataclass(frozen=True, slots=True)
class Held:
    """The URL must wait, because the origin's robots.txt could not be fetched."""

    seconds: float
    failing: bool
    """robots.txt has failed so often that the crawl may end without this URL."""


Verdict = Allowed | Blocked | NeedsRobots | Held
Refusal = NotAccepted | RuledOut
"""Why a link may not enter the frontier."""


class Gate:
    """Makes the decisions of one crawl."""

    def __init__(
        self,
        exclusions: Exclusions,
        *,
        max_depth: int | None = None,
        file_types: FileTypes | None = None,
        languages: Collection[str] = (),
        year: int | None = None,
        rules: Rules = NO_RULES,
    ) -> None:
        """Make the gate of a crawl.

        `file_types` are those whose links are not taken; None means the built-in ones. Links of pages in `languages`
        come first; with none, all are alike. `year` is the current one, with which calendar URLs are compared; None
        reads the clock.
        """
        self.rules = rules
        self.exclusions = exclusions
        """May be replaced while the crawl runs."""
        self._max_depth = max_depth
        self._file_types = file_types_with(()) if file_types is None else file_types
        self._languages = frozenset(languages)
        self._year = datetime.now(UTC).year if year is None else year

    def may_lead(self, target: CrawlUrl, source: CrawlUrl) -> bool:
        """Whether rove may follow a robots.txt redirect from one URL to another."""
        return not self.exclusions.covers(target.host) and ports.may_lead(target.origin, source=source.origin)

    def refuses(
        self, url: CrawlUrl, *, depth: int, hops: int = 0, source: CrawlUrl | None = None
    ) -> NotAccepted | None:
        """Return why a URL may not enter the frontier, None if it may; `source` linked to it, None for a seed."""
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
        self,
        url: CrawlUrl,
        *,
        depth: int,
        hops: int = 0,
        source: CrawlUrl | None = None,
        any_file: bool = False,
        is_sitemap: bool = False,
    ) -> int | Refusal:
        """Return the trap penalty with which a linked URL may enter the frontier, or why it may not.

        `any_file` admits all types of files. Rules do not decide about a sitemap, only about the URLs in it.

        Seeds are checked with `refuses` instead, because a URL that a person
        names is never refused as a trap or for its file type.
        """
        refusal = self.refuses(url, depth=depth, hops=hops, source=source)
        if refusal is not None:
            return refusal
        if not any_file and self._file_types.extension(url.text):
            return NotAccepted.FILE_TYPE
        cost = penalty(url.text, self._year)
        if cost >= REFUSED:
            return NotAccepted.TRAP
        if is_sitemap:
            return cost
        page = source or url
        ruled_out = self._ruled_out(url.text, depth, page, is_own=url.domain == page.domain)
        return cost if ruled_out is None else ruled_out

    def rejects_seed(self, url: CrawlUrl) -> RuledOut | None:
        """Return the rules that reject a seed, None if they do not. A seed counts as a link of its own host."""
        return self._ruled_out(url.text, 0, url, is_own=True)

    def admitted(
        self,
        links: Sequence[CrawlUrl],
        *,
        depth: int,
        source: CrawlUrl,
        own_domains: Collection[int],
        refused: list[tuple[Refusal, CrawlUrl]],
        languages: Sequence[Language] = (),
    ) -> list[NewUrl]:
        """Return the links of a page in these languages that may enter the frontier.

        The others are appended to `refused` with their reasons. Links to other domains than `own_domains` are foreign.
        Decides like `admits`, but in one pass: a page has sixty links, most of them to a few origins.
        """
        new_urls: list[NewUrl] = []
        refusals: dict[str, NotAccepted | None] = {}
        year, extension, has_rules = self._year, self._file_types.extension, self.rules.about_links
        prefers_others = bool(self._languages) and not is_in(languages, self._languages)
        for link in links:
            text, origin = link.text, link.origin
            refusal: Refusal | None
            if origin in refusals:
                refusal = refusals[origin]
            else:
                refusal = refusals[origin] = self.refuses(link, depth=depth, source=source)
            if refusal is None and extension(text):
                refusal = NotAccepted.FILE_TYPE
            elif refusal is None:
                cost = penalty(text, year)
                is_foreign = link.domain not in own_domains
                if cost >= REFUSED:
                    refusal = NotAccepted.TRAP
                elif has_rules:
                    refusal = self._ruled_out(text, depth, source, is_own=not is_foreign)
                if refusal is None:
                    if prefers_others or (cost and self._languages):
                        cost += OTHER_LANGUAGE
                    new_urls.append(link.new_url(depth=depth, penalty=cost, is_foreign=is_foreign))
                    continue
            refused.append((refusal, link))
        return new_urls

    def _ruled_out(self, text: str, depth: int, source: CrawlUrl, *, is_own: bool) -> RuledOut | None:
        if not self.rules.about_links:
            return None
        is_same_host = host_of(text) == source.host
        return self.rules.against_link(Subject(text, depth=depth, same_domain=is_own, same_host=is_same_host))

    def judge(
        self,
        url: CrawlUrl,
        origin: OriginRecord | None,
        *,
        crawl_delay: float = 0.0,
        depth: int | None = None,
    ) -> Verdict:
        """Decide whether a URL may be requested now; `origin` is the robots.txt record of its origin, if there is one.

        `crawl_delay` is the longest Crawl-delay of all origins of the domain. `depth` is None for a URL that no rule
        decides about: a sitemap, or a robots.txt.
        """
        if self.exclusions.covers(url.host):
            return Blocked(BlockReason.EXCLUDED)
        if depth is not None and self.rules.about_links:
            # The rules may have changed since the URL entered the frontier.
            ruled_out = self.rules.against_known(url.text, depth)
            if ruled_out is not None:
                return Blocked(ruled_out.reason)
        if origin is not None and origin.crawl_delay > MAX_CRAWL_DELAY and origin.valid_for <= 0:
            return NeedsRobots()  # the Crawl-delay may be shorter by now
        if max(crawl_delay, origin.crawl_delay if origin else 0.0) > MAX_CRAWL_DELAY:
            return Blocked(BlockReason.CRAWL_DELAY)
        if origin is None or origin.valid_for <= 0:
            return NeedsRobots()
        match origin.status:
            case RobotsStatus.UNREACHABLE | RobotsStatus.NOT_KEPT:
                return Held(origin.valid_for, keeps_failing(origin.failures))
            case RobotsStatus.NONE:
                return Allowed()
            case RobotsStatus.RULES:
                is_allowed = rules_of(origin.body).allows(url.text)
                return Allowed() if is_allowed else Blocked(BlockReason.ROBOTS)
