"""The marks of a response: what was cut, dropped or doubtful about it."""

from __future__ import annotations

import enum


class Mark(enum.StrEnum):
    """A mark, as the ledger stores it and `rove status` counts it."""

    BODY_CUT = "body-cut"
    """The body was longer than the cap."""
    DECOMPRESSION_CUT = "decompression-cut"
    """The body grew out of proportion when it was decompressed."""
    LOCATION_DROPPED = "location-dropped"
    """A redirect was dropped because its Location is too long."""
    PARSE_CUT = "parse-cut"
    """The page was longer, or had more tags, than what is read of a page."""
    LINKS_CUT = "links-cut"
    TEXT_CUT = "text-cut"
    ROBOTS_CUT = "robots-cut"
    """The robots.txt has more rules for rove than count; the others are ignored."""
    ROBOTS_NOT_KEPT = "robots-not-kept"
    """The text of the robots.txt was not stored, because its domain has stored too many different ones."""
    JS_SHELL = "js-shell"
    """Scripts make the content of the page; its text comes from data in the page, if there is any."""
    CHALLENGED = "challenged"
    """A bot wall came instead of the page."""
    TLS_EXPIRED = "tls-expired"
    TLS_NOT_YET_VALID = "tls-not-yet-valid"
    TLS_SELF_SIGNED = "tls-self-signed"
    TLS_WRONG_HOST = "tls-wrong-host"
    TLS_UNTRUSTED = "tls-untrusted"
    TLS_OLD = "tls-old"
    """TLS before 1.2, or a key or cipher that is too weak by today's standards."""
