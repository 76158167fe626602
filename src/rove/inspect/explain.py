"""Would rove fetch a URL now, and why or why not? Draws a verdict from the facts about the URL.

The gate decides, here as in a crawl; this module puts its decisions into sentences. It is a pure function of the
records that url_facts.py reads. explain_text.py prints the explanation.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rove.frontier.backends import policy_of
from rove.frontier.records import DomainRecord, Exclusion, UrlRecord
from rove.inspect.delays import delays_of
from rove.inspect.lookup import url_given
from rove.inspect.url_facts import UrlFacts
from rove.model.ledger import DelaySource
from rove.model.reasons import BlockReason, is_not_stored_by_rules, is_rejected_by_rules
from rove.model.urls import NotAccepted, UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from rove.notation.harmless import one_line
from rove.notation.humanize import counted, seconds_text, utc_text
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Allowed, Blocked, Gate, Held, NeedsRobots, Refusal, Verdict
from rove.policy.ports import BAD_PORTS, port_of
from rove.policy.robots import Rule, Rules
from rove.policy.robots_lines import MAX_CRAWL_DELAY
from rove.policy.rules import RuledOut, needs_source
from rove.policy.scope import ScopeRoots, SeedScope
from rove.policy.traps import Sign, signs
from rove.urls.canonical import NO_IDS, CrawlUrl

_CAPPED = "its domain has reached --max-pages-per-domain"
_LEFT_ALONE = "its domain asks for a Crawl-delay of more than a day"
_ONCE = "a URL is fetched only once"
SCOPES = {
    SeedScope.DOMAIN: "the domains of the seeds",
    SeedScope.HOST: "the hosts of the seeds",
    SeedScope.PATH: "the directories of the seeds",
}
"""What `--scope` follows links into."""
_ANOTHER_SITE = "https://another-site.invalid/"
"""Stands for any page that might link to a URL."""


class UrlVerdict(enum.StrEnum):
    """The answer of `explain --json`."""

    FETCH = "would-be-fetched"
    HELD = "waits-for-robots"
    """robots.txt could not be fetched."""
    FORBIDDEN = "forbidden-by-robots"
    EXCLUDED = "excluded"
    LEFT_ALONE = "left-alone"
    """Its domain asks for a Crawl-delay of more than a day."""
    CAPPED = "capped"
    """Its domain has reached the maximum number of pages."""
    FETCHED = "fetched"
    REDIRECTED = "redirected"
    BLOCKED = "blocked"
    RULED_OUT = "rejected-by-rule"
    FAILED = "failed"
    ACCEPTED = "unknown-would-be-accepted"
    REFUSED = "unknown-would-be-refused"


_Answer = tuple[UrlVerdict, str]
"""A verdict, and the sentence for people, which continues after the URL."""


class RobotsAnswer(NamedTuple):
    """Whether the robots.txt of a URL's origin allows the URL."""

    is_allowed: bool | None
    """None if that is not known."""
    rule: Rule | None = None
    """The line that decides; None if no line applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer and everything that it rests on."""

    given: str
    url: CrawlUrl
    ignored: Sequence[str]
    """Parameters of the given URL that its canonical form leaves out."""
    file_type: str
    """The URL's extension if links to it are not taken because of that, else ''."""
    trap_signs: Sequence[Sign]
    facts: UrlFacts
    now: float
    """Wall-clock seconds of the answer."""
    verdict: UrlVerdict
    sentence: str
    """The verdict for people; it continues after the URL."""
    exclusion: Exclusion | None
    """The exclusion in force."""
    lifted: Exclusion | None
    """The last exclusion that was lifted."""
    robots: RobotsAnswer
    delays: Mapping[DelaySource, float]
    """The reasons to leave the domain alone after a visit, in seconds. The longest comes first and is in force."""

    @property
    def penalty(self) -> int:
        """How many links deeper the URL would count if a page linked to it."""
        return sum(sign.penalty for sign in self.trap_signs)

    @property
    def is_in_scope(self) -> bool:
        """Whether a link to it would be in the scope of the seeds."""
        return _is_in_scope(self.url, self.facts)

    @property
    def is_left_alone(self) -> bool:
        """Whether the domain asks for a Crawl-delay of more than a day, so that rove does not visit it."""
        return self.facts.crawl_delay > MAX_CRAWL_DELAY


def explain_url(given: str, url: CrawlUrl, facts: UrlFacts, *, now: float) -> Explanation:
    """Return whether a URL would be fetched, and why; `now` is wall-clock seconds."""
    covering = [exclusion for exclusion in facts.exclusions if Exclusions([exclusion.pattern]).covers(url.host)]
    in_force = [exclusion for exclusion in covering if exclusion.lifted_at is None]
    lifted = [exclusion for exclusion in covering if exclusion.lifted_at is not None]
    year = time.gmtime(now).tm_year
    patterns = Exclusions(exclusion.pattern for exclusion in in_force)
    file_types = facts.settings.skipped_file_types
    gate = Gate(
        patterns, max_depth=facts.settings.max_depth, file_types=file_types, year=year, rules=facts.settings.rules
    )
    robots = _robots(url, facts.origin)
    verdict, sentence = _answer(url, facts, robots, gate)
    in_full = url_given(given, NO_IDS.in_full).text
    return Explanation(
        given=given,
        url=url,
        ignored=[] if in_full == url.text else facts.settings.ignored_params.names_in(in_full),
        file_type=file_types.extension(url.text),
        trap_signs=signs(url.text, year),
        facts=facts,
        now=now,
        verdict=verdict,
        sentence=sentence,
        exclusion=in_force[-1] if in_force else None,
        lifted=lifted[-1] if lifted else None,
        robots=robots,
        delays=_delays(facts),
    )


def _robots(url: CrawlUrl, origin: OriginRecord | None) -> RobotsAnswer:
    """Read a copy of robots.txt even if it has expired."""
    if origin is None or origin.status in (RobotsStatus.UNREACHABLE, RobotsStatus.NOT_KEPT):
        return RobotsAnswer(is_allowed=None)
    if origin.status is RobotsStatus.NONE:
        return RobotsAnswer(is_allowed=True)
    rules = Rules(origin.body)
    return RobotsAnswer(rules.allows(url.text), rules.deciding_rule(url.text))


def _delays(facts: UrlFacts) -> dict[DelaySource, float]:
    domain, last = facts.domain, facts.history.last_of_domain
    if domain is None:
        return delays_of(facts.settings.delay, facts.crawl_delay)
    in_force = None if last is None or domain.free_in <= 0 else (last.delay_from, last.delay)
    return delays_of(facts.settings.delay, facts.crawl_delay, domain.pace, in_force)


def due_in(domain: DomainRecord | None) -> float:
    """Return the seconds until a domain may be visited, 0 if it may be visited now."""
    if domain is None:
        return 0.0
    return max(0.0, domain.free_in if domain.ready_in is None else domain.ready_in)


def _answer(url: CrawlUrl, facts: UrlFacts, robots: RobotsAnswer, gate: Gate) -> _Answer:
    domain, record = facts.domain, facts.record
    verdict = gate.judge(
        url,
        facts.origin,
        crawl_delay=domain.crawl_delay if domain else 0.0,
        depth=None if record is None else record.depth,
    )
    if verdict == Blocked(BlockReason.EXCLUDED) or (domain is not None and domain.is_excluded):
        if record is not None and record.state is UrlState.DONE:
            return UrlVerdict.EXCLUDED, f"is excluded, but {_fetched(facts)}"
        return UrlVerdict.EXCLUDED, "is excluded and would not be fetched"
    if record is None:
        return _unknown(url, facts, verdict, gate)
    if record.state is UrlState.PENDING:
        return _pending(facts, robots, verdict)
    if record.state is UrlState.BLOCKED:
        return _blocked(facts, record, robots, verdict)
    return _settled(facts, record)


def _pending(facts: UrlFacts, robots: RobotsAnswer, verdict: Verdict) -> _Answer:
    if verdict == Blocked(BlockReason.CRAWL_DELAY):
        return UrlVerdict.LEFT_ALONE, f"would not be fetched: {_LEFT_ALONE}"
    if facts.domain is not None and facts.domain.is_capped:
        return UrlVerdict.CAPPED, f"would not be fetched: {_CAPPED}"
    match verdict:
        case Blocked(reason=reason) if is_rejected_by_rules(reason):
            return UrlVerdict.RULED_OUT, f"would not be fetched: {one_line(reason)}"
        case Blocked():
            return UrlVerdict.FORBIDDEN, "would not be fetched: robots.txt forbids it"
        case Held(seconds=seconds):
            why = "robots.txt could not be fetched"
            if facts.origin is not None and facts.origin.waits_for:
                why = f"robots.txt redirects to {one_line(facts.origin.waits_for)}, which is not known"
            return UrlVerdict.HELD, f"would not be fetched now: {why}; rove tries again in {seconds_text(seconds)}"
        case Allowed():
            return UrlVerdict.FETCH, f"would be fetched {_when(facts)}"
        case NeedsRobots():
            if facts.origin is not None and robots.is_allowed is False:
                return UrlVerdict.FORBIDDEN, (
                    f"would not be fetched: robots.txt forbade it {seconds_text(facts.origin.age)} ago; "
                    "rove fetches robots.txt again before it decides"
                )
            return UrlVerdict.FETCH, (
                f"would be fetched {_when(facts)}, if robots.txt, which is fetched first, allows it"
            )


def _when(facts: UrlFacts) -> str:
    domain = facts.domain
    if domain is not None and domain.is_leased:
        when = "in the current visit to its domain or in a later one"
    else:
        seconds = due_in(domain)
        due = f"in {seconds_text(seconds)}" if seconds > 0 else "which is now"
        when = f"when its domain is due, {due}"
    return when if facts.is_running else f"{when} (but the crawl is not running)"


def _settled(facts: UrlFacts, record: UrlRecord) -> _Answer:
    reason = one_line(record.reason)
    match record.state:
        case UrlState.REDIRECTED if facts.settling_request is None:
            return UrlVerdict.REDIRECTED, f"was replaced by {reason}"
        case UrlState.REDIRECTED:
            return UrlVerdict.REDIRECTED, f"{_fetched(facts)} and redirects to {reason}"
        case UrlState.FAILED:
            return UrlVerdict.FAILED, f"was given up: {reason or 'it could not be fetched'}"
        case UrlState.READ:
            return UrlVerdict.FETCHED, f"{_fetched(facts)} as a sitemap; {_ONCE}"
        case _:
            return UrlVerdict.FETCHED, f"{_fetched(facts)}; {_ONCE}"


def _blocked(facts: UrlFacts, record: UrlRecord, robots: RobotsAnswer, verdict: Verdict) -> _Answer:
    match record.reason:
        case reason if is_rejected_by_rules(reason):
            match verdict:
                case Blocked(reason=present) if is_rejected_by_rules(present):
                    return UrlVerdict.RULED_OUT, f"was not fetched: {one_line(present)}"
                case _:
                    then = f"was not fetched: {one_line(reason)}; the rules in force take it"
                    return UrlVerdict.RULED_OUT, f"{then}, so it will be pending again"
        case reason if is_not_stored_by_rules(reason):
            return UrlVerdict.RULED_OUT, f"{_fetched(facts)} but {one_line(reason)}"
        case BlockReason.ROBOTS if robots.is_allowed:
            return UrlVerdict.FORBIDDEN, (
                "was not fetched: robots.txt forbade it; the present copy allows it, but rove checks a URL only once"
            )
        case BlockReason.ROBOTS:
            return UrlVerdict.FORBIDDEN, "was not fetched: robots.txt forbids it"
        case BlockReason.CRAWL_DELAY:
            return UrlVerdict.LEFT_ALONE, f"was not fetched: {_LEFT_ALONE}"
        case BlockReason.NOINDEX:
            return UrlVerdict.BLOCKED, f"{_fetched(facts)} but not stored: the page says noindex"
        case BlockReason.USAGE:
            return UrlVerdict.BLOCKED, f"{_fetched(facts)} but not stored: {_usage(facts)}"
        case BlockReason.EXCLUDED:
            return UrlVerdict.BLOCKED, "was not fetched: it was excluded at that time"
        case other:
            return UrlVerdict.BLOCKED, f"was not fetched: {one_line(other) or 'it is blocked'}"


def _usage(facts: UrlFacts) -> str:
    row = facts.settling_request
    stated = "" if row is None else f" ({' '.join(row.usage)}, from {', '.join(row.usage_from)})"
    return f"the crawl is for training, which its site does not want{one_line(stated)}"


def _fetched(facts: UrlFacts) -> str:
    row = facts.settling_request
    return "was fetched" if row is None else f"was fetched on {utc_text(row.started)}"


def _unknown(url: CrawlUrl, facts: UrlFacts, verdict: Verdict, gate: Gate) -> _Answer:
    """Answer for a URL that is not in the frontier: would a link to it be accepted?"""
    start = "is not known to this crawl; a link to it would be"
    refusal = _refusal(url, facts, gate)
    if refusal is not None:
        return UrlVerdict.REFUSED, f"{start} refused{_refusal_text(refusal, url, facts)}"
    accepted = f"{start} accepted"
    if facts.settings.max_depth is not None:
        accepted += f" from pages less than {counted(facts.settings.max_depth, 'link')} away from a seed"
    if verdict == Blocked(BlockReason.CRAWL_DELAY):
        accepted += f", but the URL would not be fetched: {_LEFT_ALONE}"
    elif facts.domain is not None and facts.domain.is_capped:
        accepted += f", but the URL would not be fetched: {_CAPPED}"
    elif verdict == Blocked(BlockReason.ROBOTS):
        accepted += ", but the URL would not be fetched: robots.txt forbids it"
    return UrlVerdict.ACCEPTED, accepted


def _refusal(url: CrawlUrl, facts: UrlFacts, gate: Gate) -> Refusal | None:
    """Return why the gate or the frontier would refuse a link from a seed of another site, None if neither would."""
    admission = gate.admits(url, depth=1, source=url_given(_ANOTHER_SITE, NO_IDS))
    if not isinstance(admission, int):
        return admission
    if not _is_in_scope(url, facts):
        return NotAccepted.OUT_OF_SCOPE
    if facts.domain is None or not facts.domain.has_urls:
        return None
    budget = policy_of(facts.settings).domain_budget
    return (
        NotAccepted.BUDGET
        if facts.domain.pending >= budget.room(facts.crawl_delay, facts.domain.pace.repeats)
        else None
    )


def _is_in_scope(url: CrawlUrl, facts: UrlFacts) -> bool:
    scope = facts.settings.scope
    if scope.needs_roots:
        return ScopeRoots(facts.roots, scope).covers(url.text)
    return scope is SeedScope.ANYWHERE or (facts.domain is not None and facts.domain.has_urls)


def _refusal_text(refusal: Refusal, url: CrawlUrl, facts: UrlFacts) -> str:
    match refusal:
        case RuledOut(numbers=numbers, reason=reason):
            rules = [rule for rule in facts.settings.rules.rules if rule.number in numbers]
            where = " if it is on a page of another site" if any(map(needs_source, rules)) else ""
            return f"{where}: {one_line(reason)}"
        case NotAccepted.OUT_OF_SCOPE:
            return f": only links into {SCOPES[facts.settings.scope]} are followed, and it is in none of them"
        case NotAccepted.TOO_DEEP:
            return ": only seeds are fetched (--max-depth 0)"
        case NotAccepted.BUDGET:
            pending = facts.domain.pending if facts.domain else 0
            return (
                f": its domain already has {counted(pending, 'URL')} pending and no room for more; "
                "only a link nearer to a seed than the last of them would be accepted"
            )
        case NotAccepted.PORT if port_of(url.origin) in BAD_PORTS:
            return f": port {port_of(url.origin)} does not belong to web servers"
        case NotAccepted.PORT:
            return (
                f", unless it is a seed or on a page of {url.host} at the same port: "
                f"port {port_of(url.origin)} is not a usual port of web servers"
            )
        case NotAccepted.FILE_TYPE:
            extension = facts.settings.skipped_file_types.extension(url.text)
            return f", unless it is a seed: links to .{extension} files are not taken"
        case NotAccepted.TRAP:
            return ", unless it is a seed: it looks like a trap"
        case _:
            return f": {refusal}"
