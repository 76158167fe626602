"""Was robots.txt obeyed? Replays the ledger and judges every page again by the stored copy of robots.txt.

One domain is replayed at a time. An origin belongs to one domain, and only visits to it request the robots.txt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from rove.inspect.audit_answers import PATH, Answer, RobotsAnswers, Standing
from rove.inspect.audit_findings import AuditReport, Check, Unverifiable
from rove.inspect.audit_shared import SharedRobots, Visits
from rove.model.ledger import RequestRow, Settlement
from rove.model.text_hash import robots_name
from rove.notation.humanize import seconds_text
from rove.policy.constants import ROBOTS_VALID_SECONDS, VISIT_BUDGET
from rove.policy.robots import Rules
from rove.urls.canonical import UrlForm
from rove.urls.origin import origin_of

RobotsText = Callable[[str], Awaitable[bytes | None]]
"""Reads the stored text of a robots.txt by its name in the ledger."""

OLDEST_MS = round((ROBOTS_VALID_SECONDS + VISIT_BUDGET) * 1000)
"""Maximum age of a robots.txt at a page request: it must be valid when the visit begins, and visits take time."""
VISIT_MS = round(VISIT_BUDGET * 1000)
MAX_RULES = 64
"""Parsed robots.txt files in the cache; the pages of a domain rarely need more than a few."""
FEW_ORIGINS = 4_096
"""Above this number of origins of one domain, those with an expired robots.txt are forgotten."""
_ALLOW_ALL = Rules(b"")


class RobotsReplay:
    """Replays the requests of one domain after the other."""

    def __init__(
        self,
        report: AuditReport,
        robots_text: RobotsText,
        visits: Visits,
        form: UrlForm,
        losses: Sequence[int] = (),
    ) -> None:
        """`losses`: when the database came back without its last transactions."""
        self._losses = losses
        self._report = report
        self._robots_text = robots_text
        self._shared = SharedRobots(visits, form)
        self._rules: OrderedDict[str, Rules | Unverifiable] = OrderedDict()
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
        if standing.answer is Answer.NOTHING and row.settlement is Settlement.OFFLINE and origin in self._origins:
            return  # this machine was offline, so an earlier copy stays in force until it expires
        self._origins[origin] = standing
        if len(self._origins) > self._drop_above:
            self._drop_old(row.began)

    async def judge(self, row: RequestRow, visited: RequestRow) -> Rules | None:
        """Check a request for a page or a sitemap; return the rules that were in force, None if they are unknown."""
        origin = origin_of(row.url)
        standing = self._origins.get(origin)
        self._report.checked[Check.PAGE_BEFORE_ROBOTS] += 1
        if standing is None:
            if self._may_be_lost(row):
                return None
            what = f"{origin}{PATH} had not been requested, or so long ago that it had expired"
            self._report.add(Check.PAGE_BEFORE_ROBOTS, visited, what, row)
            return None
        if standing.answer is Answer.SHARED:
            standing = await self._shared.resolve(standing, origin, row)
        if row.began - standing.ended > OLDEST_MS and not self._may_be_lost(row):
            age = (row.began - standing.ended) / 1000
            what = f"{origin}{PATH} had been requested {seconds_text(age)} before"
            self._report.add(Check.PAGE_BEFORE_ROBOTS, visited, what, standing.request(origin), row, age_s=age)
        return await self._check_rules(standing, origin, row, visited)

    def _may_be_lost(self, row: RequestRow) -> bool:
        """Whether the database may have lost the request for the robots.txt of a page; count it if so.

        A visit that was in flight at the loss, or a robots.txt that was read before it and was valid for a day.
        """
        if not any(loss - VISIT_MS <= row.began <= loss + OLDEST_MS for loss in self._losses):
            return False
        self._report.unverifiable[Unverifiable.LOST_REQUEST] += 1
        return True

    async def _check_rules(self, standing: Standing, origin: str, row: RequestRow, visited: RequestRow) -> Rules | None:
        rules: Rules | Unverifiable
        if standing.robots:
            rules = await self._rules_of(standing.robots)
        else:
            rules = Unverifiable.NO_COPY if standing.answer is Answer.UNKNOWN else _ALLOW_ALL
        if isinstance(rules, Unverifiable):
            self._report.unverifiable[rules] += 1
            return None
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
        return rules

    async def _rules_of(self, name: str) -> Rules | Unverifiable:
        try:
            self._rules.move_to_end(name)
            return self._rules[name]
        except KeyError:
            body = await self._robots_text(name)
        rules: Rules | Unverifiable
        if body is None:
            rules = Unverifiable.NO_COPY
        else:
            rules = Rules(body) if robots_name(body) == name else Unverifiable.OTHER_COPY
        self._rules[name] = rules
        if len(self._rules) > MAX_RULES:
            self._rules.popitem(last=False)
        return rules

    def _drop_old(self, now: int) -> None:
        """Forget expired copies: with a delay between visits, few origins fit into a day."""
        oldest = now - OLDEST_MS
        self._origins = {o: s for o, s in self._origins.items() if s.ended >= oldest}
        self._drop_above = max(FEW_ORIGINS, 2 * len(self._origins))
