"""Why a URL was blocked or failed, why a request failed, and why a lease ended without a request.

These texts are stored in the frontier, counted, and shown to people. A failure that no name here covers carries the
value of its `FailureKind`.
"""

from __future__ import annotations

import enum

MAX_MEDIA_TYPE_SHOWN = 95
_REFUSED = "status "
_UNREAD = "type "
_GIVEN_UP = "domain given up: "
_ROBOTS = "robots.txt: "
_REJECTED = "rejected by "
_NOT_STORED = "not stored by "
MAX_RULE_SHOWN = 100


class BlockReason(enum.StrEnum):
    """Why rove may not fetch or keep a URL."""

    EXCLUDED = "excluded"
    ROBOTS = "robots.txt"
    CRAWL_DELAY = "Crawl-delay over a day"
    NOINDEX = "noindex"
    USAGE = "usage preference"
    """The crawl is for training, and the site does not want that of this page."""


class FailReason(enum.StrEnum):
    """Why rove gave up a URL, apart from failed requests."""

    REDIRECT_TO_NO_URL = "redirect to no web address"
    REDIRECT_LOOP = "redirect loop"
    HTTP_LEADS_TO_HTTPS = "https cannot be reached, and http leads to it"
    HTTP_LEADS_ELSEWHERE = "https cannot be reached, and http leads elsewhere"
    CHALLENGED = "challenged"
    """A bot wall came instead of the page."""
    INTERNAL_ERROR = "internal error"
    DAMAGED = "damaged"
    """Its row in the frontier is damaged."""
    KILLS_PROCESS = "kills the process that reads it"
    """It killed several processes that had nothing else to read."""


SUSPECTED = "a process died while it read this"
"""The reason of a pending URL that is tried alone next."""


def refused_status(status: int) -> str:
    """Return the reason of a URL whose server responded with an error status."""
    return f"{_REFUSED}{status}"


def unread_type(media_type: str) -> str:
    """Return the reason of a URL whose content rove does not read."""
    return f"{_UNREAD}{media_type[:MAX_MEDIA_TYPE_SHOWN]}"


def domain_given_up(failure: str) -> str:
    """Return the reason of all URLs of a domain that has not responded for too long."""
    return f"{_GIVEN_UP}{failure}"


def robots_unreachable(failure: str) -> str:
    """Return the reason of a URL that waits because its robots.txt cannot be fetched."""
    return f"{_ROBOTS}{failure}"


def rejected_by_rules(rules: str) -> str:
    """Return the reason of a URL that rules of the crawl reject; `rules` says which ones."""
    return f"{_REJECTED}{rules[:MAX_RULE_SHOWN]}"


def is_rejected_by_rules(reason: str) -> bool:
    """Whether a URL is blocked only because rules of the crawl reject it.

    >>> is_rejected_by_rules(rejected_by_rules("rule 1: seed")), is_rejected_by_rules("excluded")
    (True, False)
    """
    return reason.startswith(_REJECTED)


def not_stored_by_rules(rules: str) -> str:
    """Return the reason of a URL whose page was fetched and is not stored, because rules of the crawl say so."""
    return f"{_NOT_STORED}{rules[:MAX_RULE_SHOWN]}"


def is_not_stored_by_rules(reason: str) -> bool:
    """Whether the page of a URL was fetched and is not stored, because rules of the crawl say so."""
    return reason.startswith(_NOT_STORED)


class RequestError(enum.StrEnum):
    """Why a request brought no page, apart from `FailureKind` and error statuses."""

    WRONG_TYPE = "wrong-type"
    CHALLENGED = "challenged"
    """The response was a bot wall, with a status of success."""
    LOST = "lost"
    """Its process was killed before it ended."""


_STATUS = "status-"


def status_error(status: int) -> str:
    """Return the error of a request whose response had an error status."""
    return f"{_STATUS}{status}"


def error_behind(reason: str) -> str:
    """Return the error of the request that led to the reason of a URL, as `rove status` counts it.

    >>> error_behind("status 404"), error_behind("domain given up: connect"), error_behind("redirect loop")
    ('status-404', 'connect', 'redirect loop')
    """
    cause = reason.removeprefix(_GIVEN_UP).removeprefix(_ROBOTS)
    if cause.startswith(_REFUSED):
        return _STATUS + cause.removeprefix(_REFUSED)
    return RequestError.WRONG_TYPE if cause.startswith(_UNREAD) else cause


def is_status_error(error: str) -> bool:
    """Whether the error of a request is its status alone."""
    return error.startswith(_STATUS)


def error_status(error: str) -> int:
    """Return the status of an error that `status_error` made; 0 for any other error.

    >>> error_status("status-503"), error_status("dns")
    (503, 0)
    """
    return int(error.removeprefix(_STATUS)) if is_status_error(error) else 0


class PauseCause(enum.StrEnum):
    """Why a crawl is slowed down or paused."""

    OPERATOR = "operator"
    """The owner has paused it."""
    OUTAGE = "outage"
    """No site responds."""
    DATABASE = "database"
    REST = "rest"
    """The database may have lost its last transactions, so all domains rest."""
    DISK = "disk"
    MEMORY = "memory"
    FETCHES = "fetches"
    """Something ran short, so that fewer fetches are in flight for a while."""


class NoRequestReason(enum.StrEnum):
    """Why a lease ended without a request."""

    BLOCKED = "blocked"
    """All URLs looked at were blocked."""
    DEFERRED = "deferred"
    NO_ROOM = "no-room"
    """As many visits as are allowed were at its address, or at addresses beside it."""
    GIVEN_BACK = "given-back"
