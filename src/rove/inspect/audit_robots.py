"""Was robots.txt obeyed? Replays the ledger and judges every page again by the stored copy of robots.txt.

One domain is replayed at a time. An origin belongs to one domain, and only visits to it request the robots.txt.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rove.humanize import seconds_text
from rove.inspect.audit_findings import AuditReport, Check, Unverifiable
from rove.model.ledger import RequestKind, RequestRow, Settlement
from rove.model.reasons import RequestError, is_status_error
from rove.policy.constants import MAX_ROBOTS_HOPS, ROBOTS_VALID_SECONDS, VISIT_BUDGET
from rove.policy.robots import Rules
from rove.urls.canonical import canonical, parse_base
from rove.urls.origin import origin_of

RobotsText = Callable[[int], Awaitable[bytes | None]]
"""Reads the stored copy of a robots.txt by its hash in the ledger."""

OLDEST_MS = round((ROBOTS_VALID_SECONDS + VISIT_BUDGET) * 1000)
"""Maximum age of a robots.txt at a page request: it must be valid when the visit begins, and visits take time."""
MAX_RULES = 64
"""Parsed robots.txt files in the cache; the pages of a domain rarely need more than a few."""
FEW_ORIGINS = 4_096
"""Above this number of origins of one domain, those with an expired robots.txt are forgotten."""
_PATH = "/robots.txt"
_UNCHANGED = 304
_UNSTORABLE = "\ufffd"
_ALLOW_ALL = Rules(b"")


class _Answer(enum.Enum):
    """The outcome of a request for a robots.txt."""

    RULES = "rules"
    NO_RULES = "no rules"
    NOTHING = "nothing"
    """It could not be fetched: no page of the origin may be requested."""
    UNKNOWN = "unknown"
    """It was read, but the ledger does not name its text."""


class _Standing(NamedTuple):
    """The robots.txt in force at an origin. A tuple, because a domain may have many origins."""

    answer: _Answer
    hash: int | None
    """Of the stored copy; None unless the answer is RULES."""
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
            url=origin + _PATH,
            fingerprint=0,
            started=0.0,
            began=self.began,
            ended=self.ended,
        )


class _Chain(NamedTuple):
    """A chain of robots.txt redirects that has not reached its end."""

    origin: str
    visit: int
    hops: int
    target: str | None
    """The target of the last redirect; None if the ledger could not store it exactly."""


class RobotsReplay:
    """Replays the requests of one domain after the other."""

    def __init__(self, report: AuditReport, robots_text: RobotsText) -> None:
        self._report = report
        self._robots_text = robots_text
        self._rules: OrderedDict[int, Rules | None] = OrderedDict()
        self._origins: dict[str, _Standing] = {}
        self._drop_above = FEW_ORIGINS
        self._chain: _Chain | None = None

    def begin_domain(self) -> None:
        """Forget the origins of the previous domain."""
        if self._origins:
            self._origins = {}
        self._drop_above = FEW_ORIGINS
        self._chain = None

    def take_robots(self, row: RequestRow, visited: RequestRow) -> None:
        """Take a request for a robots.txt or for its redirect target; `visited` is the first request of the visit."""
        chain, self._chain = self._chain, None
        if chain is not None and chain.visit == row.visit and chain.target in (row.url, None):
            origin, hops = chain.origin, chain.hops + 1
        elif row.other_domain is None and row.url == (origin := origin_of(row.url)) + _PATH:
            hops = 0
        else:
            if row.settlement is not Settlement.LOST:
                what = "requested as a robots.txt, but it is not one, and no robots.txt redirects there"
                self._report.add(Check.ROBOTS, visited, what, row)
            return
        answer, self._chain = _answer(row, origin, hops)
        hash = row.content_hash if answer is _Answer.RULES else None
        self._origins[origin] = _Standing(answer, hash, row.visit, row.seq, row.domain, row.began, row.ended)
        if len(self._origins) > self._drop_above:
            self._drop_old(row.began)

    async def judge(self, row: RequestRow, visited: RequestRow) -> None:
        """Check a request for a page or a sitemap."""
        origin = origin_of(row.url)
        standing = self._origins.get(origin)
        self._report.checked[Check.PAGE_BEFORE_ROBOTS] += 1
        if standing is None:
            what = f"{origin}{_PATH} had not been requested, or so long ago that it had expired"
            self._report.add(Check.PAGE_BEFORE_ROBOTS, visited, what, row)
            return
        if row.began - standing.ended > OLDEST_MS:
            age = (row.began - standing.ended) / 1000
            what = f"{origin}{_PATH} had been requested {seconds_text(age)} before"
            self._report.add(Check.PAGE_BEFORE_ROBOTS, visited, what, standing.request(origin), row, age_s=age)
        await self._check_rules(standing, origin, row, visited)

    async def _check_rules(self, standing: _Standing, origin: str, row: RequestRow, visited: RequestRow) -> None:
        if standing.hash is not None:
            rules = await self._rules_of(standing.hash)
        else:
            rules = None if standing.answer is _Answer.UNKNOWN else _ALLOW_ALL
        if rules is None:
            self._report.unverifiable[Unverifiable.NO_COPY] += 1
            return
        self._report.checked[Check.ROBOTS] += 1
        if standing.answer is _Answer.NOTHING:
            what = f"{origin}{_PATH} could not be fetched"
            self._report.add(Check.ROBOTS, visited, what, standing.request(origin), row)
        elif not rules.allows(row.url):
            rule = rules.deciding_rule(row.url)
            assert rule is not None, "only a line can forbid a URL"
            what = f"forbidden by line {rule.line} of {origin}{_PATH}: {rule.text}"
            evidence = standing.request(origin), row
            self._report.add(Check.ROBOTS, visited, what, *evidence, line=rule.line, rule=rule.text)

    async def _rules_of(self, hash: int) -> Rules | None:
        try:
            self._rules.move_to_end(hash)
            return self._rules[hash]
        except KeyError:
            body = await self._robots_text(hash)
        rules = None if body is None else Rules(body)
        self._rules[hash] = rules
        if len(self._rules) > MAX_RULES:
            self._rules.popitem(last=False)
        return rules

    def _drop_old(self, now: int) -> None:
        """Forget expired copies: with a delay between visits, few origins fit into a day."""
        oldest = now - OLDEST_MS
        self._origins = {o: s for o, s in self._origins.items() if s.ended >= oldest}
        self._drop_above = max(FEW_ORIGINS, 2 * len(self._origins))


def _answer(row: RequestRow, origin: str, hops: int) -> tuple[_Answer, _Chain | None]:
    """Return what a request for a robots.txt means for the origin, and the chain that its redirect continues."""
    if row.target and not row.error:
        return _redirect(row, origin, hops)
    if row.error == RequestError.WRONG_TYPE:
        return _Answer.NO_RULES, None
    if row.error and not is_status_error(row.error):
        return _Answer.NOTHING, None
    if row.content_hash is not None and (row.status == _UNCHANGED or not row.error):
        return _Answer.RULES, None
    if row.status == _UNCHANGED:
        # The request was not conditional, so 304 is an error. For a lost visit the ledger does not tell.
        return (_Answer.UNKNOWN if row.settlement is Settlement.LOST else _Answer.NOTHING), None
    if 200 <= row.status < 300 and not row.error:
        return _Answer.UNKNOWN, None
    if 200 <= row.status < 500 and row.status != 429:
        return _Answer.NO_RULES, None
    return _Answer.NOTHING, None


def _redirect(row: RequestRow, origin: str, hops: int) -> tuple[_Answer, _Chain | None]:
    """Until the next request, nothing may be fetched: the visit may have ended, or the target may be excluded."""
    if hops >= MAX_ROBOTS_HOPS:
        return _Answer.NO_RULES, None
    target = canonical(row.target, parse_base(row.url))
    if target is None:
        return _Answer.NO_RULES, None
    exact = None if _UNSTORABLE in row.target else target.text
    return _Answer.NOTHING, _Chain(origin, row.visit, hops, exact)
