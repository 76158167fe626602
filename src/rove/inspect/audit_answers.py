"""What the ledger's requests for robots.txt mean: which answer was in force at an origin, and since when.

This is the auditor's own reading of RFC 9309 and of the rules for redirects in docs/politeness.md.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from rove.inspect.audit_findings import domain_name
from rove.model.ledger import RequestKind, RequestRow, Settlement
from rove.model.reasons import RequestError, is_status_error
from rove.policy.constants import MAX_ROBOTS_HOPS
from rove.urls.canonical import PlainUrl, parse_base, plain_url
from rove.urls.origin import origin_of

PATH = "/robots.txt"
_UNCHANGED = 304
_UNSTORABLE = "\ufffd"


class Answer(enum.Enum):
    """The outcome of a request for a robots.txt."""

    RULES = "rules"
    NO_RULES = "no rules"
    NOTHING = "nothing"
    """It could not be fetched: no page of the origin may be requested."""
    UNKNOWN = "unknown"
    """It was read, but the ledger does not name its text."""
    SHARED = "shared"
    """It redirects to the robots.txt of another domain, whose answer counts."""


class Standing(NamedTuple):
    """The robots.txt in force at an origin. A tuple, because a domain may have many origins."""

    answer: Answer
    robots: str
    """The name of its text, '' if the ledger names none."""
    target: str
    """The robots.txt of another domain, if the answer is SHARED."""
    hops: int
    """Redirects that led to the answer or to the target."""
    visit: int
    seq: int
    domain: int
    began: int
    ended: int

    def request(self, origin: str) -> RequestRow:
        """Return as much as was remembered of the request that decided: for robots.txt, or its last redirect."""
        return RequestRow(
            visit=self.visit,
            seq=self.seq,
            domain=self.domain,
            kind=RequestKind.ROBOTS,
            url=origin + PATH,
            fingerprint=0,
            started=0.0,
            began=self.began,
            ended=self.ended,
        )


class _Chain(NamedTuple):
    """Redirects inside a domain that have not reached their end."""

    origin: str
    visit: int
    passed: tuple[str, ...]
    target: str | None
    """The target of the last redirect; None if the ledger could not store it exactly."""


class RobotsAnswers:
    """Reads the robots.txt requests of one domain, in the ledger's order."""

    def __init__(self) -> None:
        self._chain: _Chain | None = None

    def take(self, row: RequestRow) -> tuple[str, Standing] | None:
        """Return the origin that a request decides about, and its answer; None if it is not for a robots.txt."""
        chain, self._chain = self._chain, None
        if chain is not None and chain.visit == row.visit and chain.target in (row.url, None):
            origin, passed = chain.origin, chain.passed
        elif row.url == (origin := origin_of(row.url)) + PATH:
            passed = ()
        else:
            return None
        answer, target = _answer(row), ""
        hops = len(passed)
        if row.target and not row.error:
            hops += 1
            answer, following = _redirect(row, (*passed, row.url), hops)
            if answer is Answer.SHARED and following is not None:
                target = following.text
            elif following is not None:
                exact = None if _UNSTORABLE in row.target else following.text
                self._chain = _Chain(origin, row.visit, (*passed, row.url), exact)
        robots = row.robots if answer in (Answer.RULES, Answer.SHARED) else ""
        return origin, Standing(answer, robots, target, hops, row.visit, row.seq, row.domain, row.began, row.ended)


def _answer(row: RequestRow) -> Answer:
    """Return what a response that is no redirect means."""
    if row.error == RequestError.WRONG_TYPE:
        return Answer.NO_RULES
    if row.error and not is_status_error(row.error):
        return Answer.NOTHING
    if row.robots and (row.status == _UNCHANGED or not row.error):
        return Answer.RULES
    if row.status == _UNCHANGED:
        # The request was not conditional, so 304 is an error. For a lost visit the ledger does not tell.
        return Answer.UNKNOWN if row.settlement is Settlement.LOST else Answer.NOTHING
    if 200 <= row.status < 300 and not row.error:
        return Answer.UNKNOWN
    if 200 <= row.status < 500 and row.status != 429:
        return Answer.NO_RULES
    return Answer.NOTHING


def _redirect(row: RequestRow, passed: tuple[str, ...], hops: int) -> tuple[Answer, PlainUrl | None]:
    """Return what a redirect means, and its target if that is requested or shared.

    Until a target inside the domain has been requested, nothing may be fetched: the visit may have ended, or the target
    may be excluded.
    """
    target = plain_url(row.target, parse_base(row.url))
    if target is None or target.text in passed or hops > MAX_ROBOTS_HOPS:
        return Answer.NO_RULES, None
    if target.domain_name == domain_name(row.url):
        return Answer.NOTHING, target
    path, _, query = target.text.removeprefix(target.origin).partition("?")
    if path == PATH and not query:
        return Answer.SHARED, target
    return (Answer.NOTHING if path.lower().endswith(".txt") else Answer.NO_RULES), None
