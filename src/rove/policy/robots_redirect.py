"""Decides whether a robots.txt redirect is followed. Pure.

RFC 9309, section 2.3.1.2, asks crawlers to follow five redirects, also to other authorities. rove follows them inside
the domain. Another domain is requested only in its own visits, and only for `/robots.txt`: otherwise thousands of hosts
could make rove send requests of their choice to a site that has nothing to do with them.
"""

from __future__ import annotations

import enum

from rove.policy.constants import MAX_ROBOTS_HOPS
from rove.urls.canonical import CrawlUrl

ROBOTS_PATH = "/robots.txt"


class RobotsRedirect(enum.Enum):
    """What a robots.txt redirect means."""

    FOLLOW = "follow"
    """The target is in the same domain: request it in the same visit."""
    SHARE = "share"
    """The target is the robots.txt of another domain: its record applies."""
    NO_RULES = "no rules"
    """The target is a page for every URL that does not exist, or the redirects lead nowhere."""
    UNREACHABLE = "unreachable"
    """The target may hold rules, but must not be requested."""


def judge_redirect(page: CrawlUrl, target: CrawlUrl, *, hops: int, may_lead: bool) -> RobotsRedirect:
    """Decide about a redirect of the robots.txt of a page's origin.

    `hops` counts the redirects so far, including this one. `may_lead` tells whether rove may send requests to the
    target at all (exclusions, ports).
    """
    if hops > MAX_ROBOTS_HOPS:
        return RobotsRedirect.NO_RULES
    if not may_lead:
        return RobotsRedirect.UNREACHABLE
    if target.domain_name == page.domain_name:
        return RobotsRedirect.FOLLOW
    path = target.text[len(target.origin) :]
    if path == ROBOTS_PATH:
        return RobotsRedirect.SHARE
    # A text file may hold rules. Anything else is what the site answers to every unknown URL.
    is_text = path.partition("?")[0].lower().endswith(".txt")
    return RobotsRedirect.UNREACHABLE if is_text else RobotsRedirect.NO_RULES
