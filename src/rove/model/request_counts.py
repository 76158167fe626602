"""Counts requests apart for pages, robots.txt and sitemaps, and tells which of them failed.

Both the counters of a process and those of the frontier are named by `counter_names`, so that a run and the whole crawl
count the same things.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from rove.model.ledger import RequestKind, RequestRow
from rove.model.reasons import RequestError, error_status

KIND_NAMES = {RequestKind.PAGE: "page", RequestKind.ROBOTS: "robots.txt", RequestKind.SITEMAP: "sitemap"}
"""What people call the kinds of requests."""


class WithoutContent(enum.StrEnum):
    """Why a request brought nothing although nothing went wrong."""

    NO_ROBOTS = "no-robots-txt"
    """The site has no robots.txt: everything is allowed (RFC 9309, section 2.3.1.3)."""
    NOT_MODIFIED = "not-modified"
    """The known robots.txt is still valid."""
    OTHER_TYPE = "other-type"
    """Something that rove does not read, such as a PDF."""


_REQUESTS = "requests."
_ERRORS = "errors."
_WITHOUT_CONTENT = "without_content."
_TOO_MANY_REQUESTS = 429


def without_content(kind: RequestKind, error: str) -> WithoutContent | None:
    """Return why a request with an `error` in the ledger is not an error for a person; None if it is one.

    >>> without_content(RequestKind.ROBOTS, "status-404"), without_content(RequestKind.PAGE, "status-404")
    (<WithoutContent.NO_ROBOTS: 'no-robots-txt'>, None)
    """
    match kind:
        case RequestKind.ROBOTS:
            status = error_status(error)
            if status == 304:
                return WithoutContent.NOT_MODIFIED
            if 400 <= status < 500 and status != _TOO_MANY_REQUESTS:
                return WithoutContent.NO_ROBOTS
        case RequestKind.PAGE:
            if error == RequestError.WRONG_TYPE:
                return WithoutContent.OTHER_TYPE
        case RequestKind.SITEMAP:
            pass
    return None


def is_listed_with_pages(row: RequestRow) -> bool:
    """Whether a list of pages shows a request: a failed robots.txt too, because its site may have no other request."""
    is_failed_robots = row.kind is RequestKind.ROBOTS and bool(row.error) and not without_content(row.kind, row.error)
    return row.kind is RequestKind.PAGE or is_failed_robots


@lru_cache(maxsize=1024)
def counter_names(kind: RequestKind, error: str) -> tuple[str, ...]:
    """Return the counters that a request adds one to.

    >>> counter_names(RequestKind.PAGE, ""), counter_names(RequestKind.ROBOTS, "dns")
    (('requests.page',), ('requests.robots', 'errors.robots.dns'))
    """
    requests = f"{_REQUESTS}{kind}"
    if not error:
        return (requests,)
    harmless = without_content(kind, error)
    return (requests, f"{_ERRORS}{kind}.{error}" if harmless is None else f"{_WITHOUT_CONTENT}{kind}.{harmless}")


class RequestCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a run or of a whole crawl."""

    by_kind: Mapping[RequestKind, int] = msgspec.field(default_factory=dict)
    errors_by_kind: Mapping[RequestKind, Mapping[str, int]] = msgspec.field(default_factory=dict)
    without_content_by_kind: Mapping[RequestKind, Mapping[str, int]] = msgspec.field(default_factory=dict)

    @property
    def total(self) -> int:
        """All requests."""
        return sum(self.by_kind.values())

    @property
    def errors(self) -> Counter[str]:
        """Failed requests of all kinds, by error."""
        return _summed(self.errors_by_kind.values())

    def failed(self, kind: RequestKind) -> int:
        """Return the failed requests of a kind."""
        return sum(self.errors_by_kind[kind].values())


def request_counts(counters: Mapping[str, int]) -> RequestCounts:
    """Build the counts from counters that `counter_names` names; others are skipped."""
    return RequestCounts(
        by_kind={kind: counters.get(f"{_REQUESTS}{kind}", 0) for kind in RequestKind},
        errors_by_kind={kind: _family(counters, f"{_ERRORS}{kind}.") for kind in RequestKind},
        without_content_by_kind={kind: _family(counters, f"{_WITHOUT_CONTENT}{kind}.") for kind in RequestKind},
    )


def counters_of(counts: RequestCounts) -> Counter[str]:
    """Return the counters that the counts were built from.

    >>> counters = {"requests.page": 2, "errors.page.dns": 1, "requests.robots": 1}
    >>> counters_of(request_counts(counters)) == Counter(counters)
    True
    """
    counters = Counter({f"{_REQUESTS}{kind}": number for kind, number in counts.by_kind.items()})
    for prefix, families in ((_ERRORS, counts.errors_by_kind), (_WITHOUT_CONTENT, counts.without_content_by_kind)):
        for kind, family in families.items():
            counters.update({f"{prefix}{kind}.{name}": number for name, number in family.items()})
    return counters


def _family(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    found = {name.removeprefix(prefix): number for name, number in counters.items() if name.startswith(prefix)}
    return {name: number for name, number in found.items() if number}


def _summed(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total
