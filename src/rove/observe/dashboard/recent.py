"""The last requests of a crawl, as they come in."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from rove.inspect.follow import Follower
from rove.inspect.open_crawl import Archive
from rove.model.ledger import RequestKind, RequestRow

KEPT = 1_000
"""The last requests, whose answers are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestAnswers:
    """The answers to the last requests for pages, counted."""

    requests: int
    statuses: Counter[str]
    """By HTTP status; requests without a response are counted under their error."""
    media_types: Counter[str]


class RecentRequests:
    """Follows the ledger of a crawl."""

    def __init__(self, kept: int = KEPT) -> None:
        self._rows: deque[RequestRow] = deque(maxlen=kept)
        self._archive: Archive | None = None
        self._follower: Follower | None = None

    async def update(self, archive: Archive) -> None:
        """Read the requests that have come since the last call."""
        if self._archive is not archive or self._follower is None:  # the crawl was opened anew
            self._archive, self._follower = archive, Follower(archive.reader)
            found = await self._follower.begin()
            known = {(row.visit, row.seq) for row in self._rows}
            found = [row for row in found if (row.visit, row.seq) not in known]
        else:
            found = await self._follower.new_requests()
        newest = sorted([*self._rows, *found], key=lambda row: row.started)
        self._rows.clear()
        self._rows.extend(newest)

    def newest(self, limit: int) -> Sequence[RequestRow]:
        """Return the last requests, newest first."""
        return list(reversed(self._rows))[:limit]

    def answers(self) -> LatestAnswers:
        """Count the answers to those of the last requests that were for pages."""
        pages = [row for row in self._rows if row.kind is RequestKind.PAGE]
        return LatestAnswers(
            requests=len(pages),
            statuses=Counter(str(row.status) if row.status else row.error or "no answer known" for row in pages),
            media_types=Counter(row.media_type for row in pages if row.media_type),
        )
