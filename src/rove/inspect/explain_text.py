"""An explanation as people and as programs read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rove.frontier.contract import Exclusion
from rove.humanize import counted, seconds_text
from rove.inspect.explain import Explanation, due_in
from rove.inspect.pages import iso_time
from rove.inspect.requests import (
    DELAY_REASONS,
    fate_text,
    one_line,
    outcome_text,
    precise,
    request_json,
    utc_text,
)
from rove.model.ledger import RequestRow
from rove.model.visits import OriginRecord, RobotsStatus
from rove.policy.traps import REFUSED

_STATUSES = {
    RobotsStatus.RULES: "has rules",
    RobotsStatus.NONE: "there is none: everything is allowed",
    RobotsStatus.UNREACHABLE: "could not be had: nothing is asked until it can",
}


def as_lines(found: Explanation) -> list[str]:
    """What `explain` prints for people: the verdict, then what it rests on."""
    lines = [f"{found.url.text} {found.sentence}.", ""]
    for name, values in _parts(found):
        for value in values:
            lines.append(f"{name:<14}{value}")
            name = ""
    return lines


def _parts(found: Explanation) -> Iterator[tuple[str, list[str]]]:
    yield "url", _canonical(found)
    yield "domain", [f"{found.url.domain_name} (host {found.url.host})"]
    yield "excluded", _exclusion(found)
    yield "scope", _scope(found)
    yield "trap signs", _trap(found)
    yield "robots.txt", _robots(found)
    yield "delay", _delays(found)
    yield "next visit", _next_visit(found)
    yield "state", [_state(found)]
    yield "history", _history(found)


def _canonical(found: Explanation) -> list[str]:
    if found.given == found.url.text:
        return [found.url.text]
    lines = [found.url.text, f"canonical form of {one_line(found.given)}"]
    if found.dropped:
        lines.append(f"without {', '.join(map(one_line, found.dropped))}")
    return lines


def _exclusion(found: Explanation) -> list[str]:
    if found.exclusion is not None:
        return [f"yes, by {exclusion_text(found.exclusion)}"]
    domain = found.known.domain
    if domain is not None and domain.is_excluded:
        return ["yes, with its whole domain"]
    if found.lifted is not None:
        return [f"no more; it was, by {exclusion_text(found.lifted)}"]
    return ["no"]


def exclusion_text(exclusion: Exclusion) -> str:
    """Which exclusion, since when, until when, by whom and why."""
    parts = [one_line(exclusion.pattern)]
    parts.append(
        f"since {utc_text(exclusion.wall)}" if exclusion.wall > 0 else "since before any request"
    )
    if exclusion.lifted_at is not None:
        parts.append(f"until {utc_text(exclusion.lifted_wall)}")
    text = " ".join(parts)
    if exclusion.who:
        text += f", by {one_line(exclusion.who)}"
    if exclusion.lifted_by:
        text += f", lifted by {one_line(exclusion.lifted_by)}"
    return f"{text}: {one_line(exclusion.reason)}" if exclusion.reason else text


def _scope(found: Explanation) -> list[str]:
    settings, record = found.known.settings, found.known.record
    if record is not None:
        most = "any is allowed" if settings.max_depth is None else f"{settings.max_depth} at most"
        lines = [f"depth {record.depth}, {most}"]
    elif settings.max_depth is None:
        lines = ["links are followed to any depth"]
    else:
        lines = [
            f"links are followed to depth {settings.max_depth}; that of this URL is not known yet"
        ]
    if settings.seeds_only:
        is_one = "is" if found.known.domain is not None else "is not"
        lines.append(f"only domains of the seeds; {found.url.domain_name} {is_one} one")
    return lines


def _trap(found: Explanation) -> list[str]:
    """Nothing for nearly all URLs."""
    if not found.trap_signs:
        return []
    behind = f"behind links that are {found.penalty} further from a seed"
    comes_to = "a link to it is not accepted" if found.penalty >= REFUSED else f"it comes {behind}"
    return [*(f"{sign.what} ({sign.penalty})" for sign in found.trap_signs), comes_to]


def _robots(found: Explanation) -> list[str]:
    record = found.robots.record
    if record is None:
        return [f"never asked for at {found.url.origin}"]
    failures = f", {record.failures} times in a row" if record.failures > 1 else ""
    return [_STATUSES[record.status] + failures, *_rule(found), *_robots_age(found, record)]


def _rule(found: Explanation) -> list[str]:
    rule = found.robots.rule
    if rule is not None:
        verb = "allows" if found.robots.is_allowed else "forbids"
        return [f"line {rule.line} {verb} it: {one_line(rule.text)} (User-agent: {rule.group})"]
    record = found.robots.record
    if record is not None and record.status is RobotsStatus.RULES:
        return ["no line is about this URL: it is allowed"]
    return []


def _robots_age(found: Explanation, record: OriginRecord) -> list[str]:
    asked = f"asked for {utc_text(found.now - record.age)}, {seconds_text(record.age)} ago; "
    asked += (
        f"asked for again in {seconds_text(record.valid_for)} at the earliest"
        if record.valid_for > 0
        else "no longer valid: asked for again before the next page"
    )
    if record.source and record.source != f"{record.origin}/robots.txt":
        return [asked, f"redirected to {one_line(record.source)}"]
    return [asked]


def _delays(found: Explanation) -> list[str]:
    in_force, *others = found.delays
    lines = [f"{precise(in_force.seconds)}: {DELAY_REASONS[in_force.source]}"]
    if found.leaves_alone:
        lines.append("a Crawl-delay of more than a day: the domain is left alone")
    lines += [
        f"(shorter: {precise(delay.seconds)}, {DELAY_REASONS[delay.source]})" for delay in others
    ]
    domain = found.known.domain
    if domain is not None and domain.pace.failures:
        count = domain.pace.failures
        lines.append(f"{counted(count, 'visit')} in a row without an answer")
    return lines


def _next_visit(found: Explanation) -> list[str]:
    domain = found.known.domain
    if domain is None:
        return ["the domain was never visited"]
    if found.exclusion is not None or domain.is_excluded or found.leaves_alone:
        return ["none"]
    if domain.is_leased:
        return ["being visited now"]
    seconds = due_in(domain)
    when = (
        f"not before {utc_text(found.now + seconds)}, in {seconds_text(seconds)}"
        if seconds > 0
        else "possible now"
    )
    if domain.ready_in is None:
        return [f"{when}, but none is planned"]
    lines = [when, f"{domain.pending:,} URLs wait; a visit fetches one page"]
    return lines if found.known.is_running else [*lines, "the crawl is not running"]


def _state(found: Explanation) -> str:
    record = found.known.record
    if record is None:
        return "not known"
    parts = [record.state.name.lower() + (f" ({one_line(record.reason)})" if record.reason else "")]
    if record.attempts:
        parts.append(counted(record.attempts, "failed attempt"))
    return ", ".join(parts)


def _history(found: Explanation) -> list[str]:
    past = found.known.past
    if not past.requests:
        return ["never asked for"]
    shown = len(past.newest)
    more = f", the last {shown} of them" if shown < past.requests else ""
    count = f"{counted(past.requests, 'request')}{more}"
    return [count, *(_request_line(row) for row in past.newest)]


def _request_line(row: RequestRow) -> str:
    what = f"{utc_text(row.started)}  {one_line(outcome_text(row)):<18}  {row.kind.value:<7}  visit {row.visit}"
    notes = (fate_text(row), f"-> {one_line(row.target)}" if row.target else "")
    return "  ".join((what, *(note for note in notes if note)))


def as_json(found: Explanation) -> dict[str, Any]:
    """The object that `explain --json` prints."""
    known, in_force = found.known, found.delays[0]
    record, domain = known.record, known.domain
    return {
        "url": found.url.text,
        "given": found.given,
        "verdict": found.verdict.value,
        "sentence": f"{found.url.text} {found.sentence}.",
        "at": iso_time(found.now),
        "running": known.is_running,
        "domain": found.url.domain_name,
        "host": found.url.host,
        "origin": found.url.origin,
        "exclusion": None if found.exclusion is None else exclusion_json(found.exclusion),
        "scope": {
            "max_depth": known.settings.max_depth,
            "seeds_only": known.settings.seeds_only,
            "domain_known": domain is not None,
        },
        "dropped": list(found.dropped),
        "trap": {
            "penalty": found.penalty,
            "refused": found.penalty >= REFUSED,
            "signs": [{"what": sign.what, "penalty": sign.penalty} for sign in found.trap_signs],
        },
        "robots": _robots_json(found),
        "delay": {
            "seconds": in_force.seconds,
            "from": in_force.source.value,
            "all": {delay.source.value: delay.seconds for delay in found.delays},
            "leaves_alone": found.leaves_alone,
            "failures": domain.pace.failures if domain else 0,
        },
        "next_visit": None
        if domain is None
        else {
            "ready_in_s": domain.ready_in,
            "free_in_s": domain.free_in,
            "leased": domain.is_leased,
            "excluded": domain.is_excluded,
            "capped": domain.is_capped,
            "pending": domain.pending,
        },
        "record": None
        if record is None
        else {
            "state": record.state.name.lower(),
            "reason": record.reason or None,
            "depth": record.depth,
            "attempts": record.attempts,
            "visit": record.visit,
        },
        "requests": known.past.requests,
        "history": [request_json(row) for row in known.past.newest],
    }


def _robots_json(found: Explanation) -> dict[str, Any]:
    record, rule = found.robots.record, found.robots.rule
    return {
        "status": "never-asked" if record is None else record.status.value,
        "allowed": found.robots.is_allowed,
        "rule": None
        if rule is None
        else {"line": rule.line, "text": rule.text, "group": rule.group},
        "asked": None if record is None else iso_time(found.now - record.age),
        "age_s": None if record is None else round(record.age, 3),
        "valid_for_s": None if record is None else round(record.valid_for, 3),
        "source": (record.source or None) if record else None,
        "failures": record.failures if record else 0,
    }


def exclusion_json(exclusion: Exclusion) -> dict[str, Any]:
    """An exclusion as an object."""
    return {
        "pattern": exclusion.pattern,
        "since": iso_time(exclusion.wall) if exclusion.wall > 0 else None,
        "who": exclusion.who or None,
        "reason": exclusion.reason or None,
        "lifted": None if exclusion.lifted_at is None else iso_time(exclusion.lifted_wall),
        "lifted_by": exclusion.lifted_by or None,
    }
