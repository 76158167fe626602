"""Was robots.txt obeyed? Replays the ledger and judges every page again by the stored copy of robots.txt.

One domain is replayed at a time. An origin belongs to one domain, and only visits to it request the robots.txt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from rove.humanize import seconds_text
from rove.inspect.audit_answers import PATH, Answer, RobotsAnswers, Standing
from rove.inspect.audit_findings import AuditReport, Check, Unverifiable
from rove.inspect.audit_shared import SharedRobots, Visits
from rove.model.ledger import RequestRow, Settlement
from rove.policy.constants import ROBOTS_VALID_SECONDS, VISIT_BUDGET
from rove.policy.robots import Rules
from rove.urls.origin import origin_of

RobotsText = Callable[[int], Awaitable[bytes | None]]
"""Reads the stored copy of a robots.txt by its hash in the ledger."""

OLDEST_MS = round((ROBOTS_VALID_SECONDS + VISIT_BUDGET) * 1000)
"""Maximum age of a robots.txt at a page request: it must be valid when the visit begins, and visits take time."""
MAX_RULES = 64
"""Parsed robots.txt files in the cache; the pages of a domain rarely need more than a few."""
FEW_ORIGINS = 4_096
"""Above this number of origins of one domain, those with an expired robots.txt are forgotten."""
_ALLOW_ALL = Rules(b"")


class RobotsReplay:
    """Replays the requests of one domain after the other."""

    def __init__(self, report: AuditReport, robots_text: RobotsText, visits: Visits) -> None:
        self._report = report
        self._robots_text = robots_text
        self._shared = SharedRobots(visits)
        self._rules: OrderedDict[int, Rules | None] = OrderedDict()
        self._origins: dict[str, Standing] = {}
        self._drop_above = FEW_ORIGINS
        self._answers = RobotsAnswers()

    def begin_domain(self) -> None:
        """Forget the origins of the previous domain."""
        if self._origins:
            self._origins = {}
        self._drop_above = FEW_ORIGINS
        self._answers = RobotsAnswers()

    def take_robots(self, row: RequestRow, visited: RequestRow) -> None:
        """Take a request for a robots.txt or for its redirect target; `visited` is the first request of the visit."""
        taken = self._answers.take(row)
        if taken is None:
            if row.settlement is not Settlement.LOST:
                what = "requested as a robots.txt, but it is not one, and no robots.txt of its domain redirects there"
                self._report.add(Check.ROBOTS, visited, what, row)
            return
        origin, standing = taken
        self._origins[origin] = standing
        if len(self._origins) > self._drop_above:
            self._drop_old(row.began)

    async def judge(self, row: RequestRow, visited: RequestRow) -> None:
        """Check a request for a page or a sitemap."""
        origin = origin_of(row.url)
        standing = self._origins.get(origin)
        self._report.checked[Check.PAGE_BEFORE_ROBOTS] += 1
        if standing is None:
            what = f"{origin}{PATH} had not been requested, or so long ago that it had expired"
            self._report.add(Check.PAGE_BEFORE_ROBOTS, visited, what, row)
            return
        if standing.answer is Answer.SHARED:
            standing = await self._shared.resolve(standing, origin, row)
        if row.began - standing.ended > OLDEST_MS:
            age = (row.began - standing.ended) / 1000
            what = f"{origin}{PATH} had been requested {seconds_text(age)} before"
            self._report.add(Check.PAGE_BEFORE_ROBOTS, visited, what, standing.request(origin), row, age_s=age)
        await self._check_rules(standing, origin, row, visited)

    async def _check_rules(self, standing: Standing, origin: str, row: RequestRow, visited: RequestRow) -> None:
        if standing.hash is not None:
            rules = await self._rules_of(standing.hash)
        else:
            rules = None if standing.answer is Answer.UNKNOWN else _ALLOW_ALL
        if rules is None:
            self._report.unverifiable[Unverifiable.NO_COPY] += 1
            return
        self._report.checked[Check.ROBOTS] += 1
        if standing.answer is Answer.NOTHING:
            what = f"{origin}{PATH} could not be fetched"
            self._report.add(Check.ROBOTS, visited, what, standing.request(origin), row)
        elif not rules.allows(row.url):
            rule = rules.deciding_rule(row.url)
            assert rule is not None, "only a line can forbid a URL"
            what = f"forbidden by line {rule.line} of {origin}{PATH}: {rule.text}"
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
