"""Which pages of a crawl a person wants to see."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import NamedTuple

from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.inspect.lookup import Site
from rove.inspect.similar_domains import similar_domains
from rove.model.ledger import RequestRow
from rove.model.marks import Mark
from rove.model.outcomes import FailureKind
from rove.model.reasons import RequestError, is_status_error
from rove.notation.humanize import utc_text
from rove.policy.expressions.expression import Test, compiled
from rove.policy.expressions.facts import Place, Subject
from rove.urls.canonical import UrlForm

ANY_ERROR = "any"
_STATUS_ERROR = re.compile(r"status-[0-9]{3}")


class Where(NamedTuple):
    """An expression that must hold for a page."""

    text: str
    holds: Test


def parse_where(text: str) -> Where:
    """Return an expression of `--where`."""
    return Where(text.strip(), compiled(text.strip(), Place.LEDGER))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """A choice among the requests for pages."""

    site: Site | None = None
    status: int | None = None
    error: str | None = None
    """The error of the request; ANY_ERROR for all that have one."""
    mark: str | None = None
    where: Where | None = None
    since: float = -math.inf
    """Wall-clock seconds."""
    until: float = math.inf

    async def rows(self, reader: FrontierReader) -> AsyncIterator[RequestRow]:
        """Iterate over the pages that were chosen, newest first."""
        domain = None if self.site is None else self.site.id
        async for row in reader.pages(domain=domain, since=self.since, until=self.until):
            if self.takes(row):
                yield row

    def takes(self, row: RequestRow) -> bool:
        """Whether a page fits, apart from its domain and time."""
        return (
            self.status in (None, row.status)
            and (self.error in (None, row.error) or (self.error == ANY_ERROR and row.error != ""))
            and (self.mark is None or self.mark in row.marks)
            and (self.where is None or self.where.holds(_subject(row)))
        )

    def check(self, *, errors: Collection[str], marks: Collection[str]) -> None:
        """Refuse an error or a mark that does not exist; the arguments are those that this crawl has counted."""
        if self.error is not None and not _STATUS_ERROR.fullmatch(self.error):
            known = {ANY_ERROR, *FailureKind, *RequestError, *(e for e in errors if not is_status_error(e))}
            _refuse_unknown("error", self.error, known, "status-NNN")
        if self.mark is not None:
            _refuse_unknown("mark", self.mark, {*Mark, *marks})

    async def nothing_found(self, reader: FrontierReader, form: UrlForm, what: str = "page") -> str:
        """Return a sentence that says that no page was found, and which domain may have been meant."""
        parts = [
            f"of {self.site.name}" if self.site is not None else "",
            f"with status {self.status}" if self.status is not None else "",
            "with an error" if self.error == ANY_ERROR else f"with the error {self.error}" if self.error else "",
            f"with the mark {self.mark}" if self.mark is not None else "",
            f"for which {self.where.text} holds" if self.where is not None else "",
            f"since {utc_text(self.since)}" if math.isfinite(self.since) else "",
            f"before {utc_text(self.until)}" if math.isfinite(self.until) else "",
        ]
        sentence = " ".join(["no", what, *filter(None, parts)])
        return sentence if self.site is None else sentence + await did_you_mean(reader, self.site, form)


def _subject(row: RequestRow) -> Subject:
    return Subject(row.url, status=row.status, type=row.media_type, title=row.title)


async def did_you_mean(reader: FrontierReader, site: Site, form: UrlForm) -> str:
    """Return the end of a sentence about a site: which known domains are meant instead; '' if the site is known."""
    if await reader.known_domains([site.id]):
        return ""
    similar = await similar_domains(reader, site.name, form)
    return f"; did you mean {' or '.join(similar)}?" if similar else "; no URL of that domain is known"


def _refuse_unknown(what: str, given: str, known: Collection[str], *more: str) -> None:
    if given not in known:
        raise UsageError(f"there is no {what} {given!r}; choose one of {', '.join([*sorted(known), *more])}")
