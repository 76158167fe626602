"""Prints an explanation, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rove.frontier.records import DomainRecord, Exclusion, UrlRecord
from rove.frontier.retries import Retry
from rove.inspect.explain import SCOPES, Explanation, due_in
from rove.inspect.request_rows import DELAY_REASONS, outcome_text, request_json, settlement_text
from rove.inspect.url_facts import UrlHistory
from rove.model.ledger import RequestRow
from rove.model.urls import UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from rove.notation.harmless import one_line
from rove.notation.humanize import counted, iso_time, precise, seconds_text, times, utc_text
from rove.policy.scope import SeedScope
from rove.policy.traps import REFUSED

_STATUSES = {
    RobotsStatus.RULES: "has rules",
    RobotsStatus.NONE: "there is none: everything is allowed",
    RobotsStatus.UNREACHABLE: "could not be fetched: nothing else is requested until it can",
    RobotsStatus.NOT_KEPT: "is read at every visit: its domain has had too many different ones to keep them",
}


def as_lines(explanation: Explanation) -> list[str]:
    """Return what `explain` prints for people: the answer, then everything that it rests on."""
    lines = [f"{explanation.url.text} {explanation.sentence}.", ""]
    for name, values in parts(explanation):
        for value in values:
            lines.append(f"{name:<14}{value}")
            name = ""
    return lines


def parts(explanation: Explanation) -> Iterator[tuple[str, list[str]]]:
    """Yield everything that an answer rests on: names and lines."""
    yield "url", _canonical(explanation)
    yield "domain", [f"{explanation.url.domain_name} (host {explanation.url.host})"]
    yield "excluded", _exclusion(explanation)
    yield "scope", _scope(explanation)
    yield "file type", _file_type(explanation)
    yield "trap signs", _trap(explanation)
    yield "robots.txt", _robots(explanation)
    yield "delay", _delays(explanation)
    yield "next visit", _next_visit(explanation)
    yield "site", [_site(explanation.facts.history)]
    yield "state", [_state(explanation.facts.record)]
    yield "history", _history(explanation)


def _canonical(explanation: Explanation) -> list[str]:
    if explanation.given == explanation.url.text:
        return [explanation.url.text]
    lines = [explanation.url.text, f"canonical form of {one_line(explanation.given)}"]
    if explanation.ignored:
        lines.append(f"without {', '.join(map(one_line, explanation.ignored))}")
    return lines


def _exclusion(explanation: Explanation) -> list[str]:
    if explanation.exclusion is not None:
        return [f"yes, by {exclusion_text(explanation.exclusion)}"]
    domain = explanation.facts.domain
    if domain is not None and domain.is_excluded:
        return ["yes, with its whole domain"]
    if explanation.lifted is not None:
        return [f"no longer; excluded by {exclusion_text(explanation.lifted)}"]
    return ["no"]


def exclusion_text(exclusion: Exclusion) -> str:
    """Return the pattern of an exclusion, when it held, who made it and why."""
    text = one_line(exclusion.pattern)
    text += f" since {utc_text(exclusion.wall)}" if exclusion.wall > 0 else " since before the crawl"
    if exclusion.lifted_at is not None:
        text += f" until {utc_text(exclusion.lifted_wall)}"
    if exclusion.who:
        text += f", by {one_line(exclusion.who)}"
    if exclusion.lifted_by:
        text += f", lifted by {one_line(exclusion.lifted_by)}"
    return f"{text}: {one_line(exclusion.reason)}" if exclusion.reason else text


def _scope(explanation: Explanation) -> list[str]:
    settings, record = explanation.facts.settings, explanation.facts.record
    if record is not None:
        limit = "no limit" if settings.max_depth is None else f"at most {settings.max_depth}"
        seed = "a seed, " if record.is_seed else ""
        lines = [f"{seed}depth {record.depth} ({limit})"]
    elif settings.max_depth is None:
        lines = ["links are followed to any depth"]
    else:
        lines = [f"links are followed to depth {settings.max_depth}"]
    if settings.scope is not SeedScope.ANYWHERE:
        is_in = "in scope" if explanation.is_in_scope else "out of scope"
        lines.append(f"{is_in}: links are followed only into {SCOPES[settings.scope]}")
    return lines


def _file_type(explanation: Explanation) -> list[str]:
    """Return no lines for pages."""
    if not explanation.file_type:
        return []
    return [f".{explanation.file_type}: links to such files are not taken (--file-types, --skip-extension)"]


def _trap(explanation: Explanation) -> list[str]:
    """Return no lines for nearly all URLs."""
    if not explanation.trap_signs:
        return []
    effect = f"it waits like a URL that is {counted(explanation.penalty, 'link')} deeper"
    if explanation.penalty >= REFUSED:
        effect = "a link to it is not accepted"
    return [*(f"{sign.what} ({sign.penalty})" for sign in explanation.trap_signs), effect]


def _robots(explanation: Explanation) -> list[str]:
    record = explanation.facts.origin
    if record is None:
        return [f"never requested from {explanation.url.origin}", *_wanted(explanation)]
    failures = f" ({record.failures} failures in a row)" if record.failures > 1 else ""
    return [
        _STATUSES[record.status] + failures,
        *_rule(explanation, record),
        *_robots_age(record, explanation.now),
        *_wanted(explanation),
    ]


def _wanted(explanation: Explanation) -> list[str]:
    wanted = explanation.facts.wanted_robots
    if wanted is None:
        return []
    when = "; they wait for it" if wanted.state is UrlState.PENDING else ""
    return [f"the robots.txt of other domains redirects to it{when}"]


def _rule(explanation: Explanation, record: OriginRecord) -> list[str]:
    is_allowed, rule = explanation.robots
    if rule is not None:
        verb = "allows" if is_allowed else "forbids"
        return [f"line {rule.line} {verb} it: {one_line(rule.text)} (User-agent: {rule.group})"]
    return ["no line applies to this URL: it is allowed"] if record.status is RobotsStatus.RULES else []


def _robots_age(record: OriginRecord, now: float) -> list[str]:
    requested = f"requested {utc_text(now - record.age)}, {seconds_text(record.age)} ago; "
    requested += (
        f"next request in {seconds_text(record.valid_for)} at the earliest"
        if record.valid_for > 0
        else "expired: requested again before the next page"
    )
    if record.waits_for:
        return [requested, *_waits(record)]
    if record.source and record.source != f"{record.origin}/robots.txt":
        return [requested, f"redirected to {one_line(record.source)}"]
    return [requested]


def _waits(record: OriginRecord) -> list[str]:
    return [
        f"redirected to {one_line(record.waits_for)}, whose answer applies here too",
        "rove requests that one in a visit to its own domain: explain it to see when",
    ]


def _delays(explanation: Explanation) -> list[str]:
    (source, seconds), *others = explanation.delays.items()
    lines = [f"{precise(seconds)}: {DELAY_REASONS[source]}"]
    if explanation.is_left_alone:
        lines.append("a Crawl-delay of more than a day: rove does not visit the domain")
    lines += [f"(shorter: {precise(seconds)}, {DELAY_REASONS[source]})" for source, seconds in others]
    domain = explanation.facts.domain
    if domain is not None and domain.pace.failures:
        lines.append(f"{counted(domain.pace.failures, 'visit')} in a row without an answer")
    return lines


def _next_visit(explanation: Explanation) -> list[str]:
    domain = explanation.facts.domain
    if domain is None:
        return ["the domain was never visited"]
    if explanation.exclusion is not None or domain.is_excluded or explanation.is_left_alone:
        return ["none"]
    if domain.is_leased:
        return ["in progress"]
    seconds = due_in(domain)
    when = (
        f"not before {utc_text(explanation.now + seconds)}, in {seconds_text(seconds)}"
        if seconds > 0
        else "possible now"
    )
    if domain.ready_in is None:
        return [f"{when}, but none is planned"]
    lines = [when, f"{counted(domain.pending, 'URL')} pending; a visit fetches one page"]
    return lines if explanation.facts.is_running else [*lines, "the crawl is not running"]


def _site(history: UrlHistory) -> str:
    """Return how often the domain was requested and whether it answers, robots.txt included."""
    if not history.domain_requests:
        return "never requested"
    asked = f"requested {times(history.domain_requests)}"
    if history.domain_answers == history.domain_requests:
        return f"{asked}, always answered"
    errors = ", ".join(f"{one_line(error)} {count:,}" for error, count in Counter(history.domain_errors).most_common())
    answered = f"answered {times(history.domain_answers)}" if history.domain_answers else "no answer"
    return f"{asked}, {answered} ({errors})"


def _state(record: UrlRecord | None) -> str:
    if record is None:
        return "not known"
    state = record.state.name.lower() + (f" ({one_line(record.reason)})" if record.reason else "")
    return f"{state}, {counted(record.attempts, 'failed attempt')}" if record.attempts else state


def _history(explanation: Explanation) -> list[str]:
    history = explanation.facts.history
    if not history.requests:
        return ["never requested"]
    retries = [f"tried again on {retry_text(retry)}" for retry in explanation.facts.retries]
    shown = len(history.newest)
    more = f"; the last {shown}:" if shown < history.requests else ""
    return [f"{counted(history.requests, 'request')}{more}", *map(_request_line, history.newest), *retries]


def retry_text(retry: Retry) -> str:
    """Return when a retry was asked for, by whom, and for which URLs."""
    options = f": {one_line(text)}" if (text := str(retry.filter)) else ""
    return f"{utc_text(retry.wall)} by {one_line(retry.who)}{options}"


def retry_json(retry: Retry) -> dict[str, Any]:
    """Return the JSON object of a retry."""
    wanted = retry.filter
    return {
        "at": iso_time(retry.wall),
        "who": retry.who,
        "urls": retry.urls,
        "error": wanted.error or None,
        "status": wanted.status,
        "domain": wanted.domain_name or None,
        "seeds": wanted.only_seeds,
        "seed_file": wanted.source or None,
    }


def _request_line(row: RequestRow) -> str:
    what = f"{utc_text(row.started)}  {one_line(outcome_text(row)):<18}  {row.kind.value:<7}  visit {row.visit}"
    notes = (settlement_text(row), f"-> {one_line(row.target)}" if row.target else "")
    return "  ".join((what, *(note for note in notes if note)))


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return the object that `explain --json` prints."""
    facts, url, exclusion = explanation.facts, explanation.url, explanation.exclusion
    delays = [(source.value, seconds) for source, seconds in explanation.delays.items()]
    return {
        "url": url.text,
        "given": explanation.given,
        "verdict": explanation.verdict.value,
        "sentence": f"{url.text} {explanation.sentence}.",
        "at": iso_time(explanation.now),
        "running": facts.is_running,
        "domain": url.domain_name,
        "host": url.host,
        "origin": url.origin,
        "exclusion": None if exclusion is None else exclusion_json(exclusion),
        "scope": {
            "max_depth": facts.settings.max_depth,
            "scope": facts.settings.scope,
            "in_scope": explanation.is_in_scope,
            "domain_known": facts.domain is not None and facts.domain.has_urls,
        },
        "dropped": list(explanation.ignored),
        "file_type": explanation.file_type or None,
        "trap": {
            "penalty": explanation.penalty,
            "refused": explanation.penalty >= REFUSED,
            "signs": [{"what": sign.what, "penalty": sign.penalty} for sign in explanation.trap_signs],
        },
        "robots": _robots_json(explanation),
        "delay": {
            "seconds": delays[0][1],
            "from": delays[0][0],
            "all": dict(delays),
            "leaves_alone": explanation.is_left_alone,
            "failures": facts.domain.pace.failures if facts.domain else 0,
        },
        "next_visit": None if facts.domain is None else _domain_json(facts.domain),
        "record": None if facts.record is None else _record_json(facts.record),
        "requests": facts.history.requests,
        "domain_requests": facts.history.domain_requests,
        "domain_answers": facts.history.domain_answers,
        "domain_errors": dict(facts.history.domain_errors),
        "history": [request_json(row) for row in facts.history.newest],
        "retries": [retry_json(retry) for retry in facts.retries],
    }


def _domain_json(domain: DomainRecord) -> dict[str, Any]:
    return {
        "ready_in_s": domain.ready_in,
        "free_in_s": domain.free_in,
        "leased": domain.is_leased,
        "excluded": domain.is_excluded,
        "capped": domain.is_capped,
        "pending": domain.pending,
    }


def _record_json(record: UrlRecord) -> dict[str, Any]:
    return {
        "state": record.state.name.lower(),
        "reason": record.reason or None,
        "depth": record.depth,
        "attempts": record.attempts,
        "visit": record.visit,
    }


def _robots_json(explanation: Explanation) -> dict[str, Any]:
    record, (is_allowed, rule) = explanation.facts.origin, explanation.robots
    return {
        "status": "never-asked" if record is None else record.status.value,
        "allowed": is_allowed,
        "rule": None if rule is None else {"line": rule.line, "text": rule.text, "group": rule.group},
        "asked": None if record is None else iso_time(explanation.now - record.age),
        "age_s": None if record is None else round(record.age, 3),
        "valid_for_s": None if record is None else round(record.valid_for, 3),
        "source": (record.source or None) if record else None,
        "waits_for": (record.waits_for or None) if record else None,
        "failures": record.failures if record else 0,
    }


def exclusion_json(exclusion: Exclusion) -> dict[str, Any]:
    """Return the JSON object of an exclusion."""
    return {
        "pattern": exclusion.pattern,
        "since": iso_time(exclusion.wall) if exclusion.wall > 0 else None,
        "who": exclusion.who or None,
        "reason": exclusion.reason or None,
        "lifted": None if exclusion.lifted_at is None else iso_time(exclusion.lifted_wall),
        "lifted_by": exclusion.lifted_by or None,
    }
