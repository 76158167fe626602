"""Links that did not enter the frontier, as examples for people."""

from __future__ import annotations

import msgspec

SAMPLED = 1_000
"""Links of each reason that are kept as examples."""


class SkippedLink(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A link that was not taken."""

    reason: str
    """A NotAccepted, or the counter of the rules that decide: `rule-2`."""
    domain: int
    fingerprint: int
    url: str
    page: str
    """The page or sitemap that has the link, or the URL that redirects to it."""
    at: float = 0.0
    """When it was written, in seconds of the crawl's clock. The frontier knows."""
