"""Which rules applied to an origin whose robots.txt redirects to that of another domain?

The ledger is asked what the other domain answered at that time. That answer may be a redirect to a third domain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Set

from rove.inspect.audit_answers import Answer, RobotsAnswers, Standing
from rove.model.ledger import RequestKind, RequestRow
from rove.policy.constants import MAX_ROBOTS_HOPS, VISIT_BUDGET
from rove.urls.canonical import CrawlUrl, UrlForm

Visits = Callable[[int], AsyncIterator[RequestRow]]
"""Reads all requests to a domain, in order."""

MAX_TARGETS = 1_024
"""Shared robots.txt files whose answers are kept in memory."""
_BUDGET_MS = round(VISIT_BUDGET * 1000)


class SharedRobots:
    """Finds the answers of robots.txt files that others redirect to."""

    def __init__(self, visits: Visits, form: UrlForm) -> None:
        self._visits = visits
        self._form = form
        self._answers: OrderedDict[str, list[Standing]] = OrderedDict()

    async def resolve(self, standing: Standing, origin: str, page: RequestRow) -> Standing:
        """Return what a redirect to another robots.txt meant for a page of its origin.

        The text that the redirect's own request names counts only if the other domain gave it. NOTHING if there was
        no answer yet.
        """
        until = page.began if page.visit == standing.visit else standing.ended + _BUDGET_MS
        found = await self._leaves(standing, until, standing.hops, frozenset({origin}))
        wanted = Answer.RULES if standing.robots else Answer.NO_RULES
        for leaf in reversed(found):
            if leaf.answer is wanted and leaf.robots == standing.robots:
                return standing._replace(answer=leaf.answer, ended=min(standing.ended, leaf.ended))
        is_unknown = any(leaf.answer is Answer.UNKNOWN for leaf in found)
        return standing._replace(answer=Answer.UNKNOWN if is_unknown else Answer.NOTHING, robots="")

    async def _leaves(self, redirect: Standing, until: int, hops: int, passed: Set[str]) -> list[Standing]:
        """Return the answers that a redirect may have found at its target, up to a time."""
        target = self._form.in_full.canonical(redirect.target)
        assert target is not None, "the target of a shared robots.txt is a URL"
        no_rules = redirect._replace(answer=Answer.NO_RULES, robots="")
        if target.origin in passed or hops > MAX_ROBOTS_HOPS:
            return [no_rules]
        leaves: list[Standing] = []
        for answer in _in_force(await self._answers_of(target), redirect.began, until):
            total = hops + answer.hops
            if total > MAX_ROBOTS_HOPS:
                leaves.append(no_rules)
            elif answer.answer is Answer.SHARED:
                later = max(until, answer.ended + _BUDGET_MS)
                leaves += await self._leaves(answer, later, total, passed | {target.origin})
            else:
                leaves.append(answer)
        return leaves

    async def _answers_of(self, url: CrawlUrl) -> list[Standing]:
        """Return all answers of an origin's robots.txt, in order."""
        if url.origin in self._answers:
            self._answers.move_to_end(url.origin)
            return self._answers[url.origin]
        requests, answers = RobotsAnswers(), []
        async for row in self._visits(url.domain):
            taken = requests.take(row) if row.kind is RequestKind.ROBOTS else None
            if taken is not None and taken[0] == url.origin:
                answers.append(taken[1])
        self._answers[url.origin] = answers
        if len(self._answers) > MAX_TARGETS:
            self._answers.popitem(last=False)
        return answers


def _in_force(answers: list[Standing], since: int, until: int) -> list[Standing]:
    """Return the answers that were the last one at some time in a period."""
    before = [answer for answer in answers if answer.ended <= since]
    return [*before[-1:], *(answer for answer in answers if since < answer.ended <= until)]
