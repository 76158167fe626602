"""Was robots.txt obeyed? The ledger is read again as the crawl went, and every page judged anew by the copy kept.

One domain at a time: an origin belongs to one domain, so what it answered is in the visits to that domain.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rove.humanize import seconds_text
from rove.inspect.audit_findings import Check, Evidence, Findings, Unverifiable
from rove.model.ledger import RequestKind, RequestRow, Settlement
from rove.model.reasons import RequestError, is_status_error
from rove.policy.constants import MAX_ROBOTS_HOPS, ROBOTS_VALID_SECONDS, VISIT_BUDGET
from rove.policy.robots import Rules
from rove.urls.canonical import canonical, parse_base
from rove.urls.origin import origin_of

RobotsText = Callable[[int], Awaitable[bytes | None]]
"""The copy of a robots.txt, by the hash that the ledger names it with."""

OLDEST_MS = round((ROBOTS_VALID_SECONDS + VISIT_BUDGET) * 1000)
"""Age of a robots.txt beyond which it counts no longer: it is valid when a visit begins, which then takes a while."""
MAX_RULES = 64
"""Parsed robots.txt files at hand; the pages of a domain rarely need more than a few."""
FEW_ORIGINS = 4_096
"""Origins of one domain that are remembered before those are dropped whose robots.txt is too old to matter."""
_PATH = "/robots.txt"
_UNCHANGED = 304
_UNSTORABLE = "\ufffd"


class _Answer(enum.Enum):
    """What asking for a robots.txt came to."""

    RULES = "rules"
    NO_RULES = "no rules"
    NOTHING = "nothing"
    """It could not be had: nothing of the origin may be fetched."""
    UNKNOWN = "unknown"
    """It was read, and the ledger does not say what it was."""


class _Standing(NamedTuple):
    """How an origin stands. A tuple, as a domain may have many."""

    answer: _Answer
    hash: int | None
    visit: int
    seq: int
    began: int
    ended: int


class _Chain(NamedTuple):
    """A robots.txt that has been redirected, and is not there yet."""

    origin: str
    visit: int
    hops: int
    target: str | None
    """Where it leads; None where the ledger could not store that to the letter."""


class RobotsReplay:
    """Goes through the requests of one domain after the other."""

    def __init__(self, findings: Findings, robots_text: RobotsText) -> None:
        self._findings = findings
        self._robots_text = robots_text
        self._rules: OrderedDict[int, Rules | None] = OrderedDict()
        self._origins: dict[str, _Standing] = {}
        self._drop_above = FEW_ORIGINS
        self._chain: _Chain | None = None
        self._has_past = False
        """The domain was visited by a version that kept no ledger."""

    def begin_domain(self) -> None:
        """What was known is of no use any more."""
        if self._origins:
            self._origins = {}
        self._drop_above = FEW_ORIGINS
        self._chain = None
        self._has_past = False

    def note_past(self) -> None:
        """The domain was visited by a version that kept no ledger."""
        self._has_past = True

    def take_robots(self, row: RequestRow, visited: RequestRow) -> None:
        """A request for a robots.txt, or for where one led; `visited`: the first request of the visit."""
        chain, self._chain = self._chain, None
        if chain is not None and chain.visit == row.visit and chain.target in (row.url, None):
            origin, hops = chain.origin, chain.hops + 1
        elif row.other_domain is None and row.url == (origin := origin_of(row.url)) + _PATH:
            hops = 0
        else:
            if row.settlement is not Settlement.LOST:
                self._findings.add(
                    Check.ROBOTS,
                    visited,
                    "asked for as a robots.txt, which it is not, and no redirect of one leads there",
                    row,
                )
            return
        answer, self._chain = _answer(row, origin, hops)
        hash = row.content_hash if answer is _Answer.RULES else None
        self._origins[origin] = _Standing(answer, hash, row.visit, row.seq, row.began, row.ended)
        if len(self._origins) > self._drop_above:
            self._drop_old(row.began)

    async def judge(self, row: RequestRow, visited: RequestRow) -> None:
        """A request for a page or a sitemap."""
        origin = origin_of(row.url)
        standing = self._origins.get(origin)
        if standing is None and self._has_past:
            self._findings.unverifiable[Unverifiable.ROBOTS_BEFORE_LEDGER] += 1
            return
        self._findings.checked[Check.PAGE_BEFORE_ROBOTS] += 1
        if standing is None:
            self._findings.add(
                Check.PAGE_BEFORE_ROBOTS,
                visited,
                f"{origin}{_PATH} had not been asked for, or so long ago that it did not count any more",
                row,
            )
            return
        age = row.began - standing.ended
        if age > OLDEST_MS:
            self._findings.add(
                Check.PAGE_BEFORE_ROBOTS,
                visited,
                f"{origin}{_PATH} had been asked for {seconds_text(age / 1000)} before",
                _asked(standing, origin),
                row,
                age_s=age / 1000,
            )
        await self._hold_against(standing, origin, row, visited)

    async def _hold_against(
        self, standing: _Standing, origin: str, row: RequestRow, visited: RequestRow
    ) -> None:
        if standing.answer is _Answer.RULES and standing.hash is not None:
            rules = await self._rules_of(standing.hash)
        else:
            rules = None if standing.answer is _Answer.UNKNOWN else Rules.EMPTY
        if rules is None:
            self._findings.unverifiable[Unverifiable.NO_COPY] += 1
            return
        self._findings.checked[Check.ROBOTS] += 1
        if standing.answer is _Answer.NOTHING:
            what = f"{origin}{_PATH} could not be had"
            self._findings.add(Check.ROBOTS, visited, what, _asked(standing, origin), row)
        elif not rules.allows(row.url):
            rule = rules.deciding_rule(row.url)
            line, text = (rule.line, rule.text) if rule is not None else (0, "")
            self._findings.add(
                Check.ROBOTS,
                visited,
                f"forbidden by line {line} of {origin}{_PATH}: {text}",
                _asked(standing, origin),
                row,
                line=line,
                rule=text,
            )

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
        """Forget what is too old to count: a delay between visits leaves room for few origins a day."""
        oldest = now - OLDEST_MS
        self._origins = {o: found for o, found in self._origins.items() if found.ended >= oldest}
        self._drop_above = max(FEW_ORIGINS, 2 * len(self._origins))


def _answer(row: RequestRow, origin: str, hops: int) -> tuple[_Answer, _Chain | None]:
    """What a request for a robots.txt means for the origin (as in robots_fetch), and where it leads if it does."""
    if row.target and not row.error:
        return _redirect(row, origin, hops)
    if row.error == RequestError.WRONG_TYPE:
        return _Answer.NO_RULES, None
    if row.error and not is_status_error(row.error):
        return _Answer.NOTHING, None
    if row.content_hash is not None and (row.status == _UNCHANGED or not row.error):
        return _Answer.RULES, None
    if row.status == _UNCHANGED:
        # Nobody had asked whether it was; of a visit that was lost, the ledger does not tell.
        return (_Answer.UNKNOWN if row.settlement is Settlement.LOST else _Answer.NOTHING), None
    if 200 <= row.status < 300 and not row.error:
        return _Answer.UNKNOWN, None
    if 200 <= row.status < 500 and row.status != 429:
        return _Answer.NO_RULES, None
    return _Answer.NOTHING, None


def _redirect(row: RequestRow, origin: str, hops: int) -> tuple[_Answer, _Chain | None]:
    """Until the next request tells, nothing is known: the visit may have ended, or the way may be barred."""
    if hops >= MAX_ROBOTS_HOPS:
        return _Answer.NO_RULES, None
    target = canonical(row.target, parse_base(row.url))
    if target is None:
        return _Answer.NO_RULES, None
    exact = None if _UNSTORABLE in row.target else target.text
    return _Answer.NOTHING, _Chain(origin, row.visit, hops, exact)


def _asked(standing: _Standing, origin: str) -> Evidence:
    """The request that told how the origin stands: that for its robots.txt, or the last hop from there."""
    return Evidence(
        visit=standing.visit,
        seq=standing.seq,
        kind=RequestKind.ROBOTS,
        url=origin + _PATH,
        began=standing.began,
        ended=standing.ended,
        started=None,
    )
