"""Would rove fetch a URL now, and why or why not: all that decides about it, gathered, and a verdict drawn from it.

The verdict is a pure function of the records that known.py gathers: it asks nothing and changes nothing. How it is told
is in explain_text.py.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rove.config import Settings
from rove.frontier.contract import DomainRecord, Exclusion, UrlRecord
from rove.humanize import seconds_text
from rove.inspect.known import UrlFacts
from rove.inspect.pages import url_given
from rove.inspect.requests import one_line, utc_text
from rove.model.ledger import DelaySource, RequestKind, RequestRow
from rove.model.reasons import BlockReason
from rove.model.urls import UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.exclusions import Exclusions
from rove.policy.pacing import pause_after, pause_for_repeats
from rove.policy.ports import BAD_PORTS, WEB_PORTS, port_of
from rove.policy.robots import MAX_CRAWL_DELAY, Rule, Rules
from rove.policy.traps import REFUSED, Sign, signs
from rove.urls.canonical import CrawlUrl

_CAPPED = "its domain has had as many pages as --max-pages-per-domain allows"


class ExplainVerdict(enum.StrEnum):
    """What the answer comes to, for programs."""

    FETCH = "would-be-fetched"
    HELD = "waits-for-robots"
    """robots.txt cannot be had."""
    FORBIDDEN = "forbidden-by-robots"
    EXCLUDED = "excluded"
    LEFT_ALONE = "left-alone"
    """Its domain asks for a Crawl-delay of more than a day."""
    CAPPED = "capped"
    """Its domain has had as many pages as it may have."""
    FETCHED = "fetched"
    REDIRECTED = "redirected"
    BLOCKED = "blocked"
    FAILED = "failed"
    ACCEPTED = "unknown-would-be-accepted"
    REFUSED = "unknown-would-be-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Robots:
    """What the robots.txt of a URL's origin says of it, as far as it is known."""

    record: OriginRecord | None
    """None: it was never asked for."""
    is_allowed: bool | None
    """None: it cannot be told."""
    rule: Rule | None
    """The line that decides, None where none does."""

    @property
    def is_valid(self) -> bool:
        """Whether the record still holds."""
        return self.record is not None and self.record.valid_for > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """One reason to leave a domain alone after a visit."""

    seconds: float
    source: DelaySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer, and all that it rests on."""

    given: str
    url: CrawlUrl
    dropped: Sequence[str]
    """Parameters of the URL that was given that the canonical form leaves out."""
    trap_signs: Sequence[Sign]
    known: UrlFacts
    now: float
    """Wall-clock seconds when this was so."""
    verdict: ExplainVerdict
    sentence: str
    """What the verdict says of the URL: it goes on where the URL ends."""
    exclusion: Exclusion | None
    """The one in force."""
    lifted: Exclusion | None
    """The last one that is not any more."""
    robots: Robots
    delays: Sequence[Delay]
    """Longest first: that one is in force."""
    leaves_alone: bool
    """The domain asks for a Crawl-delay of more than a day: nothing is asked of it."""

    @property
    def penalty(self) -> int:
        """How far behind other links it would come, if a page names it."""
        return sum(sign.penalty for sign in self.trap_signs)


def explanation(given: str, url: CrawlUrl, known: UrlFacts, *, now: float) -> Explanation:
    """Whether a URL would be fetched, from what is known of it; `now` is wall-clock seconds."""
    covering = [
        exclusion
        for exclusion in known.exclusions
        if Exclusions([exclusion.pattern]).covers(url.host)
    ]
    in_force = [exclusion for exclusion in covering if exclusion.lifted_at is None]
    lifted = [exclusion for exclusion in covering if exclusion.lifted_at is not None]
    robots = robots_for(url, known.origin)
    leaves_alone = _crawl_delay(known) > MAX_CRAWL_DELAY
    is_excluded = bool(in_force) or (known.domain is not None and known.domain.is_excluded)
    trap_signs = signs(url.text, time.gmtime(now).tm_year)
    verdict, sentence = _verdict(
        url,
        known,
        robots,
        is_excluded=is_excluded,
        leaves_alone=leaves_alone,
        is_trap=sum(sign.penalty for sign in trap_signs) >= REFUSED,
    )
    return Explanation(
        given=given,
        url=url,
        dropped=_dropped(given, url, known.settings),
        trap_signs=trap_signs,
        known=known,
        now=now,
        verdict=verdict,
        sentence=sentence,
        exclusion=in_force[-1] if in_force else None,
        lifted=lifted[-1] if lifted else None,
        robots=robots,
        delays=delays_of(known),
        leaves_alone=leaves_alone,
    )


def robots_for(url: CrawlUrl, origin: OriginRecord | None) -> Robots:
    """What an origin's record says of a URL; a copy that is out of date still says something."""
    if origin is None or origin.status is RobotsStatus.UNREACHABLE:
        return Robots(record=origin, is_allowed=None, rule=None)
    if origin.status is RobotsStatus.NONE:
        return Robots(record=origin, is_allowed=True, rule=None)
    rules = Rules(origin.body)
    return Robots(
        record=origin, is_allowed=rules.allows(url.text), rule=rules.deciding_rule(url.text)
    )


def delays_of(known: UrlFacts) -> list[Delay]:
    """The delays that a domain has, longest first; of equal ones, the more ordinary."""
    base = max(known.settings.delay, _crawl_delay(known))
    found = {DelaySource.DELAY: known.settings.delay, DelaySource.CRAWL_DELAY: _crawl_delay(known)}
    domain, last = known.domain, known.past.last_of_domain
    if domain is not None:
        found[DelaySource.BACKOFF] = domain.pace.backoff
        if domain.pace.failures:
            found[DelaySource.FAILURES] = pause_after(domain.pace.failures, base)
        found[DelaySource.REPEATS] = pause_for_repeats(domain.pace.repeats, base)
    if last is not None and domain is not None and domain.free_in > 0:
        found[last.delay_from] = max(last.delay, found.get(last.delay_from, 0.0))
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return [
        Delay(seconds=seconds, source=source)
        for source, seconds in ordered
        if seconds > 0 or source is DelaySource.DELAY
    ]


def _crawl_delay(known: UrlFacts) -> float:
    return max(
        known.domain.crawl_delay if known.domain else 0.0,
        known.origin.crawl_delay if known.origin else 0.0,
    )


def _dropped(given: str, url: CrawlUrl, settings: Settings) -> list[str]:
    in_full = url_given(given).text
    return [] if in_full == url.text else settings.ignored_params.names_in(in_full)


def _verdict(
    url: CrawlUrl,
    known: UrlFacts,
    robots: Robots,
    *,
    is_excluded: bool,
    leaves_alone: bool,
    is_trap: bool,
) -> tuple[ExplainVerdict, str]:
    if is_excluded:
        return ExplainVerdict.EXCLUDED, _excluded(known)
    if known.record is None:
        return _unknown(url, known, robots, leaves_alone=leaves_alone, is_trap=is_trap)
    if known.record.state is not UrlState.PENDING:
        return _settled(known, known.record, robots)
    if leaves_alone:
        return ExplainVerdict.LEFT_ALONE, "would not be fetched: its domain asks to be left alone"
    if known.domain is not None and known.domain.is_capped:
        return ExplainVerdict.CAPPED, f"would not be fetched: {_CAPPED}"
    return _by_robots(robots, known)


def _excluded(known: UrlFacts) -> str:
    if known.record is not None and known.record.state is UrlState.DONE:
        return f"is excluded; it {_fetched(known)} before"
    return "is excluded: it would not be fetched"


def _settled(known: UrlFacts, record: UrlRecord, robots: Robots) -> tuple[ExplainVerdict, str]:
    reason = one_line(record.reason)
    match record.state:
        case UrlState.DONE:
            return ExplainVerdict.FETCHED, f"{_fetched(known)}; a URL is fetched once"
        case UrlState.READ:
            return ExplainVerdict.FETCHED, f"{_fetched(known)} as a sitemap; a URL is fetched once"
        case UrlState.REDIRECTED:
            if _settling(known) is None:
                return ExplainVerdict.REDIRECTED, f"gave way to {reason}"
            return ExplainVerdict.REDIRECTED, f"{_fetched(known)} and leads to {reason}"
        case UrlState.FAILED:
            return ExplainVerdict.FAILED, f"is given up: {reason or 'it could not be fetched'}"
    if record.reason == BlockReason.ROBOTS:
        if robots.is_allowed and robots.record is not None:
            return ExplainVerdict.FORBIDDEN, (
                "is not fetched: robots.txt forbade it when its turn came; "
                "the copy held now allows it, but a URL is judged once"
            )
        return ExplainVerdict.FORBIDDEN, "is not fetched: robots.txt forbids it"
    if record.reason == BlockReason.CRAWL_DELAY:
        return ExplainVerdict.LEFT_ALONE, "is not fetched: its domain asks to be left alone"
    if record.reason == BlockReason.NOINDEX:
        return ExplainVerdict.BLOCKED, f"{_fetched(known)} and not kept: the page says noindex"
    if record.reason == BlockReason.EXCLUDED:
        return ExplainVerdict.BLOCKED, "is not fetched: it was excluded when its turn came"
    return ExplainVerdict.BLOCKED, f"is not fetched: {reason or 'it is blocked'}"


def _fetched(known: UrlFacts) -> str:
    row = _settling(known)
    return "was fetched" if row is None else f"was fetched on {utc_text(row.started)}"


def _settling(known: UrlFacts) -> RequestRow | None:
    """The request that settled the URL, if it is among the newest."""
    visit = known.record.visit if known.record else None
    for row in reversed(known.past.newest):
        if row.visit == visit and row.kind is not RequestKind.ROBOTS:
            return row
    return None


def _by_robots(robots: Robots, known: UrlFacts) -> tuple[ExplainVerdict, str]:
    """What is to be said of a URL that waits."""
    record = robots.record
    if record is not None and robots.is_allowed is False:
        if robots.is_valid:
            return ExplainVerdict.FORBIDDEN, "would not be fetched: robots.txt forbids it"
        return ExplainVerdict.FORBIDDEN, (
            f"would not be fetched: robots.txt forbade it {seconds_text(record.age)} ago, "
            "but is asked for again first"
        )
    if record is not None and record.status is RobotsStatus.UNREACHABLE and robots.is_valid:
        return ExplainVerdict.HELD, (
            "would not be fetched now: robots.txt could not be had; "
            f"it is asked for again in {seconds_text(record.valid_for)}"
        )
    when = _when(known)
    if robots.is_valid:
        return ExplainVerdict.FETCH, f"would be fetched {when}"
    return (
        ExplainVerdict.FETCH,
        f"would be fetched {when}, if robots.txt, asked for first, allows it",
    )


def _when(known: UrlFacts) -> str:
    domain = known.domain
    if domain is not None and domain.is_leased:
        when = "in the visit that its domain has now, or in a later one"
    else:
        seconds = due_in(domain)
        due = f"in {seconds_text(seconds)}" if seconds > 0 else "which it is"
        when = f"when its domain is due, {due}"
    return when if known.is_running else f"{when} (but the crawl is not running)"


def due_in(domain: DomainRecord | None) -> float:
    """Seconds until a domain may be visited, 0 if it may be now."""
    if domain is None:
        return 0.0
    return max(0.0, domain.free_in if domain.ready_in is None else domain.ready_in)


def _room(known: UrlFacts) -> int:
    """URLs of its domain that may be pending."""
    repeats = known.domain.pace.repeats if known.domain else 0.0
    return known.settings.domain_budget.room(_crawl_delay(known), repeats)


def _unknown(
    url: CrawlUrl, known: UrlFacts, robots: Robots, *, leaves_alone: bool, is_trap: bool
) -> tuple[ExplainVerdict, str]:
    """A URL that is not in the frontier: the gate is asked about it when somebody links to it."""
    start = "is not known to this crawl; it would be"
    settings = known.settings
    if settings.seeds_only and known.domain is None:
        return ExplainVerdict.REFUSED, (
            f"{start} refused: only links into the domains of the seeds are followed, "
            f"and {url.domain_name} is none of them"
        )
    if settings.max_depth == 0:
        return ExplainVerdict.REFUSED, f"{start} refused: only seeds are fetched (--max-depth 0)"
    room = _room(known)
    if known.domain is not None and known.domain.pending >= room:
        return ExplainVerdict.REFUSED, (
            f"{start} refused: its domain has {known.domain.pending:,} URLs pending of room for {room:,}, "
            "unless a page links to it that is nearer to a seed than those that led to the last of them"
        )
    port = port_of(url.origin)
    if port in BAD_PORTS:
        return (
            ExplainVerdict.REFUSED,
            f"{start} refused: port {port} belongs to something else than the web",
        )
    if port not in WEB_PORTS:
        return ExplainVerdict.REFUSED, (
            f"{start} refused, unless as a seed or from a page of {url.host} at the same port: "
            f"port {port} is not one of the web's"
        )
    if is_trap:
        return ExplainVerdict.REFUSED, f"{start} refused, unless as a seed: it looks like a trap"
    accepted = f"{start} accepted from a page that links to it"
    if settings.max_depth is not None:
        accepted += f", at most {settings.max_depth} links from a seed"
    if leaves_alone:
        return (
            ExplainVerdict.ACCEPTED,
            f"{accepted}, but not fetched: its domain asks to be left alone",
        )
    if known.domain is not None and known.domain.is_capped:
        return ExplainVerdict.ACCEPTED, f"{accepted}, but not fetched: {_CAPPED}"
    if robots.is_allowed is False:
        return ExplainVerdict.ACCEPTED, f"{accepted}, but not fetched: robots.txt forbids it"
    return ExplainVerdict.ACCEPTED, accepted
