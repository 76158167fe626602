"""Decides whether a page that was read is stored, and whether its links are followed. Pure."""

from __future__ import annotations

from typing import NamedTuple

from rove.crawl.target import Target
from rove.model.ledger import RequestRow
from rove.model.outcomes import Fetched
from rove.model.reasons import BlockReason, not_stored_by_rules
from rove.model.usage import Purpose, Usage
from rove.parse.html import Document
from rove.policy.expressions.facts import Subject
from rove.policy.robots import rules_of
from rove.policy.rules import RuledOut, Rules
from rove.policy.usage import combine, header_statements


class PageDecision(NamedTuple):
    """What becomes of a page."""

    blocked: str = ""
    """The reason not to store it, '' if it is stored."""
    not_followed: RuledOut | None = None
    """The rules that decide against taking its links."""


def usage_of_page(target: Target, fetched: Fetched, document: Document, *, robots: bytes) -> Usage:
    """Return what a site states about the use of a page: in its robots.txt, the headers and the page."""
    in_robots = rules_of(robots).usage_of(target.url.text)
    return combine([*in_robots, *header_statements(fetched.response.headers), *document.usage])


def decide_page(
    rules: Rules, target: Target, row: RequestRow, document: Document, *, usage: Usage, purpose: Purpose | None
) -> PageDecision:
    """Decide about the page that a request has brought, by the wishes of its site first and then by the rules."""
    storing = following = None
    if rules.about_pages:
        page = Subject(
            target.url.text,
            depth=target.depth,
            status=row.status,
            type=row.media_type,
            title=document.title,
            text=document.utf8,
        )
        storing, following = rules.against_storing(page), rules.against_following(page)
    if document.noindex:
        return PageDecision(BlockReason.NOINDEX, following)
    if purpose is Purpose.TRAINING and usage.forbids(purpose):
        return PageDecision(BlockReason.USAGE, following)
    return PageDecision("" if storing is None else not_stored_by_rules(storing.rules), following)
