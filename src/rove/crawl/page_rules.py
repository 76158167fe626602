"""What the rules of a crawl say about a page that was read."""

from __future__ import annotations

from typing import NamedTuple

from rove.crawl.target import Target
from rove.model.ledger import RequestRow
from rove.parse.html import Document
from rove.policy.expressions.facts import Subject
from rove.policy.rules import RuledOut, Rules


class PageRulings(NamedTuple):
    """The rules that decide against a page, None where none does."""

    storing: RuledOut | None = None
    following: RuledOut | None = None
    """They decide against taking its links."""


def rulings_on(rules: Rules, target: Target, row: RequestRow, document: Document) -> PageRulings:
    """Return what rules say about the page that a request has brought."""
    if not rules.about_pages:
        return PageRulings()
    page = Subject(
        target.url.text,
        depth=target.depth,
        status=row.status,
        type=row.media_type,
        title=document.title,
        text=document.utf8,
    )
    return PageRulings(rules.against_storing(page), rules.against_following(page))
